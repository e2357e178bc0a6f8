// SPDX-License-Identifier: BSL-1.0
// Blocks of bzip2 as bits: made one by one in any order, joined into one stream in theirs.
#pragma once

#include "block_reader.hpp"

#include <bzlib.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>

namespace pbz {

/// A stream is "BZh" and the level, blocks, this mark, a checksum of all blocks, and up to seven zero bits.
inline constexpr std::uint64_t end_mark = 0x177245385090;
inline constexpr unsigned mark_bits = 48, checksum_bits = 32, header_bits = 32,
                          trailer_bits = mark_bits + checksum_bits;

/// One compressed block without what stands around it.
struct coded_block {
  bytes data;
  std::uint64_t bits = 0;
  std::uint32_t checksum = 0;
};

namespace detail {

/// `count` bits, at most 57, of `data` from bit `from` on.
inline std::uint64_t bits_at(std::span<const unsigned char> data, std::uint64_t from, unsigned count) {
  std::uint64_t value = 0;
  for (std::uint64_t bit = from; bit < from + count; ++bit)
    value = value << 1 | (data[bit / 8] >> (7 - bit % 8) & 1);
  return value;
}

/// Whether the mark can be found at two places that are fewer than eight bits apart.
constexpr bool marks_may_overlap() {
  for (unsigned shift = 1; shift < 8; ++shift)
    if (end_mark >> shift == (end_mark & ((std::uint64_t{1} << (mark_bits - shift)) - 1))) return true;
  return false;
}
static_assert(!marks_may_overlap(), "how many bits are padding can be told from where the mark is");

}  // namespace detail

/// Compresses the bytes of one block as a stream of its own and takes the block out of it.
/// *Requires*: `raw` is what block_reader gave. *Throws*: std::bad_alloc.
inline coded_block compress(std::span<unsigned char> raw, int level) {
  // libbz2's bound for so many coded bytes, and some.
  const std::size_t most = static_cast<std::size_t>(level) * 101000 + 2048;
  const auto scratch = std::make_unique_for_overwrite<unsigned char[]>(most);
  unsigned length = static_cast<unsigned>(most);
  const int status = BZ2_bzBuffToBuffCompress(reinterpret_cast<char*>(scratch.get()), &length,
                                              reinterpret_cast<char*>(raw.data()),
                                              static_cast<unsigned>(raw.size()), level, 0, 0);
  if (status == BZ_MEM_ERROR) throw std::bad_alloc();
  if (status != BZ_OK) throw std::runtime_error("libbz2 fails with code " + std::to_string(status));

  const std::span<const unsigned char> stream(scratch.get(), length);
  coded_block b;
  b.checksum = static_cast<std::uint32_t>(detail::bits_at(stream, header_bits + mark_bits, checksum_bits));
  std::uint64_t end = 8 * std::uint64_t{length} - trailer_bits;
  for (unsigned padding = 0; detail::bits_at(stream, end, mark_bits) != end_mark; ++padding, --end)
    if (padding == 7) throw std::runtime_error("libbz2 has made a stream without an end");
  b.bits = end - header_bits;
  // With one block, the checksum of all is its own; another one means that the input was not one block.
  if (detail::bits_at(stream, end + mark_bits, checksum_bits) != b.checksum)
    throw std::logic_error("a block was cut where bzip2 would not cut it");
  b.data.assign(stream.begin() + header_bits / 8,
                stream.begin() + static_cast<std::ptrdiff_t>((end + 7) / 8));
  return b;
}

/// Joins blocks at whatever bit the one before ended. *Thread safety*: none; called in the blocks' order.
class bit_joiner {
 public:
  /// Hands the bytes that the block completes to `write`.
  template <class Write>
  void add(const coded_block& b, Write&& write) {
    checksum_ = std::rotl(checksum_, 1) ^ b.checksum;
    append_(b.data, b.bits, write);
  }

  /// Ends the stream.
  template <class Write>
  void finish(Write&& write) {
    bytes trailer(trailer_bits / 8 + 1);
    for (unsigned i = 0; i < mark_bits / 8; ++i)
      trailer[i] = static_cast<unsigned char>(end_mark >> (mark_bits - 8 - 8 * i));
    for (unsigned i = 0; i < checksum_bits / 8; ++i)
      trailer[mark_bits / 8 + i] = static_cast<unsigned char>(checksum_ >> (checksum_bits - 8 - 8 * i));
    append_(trailer, trailer_bits + (8 - held_) % 8, write);
  }

 private:
  template <class Write>
  void append_(const bytes& data, std::uint64_t bits, Write&& write) {
    const std::size_t whole = static_cast<std::size_t>((held_ + bits) / 8);
    joined_.resize(whole + 1);
    const auto byte = [&data](std::size_t i) { return i < data.size() ? unsigned{data[i]} : 0; };
    joined_[0] = static_cast<unsigned char>(last_ | byte(0) >> held_);
    const std::size_t inside = std::min(whole + 1, data.size());
    // Locals, so that compilers make vectors of it.
    const unsigned right = held_, left = 8 - held_;
    const unsigned char* const __restrict from = data.data();
    unsigned char* const __restrict to = joined_.data();
    for (std::size_t i = 1; i < inside; ++i)
      to[i] = static_cast<unsigned char>(from[i - 1] << left | from[i] >> right);
    if (inside == whole && whole > 0) joined_[whole] = static_cast<unsigned char>(byte(whole - 1) << left);
    held_ = static_cast<unsigned>((held_ + bits) % 8);
    last_ = joined_[whole] & (0xff00u >> held_ & 0xff);
    write(std::span<const unsigned char>(joined_.data(), whole));
  }

  unsigned held_ = 0;  // bits, fewer than eight, that wait for the rest of their byte
  unsigned last_ = 0;
  std::uint32_t checksum_ = 0;
  bytes joined_;
};

}  // namespace pbz
