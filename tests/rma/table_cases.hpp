// SPDX-License-Identifier: BSL-1.0
// What is expected of a hash table, whatever its processes are: called by all of them, with their parts of
// the group.
#pragma once

#include "checks.hpp"

#include <weft/rma/hash_table.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace rma = weft::rma;

template <class Group, class Key, class Value, class Hash = rma::hash_bytes<Key>>
using table_of = rma::hash_table<Key, Value, Hash, Group>;

inline bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

struct record {
  std::array<std::uint64_t, 13> of;
  bool whole() const {
    for (const std::uint64_t v : of)
      if (v != of[0]) return false;
    return true;
  }
};
inline record all(std::uint64_t v) {
  record r{};
  r.of.fill(v);
  return r;
}
struct wide_key {
  std::array<std::uint32_t, 5> of;  // no multiple of eight bytes
  bool operator==(const wide_key&) const = default;
};

/// A random program of one process on keys of its own, compared with std::map.
template <class Group>
void alone(const Group& world, rma::table_options options) {
  options.buckets_per_process = 600;
  table_of<Group, wide_key, record> table(world, options);
  RIGHT(table.backend() == options.backend);
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
      case 0: {
        const std::uint64_t value = random();
        RIGHT(table.insert(key(k), all(value)) != known);
        expected[k] = value;
        break;
      }
      case 1:
        RIGHT(table.erase(key(k)) == known);
        expected.erase(k);
        break;
      case 2:
        RIGHT(table.update(key(k), [](record& r) { r = all(r.of[0] + 3); }) == known);
        if (known) expected[k] += 3;
        break;
      default: {
        const auto found = table.find(key(k));
        RIGHT(found.has_value() == known);
        RIGHT(!found || (found->whole() && found->of[0] == expected[k]));
      }
    }
  }
  const std::uint64_t wanted = world.sum(std::uint64_t{expected.size()});
  RIGHT(table.size() == wanted);
  if (!expected.empty()) {
    RIGHT(refusal<std::exception>([&] {
            table.update(key(expected.begin()->first),
                         [](record& r) { r = all(0), throw std::runtime_error("no"); });
          }) == "no");
    RIGHT(table.find(key(expected.begin()->first))->of[0] == expected.begin()->second);
  }
  table.rehash(900);
  RIGHT(table.size() == wanted);
  for (const auto& [k, v] : expected) RIGHT(table.find(key(k)).value_or(record{}).of[0] == v);
  const rma::table_statistics s = table.statistics();
  RIGHT(s.found > 0 && s.missed > 0 && s.inserted > 0 && s.probed >= s.found + s.missed);
  world.barrier();
}

/// All processes on the same keys: counters are exact, no value is torn, no key is there twice.
template <class Group>
void against_each_other(const Group& world, rma::table_options options, std::uint64_t rounds) {
  constexpr std::uint64_t keys = 16;
  options.buckets_per_process = 64;
  table_of<Group, std::uint64_t, record> table(world, options);
  std::mt19937 random(91 + static_cast<unsigned>(world.rank()));
  std::uint64_t fresh = 0;
  for (std::uint64_t k = 0; k < keys; ++k) fresh += table.insert(k, all(0));
  RIGHT(world.sum(fresh) == keys);
  RIGHT(table.size() == keys);
  bool whole = true;
  std::array<std::uint64_t, keys> each;
  std::array<std::optional<record>, keys> values;
  std::iota(each.begin(), each.end(), std::uint64_t{0});
  for (std::uint64_t i = 0; i < rounds; ++i) {
    if (i % 8 == 0) {
      whole &= table.find(each, values) == keys;
      for (const auto& v : values) whole &= v && v->whole();
    }
    const std::uint64_t k = random() % keys;
    RIGHT(table.update(k, [](record& r) { r = all(r.of[0] + 1); }));
    whole &= table.find(random() % keys).value_or(record{{1}}).whole();
  }
  RIGHT(whole);
  world.barrier();
  std::uint64_t counted = 0;
  table.for_each_local([&counted](std::uint64_t, const record& r) { counted += r.of[0]; });
  RIGHT(world.sum(counted) == rounds * static_cast<std::uint64_t>(world.size()));
  world.barrier();
}

