// SPDX-License-Identifier: BSL-1.0
// Reads an index, finished or not, as far as its checksums vouch for it.
#pragma once

#include <weft/archive/format.hpp>
#include <weft/archive/segment_map.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace weft::inline WEFT_ABI::stream {

/// What an index says.
struct index_scan {
  segment_map segments;             ///< those before the last mark that is valid with all before it
  std::vector<std::uint64_t> ends;  ///< of each data file: up to where segments reach in it
  std::uint64_t salt = 0;           ///< 0: not even the first block begins validly
  std::optional<footer> end;        ///< the index is complete: everything in it is valid
  std::string damage;               ///< else: what is wrong first, and where
};

namespace detail {

class index_scanner {
 public:
  explicit index_scanner(const io::file& index) : index_(index), size_(index.size()) {
    constexpr std::uint64_t at_once = 1 << 22;  // a size is only a promise: more is reserved as it is kept
    found_.segments.reserve(static_cast<std::size_t>(std::min(size_ / slot_size, at_once)));
  }

  index_scan scan() {
    std::vector<std::byte> part(blocks_at_once * block_size);
    for (std::uint64_t position = 0;; position += part.size()) {
      const std::size_t got = index_.read_at(part.data(), part.size(), position);
      for (std::size_t at = 0; at < part.size(); at += block_size)
        if (!block_(part.data() + at, std::min(block_size, got - std::min(got, at)), position + at))
          return std::move(found_);
    }
  }

 private:
  static constexpr std::size_t blocks_at_once = 16;  // half a megabyte stays in the second-level cache

  bool stop_(std::uint64_t position, const char* what) {
    found_.damage =
        std::string(what) + " at offset " + std::to_string(position) + " of '" + index_.path() + "'";
    return false;
  }

  /// *Returns*: whether the next block is to be looked at.
  bool block_(const std::byte* block, std::size_t got, std::uint64_t position) {
    if (got == 0) return stop_(position, "the index ends without a footer");
    if (position > 0 && is_footer_(block, got, position)) return false;
    if (got < slot_size) return stop_(position, "an incomplete block head");
    const std::optional<block_head> head = get_head(block);
    if (!head) return stop_(position, "no block head, or a damaged one,");
    if (head->version != format_version)
      return stop_(position, "a format version that this weft does not know");
    if (position == 0) found_.salt = head->salt;
    if (head->salt != found_.salt || head->number != position / block_size || head->salt == 0)
      return stop_(position, "a block that belongs elsewhere");

    const std::size_t slots = got / slot_size;
    const bool full = slots == slots_per_block && get_mark(block, slots_per_block - 1).has_value();
    std::size_t valid = full ? slots_per_block : 0;  // slots that a mark vouches for
    if (!full) {
      for (std::size_t slot = 1; slot < slots; ++slot) {
        const slot_kind kind = kind_of(block + slot * slot_size);
        if (kind == slot_kind::mark && get_mark(block, slot)) valid = slot + 1;
        if (kind != slot_kind::mark && kind != slot_kind::segment) break;
      }
    }
    for (std::size_t slot = 1; slot < valid; ++slot)
      if (!slot_(block + slot * slot_size, position + slot * slot_size)) return false;
    if (full) return true;
    const std::size_t end = std::max<std::size_t>(valid, 1) * slot_size;
    if (valid > 0 && is_footer_(block + end, got - end, position + end)) return false;
    return stop_(position + end, "nothing that a valid checksum vouches for");
  }

  /// A slot whose checksum is right may still be nonsense: files come from anywhere.
  bool slot_(const std::byte* slot, std::uint64_t position) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    segment_map& all = found_.segments;
    if (kind_of(slot) == slot_kind::mark) {
      if (get<std::uint64_t>(slot) == all.bytes() && get<std::uint64_t>(slot + 8) == all.count()) return true;
      return stop_(position, "a mark that contradicts the segments before it");
    }
    const segment s = get_segment(slot);
    if (kind_of(slot) != slot_kind::segment || s.length == 0 || s.offset < data_header_size ||
        s.file >= most_data_files || s.length > most - all.bytes() || s.offset > most - s.length)
      return stop_(position, "an impossible segment");
    all.append(s);
    if (s.file >= found_.ends.size()) found_.ends.resize(s.file + 1);
    std::uint64_t& end = found_.ends[s.file];
    end = std::max(end, s.offset + s.length);
    return true;
  }

  bool is_footer_(const std::byte* at, std::size_t got, std::uint64_t position) {
    if (got != footer_size || position + footer_size != size_) return false;
    const std::optional<footer> end = get_footer(at);
    if (!end || end->version != format_version || end->salt != found_.salt || end->position != position ||
        end->all.bytes != found_.segments.bytes() || end->all.segments != found_.segments.count() ||
        end->data_files != found_.ends.size())
      return false;
    found_.end = end;
    return true;
  }

  const io::file& index_;
  std::uint64_t size_;
  index_scan found_;
};

}  // namespace detail

/// *Throws*: std::system_error if the file cannot be read; damage is no exception here.
inline index_scan scan_index(const io::file& index) { return detail::index_scanner(index).scan(); }

/// Whether a file claims to be an index: by its first bytes, or by those of its footer, so that a damaged
/// index is not taken for a plain file.
inline bool claims_to_be_index(const io::file& candidate) {
  std::array<std::byte, 8> magic;
  if (candidate.read_at(magic.data(), magic.size(), 0) == magic.size() &&
      get<std::uint64_t>(magic.data()) == index_magic)
    return true;
  const std::uint64_t size = candidate.size();
  return size >= footer_size &&
         candidate.read_at(magic.data(), magic.size(), size - footer_size) == magic.size() &&
         get<std::uint64_t>(magic.data()) == footer_magic;
}

/// The salt that an index names in its first block; 0 if it is none, or that is damaged.
inline std::uint64_t salt_of(const io::file& candidate) {
  std::array<std::byte, slot_size> slot;
  if (candidate.read_at(slot.data(), slot.size(), 0) < slot.size()) return 0;
  const std::optional<block_head> head = get_head(slot.data());
  return head && head->number == 0 ? head->salt : 0;
}

}  // namespace weft::inline WEFT_ABI::stream
