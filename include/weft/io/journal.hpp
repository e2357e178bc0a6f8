// SPDX-License-Identifier: BSL-1.0
// A file of small records, written one behind the other, whose durable writes touch nothing but their own
// block.
#pragma once

#include <weft/io/background_sync.hpp>
#include <weft/io/directory.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace weft::inline WEFT_ABI::io {

/// A file that nobody else writes, with steps of zeros ahead of the records as soon as one
/// has to be durable: a record then overwrites bytes which the file system knows already, and the device sees
/// one write instead of a write and a transaction. *Throws*: as file. *Thread safety*: one thread at a time.
class journal {
 public:
  /// `written` has its name, in the directory `in`; both must outlive this.
  journal(file& written, const directory& in) noexcept : file_(written), in_(in) {}

  /// Writes a record. A failed put may be repeated.
  void put(const void* record, std::size_t size, std::uint64_t offset) {
    if (ahead_) zero_up_to_(offset + size);
    file_.write_at(record, size, offset);
  }

  /// All puts so far are on the device on return, and the file's name is.
  void make_durable() {
    if (ahead_) return file_.sync_data();
    file_.sync();
    in_.sync();
    zeroed_ = file_.size();
    ahead_ = true;
  }
  /// The same, together with the data of another file.
  void make_durable_with(file& other) {
    if (!ahead_) {
      other.sync_data();
      return make_durable();
    }
    background_sync own(file_);
    other.sync_data();
    own.finish();
  }

  /// Ends the file at `size`: without the zeros ahead.
  void cut(std::uint64_t size) {
    file_.resize(size);
    zeroed_ = size;
  }

 private:
  void zero_up_to_(std::uint64_t end) {
    constexpr std::size_t part = 4096;
    constexpr std::size_t parts = 16;
    static constexpr std::array<char, part> zeros{};
    if (end <= zeroed_) return;
    iovec step[parts];
    for (iovec& each : step) each = {const_cast<char*>(zeros.data()), part};
    while (zeroed_ < end) {
      file_.write_at(step, zeroed_);
      zeroed_ += part * parts;
    }
  }

  file& file_;
  const directory& in_;
  std::uint64_t zeroed_ = 0;  ///< where the zeros end that were written ahead
  bool ahead_ = false;
};

}  // namespace weft::inline WEFT_ABI::io