template <class Group>
void full_and_cache(const Group& world, rma::backend backend) {
  const auto n = static_cast<std::uint64_t>(world.size());
  table_of<Group, std::uint64_t, std::uint64_t> small(world, {.buckets_per_process = 8, .backend = backend});
  table_of<Group, std::uint64_t, std::uint64_t> cache(
      world, {.buckets_per_process = 8, .evict = true, .places = 3, .backend = backend});
  if (world.rank() == 0) {
    const std::string text = refusal<std::exception>([&] {
      for (std::uint64_t k = 0; k <= 8 * n; ++k) small.insert(k, k);
    });
    RIGHT(has(text, "weft: the hash table is full: process "));
    const std::uint64_t keys = (backend == rma::backend::messages ? 16 : 100) * n;
    for (std::uint64_t k = 0; k < keys; ++k) {
      cache.insert(k, k + 1);
      RIGHT(cache.find(k) == k + 1);
    }
    RIGHT(cache.statistics().evicted > 0);
  }
  world.barrier();
  RIGHT(cache.size() <= 8 * n);
  RIGHT(small.size() <= 8 * n);
  const std::uint64_t before = small.size();
  const std::string refused = refusal<std::exception>([&] { small.rehash(1); });
  RIGHT(has(refused, "weft: the hash table is full: process ") ||
        (n > 1 && has(refused, "weft: rehashing has failed in process ")));
  RIGHT(small.size() == before);
  small.rehash(100);
  RIGHT(small.size() == before);
  RIGHT(has(refusal<std::exception>([&] { table_of<Group, int, int>(world, {.buckets_per_process = 0}); }),
            "at least one bucket"));
  RIGHT(has(refusal<std::exception>(
                [&] { table_of<Group, int, int>(world, {.buckets_per_process = SIZE_MAX / 2}); }),
            "is larger than any memory"));
  world.barrier();
}

/// Inserts that are collected, also of one key and with full buckets.
template <class Group>
void buffered(const Group& world, rma::table_options options) {
  const auto me = static_cast<std::uint64_t>(world.rank()), n = static_cast<std::uint64_t>(world.size());
  options.buckets_per_process = 300;
  options.buffered = 37;
  table_of<Group, std::uint64_t, record> table(world, options);
  for (std::uint64_t i = 0; i < 200; ++i) table.insert_buffered(i * n + me, all(i));
  for (std::uint64_t i = 0; i < 200; i += 3) table.insert_buffered(i * n + me, all(i + 1000));
  table.flush();
  RIGHT(table.size() == 200 * n);
  for (std::uint64_t i = 0; i < 200; ++i) {
    const record found = table.find(i * n + me).value_or(record{});
    RIGHT(found.whole() && found.of[0] == (i % 3 == 0 ? i + 1000 : i));
  }
  RIGHT(table.statistics().inserted == 200 && table.statistics().replaced == 67);
  world.barrier();
  // All processes write the same keys.
  for (std::uint64_t i = 0; i < 50; ++i) table.insert_buffered(1'000'000 + i, all(me));
  table.flush();
  RIGHT(table.size() == 200 * n + 50);
  for (std::uint64_t i = 0; i < 50; ++i) {
    const record found = table.find(1'000'000 + i).value_or(record{{1}});
    RIGHT(found.whole() && found.of[0] < n);
  }
  world.barrier();
  // What does not fit in stays, and comes in when there is room.
  const std::string text = refusal<std::exception>([&] {
    for (std::uint64_t i = 0; i < 600; ++i) table.insert_buffered(2'000'000 + i * n + me, all(i));
    table.flush();
  });
  RIGHT(has(text, "weft: the hash table is full: process "));
  world.barrier();
  table.rehash(3000);
  table.flush();
  RIGHT(table.find(2'000'000 + me).value_or(record{{1}}).of[0] == 0);
  world.barrier();
}

