// SPDX-License-Identifier: BSL-1.0
// A pipe, a descriptor or a function that gets, in order, what tasks append in parallel.
#pragma once

#include <weft/stream/detail/sink.hpp>
#include <weft/stream/handle.hpp>

namespace weft::inline WEFT_ABI {

/// A stream to a descriptor or a function, which gets only bytes that the serial program would have written
/// by then: bytes behind an exception never leave it. If the sink is slower than the tasks, tasks are
/// suspended; no worker is blocked.
/// *Thread safety*: used by the thread or task that made it; tasks get the right to append.
/// *Example*: `weft::append_sink out(STDOUT_FILENO); rt.run(work, out); out.close();`
/// *Source*: serial-append of PLIO, for outputs that are not files.
class append_sink : public append_stream {
 public:
  /// Writes to a descriptor, which the caller continues to own. A closed pipe is a std::system_error (EPIPE),
  /// not a signal.
  /// *Throws*: weft::option_error, std::bad_alloc.
  explicit append_sink(int descriptor, const append_options& o = {})
      : append_sink(stream::sink_to(descriptor), o) {}
  /// Calls `sink` from a thread of the stream, one call at a time; what it throws fails the stream.
  explicit append_sink(stream::byte_sink sink, const append_options& o = {})
      : append_stream("sink",
                      std::make_unique<stream::sink_layout>(std::move(sink), stream::checked(o).memory / 2),
                      o, o.scratch.empty() ? stream::temporary_prefix() : o.scratch) {}
};

}  // namespace weft::inline WEFT_ABI
