// SPDX-License-Identifier: BSL-1.0
// Writes the index of a segmented stream: where each stretch of its bytes stands in the data files.
#pragma once

#include <weft/archive/format.hpp>
#include <weft/base/contract.hpp>
#include <weft/io/crc32c.hpp>
#include <weft/io/journal.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace weft::inline WEFT_ABI::stream {

/// Takes the segments in the order of the stream and writes them as they come, never over what is written: a
/// crash at any moment leaves all that was committed.
/// *Throws*: std::system_error. After a failed write the call may be repeated; after a failed synchronisation
/// nothing is sure.
/// *Thread safety*: one thread at a time.
class segment_index {
 public:
  /// `index` is empty; it and its directory must outlive this. `salt`: that of the data files.
  segment_index(io::file& index, std::uint64_t salt, const io::directory& in)
      : journal_(index, in), salt_(salt), block_(std::make_unique<block_bytes_>()) {}

  /// What the headers of the data files carry (write_data_header).
  std::uint64_t salt() const noexcept { return salt_; }
  /// All that was added.
  totals so_far() const noexcept {
    totals all = written_;
    if (last_.length > 0) count_(all, last_);
    return all;
  }

  /// The next bytes of the stream are `length` bytes of data file `file` at `offset`, counted from its start.
  /// *Requires*: offset >= data_header_size, file < most_data_files; `crc` is the CRC-32C of the bytes.
  /// *Cost*: some 20 ns where they follow the bytes before in the same file, twice that where they do not,
  /// and a write of 32 KiB for every thousand of the latter.
  void add(std::uint32_t file, std::uint64_t offset, std::uint64_t length, std::uint32_t crc) {
    if (length == 0) return;
    if (offset < data_header_size || file >= most_data_files)
      base::fail(
          "segment of file %u at offset %llu: a data file begins with a header, and its number is small",
          static_cast<unsigned>(file), static_cast<unsigned long long>(offset));
    if (last_.length > 0 && last_.file == file && last_.offset + last_.length == offset) {
      last_.crc = io::crc32c_combine(last_.crc, crc, length);
      last_.length += length;
      return;
    }
    put_last_();
    last_ = {.offset = offset, .length = length, .file = file, .crc = crc};
    data_files_ = std::max(data_files_, file + 1);
  }

  /// All that was added is found again after a crash of the process, and, if `durable`, of the machine.
  /// *Requires*: its bytes have been written, and, if `durable`, synchronised.
  /// *Effects*: one write, and one synchronisation if `durable`.
  void commit(bool durable) {
    put_last_();
    seal_();
    if (durable) journal_.make_durable();
  }

  /// Commits, and writes the footer: the index is complete.
  /// *Requires*: as commit; nothing is added later.
  /// *Effects*: the caller gives the file its final name.
  totals finish(bool durable) {
    put_last_();
    if (slot_ == 0 && number_ == 0) open_block_();  // a stream without bytes has one block too
    seal_();
    fill_block_();
    std::array<std::byte, footer_size> end;
    const std::uint64_t position = offset_of_(slot_);
    put_footer(end.data(), {.salt = salt_, .all = written_, .position = position, .data_files = data_files_});
    journal_.put(end.data(), end.size(), position);
    journal_.cut(position + footer_size);
    if (durable) journal_.make_durable();
    return written_;
  }

 private:
  using block_bytes_ = std::array<std::byte, block_size>;

  static void count_(totals& all, const segment& s) noexcept {
    all.bytes += s.length;
    ++all.segments;
    all.crc = io::crc32c_combine(all.crc, s.crc, s.length);
  }
  std::byte* at_(std::size_t slot) const noexcept { return block_->data() + slot * slot_size; }
  std::uint64_t offset_of_(std::size_t slot) const noexcept {
    return number_ * block_size + slot * slot_size;
  }

  void open_block_() noexcept {
    put_head(at_(0), {.salt = salt_, .number = number_});
    slot_ = 1;
    sealed_ = false;
  }

  /// Moves the segment that could still have grown into the block.
  void put_last_() {
    if (last_.length == 0) return;
    fill_block_();
    if (slot_ == 0) open_block_();
    put_segment(at_(slot_++), last_);
    count_(written_, last_);
    last_.length = 0;
    sealed_ = false;
  }

  /// The last slot of a block is always a mark, even behind another one: no segment and no part of the
  /// footer.
  void fill_block_() {
    if (slot_ != slots_per_block - 1) return;
    sealed_ = false;
    seal_();
  }

  /// Ends what stands in the block with a mark, and writes what is not written yet.
  void seal_() {
    if (slot_ == 0) return;  // the block before was full
    if (!sealed_) {
      // Counts as sealed only when written, so that a repeated call puts the mark at the same place.
      put_mark(block_->data(), slot_, written_);
      journal_.put(at_(flushed_), (slot_ + 1 - flushed_) * slot_size, offset_of_(flushed_));
      flushed_ = ++slot_;
      sealed_ = true;
    }
    if (slot_ == slots_per_block) {
      slot_ = flushed_ = 0;
      ++number_;
    }
  }

  io::journal journal_;
  std::uint64_t salt_;
  totals written_;  ///< what stands in blocks
  segment last_;    ///< not yet in a block, because the next one may continue it
  std::uint32_t data_files_ = 0;
  std::unique_ptr<block_bytes_> block_;
  std::uint64_t number_ = 0;  ///< of the block
  std::size_t slot_ = 0;      ///< the next one of the block; 0: the block is not begun
  std::size_t flushed_ = 0;   ///< slots of the block that are in the file
  bool sealed_ = true;        ///< the last slot is a mark
};

}  // namespace weft::inline WEFT_ABI::stream