/// Gives all keys to process 0, and lets a test throw in the middle of something.
struct hash_to_first {
  std::uint64_t processes;
  static inline int calls_left = -1;  // below 0: it does not throw
  std::uint64_t operator()(std::uint64_t k) const {
    if (calls_left >= 0 && calls_left-- == 0) throw std::runtime_error("no hash");
    return k * processes;
  }
};
/// What has been made is not made again, whatever stops a batch; and nobody waits for it.
template <class Group>
void interrupted_batches(const Group& world, rma::backend backend) {
  const auto n = static_cast<std::uint64_t>(world.size());
  using table_of_first = table_of<Group, std::uint64_t, std::uint64_t, hash_to_first>;
  {
    table_of_first table(world, {.buckets_per_process = 4, .backend = backend}, {n});
    if (world.rank() == 0) {
      for (std::uint64_t k = 0; k < 4; ++k) table.insert(k, 0);
      table.insert_buffered(2, 1);
      table.insert_buffered(100, 7);  // there is no room
      table.insert_buffered(3, 9);
      table.insert_buffered(100, 8);
      RIGHT(has(refusal<std::exception>([&] { table.flush(); }), "the hash table is full: process 0"));
      RIGHT(table.find(2) == 1);
    }
    world.barrier();
    if (world.rank() == world.size() - 1) table.insert(2, 5);
    world.barrier();
    table.rehash(16);
    table.flush();
    RIGHT(table.size() == 5);
    RIGHT(table.find(2) == 5);
    RIGHT(table.find(3) == 9);
    RIGHT(table.find(100) == 8);
    world.barrier();
  }
  table_of_first table(world, {.buckets_per_process = 64, .backend = backend}, {n});
  if (world.rank() == 0) {
    // The hash of a key is asked for once, and what it throws leaves all other inserts as they are.
    for (int calls = 0; calls < 8; ++calls) {
      hash_to_first::calls_left = calls;
      std::uint64_t k = 0;
      RIGHT(refusal<std::exception>([&] {
              for (; k < 8; ++k) table.insert_buffered(k, static_cast<std::uint64_t>(calls));
            }) == "no hash");
      RIGHT(k == static_cast<std::uint64_t>(calls));
      hash_to_first::calls_left = 0;
      table.flush();
      hash_to_first::calls_left = -1;
      for (std::uint64_t i = 0; i < k; ++i) RIGHT(table.find(i) == static_cast<std::uint64_t>(calls));
    }
  }
  world.barrier();
}

/// Searches of many keys are as those of each: also of more keys than are fetched at once, of one key twice,
/// of keys that are erased, and of keys that lie behind others.
template <class Group, class Hash>
void many_keys(const Group& world, rma::table_options options) {
  const auto me = static_cast<std::uint64_t>(world.rank()), n = static_cast<std::uint64_t>(world.size());
  options.buckets_per_process = 800;
  table_of<Group, std::uint64_t, record, Hash> table(world, options);
  for (std::uint64_t i = 0; i < 90; ++i) table.insert(i * n + me, all(i));
  for (std::uint64_t i = 0; i < 90; i += 9) table.erase(i * n + me);
  world.barrier();
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < 200; ++i) keys.push_back(i / 2 * 7 % 100 * n + (me + 1) % n);
  std::vector<std::optional<record>> values(keys.size(), all(12345));
  const auto before = table.statistics();
  std::size_t expected = 0;
  RIGHT(table.find(keys, values) == 160);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint64_t k = keys[i] / n;
    const bool there = k < 90 && k % 9 != 0;
    RIGHT(values[i].has_value() == there && (!there || (values[i]->whole() && values[i]->of[0] == k)));
    expected += there;
  }
  RIGHT(expected == 160);
  RIGHT(table.statistics().found == before.found + 160 && table.statistics().missed == before.missed + 40);
  RIGHT(table.statistics().probed >= before.probed + keys.size());
  RIGHT(table.find({}, {}) == 0);
  RIGHT(table.find(std::span(keys).subspan(2, 1), std::span(values).first(1)) == 1);
  RIGHT(has(refusal<weft::error>([&] { table.find(keys, std::span(values).first(3)); }),
            "weft: a search of keys needs a place for each value"));
  world.barrier();
}

/// A function that update() calls may not use the table.
template <class Group>
void nested_updates(const Group& world, rma::table_options options) {
  table_of<Group, std::uint64_t, std::uint64_t> table(world, options);
  const auto me = static_cast<std::uint64_t>(world.rank());
  table.insert(me, 1);
  const auto uses = [&](auto&& f) {
    return has(refusal<std::exception>([&] { table.update(me, [&](std::uint64_t& v) { v = 2, f(); }); }),
               "weft: the function that update() calls uses the hash table");
  };
  RIGHT(uses([&] { table.find(me); }));
  RIGHT(uses([&] { table.update(me, [](std::uint64_t&) {}); }));
  RIGHT(uses([&] {
    std::optional<std::uint64_t> value;
    table.find(std::span(&me, 1), std::span(&value, 1));
  }));
  RIGHT(uses([&] { table.insert_buffered(me + 100, 0); }));
  table.insert_buffered(me + 100, 0);
  RIGHT(uses([&] { table.flush(); }));
  table.flush();
  RIGHT(table.find(me + 100) == 0);
  RIGHT(uses([&] { table.for_each_local([](std::uint64_t, std::uint64_t) {}); }));
  if (me == 0) {  // alone: what is collective refuses that before it waits for others
    const std::string path = "/tmp/weft-no-such-table";
    RIGHT(uses([&] { static_cast<void>(table.size()); }));
    RIGHT(uses([&] { table.rehash(2000); }));
    RIGHT(uses([&] { table.save(path); }));
    RIGHT(uses([&] { table.load(path); }));
  }
  world.barrier();
  RIGHT(table.find(me) == 1);
  RIGHT(table.update(me, [](std::uint64_t& v) { ++v; }) && table.find(me) == 2);
  world.barrier();
}

