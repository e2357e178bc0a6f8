// SPDX-License-Identifier: BSL-1.0
// A hash table spread over processes, read and written one-sidedly.
#pragma once

#include <weft/rma/detail/key_batch.hpp>
#include <weft/rma/detail/placement.hpp>
#include <weft/rma/detail/table_file.hpp>
#include <weft/rma/table_options.hpp>
#include <weft/rma/window.hpp>

#include <array>
#include <concepts>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::rma {

/// Hashes the bytes of a key. For other keys a program gives a hash of its own.
template <class Key>
struct hash_bytes {
  static_assert(
      std::has_unique_object_representations_v<Key>,
      "weft: this key has bytes or values without a meaning; give the hash table a hash of your own");
  /// A number of 64 bits, all of which depend on all of the key.
  std::uint64_t operator()(const Key& k) const noexcept {
    const auto word = [&k](std::size_t at) {
      std::uint64_t w = 0;
      if (at < sizeof k)
        std::memcpy(&w, reinterpret_cast<const char*>(&k) + at, std::min<std::size_t>(8, sizeof k - at));
      return w;
    };
    std::uint64_t h = sizeof k;
    for (std::size_t at = 0; at < sizeof k; at += 16)
      h = detail::mix(word(at) ^ detail::odd ^ h, word(at + 8) ^ detail::other_odd);
    return detail::mix(h ^ detail::odd, detail::other_odd);
  }
};

/// Keys and values of fixed size in the memory of all processes of a group. The place of a key follows from
/// its hash; the process that owns the memory does nothing. Searches take no lock; a change keeps others from
/// the bucket while it writes. Each operation on one key is atomic. While processes insert a key at once, a
/// cache without locks may hold two values of it, and a search may miss it, also in a process whose insert
/// has ended: when all these inserts have ended, it holds one, and a search finds it. The bucket of an erased
/// key is free for others in a table with locks and in a cache. Elsewhere it stays reserved for its key until
/// rehash(): if two processes insert one key at once, both must come to the same bucket. So a table without
/// locks is full when that many different keys have been in it. *Throws*: mpi::error; weft::error if a table
/// that is no cache is full; std::system_error from save and load. *Thread safety*: one thread of each
/// process at a time; any number of processes.
template <class Key, class Value, class Hash = hash_bytes<Key>, class Group = mpi::communicator>
  requires std::equality_comparable<Key>
class hash_table {
  using memory = window<std::uint64_t, Group>;
  using table = detail::buckets<Key, Value, memory>;
  using image = typename table::image;
  using places = detail::placement<table, Key>;
  using choice = typename places::choice;
  using home = detail::home;

 public:
  /// Collective.
  hash_table(const Group& group, const table_options& options = {}, Hash hash = {})
      : options_(options), hash_(std::move(hash)) {
    if (options_.buckets_per_process == 0 || options_.places == 0)
      throw error("weft: a hash table needs at least one bucket in each process, and one place for each key");
    if (options_.ranges == 0 || options_.ranges > options_.buckets_per_process || options_.buffered == 0)
      throw error("weft: a hash table has one to as many ranges as buckets, and buffers at least one insert");
    table_ = std::make_unique<table>(options_.buckets_per_process, options_.lock, options_.ranges,
                                     [&](std::size_t words) {
                                       return memory(group, words,
                                                     {.lock = options_.lock.value_or(lock_kind::d_mcs),
                                                      .backend = options_.backend,
                                                      .locks = options_.lock ? options_.ranges : 1});
                                     });
    waiting_.resize(static_cast<std::size_t>(group.size()));
  }
  hash_table(const hash_table&) = delete;
  hash_table& operator=(const hash_table&) = delete;
  /// Collective. Ends the job with a message if flush() was forgotten.
  ~hash_table() {
    std::size_t lost = 0;
    for (const auto& batch : waiting_) lost += batch.size();
    if (lost == 0 || std::uncaught_exceptions() > exceptions_) return;
    group_().end_job("destroys a hash table with " + std::to_string(lost) + " inserts that are not flushed");
  }

