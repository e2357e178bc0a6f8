// SPDX-License-Identifier: BSL-1.0
// The log beside a plain file that is being written: up to where its bytes are those of the finished file.
#pragma once

#include <weft/archive/detail/bytes.hpp>
#include <weft/io/crc32c.hpp>
#include <weft/io/journal.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace weft::inline WEFT_ABI::stream {

/// What one record says: the file's first `frontier` bytes are final, and `crc` is their CRC-32C.
struct commit {
  std::uint64_t frontier = 0;
  std::uint32_t crc = 0;
  bool durable = false;  ///< on the device: those bytes and this record, once note() has returned
  friend bool operator==(const commit&, const commit&) = default;
};

/// The beginning of a log: which files the stream that is being written has. A file that the head of a valid
/// log names is weft's beyond doubt, and may be removed.
struct log_head {
  std::uint64_t salt = 0;        ///< of the stream's records and data files; never 0
  std::uint64_t part_inode = 0;  ///< the file "name.weft-part" has this inode
  std::uint64_t part_birth = 0;  ///< and was made then (io::file::birth)
  std::uint64_t replaced = 0;  ///< the salt of the segmented stream that is to be replaced; 0: there is none
  friend bool operator==(const log_head&, const log_head&) = default;

  static constexpr std::size_t size = 64;
  static constexpr std::uint8_t version = 2;

  /// Whether it is about that file.
  bool names(const io::file& part) const {
    return part_inode == static_cast<std::uint64_t>(part.about().st_ino) && part_birth == part.birth();
  }
  void write_to(io::file& log) const {
    std::array<std::byte, size> head{};
    put(&head[0], magic);
    put(&head[8], salt);
    put(&head[16], part_inode);
    put(&head[24], part_birth);
    put(&head[32], replaced);
    put(&head[40], version);
    put(&head[60], io::crc32c(head.data(), 60));
    log.write_at(head.data(), head.size(), 0);
  }
  /// *Returns*: nothing if the file does not begin with a head or that is damaged.
  static std::optional<log_head> read(const io::file& log) {
    std::array<std::byte, size> head;
    if (log.read_at(head.data(), head.size(), 0) < head.size() || get<std::uint64_t>(&head[0]) != magic ||
        get<std::uint8_t>(&head[40]) != version || get<std::uint64_t>(&head[8]) == 0 ||
        get<std::uint32_t>(&head[60]) != io::crc32c(head.data(), 60))
      return std::nullopt;
    return log_head{.salt = get<std::uint64_t>(&head[8]),
                    .part_inode = get<std::uint64_t>(&head[16]),
                    .part_birth = get<std::uint64_t>(&head[24]),
                    .replaced = get<std::uint64_t>(&head[32])};
  }

 private:
  static constexpr std::uint64_t magic = 0x0A474C7466657789;  // 89 "weftLG" 0A
};

/// Writes the records behind the head: each is 32 bytes with a checksum of its own, and none is ever
/// overwritten, so that a crash at any moment loses at most the record that is being written. The layout is
/// in docs/reference/append-format.md.
/// *Throws*: std::system_error.
/// *Thread safety*: one thread at a time.
class commit_log {
 public:
  static constexpr std::size_t record_size = 32;
  static constexpr std::uint8_t version = 1;

  /// `log` has its head, with that salt, and no records; it and its directory must outlive this.
  commit_log(io::file& log, std::uint64_t salt, const io::directory& in) noexcept
      : journal_(log, in), salt_(salt) {}

  /// Notes that the first `frontier` bytes are final.
  /// *Requires*: they have been written.
  /// *Effects*: one write; with `durable`, the file that they are in, those bytes, the record, and all before
  /// it, are on the device on return. A power failure before that may leave the record without the bytes: its
  /// checksum tells.
  /// *Throws*: after a failed write the note may be repeated; after a failed synchronisation nothing is sure.
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

  /// *Returns*: what the valid records of a log say, in the order of writing. Torn and damaged ones are
  /// passed over: each vouches for itself.
  static std::vector<commit> all_valid(const io::file& log) {
    std::vector<commit> found;
    std::vector<std::byte> part(64 * 1024);
    std::optional<std::uint64_t> salt;
    if (const std::optional<log_head> head = log_head::read(log)) salt = head->salt;
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

 private:
  static constexpr std::uint32_t magic_ = 0x474C4657;  // "WFLG"

  io::journal journal_;
  std::uint64_t salt_;
  std::uint64_t end_ = log_head::size;
};

}  // namespace weft::inline WEFT_ABI::stream