/// Ever new keys of which only a few are there at once: where the buckets of erased keys are free again, and
/// where they are not.
template <class Group>
void churn(const Group& world, rma::backend backend) {
  const auto me = static_cast<std::uint64_t>(world.rank()), n = static_cast<std::uint64_t>(world.size());
  const auto goes = [&](rma::table_options options, std::uint64_t keys) {
    options.buckets_per_process = 8;
    options.backend = backend;
    table_of<Group, std::uint64_t, std::uint64_t> table(world, options);
    std::string text = "fits";
    for (std::uint64_t k = 0; k < keys && text == "fits"; ++k) {
      try {
        RIGHT(table.insert(k * n + me, k));
        RIGHT(table.find(k * n + me) == k);
        RIGHT(table.erase(k * n + me));
        RIGHT(!table.find(k * n + me));
      } catch (const weft::error& e) {
        text = e.what();
      }
    }
    RIGHT(table.statistics().evicted == 0);
    RIGHT(table.size() == 0);
    table.rehash(8);
    RIGHT(table.insert(me, 1));
    world.barrier();
    return text;
  };
  RIGHT(goes({.lock = rma::lock_kind::gbh, .ranges = 1}, 50) == "fits");
  RIGHT(goes({.evict = true, .places = 8}, 50) == "fits");
  RIGHT(goes({.evict = true, .places = 4, .lock = rma::lock_kind::rma_rw}, 50) == "fits");
  RIGHT(has(goes({}, 50), "the hash table is full"));
}

/// No key is there twice, as far as this process has them.
bool no_key_twice(const auto& table) {
  std::map<std::uint64_t, int> times;
  table.for_each_local([&times](std::uint64_t k, const record&) { ++times[k]; });
  for (const auto& [k, t] : times)
    if (t != 1) return false;
  return true;
}
/// All processes insert, erase, change and search the same keys: how many there are at the end follows from
/// what the calls have returned.
template <class Group>
void mixed(const Group& world, rma::table_options options, int rounds) {
  constexpr std::uint64_t keys = 12;
  options.buckets_per_process = 16;
  table_of<Group, std::uint64_t, record> table(world, options);
  std::mt19937 random(17 + static_cast<unsigned>(world.rank()));
  std::int64_t balance = 0;
  bool whole = true;
  for (int i = 0; i < rounds; ++i) {
    const std::uint64_t k = random() % keys;
    switch (random() % 4) {
      case 0:
        balance += table.insert(k, all(k));
        break;
      case 1:
        balance -= table.erase(k);
        break;
      case 2:
        table.update(k, [&](record& r) { whole &= r.whole(), r = all(r.of[0] + keys); });
        break;
      default:
        if (const auto found = table.find(k)) whole &= found->whole() && found->of[0] % keys == k;
    }
  }
  RIGHT(whole);
  RIGHT(table.size() == static_cast<std::uint64_t>(world.sum(balance)));
  RIGHT(no_key_twice(table));
  RIGHT(table.statistics().inserted > 0);
  world.barrier();
}
/// All processes insert into a cache that is too small: what is found is right, and each key is there once.
template <class Group>
void evictions(const Group& world, rma::table_options options, int rounds) {
  options.buckets_per_process = 6;
  options.evict = true;
  options.places = 4;
  table_of<Group, std::uint64_t, record> table(world, options);
  std::mt19937 random(3 + static_cast<unsigned>(world.rank()));
  const auto keys = 10 * static_cast<std::uint64_t>(world.size());
  std::uint64_t hits = 0;
  for (int part = 0; part < 10; ++part) {
    bool right = true;
    for (int i = 0; i < rounds; ++i) {
      const std::uint64_t k = random() % keys;
      if (random() % 8 == 0) table.erase(k);
      table.insert(k, all(k));
      if (const auto found = table.find(random() % keys)) {
        ++hits;
        right &= found->whole() && found->of[0] < keys;
      }
    }
    RIGHT(right);
    world.barrier();
    RIGHT(no_key_twice(table));
    const std::uint64_t k = 1000 + static_cast<std::uint64_t>(world.rank());
    table.insert(k, all(k));  // also when the others are silent
    world.barrier();
    table.erase(k);
    RIGHT(!table.find(k));
    world.barrier();
  }
  RIGHT(table.statistics().evicted > 0 && hits > 0);
  world.barrier();
}

