// SPDX-License-Identifier: BSL-1.0
// The segments of a stream in memory, found by an offset in the stream.
#pragma once

#include <weft/archive/detail/huge_pages.hpp>
#include <weft/archive/format.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::inline WEFT_ABI::stream {

/// The segments in the order of the stream.
/// *Thread safety*: const functions from any thread.
class segment_map {
 public:
  void reserve(std::size_t segments) { leaves_.reserve(segments / fan_ + 1); }
  /// Puts a segment behind the others.
  /// *Requires*: it has bytes, and the sum of all is below 2^63.
  void append(const segment& s) {
    const std::size_t at = count_ % fan_;
    if (at == 0) {
      add_key_(0, bytes_);
      leaves_.emplace_back();
    }
    leaf_& leaf = leaves_.back();
    leaf.starts[at] = bytes_;
    leaf.places[at] = {.offset = s.offset, .file = s.file, .crc = s.crc};
    bytes_ += s.length;
    ++count_;
  }
  /// Lengthens the last segment.
  /// *Requires*: there is one.
  void extend(std::uint64_t bytes) noexcept { bytes_ += bytes; }

  std::size_t count() const noexcept { return count_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Where segment i begins in the stream; of count(): where the stream ends.
  std::uint64_t start(std::size_t i) const noexcept {
    return i == count_ ? bytes_ : leaves_[i / fan_].starts[i % fan_];
  }
  segment operator[](std::size_t i) const noexcept {
    const leaf_& leaf = leaves_[i / fan_];
    const place_& p = leaf.places[i % fan_];
    return {.offset = p.offset, .length = start(i + 1) - leaf.starts[i % fan_], .file = p.file, .crc = p.crc};
  }

  /// *Returns*: the segment that the byte at `offset` of the stream is in.
  /// *Requires*: offset < bytes().
  /// *Cost*: a look at 16 neighbours in each level of a tree: of a million segments, memory is waited for
  /// once, in the last of five.
  std::size_t find(std::uint64_t offset) const noexcept {
    std::size_t at = 0;
    for (std::size_t level = levels_.size(); level-- > 0;) {
      const std::size_t group = at * fan_;
      at = group + last_not_above_(levels_[level].keys.data() + group, offset);
    }
    // The whole leaf at once, with the place that is asked for next.
    const auto* const bytes = reinterpret_cast<const char*>(&leaves_[at]);
    for (std::size_t i = 0; i < sizeof(leaf_); i += 64) __builtin_prefetch(bytes + i);
    return at * fan_ + last_not_above_(leaves_[at].starts, offset);
  }

 private:
  static constexpr std::size_t fan_ = 16;

  struct place_ {
    std::uint64_t offset;
    std::uint32_t file;
    std::uint32_t crc;
  };
  static constexpr std::uint64_t beyond_ = UINT64_MAX;  // where there is no key, or no segment

  struct alignas(64) leaf_ {
    leaf_() noexcept { std::fill(starts, starts + fan_, beyond_); }
    std::uint64_t starts[fan_];
    place_ places[fan_];
  };
  /// The first starts of the nodes of the level below, in groups of `fan_`.
  struct level_ {
    std::vector<std::uint64_t> keys{};
    std::size_t used = 0;
  };

  /// A new node of the level below begins there.
  void add_key_(std::size_t level, std::uint64_t start) {
    if (level == levels_.size()) {
      levels_.emplace_back();
      if (level != 0 && start != 0) add_key_(level, 0);  // the first group of the level below
    }
    if (levels_[level].used != 0 && levels_[level].used % fan_ == 0) add_key_(level + 1, start);
    level_& l = levels_[level];
    if (l.used % fan_ == 0) l.keys.resize(l.used + fan_, beyond_);
    l.keys[l.used++] = start;
  }
  /// The last of `fan_` keys that is not above the offset.
  /// *Requires*: the first is not.
  static std::size_t last_not_above_(const std::uint64_t* keys, std::uint64_t offset) noexcept {
    // All of them, without a branch, in sums that need not wait for each other: faster than halving.
    std::size_t above[4] = {};
    for (std::size_t i = 0; i < fan_; i += 4)
      for (std::size_t j = 0; j < 4; ++j) above[j] += offset < keys[i + j];
    return fan_ - 1 - (above[0] + above[1] + above[2] + above[3]);
  }

  std::vector<leaf_, huge_page_allocator<leaf_>> leaves_;
  std::vector<level_> levels_;  ///< of the first starts of all leaves, and so on upwards to one group
  std::uint64_t bytes_ = 0;
  std::size_t count_ = 0;
};

}  // namespace weft::inline WEFT_ABI::stream
