// SPDX-License-Identifier: BSL-1.0
// What may be said of an append stream when it is opened.
#pragma once

#include <weft/base/error.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace weft::inline WEFT_ABI {

/// The layout of an append_file on disk. plain: an ordinary file. segmented: one data file for each worker
/// and an index, read through append_reader.
enum class append_layout : unsigned char { plain, segmented };

/// Options of an append_file, and (memory, buffer, scratch) of an append_sink.
struct append_options {
  /// plain: the file as it is. segmented: one data file per worker and an index.
  append_layout layout = append_layout::plain;
  bool overwrite = false;  ///< an existing file may be replaced, when the stream is closed
  bool readable = false;   ///< tasks may read what was appended before them (weft::read(stream))
  std::size_t memory = std::size_t{64} << 20;  ///< bytes in memory before later parts go to scratch files
  std::size_t buffer = std::size_t{1} << 20;   ///< bytes that a worker appends before they are written
  std::uint64_t commit_every = std::uint64_t{64} << 20;  ///< bytes between commits; 0: none
  bool durable = false;   ///< commits survive a power failure, not only a crash
  bool sync = true;       ///< close() returns when the file is safe on disk
  std::string scratch{};  ///< prefix of scratch files; empty: the path, or a temporary one
};

namespace stream {

/// *Throws*: option_error.
inline append_options checked(append_options o) {
  if (o.buffer < 4096 || o.buffer > (std::size_t{1} << 30))
    throw option_error("weft: append_options::buffer must be between 4 KiB and 1 GiB");
  return o;
}

/// The directory of scratch files for streams that have no file.
inline std::string temporary_prefix() {
  const char* const place = std::getenv("TMPDIR");
  return std::string(place != nullptr ? place : "/tmp") + "/weft-append-" + std::to_string(::getpid());
}

}  // namespace stream
}  // namespace weft::inline WEFT_ABI
