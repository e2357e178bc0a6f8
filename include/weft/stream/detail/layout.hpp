// SPDX-License-Identifier: BSL-1.0
// What a layout has to do with the bytes of a stream once their place is known.
#pragma once

#include <weft/stream/detail/memory.hpp>

#include <algorithm>
#include <span>

namespace weft::inline WEFT_ABI::stream {

/// Bytes that come next in the stream. In a stream whose blocks are filed, `data` is null and `crc` is that
/// of the bytes.
struct piece {
  const std::byte* data;
  std::size_t size;
  const block* in;
  std::size_t begin;  ///< in the block
  std::uint32_t crc;
};

/// A layout: where bytes end. *Thread safety*: `begin_block` and `file_block` for one worker buffer at a
/// time; `place_at` and `wait_for_room` any thread; the rest one at a time. All but the destructor throw
/// std::system_error and std::bad_alloc.
class stream_layout {
 public:
  stream_layout() = default;
  stream_layout(const stream_layout&) = delete;
  stream_layout& operator=(const stream_layout&) = delete;
  virtual ~stream_layout() = default;

  /// Whether blocks are written to files as they are, before the places of their bytes are known.
  virtual bool files_blocks() const noexcept { return false; }
  /// Notes in an empty block where it will be in the file of that worker buffer, behind the one before.
  virtual void begin_block(std::uint32_t, block&) {}
  /// Writes the block's bytes there up to `end`, from where it has been written before.
  virtual void file_block(block&, std::size_t /*end*/) {}
  /// *Returns*: the CRC-32C of bytes of a block that file_block has written. *Thread safety*: any thread.
  virtual std::uint32_t checksum(const block&, std::size_t /*begin*/, std::size_t /*size*/) const {
    return 0;
  }
  /// Puts pieces behind what has been placed so far; for layouts that need them in order.
  virtual void place(std::span<const piece>) {}
  /// Whether pieces may be placed in any order, by several threads at once; then `place_at` and `placed` are
  /// called.
  virtual bool in_any_order() const noexcept { return false; }
  /// *Returns*: the CRC-32C of the bytes, if the layout wants to know it.
  virtual std::uint32_t place_at(std::span<const piece>, std::uint64_t) { return 0; }
  /// The first `size` bytes are placed; one call at a time.
  virtual void placed(std::uint64_t /*size*/, std::uint32_t /*crc*/) {}
  /// How many bytes make a call worth while.
  virtual std::size_t worth_while() const noexcept { return between_commits(0); }
  /// The same for a layout that commits every so many bytes; 0: it does not.
  static std::size_t between_commits(std::uint64_t commit_every) noexcept {
    constexpr std::uint64_t usual = std::uint64_t{1} << 20;
    return commit_every == 0 ? usual : std::min(usual, commit_every);
  }
  /// Lets a producer wait where bytes are taken more slowly than they come.
  virtual void wait_for_room() {}
  /// All has been placed: publishes the stream. Called once, last.
  virtual void finish() = 0;
  /// Placing has failed, or the stream is given up: makes what has been placed recoverable.
  virtual void give_up() noexcept {}
  /// Whether it is time to commit; asked after `place`. Then `commit` is called, when all that has been
  /// placed is in the files of its worker buffers.
  virtual bool wants_commit() const noexcept { return false; }
  virtual void commit() {}
  /// Whether what has been placed can be read, by `read_at`.
  virtual bool readable() const noexcept { return false; }
  /// Reads placed bytes, up to the end of what `to` wants. *Thread safety*: any thread, until `finish`.
  virtual void read_at(std::span<std::byte> /*to*/, std::uint64_t /*offset*/) const {}
  /// Bytes that a crash does not lose.
  virtual std::uint64_t committed() const noexcept { return 0; }
};

}  // namespace weft::inline WEFT_ABI::stream
