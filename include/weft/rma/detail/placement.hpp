// SPDX-License-Identifier: BSL-1.0
// In which bucket of a hash table a key is, or comes to.
#pragma once

#include <weft/rma/detail/buckets.hpp>
#include <weft/rma/table_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace weft::inline WEFT_ABI::rma::detail {

/// Where keys with the same first bucket belong.
struct home {
  process of;
  std::size_t first, begin, count;  // the first bucket; those that the keys may come to
};

/// The places of a key in a table, in their order; `Table`: buckets. The caller holds the lock of their
/// range, if there are locks. *Thread safety*: as the table.
template <class Table, class Key>
class placement {
 public:
  using image = typename Table::image;
  static constexpr std::size_t none = SIZE_MAX;

  /// Where an insert goes.
  struct choice {
    std::size_t bucket = none;  ///< none: no place is free
    std::uint64_t state = 0;    ///< of that bucket
    bool same = false;          ///< it has the key already
    bool other_copies = false;  ///< another process may take another place for the key at once
  };

  placement(Table& table, const home& where, const table_options& options, const Key& key,
            table_statistics& statistics) noexcept
      : table_(table),
        where_(where),
        evicts_(options.evict),
        most_(evicts_ ? std::min<std::size_t>(options.places, where.count) : where.count),
        key_(key),
        statistics_(statistics) {}

  /// Whether a key has one bucket for ever, which all processes find: the first one that was free for it.
  static bool reserves(const Table& table, const table_options& options) noexcept {
    return !options.evict && !table.has_locks();
  }
  static bool lives(std::uint64_t state) noexcept { return (state & bucket_state::live) != 0; }

  /// The bucket with the value of the key, and its image; none if there is no value. `has_first`: `held` is
  /// that of the first bucket already.
  std::size_t locate(image& held, bool has_first = false) const {
    for (std::size_t i = 0; i < most_; ++i) {
      const std::uint64_t state = i == 0 && has_first ? held.state() : read_(i, held);
      if (state == 0) return none;
      if (!held.is(key_)) continue;
      if (lives(state)) return bucket_(i);
      if (reserves_()) return none;
    }
    return none;
  }
  /// Where an insert goes: to the value of the key, if there is one. Else with locks to the first bucket that
  /// is free; without locks in a cache to that of the erased key, to one never used, to one of another erased
  /// key, in this order: so whoever takes one never used meets nobody that takes another place for the key,
  /// since they have found none of this kind. `turn`: which place of a full cache is replaced.
  choice choose(image& now, std::size_t& turn) const {
    const bool locks = table_.has_locks();
    choice own, erased;
    for (std::size_t i = 0; i < most_; ++i) {
      const std::uint64_t state = read_(i, now);
      if (state == 0) {
        if (own.bucket != none) return own;
        return locks && erased.bucket != none ? erased : choice{bucket_(i)};
      }
      const bool same = now.is(key_);
      if (same && (lives(state) || reserves_())) return {bucket_(i), state, true};
      if (lives(state)) continue;
      choice& free = same && !locks ? own : erased;
      if (free.bucket == none) free = {bucket_(i), state, same, !locks};
    }
    if (own.bucket != none) return own;
    if (erased.bucket != none && !reserves_()) return erased;
    if (!evicts_) return {};
    const std::size_t i = ++turn % most_;  // another one of its places each time
    const std::uint64_t state = read_(i, now);
    return {bucket_(i), state, now.is(key_), !locks};
  }
  /// The new image of a bucket that is claimed; counts what that is. *Returns*: whether the key is new.
  bool fill(image& now, const choice& to, const auto& value) const {
    const bool fresh = !to.same || !lives(to.state);
    if (!to.same && lives(to.state)) ++statistics_.evicted;
    now.set(key_, value);
    now.of[0] = (to.state | bucket_state::live) + bucket_state::one;
    ++(fresh ? statistics_.inserted : statistics_.replaced);
    return fresh;
  }
  /// Erases all values of the key but the first one. Whoever takes a place where another process may not look
  /// does that after its own value is there, so that the last one of them sees all.
  void keep_one() {
    image held;
    bool first = true;
    for (std::size_t i = 0; i < most_;) {
      const std::uint64_t state = read_(i, held);
      if (state == 0) return;
      if (!lives(state) || !held.is(key_) || std::exchange(first, false)) {
        ++i;
        continue;
      }
      if (!table_.claim(where_.of, bucket_(i), state)) continue;  // somebody else has changed it: once more
      held.of[0] = (state & ~bucket_state::live) + bucket_state::one;
      table_.publish(where_.of, bucket_(i), held);
      ++i;
    }
  }

 private:
  std::size_t bucket_(std::size_t i) const noexcept {
    const std::size_t at = where_.first + i;
    return at < where_.begin + where_.count ? at : at - where_.count;
  }
  std::uint64_t read_(std::size_t i, image& held) const {
    table_.read(where_.of, bucket_(i), &key_, held);
    ++statistics_.probed;
    return held.state();
  }
  bool reserves_() const noexcept { return !evicts_ && !table_.has_locks(); }

  Table& table_;
  home where_;
  bool evicts_;
  std::size_t most_;
  const Key& key_;
  table_statistics& statistics_;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
