// SPDX-License-Identifier: BSL-1.0
// A file of the checkpoints of runs: records of tasks that have ended, as one process writes them and any
// reads them.
#pragma once

#include <weft/cluster/detail/checkpoint_file.hpp>
#include <weft/cluster/detail/finished_tasks.hpp>
#include <weft/io/crc32c.hpp>
#include <weft/io/directory.hpp>

#include <sys/uio.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// Who has written a file, and when.
struct segment_origin {
  std::uint64_t program = 0;  ///< loaded_code::identity
  std::uint64_t run = 0;      ///< of the cluster, from 1
  std::uint64_t number = 0;   ///< of the file
  std::uint32_t process = 0;
};

/// The name of such a file, "<process>-<number>.checkpoint".
struct segment_name {
  std::uint64_t process = 0, number = 0;

  static constexpr std::string_view ending = ".checkpoint";
  std::string text() const {
    return std::to_string(process) + "-" + std::to_string(number) + std::string(ending);
  }
  /// *Returns*: nothing for the name of another file. `whole` false: of one that has not got its name yet.
  static std::optional<segment_name> parse(std::string_view text, bool whole = true) noexcept {
    segment_name n;
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    const auto first = std::from_chars(begin, end, n.process);
    if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '-') return std::nullopt;
    const auto second = std::from_chars(first.ptr + 1, end, n.number);
    constexpr std::uint64_t largest = ~std::uint64_t{0} / 2;  // so that there are others behind it
    if (second.ec != std::errc{} || n.number > largest) return std::nullopt;
    const std::string_view rest(second.ptr, static_cast<std::size_t>(end - second.ptr));
    if (!rest.starts_with(ending) || (rest.size() == ending.size()) != whole) return std::nullopt;
    return whole || rest.substr(ending.size()).starts_with(".weft-") ? std::optional(n) : std::nullopt;
  }
};

/// The format is that of docs/reference/checkpoint-format.md; numbers are little-endian, as on all machines
/// that weft runs on. *Thread safety*: any.
class segment_file {
 public:
  static constexpr std::uint32_t format = 1;

  /// Makes a file of these records. *Returns*: its size, in bytes. *Throws*: std::system_error,
  /// std::bad_alloc; then there is none.
  static std::uint64_t write(const io::directory& in, const segment_origin& by,
                             const std::vector<unwritten_task>& all) {
    head h;
    h.process = by.process;
    h.program = by.program;
    h.run = by.run;
    h.number = by.number;
    h.records = all.size();
    h.size = sizeof h + sizeof(std::uint32_t);
    std::vector<record_head> heads;
    heads.reserve(all.size());
    std::vector<iovec> parts;
    parts.reserve(2 * all.size() + 2);
    for (const unwritten_task& t : all) {
      const bytes& r = *t.results;
      heads.push_back({t.name.high, t.name.low, t.parent.high, t.parent.low, t.type.offset, t.type.module,
                       io::crc32c(r.data(), r.size()), r.size()});
      h.size += sizeof heads.back() + r.size();
    }
    parts.push_back({&h, sizeof h});
    for (std::size_t i = 0; i < all.size(); ++i) {
      parts.push_back({&heads[i], sizeof heads[i]});
      parts.push_back({const_cast<std::byte*>(all[i].results->data()), all[i].results->size()});
    }
    std::uint32_t sum = 0;
    for (const iovec& p : parts) sum = io::crc32c(p.iov_base, p.iov_len, sum);
    parts.push_back({&sum, sizeof sum});
    publish_file(in, segment_name{by.process, by.number}.text(), false,
                 [&parts](io::file& f) { f.write_at(parts, 0); });
    return h.size;
  }

  /// Reads a whole file, and adds its records, which lie in `segment`, to `all`. *Returns*: who has written
  /// it. *Throws*: weft::error for a file that is of another kind, format or program, or damaged;
  /// std::system_error, std::bad_alloc.
  static segment_origin read(const io::file& f, std::uint64_t program, std::uint64_t segment,
                             std::vector<placed_task>& all) {
    head h;
    const std::size_t got = f.read_at(&h, sizeof h, 0);
    if (got < sizeof h.magic || std::memcmp(h.magic, head{}.magic, sizeof h.magic) != 0)
      throw error("weft: '" + f.path() + "' is not a checkpoint of a run");
    if (got < sizeof h) refuse_damaged_file(f.path());
    if (h.format != format)
      throw error("weft: '" + f.path() + "' is a checkpoint of another version of weft: its format is " +
                  std::to_string(h.format) + ", and not " + std::to_string(format));
    if (h.size != f.size() || h.size < sizeof h + sizeof(std::uint32_t) || !is_sound_(f, h.size))
      refuse_damaged_file(f.path());
    if (h.program != program)
      throw error("weft: '" + f.path() +
                  "' is a checkpoint of another program; a run is resumed by the same file that was killed");
    const std::uint64_t end = h.size - sizeof(std::uint32_t);
    std::uint64_t at = sizeof h;
    for (std::uint64_t i = 0; i < h.records; ++i) {
      record_head r;
      if (end - at < sizeof r || f.read_at(&r, sizeof r, at) != sizeof r) refuse_damaged_file(f.path());
      at += sizeof r;
      if (end - at < r.size) refuse_damaged_file(f.path());
      all.push_back({{r.high, r.low},
                     {r.parent_high, r.parent_low},
                     {r.module, r.type},
                     {segment, at, r.size, r.checksum}});
      at += r.size;
    }
    if (at != end) refuse_damaged_file(f.path());
    return {h.program, h.run, h.number, h.process};
  }
  /// *Returns*: the results at a place; nothing if they are not as they were written. *Throws*:
  /// std::system_error, std::bad_alloc.
  static std::optional<bytes> results(const io::file& f, const result_place& p) {
    if (const std::uint64_t size = f.size(); size < p.offset || size - p.offset < p.size) return std::nullopt;
    bytes all(p.size);
    all.resize(f.read_at(all.data(), all.size(), p.offset));
    if (all.size() != p.size || io::crc32c(all.data(), all.size()) != p.checksum) return std::nullopt;
    return all;
  }

 private:
  struct head {
    char magic[16] = {'w', 'e', 'f', 't', ' ', 'c', 'h', 'e', 'c', 'k', 'p', 'o', 'i', 'n', 't', '\n'};
    std::uint32_t format = segment_file::format;
    std::uint32_t process = 0;
    std::uint64_t program = 0, run = 0, number = 0, records = 0, size = 0;
  };
  struct record_head {
    std::uint64_t high, low, parent_high, parent_low, type;
    std::uint32_t module, checksum;
    std::uint64_t size;
  };
  static_assert(sizeof(head) == 64 && sizeof(record_head) == 56);

  /// Whether the checksum at the end is that of all before.
  static bool is_sound_(const io::file& f, std::uint64_t size) {
    constexpr std::size_t at_once = 1 << 20;
    std::uint32_t sum = 0, told = 0;
    bytes part(std::min<std::uint64_t>(size, at_once));
    const std::uint64_t end = size - sizeof told;
    for (std::uint64_t at = 0; at < end;) {
      const std::size_t n = f.read_at(part.data(), std::min<std::uint64_t>(end - at, part.size()), at);
      if (n == 0) return false;
      sum = io::crc32c(part.data(), n, sum);
      at += n;
    }
    return f.read_at(&told, sizeof told, end) == sizeof told && told == sum;
  }
};

}  // namespace weft::inline WEFT_ABI::remote
