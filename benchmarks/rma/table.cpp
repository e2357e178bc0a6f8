// SPDX-License-Identifier: BSL-1.0
// The hash table: inserts and searches per second of all processes, each with random keys, all found again
// and verified; without locks one by one, with buffered inserts and searches of many keys, and with each kind
// of locks. usage: mpiexec -n 2 bench_rma_table [keys of each process] [rounds]
#include <weft/rma.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

namespace rma = weft::rma;

namespace {

template <std::size_t Words>
struct words {
  std::array<std::uint64_t, Words> of{};
  bool operator==(const words&) const = default;
};
template <class T>
T numbered(std::uint64_t n) {
  T t;
  for (std::size_t i = 0; i < t.of.size(); ++i) t.of[i] = n * 0x9e3779b97f4a7c15 + i;
  return t;
}
double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

template <class Key, class Value>
void measure(const weft::mpi::communicator& world, std::uint64_t keys, int rounds, rma::table_options options,
             const char* how, bool many) {
  using clock = std::chrono::steady_clock;
  std::vector<double> inserts, finds;
  const auto me = static_cast<std::uint64_t>(world.rank()), n = static_cast<std::uint64_t>(world.size());
  for (int round = 0; round < rounds; ++round) {
    options.buckets_per_process = 2 * keys;
    rma::hash_table<Key, Value> table(world, options);
    const auto seconds = [&](auto operations) {
      world.barrier();
      const auto start = clock::now();
      operations();
      world.barrier();
      return std::chrono::duration<double>(clock::now() - start).count();
    };
    inserts.push_back(static_cast<double>(keys * n) / seconds([&] {
                        for (std::uint64_t i = 0; i < keys; ++i)
                          if (many)
                            table.insert_buffered(numbered<Key>(i * n + me), numbered<Value>(i));
                          else
                            table.insert(numbered<Key>(i * n + me), numbered<Value>(i));
                        table.flush();
                      }));
    bool right = true;
    const auto key = [&](std::uint64_t i) { return numbered<Key>(i * n + (me + 1) % n); };
    const auto compare = [&](std::uint64_t i, const std::optional<Value>& found) {
      right = right && found && *found == numbered<Value>(i);
    };
    finds.push_back(static_cast<double>(keys * n) / seconds([&] {
                      if (!many) {
                        for (std::uint64_t i = 0; i < keys; ++i) compare(i, table.find(key(i)));
                        return;
                      }
                      std::vector<Key> wanted;
                      std::vector<std::optional<Value>> values;
                      for (std::uint64_t first = 0; first < keys; first += wanted.size()) {
                        wanted.resize(std::min<std::uint64_t>(256, keys - first));
                        values.resize(wanted.size());
                        for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = key(first + i);
                        table.find(wanted, values);
                        for (std::size_t i = 0; i < wanted.size(); ++i) compare(first + i, values[i]);
                      }
                    }));
    if (!right) std::abort();
  }
  if (world.rank() == 0)
    std::printf("%4zu + %-4zu %8s %12s %12.0f %12.0f\n", sizeof(Key), sizeof(Value),
                rma::name(options.backend), how, 1e-3 * median(inserts), 1e-3 * median(finds));
}

}  // namespace

int main(int argc, char** argv) {
  weft::mpi::environment mpi(argc, argv);
  const std::uint64_t keys = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  if (mpi.world().rank() == 0)
    std::printf("%d processes, %llu keys each, medians of %d\n%11s %8s %12s %12s %12s\n", mpi.world().size(),
                static_cast<unsigned long long>(keys), rounds, "bytes", "memory", "form, locks",
                "inserts k/s", "finds k/s");
  for (const rma::backend b : {rma::backend::shared, rma::backend::mpi}) {
    const std::uint64_t some = b == rma::backend::shared ? keys : keys / 10;
    const auto both = [&](const rma::table_options& options, const char* how, bool many) {
      measure<words<1>, words<1>>(mpi.world(), some, rounds, options, how, many);
      measure<words<10>, words<13>>(mpi.world(), some, rounds, options, how, many);
    };
    both({.backend = b}, "none", false);
    both({.backend = b}, "many", true);
    for (const rma::lock_kind kind : {rma::lock_kind::mpi, rma::lock_kind::gbh_backoff,
                                      rma::lock_kind::mcs_writer_preference, rma::lock_kind::rma_rw})
      both({.backend = b, .lock = kind}, rma::name(kind), false);
  }
}
