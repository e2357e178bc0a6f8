// SPDX-License-Identifier: BSL-1.0
// A hash table spread over processes, read and written one-sidedly.
#pragma once

#include <weft/rma/detail/buckets.hpp>
#include <weft/rma/detail/table_file.hpp>

#include <concepts>
#include <exception>
#include <memory>
#include <optional>
#include <unordered_set>
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

/// What a hash table is like; the same in all processes.
struct table_options {
  std::size_t buckets_per_process = std::size_t{1} << 16;  ///< at least 1
  /// A cache: a new key replaces another one where all its places are taken. Otherwise that is an error.
  bool evict = false;
  unsigned places = 8;                        ///< of a key in a cache
  rma::backend backend = backend::automatic;  ///< how buckets are reached
  /// Locks for readers and writers, of any kind; without, searches take no lock and a change that of its
  /// bucket. lock_kind::mpi makes it the table of Christgau and Schnor 2016.
  std::optional<lock_kind> lock = std::nullopt;
  unsigned ranges = 1;      ///< locks of each process; a key stays in the range of buckets where it belongs
  unsigned buffered = 256;  ///< inserts for a process that insert_buffered() collects
};

/// What a process has done with a table.
struct table_statistics {
  std::uint64_t inserted = 0;  ///< keys that were new
  std::uint64_t replaced = 0;  ///< values of keys that were there
  std::uint64_t found = 0;     ///< searches with a result
  std::uint64_t missed = 0;    ///< searches without one
  std::uint64_t evicted = 0;   ///< keys that others have replaced
  std::uint64_t probed = 0;    ///< buckets that were looked at
  std::uint64_t retried = 0;   ///< reads that met a write
};

/// Keys and values of fixed size in the memory of all processes of a group. The place of a key follows from
/// its hash; the process that owns the memory does nothing. Searches take no lock; a change keeps others from
/// the bucket while it writes. Each operation on one key is atomic. A cache may hold several values of a key
/// for a while if processes insert it at once. *Throws*: mpi::error; weft::error if a table that is no cache
/// is full; std::system_error from save and load. *Thread safety*: one thread of each process at a time; any
/// number of processes.
template <class Key, class Value, class Hash = hash_bytes<Key>>
  requires std::equality_comparable<Key>
class hash_table {
  using table = detail::buckets<Key, Value>;
  using image = typename table::image;

