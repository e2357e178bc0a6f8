// SPDX-License-Identifier: BSL-1.0
// The segmented layout, byte by byte: slots, blocks and the footer of an index, and the headers of data
// files.
#pragma once

#include <weft/archive/detail/bytes.hpp>
#include <weft/base/error.hpp>
#include <weft/io/crc32c.hpp>
#include <weft/io/directory.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace weft::inline WEFT_ABI {

/// A stream at rest is not as it was written: bytes have changed or are missing. The text names the file and
/// the first damaged place.
class WEFT_CROSSES_MODULES damaged_stream : public error {
 public:
  using error::error;
};

}  // namespace weft::inline WEFT_ABI

namespace weft::inline WEFT_ABI::stream {

inline constexpr std::uint8_t format_version = 1;
inline constexpr std::size_t slot_size = 32;
inline constexpr std::size_t slots_per_block = 1024;
inline constexpr std::size_t block_size = slot_size * slots_per_block;
inline constexpr std::size_t footer_size = 64;
inline constexpr std::size_t data_header_size = 4096;
/// Data files have numbers below this: an index that asks for more is damaged or hostile.
inline constexpr std::uint32_t most_data_files = 1u << 16;

/// The first eight bytes of an index, of its footer, and of a data file; like PNG's, they begin with a byte
/// that is no text and end with a line feed, which transfers as text would change.
inline constexpr std::uint64_t index_magic = 0x0A58497466657789;   // 89 "weftIX" 0A
inline constexpr std::uint64_t footer_magic = 0x0A544F7466657789;  // 89 "weftOT" 0A
inline constexpr std::uint64_t data_magic = 0x0A54447466657789;    // 89 "weftDT" 0A

/// The names beside a stream's own, which no other program uses.
inline std::string part_name(const std::string& name) { return name + ".weft-part"; }
inline std::string log_name(const std::string& name) { return name + ".weft-log"; }
/// Data files have the salt of their stream in their names, so that a new stream can be written while the old
/// one of the same name is read.
inline std::string data_name_prefix(const std::string& name, std::uint64_t salt) {
  return name + ".weft-" + io::hexadecimal(salt) + '-';
}
inline std::string data_name(const std::string& name, std::uint64_t salt, std::uint32_t number) {
  return data_name_prefix(name, salt) + std::to_string(number);
}

enum class slot_kind : std::uint8_t { none = 0, head = 1, segment = 2, mark = 3, footer = 4 };
inline constexpr std::size_t kind_offset = 24;
inline slot_kind kind_of(const std::byte* slot) noexcept {
  return static_cast<slot_kind>(get<std::uint8_t>(slot + kind_offset));
}

/// Bytes that are contiguous in the stream and in a data file.
struct segment {
  std::uint64_t offset = 0;  ///< from the start of the data file
  std::uint64_t length = 0;
  std::uint32_t file = 0;
  std::uint32_t crc = 0;  ///< CRC-32C of these bytes
  friend bool operator==(const segment&, const segment&) = default;
};

inline void put_segment(std::byte* slot, const segment& s) noexcept {
  put(slot, s.offset);
  put(slot + 8, s.length);
  put(slot + 16, s.file);
  put(slot + 20, s.crc);
  put(slot + 24, std::uint64_t{static_cast<std::uint8_t>(slot_kind::segment)});
}
inline segment get_segment(const std::byte* slot) noexcept {
  return {.offset = get<std::uint64_t>(slot),
          .length = get<std::uint64_t>(slot + 8),
          .file = get<std::uint32_t>(slot + 16),
          .crc = get<std::uint32_t>(slot + 20)};
}

/// The first slot of every block.
struct block_head {
  std::uint64_t salt = 0;
  std::uint64_t number = 0;
  std::uint8_t version = format_version;
};

inline void put_head(std::byte* slot, const block_head& head) noexcept {
  put(slot, index_magic);
  put(slot + 8, head.salt);
  put(slot + 16, head.number);
  put(slot + 24, static_cast<std::uint32_t>(std::uint32_t{static_cast<std::uint8_t>(slot_kind::head)} |
                                            std::uint32_t{head.version} << 8));
  put(slot + 28, io::crc32c(slot, 28));
}
/// *Returns*: nothing if the slot is not the head of a block or is damaged.
inline std::optional<block_head> get_head(const std::byte* slot) noexcept {
  if (get<std::uint64_t>(slot) != index_magic || kind_of(slot) != slot_kind::head) return std::nullopt;
  if (get<std::uint32_t>(slot + 28) != io::crc32c(slot, 28)) return std::nullopt;
  return block_head{.salt = get<std::uint64_t>(slot + 8),
                    .number = get<std::uint64_t>(slot + 16),
                    .version = get<std::uint8_t>(slot + 25)};
}

/// What a stream, or a beginning of it, amounts to.
struct totals {
  std::uint64_t bytes = 0;
  std::uint64_t segments = 0;
  std::uint32_t crc = 0;
  friend bool operator==(const totals&, const totals&) = default;
};

/// A mark makes the block valid up to itself: it ends with a checksum of all bytes of the block before.
inline void put_mark(std::byte* block, std::size_t slot, const totals& so_far) noexcept {
  std::byte* const mark = block + slot * slot_size;
  put(mark, so_far.bytes);
  put(mark + 8, so_far.segments);
  put(mark + 16, so_far.crc);
  put(mark + 20, std::uint32_t{0});
  put(mark + 24, std::uint32_t{static_cast<std::uint8_t>(slot_kind::mark)});
  put(mark + 28, io::crc32c(block, slot * slot_size + 28));
}
/// *Returns*: nothing if the slot is no mark, or the block is damaged before the mark's end.
inline std::optional<totals> get_mark(const std::byte* block, std::size_t slot) noexcept {
  const std::byte* const mark = block + slot * slot_size;
  if (kind_of(mark) != slot_kind::mark) return std::nullopt;
  if (get<std::uint32_t>(mark + 28) != io::crc32c(block, slot * slot_size + 28)) return std::nullopt;
  return totals{.bytes = get<std::uint64_t>(mark),
                .segments = get<std::uint64_t>(mark + 8),
                .crc = get<std::uint32_t>(mark + 16)};
}

/// The end of a finished index.
struct footer {
  std::uint64_t salt = 0;
  totals all;
  std::uint64_t position = 0;    ///< where it stands in the index: the size of all blocks
  std::uint32_t data_files = 0;  ///< one more than the highest number of a data file
  std::uint8_t version = format_version;
};

inline void put_footer(std::byte* to, const footer& f) noexcept {
  std::memset(to, 0, footer_size);
  put(to, footer_magic);
  put(to + 8, f.salt);
  put(to + 16, f.all.bytes);
  put(to + 24, static_cast<std::uint8_t>(slot_kind::footer));
  put(to + 25, f.version);
  put(to + 28, f.all.crc);
  put(to + 32, f.all.segments);
  put(to + 40, f.position);
  put(to + 48, f.data_files);
  put(to + 60, io::crc32c(to, 60));
}
/// *Returns*: nothing if there is no footer or it is damaged.
inline std::optional<footer> get_footer(const std::byte* from) noexcept {
  if (get<std::uint64_t>(from) != footer_magic || kind_of(from) != slot_kind::footer) return std::nullopt;
  if (get<std::uint32_t>(from + 60) != io::crc32c(from, 60)) return std::nullopt;
  return footer{.salt = get<std::uint64_t>(from + 8),
                .all = {.bytes = get<std::uint64_t>(from + 16),
                        .segments = get<std::uint64_t>(from + 32),
                        .crc = get<std::uint32_t>(from + 28)},
                .position = get<std::uint64_t>(from + 40),
                .data_files = get<std::uint32_t>(from + 48),
                .version = get<std::uint8_t>(from + 25)};
}

/// Which data file of which stream it is.
struct data_header {
  std::uint64_t salt = 0;
  std::uint32_t number = 0;
  std::uint8_t version = format_version;
  friend bool operator==(const data_header&, const data_header&) = default;
};

/// Writes the first block of a data file; the stream's bytes begin behind it, at data_header_size.
inline void write_data_header(io::file& data, std::uint64_t salt, std::uint32_t number) {
  std::array<std::byte, data_header_size> block{};
  put(&block[0], data_magic);
  put(&block[8], salt);
  put(&block[16], number);
  put(&block[20], format_version);
  put(&block[data_header_size - 4], io::crc32c(block.data(), data_header_size - 4));
  data.write_at(block.data(), block.size(), 0);
}
/// *Returns*: nothing if the file does not begin with a header or that is damaged.
inline std::optional<data_header> read_data_header(const io::file& data) {
  std::array<std::byte, data_header_size> block;
  if (data.read_at(block.data(), block.size(), 0) < block.size()) return std::nullopt;
  if (get<std::uint64_t>(&block[0]) != data_magic) return std::nullopt;
  if (get<std::uint32_t>(&block[data_header_size - 4]) != io::crc32c(block.data(), data_header_size - 4))
    return std::nullopt;
  return data_header{.salt = get<std::uint64_t>(&block[8]),
                     .number = get<std::uint32_t>(&block[16]),
                     .version = get<std::uint8_t>(&block[20])};
}

}  // namespace weft::inline WEFT_ABI::stream
