// SPDX-License-Identifier: BSL-1.0
// Many keys of a hash table at once, whose buckets have no address here: their transfers overlap.
#pragma once

#include <weft/rma/detail/placement.hpp>
#include <weft/rma/table_options.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

namespace weft::inline WEFT_ABI::rma::detail {

/// An insert that is made later.
template <class Key, class Value>
struct collected {
  Key key;
  Value value;
  std::uint64_t hash;
};

/// Searches keys: gets the first bucket of each before it waits; with locks, of each in the same range. What
/// the first bucket does not tell is searched as a key by itself.
template <class Table, class Key, class Value>
void find_together(Table& table, const table_options& options, table_statistics& statistics,
                   std::span<const Key> keys, std::span<const home> homes,
                   std::span<std::optional<Value>> values) {
  std::vector<typename Table::image> images(keys.size());
  std::vector<bool> done(keys.size());
  for (std::size_t first = 0; first < keys.size(); ++first) {
    if (done[first]) continue;
    const auto together = [&](std::size_t i) {
      return !done[i] &&
             (!table.has_locks() || (homes[i].of == homes[first].of && homes[i].begin == homes[first].begin));
    };
    const typename Table::guard hold(table, homes[first].of, homes[first].first, false);
    std::vector<process> targets;
    try {
      for (std::size_t i = first; i < keys.size(); ++i) {
        if (!together(i)) continue;
        if (std::find(targets.begin(), targets.end(), homes[i].of) == targets.end())
          targets.push_back(homes[i].of);
        table.start_read(homes[i].of, homes[i].first, images[i]);
        ++statistics.probed;
      }
    } catch (...) {  // what has begun writes to the images
      for (const process p : targets) table.finish(p);
      throw;
    }
    for (const process p : targets) table.finish(p);
    for (std::size_t i = first; i < keys.size(); ++i) {
      if (!together(i)) continue;
      typename Table::image& held = images[i];
      const placement<Table, Key> places(table, homes[i], options, keys[i], statistics);
      if (places.locate(held, table.is_consistent(held)) != places.none)
        held.copy_value(values[i]);
      else
        values[i].reset();
      ++(values[i] ? statistics.found : statistics.missed);
      done[i] = true;
    }
  }
}

/// Makes those inserts of a part of a batch that go to the first bucket of their keys, in one process, with
/// all transfers of one kind at once. `made`: which of the batch are.
template <class Table, class Key, class Value>
void insert_together(Table& table, const table_options& options, table_statistics& statistics,
                     std::span<const collected<Key, Value>> batch, std::span<const home> homes,
                     std::size_t begin, std::size_t end, std::vector<bool>& made) {
  using places = placement<Table, Key>;
  const process p = homes[begin].of;
  std::vector<typename Table::image> images(end - begin);
  std::vector<std::size_t> claimed;
  std::unordered_set<std::size_t> used;
  try {
    for (std::size_t i = begin; i < end; ++i) table.start_read(p, homes[i].first, images[i - begin]);
  } catch (...) {
    table.finish(p);
    throw;
  }
  table.finish(p);
  claimed.reserve(images.size());
  std::exception_ptr failed;
  try {
    for (std::size_t i = begin; i < end; ++i) {
      typename Table::image& now = images[i - begin];
      const Key& key = batch[i].key;
      const std::size_t bucket = homes[i].first;
      ++statistics.probed;
      if (!used.insert(bucket).second || !table.is_consistent(now)) continue;
      const typename places::choice to{bucket, now.state(), now.state() != 0 && now.is(key)};
      if (to.state != 0 && !(to.same && (places::lives(to.state) || places::reserves(table, options))))
        continue;
      if (!table.claim(p, bucket, to.state)) continue;
      claimed.push_back(i);
      places(table, homes[i], options, key, statistics).fill(now, to, batch[i].value);
      table.start_publish(p, bucket, now);
    }
    table.finish(p);
    for (const std::size_t i : claimed) table.start_state(p, homes[i].first, images[i - begin]);
    table.finish(p);
  } catch (...) {
    failed = std::current_exception();
  }
  for (const std::size_t i : claimed) {
    if (failed) table.publish(p, homes[i].first, images[i - begin]);  // nobody else waits for ever
    made[i] = true;
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace weft::inline WEFT_ABI::rma::detail
