// SPDX-License-Identifier: BSL-1.0
// The segments of a stream in memory, found by an offset in the stream.
#pragma once

#include <weft/stream/format.hpp>
#include <weft/stream/huge_pages.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::stream {

/// The segments in the order of the stream. *Thread safety*: const functions from any thread.
class segment_map {
 public:
  void reserve(std::size_t segments) {
    leaves_.reserve(segments / fan_ + 1);
    middle_.reserve(segments / fan_ + fan_ + 1);
    top_.reserve(segments / (fan_ * fan_) + 1);
  }
  /// Puts a segment behind the others. *Requires*: it has bytes, and the sum of all is below 2^63.
  void append(const segment& s) {
    const std::size_t at = count_ % fan_;
    if (at == 0) {
      if (middle_.size() % fan_ == 0) top_.push_back(bytes_);
      middle_.push_back(bytes_);
      leaves_.emplace_back();
    }
    leaf_& leaf = leaves_.back();
    leaf.starts[at] = bytes_;
    leaf.places[at] = {.offset = s.offset, .file = s.file, .crc = s.crc};
    bytes_ += s.length;
    ++count_;
  }
  /// Lengthens the last segment. *Requires*: there is one.
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

  /// *Returns*: the segment that the byte at `offset` of the stream is in. *Requires*: offset < bytes().
  /// *Cost*: binary searches without branches among every 256th start, 16 starts of every 16th, and 16
  /// neighbours: of a million segments, memory is waited for once, by the last.
  std::size_t find(std::uint64_t offset) const noexcept {
    const std::size_t group = last_not_above_(top_.data(), top_.size(), offset) * fan_;
    const std::size_t in_group = middle_.size() - group < fan_ ? middle_.size() - group : fan_;
    const std::size_t leaf = group + last_not_above_(middle_.data() + group, in_group, offset);
    // The whole leaf at once, with the place that is asked for next.
    const auto* const bytes = reinterpret_cast<const char*>(&leaves_[leaf]);
    for (std::size_t i = 0; i < sizeof(leaf_); i += 64) __builtin_prefetch(bytes + i);
    const std::size_t in_leaf = count_ - leaf * fan_ < fan_ ? count_ - leaf * fan_ : fan_;
    return leaf * fan_ + last_not_above_(leaves_[leaf].starts, in_leaf, offset);
  }

 private:
  static constexpr std::size_t fan_ = 16;

  struct place_ {
    std::uint64_t offset;
    std::uint32_t file;
    std::uint32_t crc;
  };
  struct alignas(64) leaf_ {
    leaf_() noexcept {}  // NOLINT(modernize-use-equals-default): that one would fill it with zeros first
    std::uint64_t starts[fan_];
    place_ places[fan_];
  };

  static std::size_t last_not_above_(const std::uint64_t* from, std::size_t count,
                                     std::uint64_t offset) noexcept {
    const std::uint64_t* base = from;
    while (count > 1) {
      const std::size_t half = count / 2;
      // A product instead of a condition: compilers make a branch of the latter, and every second guess is
      // wrong.
      base += static_cast<std::size_t>(base[half] <= offset) * half;
      count -= half;
    }
    return static_cast<std::size_t>(base - from);
  }

  std::vector<leaf_, huge_page_allocator<leaf_>> leaves_;
  std::vector<std::uint64_t> middle_;  ///< the first start of every leaf
  std::vector<std::uint64_t> top_;     ///< every sixteenth of those
  std::uint64_t bytes_ = 0;
  std::size_t count_ = 0;
};

}  // namespace weft::stream