/// Reads that meet a write begin again: with a large value that all processes want, until that has happened,
/// or for a while.
template <class Group>
void torn_reads(const Group& world, rma::backend backend) {
  using large = std::array<std::uint64_t, 500>;
  table_of<Group, std::uint64_t, large> table(world, {.buckets_per_process = 4, .backend = backend});
  table.insert(1, large{});
  std::uint64_t retried = 0;
  bool whole = true;
  for (int part = 0; part < 40 && retried == 0; ++part) {
    world.barrier();
    for (std::uint64_t i = 0; i < 500; ++i) {
      if (world.rank() % 2 == 0) {
        table.update(1, [](large& l) { l.fill(l[0] + 1); });
      } else {
        const large found = table.find(1).value_or(large{1});
        for (const std::uint64_t v : found) whole &= v == found[0];
      }
    }
    retried = world.sum(table.statistics().retried);
  }
  RIGHT(whole);
  world.barrier();
}

/// Hashes of a program: one for keys whose bytes differ though they are equal, and a bad one.
struct hash_of_number {
  std::uint64_t operator()(double d) const {
    return rma::hash_bytes<std::uint64_t>{}(std::bit_cast<std::uint64_t>(d + 0.0));
  }
};
struct bad_hash {
  std::uint64_t operator()(std::uint64_t) const { return 7; }
};
template <class Group>
void other_hashes(const Group& world, rma::backend backend) {
  const auto me = static_cast<std::uint64_t>(world.rank()), n = static_cast<std::uint64_t>(world.size());
  table_of<Group, double, std::uint64_t, hash_of_number> numbers(world, {.backend = backend});
  if (me == 0) {
    RIGHT(numbers.insert(0.0, 1));
    RIGHT(!numbers.insert(-0.0, 2));
    RIGHT(numbers.find(0.0) == 2);
  }
  table_of<Group, std::uint64_t, std::uint64_t, bad_hash> row(
      world, {.buckets_per_process = 100, .backend = backend});
  for (std::uint64_t k = 0; k < 20; ++k) row.insert_buffered(k * n + me, k);
  row.flush();
  for (std::uint64_t k = 0; k < 20; ++k) RIGHT(row.find(k * n + me) == k);
  for (std::uint64_t k = 0; k < 20; k += 2) RIGHT(row.erase(k * n + me));
  RIGHT(row.size() == 10 * n);
  for (std::uint64_t k = 0; k < 20; ++k) RIGHT(row.find(k * n + me).has_value() == (k % 2 == 1));
  RIGHT(world.max(row.statistics().probed) > 100);  // one after the other
  world.barrier();
}

template <class Group>
void files(const Group& world, const std::string& path) {
  const auto me = static_cast<std::uint64_t>(world.rank()), n = static_cast<std::uint64_t>(world.size());
  table_of<Group, std::uint64_t, record> table(world, {.buckets_per_process = 500});
  for (std::uint64_t i = 0; i < 100; ++i) table.insert(i * n + me, all(i));
  table.save(path);
  const auto reads = [&] {
    table_of<Group, std::uint64_t, record> again(world, {.buckets_per_process = 777});
    again.load(path);
    RIGHT(again.size() == 100 * n);
    for (std::uint64_t i = 0; i < 100; ++i)
      RIGHT(again.find(i * n + (me + 1) % n).value_or(record{}).of[3] == i);
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
    const std::string text = refusal<std::exception>([&] { table.load(path + "-changed"); });
    RIGHT(has(text, why));
    if (!has(text, why)) std::fprintf(stderr, "%s\n", text.c_str());
    RIGHT(table.size() == 100 * n);
  };
  other([](std::string& b) { b[b.size() / 2] = static_cast<char>(b[b.size() / 2] ^ 4); },
        "the checksum of its records is wrong");
  other([](std::string& b) { b[25] ^= 1; }, "the checksum of its header is wrong");
  other([](std::string& b) { b.pop_back(); }, "its size is wrong");
  other([](std::string& b) { b[0] = 'x'; }, "is not a hash table of weft");
  other([](std::string& b) { b.clear(); }, "is not a hash table of weft");
  table_of<Group, std::uint64_t, std::uint32_t> narrow(world, {.buckets_per_process = 500});
  RIGHT(has(refusal<std::exception>([&] { narrow.load(path); }),
            "holds keys and values of 8 and 104 bytes, expected 8 and 4"));
  RIGHT(has(refusal<std::exception>([&] { table.load(path + "-missing"); }), "-missing"));
  RIGHT(has(refusal<std::exception>([&] { table.save("/no/such/folder/table"); }), "table"));
  reads();
  world.barrier();
  if (world.rank() == 0) std::remove((path + "-changed").c_str());
  world.barrier();
}
