// SPDX-License-Identifier: BSL-1.0
// A hash table spread over processes, read and written one-sidedly.
#pragma once

#include <weft/rma/detail/buckets.hpp>
#include <weft/rma/detail/table_file.hpp>

#include <concepts>
#include <memory>
#include <optional>

namespace weft::inline WEFT_ABI::rma {

/// Hashes the bytes of a key. For other keys a program gives a hash of its own.
template <class Key>
struct hash_bytes {
  static_assert(
      std::has_unique_object_representations_v<Key>,
      "weft: this key has bytes or values without a meaning; give the hash table a hash of your own");
  /// A number of 64 bits, all of which depend on all of the key.
  std::uint64_t operator()(const Key& k) const noexcept {
    std::uint64_t h = 0;
    for (std::size_t at = 0; at < sizeof k; at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, reinterpret_cast<const char*>(&k) + at, std::min<std::size_t>(8, sizeof k - at));
      h = detail::mix(h + word + 0x9e3779b97f4a7c15);
    }
    return h;
  }
};

/// What a hash table is like; the same in all processes.
struct table_options {
  std::size_t buckets_per_process = std::size_t{1} << 16;  ///< at least 1
  /// A cache: a new key replaces another one where all its places are taken. Otherwise that is an error.
  bool evict = false;
  unsigned places = 8;                        ///< of a key in a cache
  rma::backend backend = backend::automatic;  ///< how buckets are reached
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
    table_ = std::make_unique<table>(group, options_.buckets_per_process, options_.backend);
  }

  /// Sets the value of a key. *Returns*: whether the key is new.
  bool insert(const Key& key, const Value& value) {
    for (;;) {
      const place at = locate_(key);
      if (at.bucket == none && !options_.evict)
        throw error("weft: the hash table is full: process " + std::to_string(at.of) + " has no free bucket");
      const std::size_t bucket = at.bucket == none ? victim_(key) : at.bucket;
      image now = at.bucket == none ? table_->read(at.of, bucket, &key) : at.held;
      const std::uint64_t before = now.state();
      if (!table_->claim(at.of, bucket, before)) continue;  // somebody else has changed it
      const bool same = before != 0 && now.is(key);
      const bool fresh = !same || (before & detail::bucket_state::live) == 0;
      if (before != 0 && !same) ++statistics_.evicted;
      now.set(key, value);
      now.of[0] = (before | detail::bucket_state::live) + detail::bucket_state::one;
      table_->publish(at.of, bucket, now);
      ++(fresh ? statistics_.inserted : statistics_.replaced);
      return fresh;
    }
  }
  /// The value of a key; nothing if it has none.
  std::optional<Value> find(const Key& key) const {
    const place at = locate_(key);
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
      const image i = table_->read(group_().rank(), b, nullptr);
      if (i.state() & detail::bucket_state::live) f(i.key(), i.value());
    }
  }

  /// How many keys there are; collective.
  std::uint64_t size() const {
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
  /// Where a key is, or where it may come to.
  struct place {
    process of;
    std::size_t bucket;  // none: no place is free
    image held;
  };

  const mpi::communicator& group_() const noexcept { return table_->group(); }
  place locate_(const Key& key) const {
    const std::uint64_t h = hash_(key);
    const auto n = static_cast<std::uint64_t>(group_().size());
    place at{static_cast<process>(h % n), 0, {}};
    const std::size_t each = table_->each(), first = h / n % each;
    const std::size_t most = options_.evict ? std::min<std::size_t>(options_.places, each) : each;
    for (std::size_t i = 0; i < most; ++i) {
      at.bucket = first + i < each ? first + i : first + i - each;
      at.held = table_->read(at.of, at.bucket, &key);
      ++statistics_.probed;
      if (at.held.state() == 0 || at.held.is(key)) return at;
    }
    at.bucket = none;
    return at;
  }
  /// One of the places of a key in a cache, another one each time.
  std::size_t victim_(const Key& key) {
    const std::uint64_t h = hash_(key);
    const std::size_t each = table_->each();
    const std::size_t places = std::min<std::size_t>(options_.places, each);
    return (h / static_cast<std::uint64_t>(group_().size()) % each + ++turn_ % places) % each;
  }
  template <class F>
  bool change_(const Key& key, F f) {
    for (;;) {
      place at = locate_(key);
      if (at.bucket == none || (at.held.state() & detail::bucket_state::live) == 0) return false;
      const std::uint64_t before = at.held.state();
      if (!table_->claim(at.of, at.bucket, before)) continue;
      try {
        f(at.held, key);
      } catch (...) {
        table_->release(at.of, at.bucket, before);
        throw;
      }
      at.held.of[0] += detail::bucket_state::one;
      table_->publish(at.of, at.bucket, at.held);
      return true;
    }
  }

  table_options options_;
  Hash hash_;
  std::unique_ptr<table> table_;
  mutable table_statistics statistics_;
  std::size_t turn_ = 0;
};

}  // namespace weft::inline WEFT_ABI::rma