  /// Sets the value of a key. *Returns*: whether the key is new.
  bool insert(const Key& key, const Value& value) {
    const home at = home_(key);
    const guard hold(*table_, at.of, at.first, true);
    return insert_(at, key, value);
  }
  /// Sets the value of a key later: when there are so many such inserts for one process as the options say,
  /// or at flush(). Those of one process are made together, in their order, which takes less time for each.
  void insert_buffered(const Key& key, const Value& value) {
    const std::uint64_t h = hash_of_(key);
    const process to = home_of_(h).of;
    auto& batch = waiting_[static_cast<std::size_t>(to)];
    batch.push_back({key, value, h});
    if (batch.size() >= options_.buffered) send_(to);
  }
  /// Makes what insert_buffered() has collected. If it throws, what it has not made stays collected, in its
  /// order, and nothing else.
  void flush() {
    check_use_();
    for (process p = 0; p < group_().size(); ++p) send_(p);
  }
  /// The value of a key; nothing if it has none.
  std::optional<Value> find(const Key& key) const {
    image held;
    if (!locate_(home_(key), key, held)) return std::nullopt;
    return held.value();
  }
  /// The values of many keys: `values[i]` becomes that of `keys[i]`, or nothing. Each search is atomic as one
  /// by itself, and all of them are not: changes of other processes may come between any two, in any order.
  /// The memory of several keys is fetched at once. *Returns*: how many keys have a value. *Throws*:
  /// weft::error if there are not as many values as keys.
  std::size_t find(std::span<const Key> keys, std::span<std::optional<Value>> values) const {
    if (keys.size() != values.size()) throw error("weft: a search of keys needs a place for each value");
    std::array<home, ahead> next;
    const auto look_ahead = [&](std::size_t i) {
      if (i >= keys.size()) return;
      next[i % ahead] = home_(keys[i]);
      table_->prefetch(next[i % ahead].of, next[i % ahead].first);
    };
    if (!table_->has_address(0)) return find_remote_(keys, values);
    std::size_t found = 0;
    for (std::size_t i = 0; i < ahead; ++i) look_ahead(i);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      image held;
      if (locate_(next[i % ahead], keys[i], held))
        held.copy_value(values[i]), ++found;
      else
        values[i].reset();
      look_ahead(i + ahead);
    }
    return found;
  }
  /// Removes a key. *Returns*: whether it was there.
  bool erase(const Key& key) {
    const auto kill = [](image& now, const Key&) { now.of[0] &= ~detail::bucket_state::live; };
    const bool was_there = change_(key, kill);
    if (was_there && options_.evict && !table_->has_locks()) {
      // Other processes that insert the key have not looked for copies yet: no more of them than places.
      for (unsigned i = 1; i < options_.places && change_(key, kill);) ++i;
    }
    return was_there;
  }
  /// Calls `f(value)` with a reference to the value of a key; nobody else changes it meanwhile. What `f`
  /// throws leaves the value as it was. *Returns*: whether the key was there.
  /// *Throws*: weft::error if `f` uses this table: with another process that does the same, both would wait
  /// for ever.
  template <class F>
  bool update(const Key& key, F&& f) {
    return change_(key, [this, &f](image& now, const Key& k) {
      const in_use here(in_update_);
      Value v = now.value();
      f(v);
      now.set(k, v);
    });
  }
  /// Calls `f(key, value)` for what lies in the memory of this process.
  template <class F>
  void for_each_local(F&& f) const {
    check_use_();
    for (std::size_t b = 0; b < table_->each(); ++b) {
      const image i = [&] {
        const guard hold(*table_, group_().rank(), b, false);
        image read;
        table_->read(group_().rank(), b, nullptr, read);
        return read;
      }();
      if (i.state() & detail::bucket_state::live) f(i.key(), i.value());
    }
  }

  /// How many keys there are; collective, as the next three. They do not know of inserts that are not
  /// flushed.
  std::uint64_t size() const {
    check_use_();
    group_().barrier();  // what others have inserted before they called it counts
    std::uint64_t here = 0;
    for_each_local([&here](const Key&, const Value&) { ++here; });
    return group_().sum(here);
  }
  /// Gives each process so many buckets; collective, and nobody else uses the table meanwhile. If what is
  /// there does not fit in, all processes throw and the table stays as it is.
  void rehash(std::size_t buckets_per_process) {
    check_use_();
    table_options other = options_;
    other.buckets_per_process = buckets_per_process;
    std::exception_ptr failed;
    {
      hash_table larger(group_(), other, hash_);
      try {
        detail::together(group_(), "rehashing", [&] {
          for_each_local([&larger](const Key& k, const Value& v) { larger.insert(k, v); });
        });
        std::swap(table_, larger.table_);
        options_ = other;
      } catch (...) {
        failed = std::current_exception();  // in all processes, which destroy the new table together
      }
    }
    if (failed) std::rethrow_exception(failed);
  }
  /// Writes the table into a file, which appears when it is complete; collective, and nobody changes the
  /// table meanwhile.
  void save(const std::string& path) const {
    check_use_();
    std::vector<char> records;
    group_().barrier();
    const auto collect = [&records](const Key& k, const Value& v) {
      const auto* const key = reinterpret_cast<const char*>(&k);
      const auto* const value = reinterpret_cast<const char*>(&v);
      records.insert(records.end(), key, key + sizeof k);
      records.insert(records.end(), value, value + sizeof v);
    };
    detail::together(group_(), "saving '" + path + "'", [&] { for_each_local(collect); });
    detail::save_table(group_(), path, records, sizeof(Key), sizeof(Value));
  }
  /// Inserts what a file holds, that a table of any number of processes and buckets has saved; collective.
  void load(const std::string& path) {
    check_use_();
    const std::vector<char> records = detail::load_table(group_(), path, sizeof(Key), sizeof(Value));
    detail::together(group_(), "loading '" + path + "'", [&] {
      for (std::size_t at = 0; at < records.size(); at += sizeof(Key) + sizeof(Value)) {
        Key k;
        Value v;
        std::memcpy(static_cast<void*>(&k), records.data() + at, sizeof k);
        std::memcpy(static_cast<void*>(&v), records.data() + at + sizeof k, sizeof v);
        insert(k, v);
      }
    });
  }

  /// What this process has done.
  table_statistics statistics() const noexcept {
    table_statistics s = statistics_;
    s.retried = table_->retries();
    return s;
  }
  /// How buckets are reached.
  rma::backend backend() const noexcept { return table_->memory().backend(); }

 private:
  static constexpr std::size_t none = places::none;
  using guard = typename table::guard;
  /// While it exists, a function that update() has called is executed.
  struct in_use {
    explicit in_use(bool& flag) noexcept : flag_(flag) { flag_ = true; }
    in_use(const in_use&) = delete;
    in_use& operator=(const in_use&) = delete;
    ~in_use() { flag_ = false; }
    bool& flag_;
  };
  using entry = detail::collected<Key, Value>;
  /// Keys whose buckets are fetched before they are used: some two kilobytes.
  static constexpr std::size_t ahead = sizeof(image) >= 512   ? 4
                                       : sizeof(image) <= 128 ? 16
                                                              : 2048 / sizeof(image);

  const Group& group_() const noexcept { return table_->memory().group(); }
  void check_use_() const {
    if (in_update_) throw error("weft: the function that update() calls uses the hash table");
  }
  std::uint64_t hash_of_(const Key& key) const {
    check_use_();
    return hash_(key);
  }
  home home_(const Key& key) const { return home_of_(hash_of_(key)); }
  home home_of_(std::uint64_t h) const {
    const auto n = static_cast<std::uint64_t>(group_().size());
    const std::size_t first = h / n % table_->each();
    const auto [begin, count] = table_->range_of(first);
    return {static_cast<process>(h % n), first, begin, count};
  }
  places places_of_(const home& where, const Key& key) const {
    return places(*table_, where, options_, key, statistics_);
  }
  /// Searches the bucket of a key. *Returns*: whether the key has a value.
  bool locate_(const home& where, const Key& key, image& held) const {
    const guard hold(*table_, where.of, where.first, false);
    const bool found = places_of_(where, key).locate(held) != none;
    ++(found ? statistics_.found : statistics_.missed);
    return found;
  }
  /// Searches keys whose buckets have no address here, some of them at once.
  std::size_t find_remote_(std::span<const Key> keys, std::span<std::optional<Value>> values) const {
    constexpr std::size_t most = 64;
    const std::uint64_t before = statistics_.found;
    std::vector<home> homes;
    for (std::size_t begin = 0; begin < keys.size(); begin += most) {
      const std::size_t count = std::min(most, keys.size() - begin);
      homes.clear();
      for (const Key& k : keys.subspan(begin, count)) homes.push_back(home_(k));
      detail::find_together(*table_, options_, statistics_, keys.subspan(begin, count), homes,
                            values.subspan(begin, count));
    }
    return static_cast<std::size_t>(statistics_.found - before);
  }
  bool insert_(const home& where, const Key& key, const Value& value) {
    for (image now;;) {
      const choice to = places_of_(where, key).choose(now, turn_);
      if (to.bucket == none)
        throw error("weft: the hash table is full: process " + std::to_string(where.of) +
                    " has no free bucket");
      if (!table_->claim(where.of, to.bucket, to.state)) continue;  // somebody else has changed it
      const bool fresh = places_of_(where, key).fill(now, to, value);
      table_->publish(where.of, to.bucket, now);
      if (to.other_copies) places_of_(where, key).keep_one();
      return fresh;
    }
  }
  template <class F>
  bool change_(const Key& key, F f) {
    const home where = home_(key);
    const guard hold(*table_, where.of, where.first, true);
    for (image held;;) {
      const std::size_t bucket = places_of_(where, key).locate(held);
      if (bucket == none) return false;
      const std::uint64_t before = held.state();
      if (!table_->claim(where.of, bucket, before)) continue;
      try {
        f(held, key);
      } catch (...) {
        table_->release(where.of, bucket, before);
        throw;
      }
      held.of[0] += detail::bucket_state::one;
      table_->publish(where.of, bucket, held);
      return true;
    }
  }

  /// Makes the inserts that wait for a process, range by range.
  void send_(process p) {
    auto& batch = waiting_[static_cast<std::size_t>(p)];
    if (batch.empty()) return;
    std::vector<bool> made(batch.size());
    try {
      if (table_->has_locks()) sort_(batch);
      std::vector<home> homes;
      homes.reserve(batch.size());
      for (const entry& e : batch) homes.push_back(home_of_(e.hash));
      const bool near = table_->has_address(p);
      for (std::size_t begin = 0, end = 0; begin < batch.size(); begin = end) {
        for (end = begin + 1; end < batch.size() && homes[end].begin == homes[begin].begin;) ++end;
        const guard hold(*table_, p, homes[begin].first, true);
        const auto look_ahead = [&](std::size_t i) {
          if (i < end) table_->prefetch(p, homes[i].first);
        };
        if (near)
          for (std::size_t i = begin; i < begin + ahead; ++i) look_ahead(i);
        else
          detail::insert_together(*table_, options_, statistics_, std::span<const entry>(batch), homes, begin,
                                  end, made);
        for (std::size_t i = begin; i < end; ++i) {
          if (near) look_ahead(i + ahead);
          if (made[i]) continue;
          insert_(homes[i], batch[i].key, batch[i].value);
          made[i] = true;
        }
      }
    } catch (...) {
      std::size_t i = 0;
      std::erase_if(batch, [&](const entry&) { return made[i++]; });
      throw;
    }
    batch.clear();
  }
  /// Sorts inserts by their ranges; those of one range keep their order.
  void sort_(std::vector<entry>& batch) const {
    std::vector<std::pair<std::size_t, std::size_t>> order;  // where a range begins, place in the batch
    for (const entry& e : batch) order.emplace_back(home_of_(e.hash).begin, order.size());
    std::sort(order.begin(), order.end());
    std::vector<entry> sorted;
    sorted.reserve(batch.size());
    for (const auto& [range, i] : order) sorted.push_back(batch[i]);
    batch.swap(sorted);
  }

  table_options options_;
  Hash hash_;
  std::unique_ptr<table> table_;
  std::vector<std::vector<entry>> waiting_;  // for each process
  mutable table_statistics statistics_;
  std::size_t turn_ = 0;
  bool in_update_ = false;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace weft::inline WEFT_ABI::rma