 public:
  /// Collective.
  hash_table(const mpi::communicator& group, const table_options& options = {}, Hash hash = {})
      : options_(options), hash_(std::move(hash)) {
    if (options_.buckets_per_process == 0 || options_.places == 0)
      throw error("weft: a hash table needs at least one bucket in each process, and one place for each key");
    if (options_.ranges == 0 || options_.ranges > options_.buckets_per_process || options_.buffered == 0)
      throw error("weft: a hash table has one to as many ranges as buckets, and buffers at least one insert");
    table_ = std::make_unique<table>(group, options_.buckets_per_process, options_.backend, options_.lock,
                                     options_.ranges);
    waiting_.resize(static_cast<std::size_t>(group.size()));
  }
  hash_table(const hash_table&) = delete;
  hash_table& operator=(const hash_table&) = delete;
  /// Collective. Ends the job with a message if flush() was forgotten.
  ~hash_table() {
    std::size_t lost = 0;
    for (const auto& batch : waiting_) lost += batch.size();
    if (lost == 0 || std::uncaught_exceptions() > exceptions_) return;
    mpi::end_job("destroys a hash table with " + std::to_string(lost) + " inserts that are not flushed");
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
    auto& batch = waiting_[static_cast<std::size_t>(home_(key).of)];
    batch.push_back({key, value});
    if (batch.size() >= options_.buffered) send_(home_(key).of);
  }
  /// Makes what insert_buffered() has collected. If it throws, what it has not made stays collected.
  void flush() {
    for (process p = 0; p < group_().size(); ++p) send_(p);
  }
  /// The value of a key; nothing if it has none.
  std::optional<Value> find(const Key& key) const {
    const home where = home_(key);
    const guard hold(*table_, where.of, where.first, false);
    place at;
    locate_(where, key, at);
    if (at.bucket == none || at.held.state() == 0 || (at.held.state() & detail::bucket_state::live) == 0) {
      ++statistics_.missed;
      return std::nullopt;
    }
    ++statistics_.found;
    return at.held.value();
  }
  /// Removes a key; its bucket stays reserved for it until rehash(). *Returns*: whether it was there.
  bool erase(const Key& key) {
    return change_(key, [](image& now, const Key&) { now.of[0] &= ~detail::bucket_state::live; });
  }
  /// Calls `f(value)` with a reference to the value of a key; nobody else changes it meanwhile. What `f`
  /// throws leaves the value as it was. *Returns*: whether the key was there.
  template <class F>
  bool update(const Key& key, F&& f) {
    return change_(key, [&f](image& now, const Key& k) {
      Value v = now.value();
      f(v);
      now.set(k, v);
    });
  }
  /// Calls `f(key, value)` for what lies in the memory of this process.
  template <class F>
  void for_each_local(F&& f) const {
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
    group_().barrier();  // what others have inserted before they called it counts
    std::uint64_t here = 0;
    for_each_local([&here](const Key&, const Value&) { ++here; });
    return group_().sum(here);
  }
  /// Gives each process so many buckets; collective, and nobody else uses the table meanwhile. If what is
  /// there does not fit in, all processes throw and the table stays as it is.
  void rehash(std::size_t buckets_per_process) {
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
    std::vector<char> records;
    group_().barrier();
    for_each_local([&records](const Key& k, const Value& v) {
      const auto* const key = reinterpret_cast<const char*>(&k);
      const auto* const value = reinterpret_cast<const char*>(&v);
      records.insert(records.end(), key, key + sizeof k);
      records.insert(records.end(), value, value + sizeof v);
    });
    detail::save_table(group_(), path, records, sizeof(Key), sizeof(Value));
  }
  /// Inserts what a file holds, that a table of any number of processes and buckets has saved; collective.
  void load(const std::string& path) {
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
  rma::backend backend() const noexcept { return table_->backend(); }

 private:
  static constexpr std::size_t none = SIZE_MAX;
  using guard = typename table::guard;
  /// Where a key belongs.
  struct home {
    process of;
    std::size_t first, begin, count;  // its first bucket; those that it may come to
  };
  /// Where a key is, or where it may come to.
  struct place {
    std::size_t bucket;  // none: no place is free
    image held;
  };
  struct entry {
    Key key;
    Value value;
  };

  const mpi::communicator& group_() const noexcept { return table_->group(); }
  home home_(const Key& key) const {
    const std::uint64_t h = hash_(key);
    const auto n = static_cast<std::uint64_t>(group_().size());
    const std::size_t first = h / n % table_->each();
    const auto [begin, count] = table_->range_of(first);
    return {static_cast<process>(h % n), first, begin, count};
  }
  std::size_t places_(const home& where) const noexcept {
    return options_.evict ? std::min<std::size_t>(options_.places, where.count) : where.count;
  }
  static std::size_t bucket_(const home& where, std::size_t i) noexcept {
    const std::size_t at = where.first + i;
    return at < where.begin + where.count ? at : at - where.count;
  }
  void locate_(const home& where, const Key& key, place& at) const {
    const std::size_t most = places_(where);
    for (std::size_t i = 0; i < most; ++i) {
      at.bucket = bucket_(where, i);
      table_->read(where.of, at.bucket, &key, at.held);
      ++statistics_.probed;
      if (at.held.state() == 0 || at.held.is(key)) return;
    }
    at.bucket = none;
  }
  /// The new image of a bucket that holds `now`, which is claimed; counts what that is. *Returns*: whether
  /// the key is new.
  bool replace_(image& now, const Key& key, const Value& value) {
    const std::uint64_t before = now.state();
    const bool same = before != 0 && now.is(key);
    const bool fresh = !same || (before & detail::bucket_state::live) == 0;
    if (before != 0 && !same) ++statistics_.evicted;
    now.set(key, value);
    now.of[0] = (before | detail::bucket_state::live) + detail::bucket_state::one;
    ++(fresh ? statistics_.inserted : statistics_.replaced);
    return fresh;
  }
  bool insert_(const home& where, const Key& key, const Value& value) {
    for (place at;;) {
      locate_(where, key, at);
      if (at.bucket == none && !options_.evict)
        throw error("weft: the hash table is full: process " + std::to_string(where.of) +
                    " has no free bucket");
      // In a cache, one of the places of the key, another one each time.
      const std::size_t bucket = at.bucket == none ? bucket_(where, ++turn_ % places_(where)) : at.bucket;
      image& now = at.held;
      if (at.bucket == none) table_->read(where.of, bucket, &key, now);
      if (!table_->claim(where.of, bucket, now.state())) continue;  // somebody else has changed it
      const bool fresh = replace_(now, key, value);
      table_->publish(where.of, bucket, now);
      return fresh;
    }
  }
  template <class F>
  bool change_(const Key& key, F f) {
    const home where = home_(key);
    const guard hold(*table_, where.of, where.first, true);
    for (place at;;) {
      locate_(where, key, at);
      if (at.bucket == none || (at.held.state() & detail::bucket_state::live) == 0) return false;
      const std::uint64_t before = at.held.state();
      if (!table_->claim(where.of, at.bucket, before)) continue;
      try {
        f(at.held, key);
      } catch (...) {
        table_->release(where.of, at.bucket, before);
        throw;
      }
      at.held.of[0] += detail::bucket_state::one;
      table_->publish(where.of, at.bucket, at.held);
      return true;
    }
  }

  /// Makes the inserts that wait for a process, range by range.
  void send_(process p) {
    auto& batch = waiting_[static_cast<std::size_t>(p)];
    if (batch.empty()) return;
    if (table_->has_locks()) sort_(batch);
    std::size_t done = 0;
    try {
      while (done < batch.size()) {
        const home first = home_(batch[done].key);
        std::size_t end = done + 1;
        while (end < batch.size() && home_(batch[end].key).begin == first.begin) ++end;
        const guard hold(*table_, p, first.first, true);
        const std::span<const entry> some(batch.data() + done, end - done);
        if (table_->has_address(p))
          for (const entry& e : some) table_->prefetch(p, home_(e.key).first);
        for (const std::size_t i : table_->has_address(p) ? all_(some.size()) : insert_together_(p, some)) {
          insert_(home_(some[i].key), some[i].key, some[i].value);
        }
        done = end;
      }
    } catch (...) {
      batch.erase(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(done));
      throw;
    }
    batch.clear();
  }
  /// Sorts inserts by their ranges; those of one range keep their order.
  void sort_(std::vector<entry>& batch) const {
    std::vector<std::pair<std::size_t, std::size_t>> order;  // where a range begins, place in the batch
    for (const entry& e : batch) order.emplace_back(home_(e.key).begin, order.size());
    std::sort(order.begin(), order.end());
    std::vector<entry> sorted;
    sorted.reserve(batch.size());
    for (const auto& [range, i] : order) sorted.push_back(batch[i]);
    batch.swap(sorted);
  }
  static std::vector<std::size_t> all_(std::size_t n) {
    std::vector<std::size_t> numbers(n);
    for (std::size_t i = 0; i < n; ++i) numbers[i] = i;
    return numbers;
  }
  /// Inserts what fits into its first bucket, with all transfers of one kind at once. *Returns*: the numbers
  /// of the others, in their order.
  std::vector<std::size_t> insert_together_(process p, std::span<const entry> some) {
    std::vector<std::size_t> left, claimed;
    std::vector<image> images(some.size());
    std::unordered_set<std::size_t> used;
    for (std::size_t i = 0; i < some.size(); ++i) table_->start_read(p, home_(some[i].key).first, images[i]);
    table_->finish(p);
    for (std::size_t i = 0; i < some.size(); ++i) {
      image& now = images[i];
      const std::size_t bucket = home_(some[i].key).first;
      ++statistics_.probed;
      if (!used.insert(bucket).second || !table_->is_consistent(now) ||
          (now.state() != 0 && !now.is(some[i].key)) || !table_->claim(p, bucket, now.state())) {
        left.push_back(i);
        continue;
      }
      replace_(now, some[i].key, some[i].value);
      table_->start_publish(p, bucket, now);
      claimed.push_back(i);
    }
    table_->finish(p);
    for (const std::size_t i : claimed) table_->start_state(p, home_(some[i].key).first, images[i]);
    table_->finish(p);
    return left;
  }

  table_options options_;
  Hash hash_;
  std::unique_ptr<table> table_;
  std::vector<std::vector<entry>> waiting_;  // for each process
  mutable table_statistics statistics_;
  std::size_t turn_ = 0;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace weft::inline WEFT_ABI::rma
