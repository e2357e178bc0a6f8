// SPDX-License-Identifier: BSL-1.0
// Reads a stream from its beginning, and compares the checksum of every segment.
#pragma once

#include <weft/archive/detail/data_files.hpp>
#include <weft/archive/format.hpp>
#include <weft/archive/segment_map.hpp>
#include <weft/io/crc32c.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace weft::inline WEFT_ABI::stream {

/// How far a walk has come.
struct walk_result {
  std::size_t segments = 0;  ///< those that are as they were written
  std::uint32_t crc = 0;     ///< of their bytes
  std::string damage;        ///< what is wrong with the next one; empty if there is none
};

/// Reads the segments in the order of the stream up to the first damaged one; `sink(bytes)` gets everything
/// that was read, half a megabyte at a time, also the beginning of a segment that turns out to be damaged.
template <class Sink>
walk_result checked_walk(const segment_map& segments, const data_files& data, bool with_checksums,
                         Sink&& sink) {
  constexpr std::size_t most = 512 * 1024;  // stays in the second-level cache between the read and its use
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(most);
  std::size_t filled = 0;
  walk_result result;
  for (std::size_t i = 0; i < segments.count(); ++i) {
    const segment s = segments[i];
    result.damage = data.problem(s.file);
    if (!result.damage.empty()) return result;
    const io::file& from = data[s.file];
    std::uint32_t crc = 0;
    for (std::uint64_t done = 0; done < s.length;) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(most - filled, s.length - done));
      const std::size_t got = from.read_at(buffer.get() + filled, n, s.offset + done);
      if (got < n) {
        result.damage =
            '\'' + from.path() + "' ends at offset " + std::to_string(s.offset + done + got) + ", too early";
        return result;
      }
      if (with_checksums) crc = io::crc32c(buffer.get() + filled, n, crc);
      done += n;
      filled += n;
      if (filled == most) {
        sink(std::span<const std::byte>(buffer.get(), filled));
        filled = 0;
      }
    }
    if (with_checksums && crc != s.crc) {
      result.damage = "the bytes from offset " + std::to_string(s.offset) + " to " +
                      std::to_string(s.offset + s.length) + " of '" + from.path() +
                      "' (of the stream: from " + std::to_string(segments.start(i)) +
                      ") do not match their checksum";
      return result;
    }
    result.crc = io::crc32c_combine(result.crc, s.crc, s.length);
    ++result.segments;
  }
  if (filled > 0) sink(std::span<const std::byte>(buffer.get(), filled));
  return result;
}

}  // namespace weft::inline WEFT_ABI::stream
