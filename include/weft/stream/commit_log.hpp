// SPDX-License-Identifier: BSL-1.0
// The log beside a plain file that is being written: up to where its bytes are those of the finished file.
#pragma once

#include <weft/io/crc32c.hpp>
#include <weft/io/file.hpp>
#include <weft/io/journal.hpp>
#include <weft/stream/bytes.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::inline WEFT_ABI::stream {

/// What one record says: the file's first `frontier` bytes are final, and `crc` is their CRC-32C.
struct commit {
  std::uint64_t frontier = 0;
  std::uint32_t crc = 0;
  bool durable = false;  ///< on the device: those bytes and this record, once note() has returned
  friend bool operator==(const commit&, const commit&) = default;
};

/// Writes the records: each is 32 bytes with a checksum of its own, and none is ever overwritten, so that a
/// crash at any moment loses at most the record that is being written. The layout is in
/// docs/reference/append-format.md. *Throws*: std::system_error. *Thread safety*: one thread at a time.
class commit_log {
 public:
  static constexpr std::size_t record_size = 32;
  static constexpr std::uint8_t version = 1;

  /// Makes the log's file, `path` (of a stream "name" it is "name.log"). An existing one is refused if not
  /// `overwrite`, and in any case (EBUSY) while somebody writes it.
  commit_log(const std::string& path, bool overwrite) : journal_(path, overwrite), salt_(new_salt()) {}

  /// Notes that the first `frontier` bytes are final. *Requires*: they have been written. *Effects*: one
  /// write; with `durable`, the file that they are in, those bytes, the record, and all before it, are on the
  /// device on return. A power failure before that may leave the record without the bytes: its checksum
  /// tells. *Throws*: after a failed write the note may be repeated; after a failed synchronisation nothing
  /// is sure.
  void note(std::uint64_t frontier, std::uint32_t crc_of_prefix, io::file* durable = nullptr) {
    std::array<std::byte, record_size> record{};
    put(&record[0], magic_);
    put(&record[4], version);
    put(&record[5], static_cast<std::uint8_t>(durable != nullptr));
    put(&record[8], salt_);
    put(&record[16], frontier);
    put(&record[24], crc_of_prefix);
    put(&record[28], io::crc32c(record.data(), 28));
    journal_.put(record.data(), record.size(), end_);
    end_ += record_size;
    if (durable != nullptr) journal_.make_durable_with(*durable);
  }

  const std::string& path() const noexcept { return journal_.path(); }

  /// *Returns*: what the valid records of a log say, in the order of writing. Torn and damaged ones are
  /// passed over: each vouches for itself.
  static std::vector<commit> all_valid(const io::file& log) {
    std::vector<commit> found;
    std::vector<std::byte> part(64 * 1024);
    std::optional<std::uint64_t> salt;
    for (std::uint64_t offset = 0;; offset += part.size()) {
      const std::size_t got = log.read_at(part.data(), part.size(), offset);
      for (std::size_t at = 0; at + record_size <= got; at += record_size) {
        const std::byte* const record = part.data() + at;
        if (get<std::uint32_t>(record) != magic_ || get<std::uint8_t>(record + 4) != version) continue;
        if (get<std::uint32_t>(record + 28) != io::crc32c(record, 28)) continue;
        const auto its_salt = get<std::uint64_t>(record + 8);
        if (salt.value_or(its_salt) != its_salt) continue;
        salt = its_salt;
        found.push_back({.frontier = get<std::uint64_t>(record + 16),
                         .crc = get<std::uint32_t>(record + 24),
                         .durable = get<std::uint8_t>(record + 5) != 0});
      }
      if (got < part.size()) return found;
    }
  }

  /// *Returns*: the last valid record of the log at `path`; nothing if there is none, or no log.
  static std::optional<commit> last_valid(const std::string& path) {
    if (!io::exists(path)) return std::nullopt;
    const std::vector<commit> all = all_valid(io::file::open_read(path));
    return all.empty() ? std::nullopt : std::optional(all.back());
  }

 private:
  static constexpr std::uint32_t magic_ = 0x474C4657;  // "WFLG"

  io::journal journal_;
  std::uint64_t salt_;
  std::uint64_t end_ = 0;
};

}  // namespace weft::inline WEFT_ABI::stream
