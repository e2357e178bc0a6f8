// SPDX-License-Identifier: BSL-1.0
// Hash tables of a job: every operation and backend, alone and against each other; files; what is refused.
// Run by mpiexec; process 0 prints "right" if all processes found everything right. usage: table_program
// <path of a file>
#include <weft/rma.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>

namespace rma = weft::rma;

namespace {

int failures = 0;

void check(bool right, const char* what, int line) {
  if (right) return;
  ++failures;
  std::fprintf(stderr, "line %d: %s\n", line, what);
}
#define CHECK(...) check((__VA_ARGS__), #__VA_ARGS__, __LINE__)

std::string refusal(const auto& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing was thrown";
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

struct record {
  std::array<std::uint64_t, 13> of;
  bool whole() const {
    for (const std::uint64_t v : of)
      if (v != of[0]) return false;
    return true;
  }
};
record all(std::uint64_t v) {
  record r{};
  r.of.fill(v);
  return r;
}
struct wide_key {
  std::array<std::uint32_t, 5> of;  // no multiple of eight bytes
  bool operator==(const wide_key&) const = default;
};

/// A random program of one process on keys of its own, compared with std::map.
void alone(const weft::mpi::communicator& world, rma::table_options options) {
  options.buckets_per_process = 600;
  rma::hash_table<wide_key, record> table(world, options);
  CHECK(table.backend() == options.backend);
  std::map<std::uint32_t, std::uint64_t> expected;
  std::mt19937 random(5 + static_cast<unsigned>(world.rank()));
  const auto key = [&](std::uint32_t k) {
    return wide_key{{k, 1, static_cast<std::uint32_t>(world.rank()), 0, k}};
  };
  const int rounds = options.backend == rma::backend::messages ? 100 : 1500;
  for (int i = 0; i < rounds; ++i) {
    const auto k = static_cast<std::uint32_t>(random() % 200);
    const bool known = expected.contains(k);
    switch (random() % 4) {
      case 0:
        CHECK(table.insert(key(k), all(random())) != known);
        expected[k] = table.find(key(k))->of[0];
        break;
      case 1:
        CHECK(table.erase(key(k)) == known);
        expected.erase(k);
        break;
      case 2:
        CHECK(table.update(key(k), [](record& r) { r = all(r.of[0] + 3); }) == known);
        if (known) expected[k] += 3;
        break;
      default: {
        const auto found = table.find(key(k));
        CHECK(found.has_value() == known);
        CHECK(!found || (found->whole() && found->of[0] == expected[k]));
      }
    }
  }
  const std::uint64_t wanted = world.sum<std::uint64_t>(expected.size());
  CHECK(table.size() == wanted);
  if (!expected.empty()) {
    CHECK(refusal([&] {
            table.update(key(expected.begin()->first),
                         [](record& r) { r = all(0), throw std::runtime_error("no"); });
          }) == "no");
    CHECK(table.find(key(expected.begin()->first))->of[0] == expected.begin()->second);
  }
  table.rehash(900);
  CHECK(table.size() == wanted);
  for (const auto& [k, v] : expected) CHECK(table.find(key(k)).value_or(record{}).of[0] == v);
  const rma::table_statistics s = table.statistics();
  CHECK(s.found > 0 && s.missed > 0 && s.inserted > 0 && s.probed >= s.found + s.missed);
  world.barrier();
}

/// All processes on the same keys: counters are exact, no value is torn, no key is there twice.
void against_each_other(const weft::mpi::communicator& world, rma::table_options options,
                        std::uint64_t rounds) {
  constexpr std::uint64_t keys = 16;
  options.buckets_per_process = 64;
  rma::hash_table<std::uint64_t, record> table(world, options);
  std::mt19937 random(91 + static_cast<unsigned>(world.rank()));
  std::uint64_t fresh = 0;
  for (std::uint64_t k = 0; k < keys; ++k) fresh += table.insert(k, all(0));
  CHECK(world.sum(fresh) == keys);
  CHECK(table.size() == keys);
  bool whole = true;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const std::uint64_t k = random() % keys;
    CHECK(table.update(k, [](record& r) { r = all(r.of[0] + 1); }));
    whole &= table.find(random() % keys).value_or(record{{1}}).whole();
  }
  CHECK(whole);
  world.barrier();
  std::uint64_t counted = 0;
  table.for_each_local([&counted](std::uint64_t, const record& r) { counted += r.of[0]; });
  CHECK(world.sum(counted) == rounds * static_cast<std::uint64_t>(world.size()));
  world.barrier();
}

void full_and_cache(const weft::mpi::communicator& world, rma::backend backend) {
  const auto n = static_cast<std::uint64_t>(world.size());
  rma::hash_table<std::uint64_t, std::uint64_t> small(world, {.buckets_per_process = 8, .backend = backend});
  rma::hash_table<std::uint64_t, std::uint64_t> cache(
      world, {.buckets_per_process = 8, .evict = true, .places = 3, .backend = backend});
  if (world.rank() == 0) {
    const std::string text = refusal([&] {
      for (std::uint64_t k = 0; k <= 8 * n; ++k) small.insert(k, k);
    });
    CHECK(has(text, "weft: the hash table is full: process "));
    for (std::uint64_t k = 0; k < 100 * n; ++k) {
      cache.insert(k, k + 1);
      CHECK(cache.find(k) == k + 1);
    }
    CHECK(cache.statistics().evicted > 0);
  }
  world.barrier();
  CHECK(cache.size() <= 8 * n);
  CHECK(small.size() <= 8 * n);
  const std::uint64_t before = small.size();
  CHECK(has(refusal([&] { small.rehash(1); }), n == 1 ? "full" : ""));
  CHECK(small.size() == before);
  small.rehash(100);
  CHECK(small.size() == before);
  CHECK(has(refusal([&] { rma::hash_table<int, int>(world, {.buckets_per_process = 0}); }),
            "at least one bucket"));
  world.barrier();
}

/// Inserts that are collected, also of one key and with full buckets.
void buffered(const weft::mpi::communicator& world, rma::table_options options) {
  const auto me = static_cast<std::uint64_t>(world.rank()), n = static_cast<std::uint64_t>(world.size());
  options.buckets_per_process = 300;
  options.buffered = 37;
  rma::hash_table<std::uint64_t, record> table(world, options);
  for (std::uint64_t i = 0; i < 200; ++i) table.insert_buffered(i * n + me, all(i));
  for (std::uint64_t i = 0; i < 200; i += 3) table.insert_buffered(i * n + me, all(i + 1000));
  table.flush();
  CHECK(table.size() == 200 * n);
  for (std::uint64_t i = 0; i < 200; ++i) {
    const record found = table.find(i * n + me).value_or(record{});
    CHECK(found.whole() && found.of[0] == (i % 3 == 0 ? i + 1000 : i));
  }
  CHECK(table.statistics().inserted == 200 && table.statistics().replaced == 67);
  world.barrier();
  // All processes write the same keys.
  for (std::uint64_t i = 0; i < 50; ++i) table.insert_buffered(1'000'000 + i, all(me));
  table.flush();
  CHECK(table.size() == 200 * n + 50);
  for (std::uint64_t i = 0; i < 50; ++i) {
    const record found = table.find(1'000'000 + i).value_or(record{{1}});
    CHECK(found.whole() && found.of[0] < n);
  }
  world.barrier();
  // What does not fit in stays, and comes in when there is room.
  const std::string text = refusal([&] {
    for (std::uint64_t i = 0; i < 300; ++i) table.insert_buffered(2'000'000 + i * n + me, all(i));
    table.flush();
  });
  CHECK(has(text, "weft: the hash table is full: process "));
  world.barrier();
  table.rehash(3000);
  table.flush();
  CHECK(table.find(2'000'000 + me).value_or(record{{1}}).of[0] == 0);
  world.barrier();
}

void files(const weft::mpi::communicator& world, const std::string& path) {
  const auto me = static_cast<std::uint64_t>(world.rank()), n = static_cast<std::uint64_t>(world.size());
  rma::hash_table<std::uint64_t, record> table(world, {.buckets_per_process = 500});
  for (std::uint64_t i = 0; i < 100; ++i) table.insert(i * n + me, all(i));
  table.save(path);
  const auto reads = [&] {
    rma::hash_table<std::uint64_t, record> again(world, {.buckets_per_process = 777});
    again.load(path);
    CHECK(again.size() == 100 * n);
    for (std::uint64_t i = 0; i < 100; ++i)
      CHECK(again.find(i * n + (me + 1) % n).value_or(record{}).of[3] == i);
  };
  reads();
  const auto other = [&](auto change, const char* why) {
    world.barrier();
    if (world.rank() == 0) {
      std::ifstream from(path, std::ios::binary);
      std::string bytes(std::istreambuf_iterator<char>(from), {});
      change(bytes);
      std::ofstream(path + "-changed", std::ios::binary) << bytes;
    }
    world.barrier();
    const std::string text = refusal([&] { table.load(path + "-changed"); });
    CHECK(has(text, why));
    if (!has(text, why)) std::fprintf(stderr, "%s\n", text.c_str());
    CHECK(table.size() == 100 * n);
  };
  other([](std::string& b) { b[b.size() / 2] = static_cast<char>(b[b.size() / 2] ^ 4); },
        "the checksum of its records is wrong");
  other([](std::string& b) { b[25] ^= 1; }, "the checksum of its header is wrong");
  other([](std::string& b) { b.pop_back(); }, "its size is wrong");
  other([](std::string& b) { b[0] = 'x'; }, "is not a hash table of weft");
  other([](std::string& b) { b.clear(); }, "is not a hash table of weft");
  rma::hash_table<std::uint64_t, std::uint32_t> narrow(world, {.buckets_per_process = 500});
  CHECK(
      has(refusal([&] { narrow.load(path); }), "holds keys and values of 8 and 104 bytes, expected 8 and 4"));
  CHECK(has(refusal([&] { table.load(path + "-missing"); }), "-missing"));
  CHECK(has(refusal([&] { table.save("/no/such/folder/table"); }), "table"));
  reads();
  world.barrier();
  if (world.rank() == 0) std::remove((path + "-changed").c_str()), std::remove(path.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  weft::mpi::environment mpi(argc, argv);
  weft::mpi::communicator& world = mpi.world();
  for (const rma::backend backend : {rma::backend::shared, rma::backend::mpi}) {
    alone(world, {.backend = backend});
    against_each_other(world, {.backend = backend}, 300);
    full_and_cache(world, backend);
    buffered(world, {.backend = backend});
    for (const rma::lock_kind kind :
         {rma::lock_kind::mpi, rma::lock_kind::gbh, rma::lock_kind::gbh_backoff,
          rma::lock_kind::mcs_writer_preference, rma::lock_kind::d_mcs, rma::lock_kind::rma_rw})
      against_each_other(world, {.backend = backend, .lock = kind, .ranges = 2}, 60);
    alone(world, {.backend = backend, .lock = rma::lock_kind::rma_rw, .ranges = 3});
    buffered(world, {.backend = backend, .lock = rma::lock_kind::gbh_backoff, .ranges = 2});
  }
  alone(world, {.backend = rma::backend::messages});
  against_each_other(world, {.backend = rma::backend::messages}, 30);
  CHECK(has(refusal([&] { rma::hash_table<int, int>(world, {.ranges = 0}); }), "one to as many ranges"));
  files(world, std::string(argc > 1 ? argv[1] : "/tmp/weft-table") + "-" + std::to_string(world.size()));
  const int wrong = world.sum(failures);
  if (world.rank() == 0 && wrong == 0) std::printf("right\n");
  return wrong == 0 ? 0 : 1;
}
