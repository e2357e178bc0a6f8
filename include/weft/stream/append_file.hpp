// SPDX-License-Identifier: BSL-1.0
// A file that tasks append to in parallel, with the bytes of the serial program.
#pragma once

#include <weft/stream/detail/plain.hpp>
#include <weft/stream/detail/segmented.hpp>
#include <weft/stream/handle.hpp>

namespace weft::inline WEFT_ABI {

/// A file that is written by tasks in parallel and has, in the end, the bytes that the serial program would
/// have written. While it is written it is called `<path>.weft-part`; close() gives it its name, complete,
/// and the mode of the file that it replaces. Without close() the part stays for weft::recover, if there are
/// commits.
/// *Thread safety*: for the thread or task that made it; it is handed to tasks as the right to append.
/// *Example*: `weft::append_file log("log.txt"); rt.run(work, log); log.close();`
/// *Source*: serial-append of PLIO (open, write, close).
class append_file : public append_stream {
 public:
  /// Creates it.
  /// *Throws*: std::system_error naming the path, with EEXIST if it, or what an earlier writer has left,
  /// exists and is not to be overwritten, or if a name that it needs is taken, and with EBUSY if somebody
  /// else writes it; weft::error if it is a directory, pipe, socket or device; weft::option_error.
  explicit append_file(const std::string& path, const append_options& o = {})
      : append_stream(path, layout_(path, stream::checked(o)), o, o.scratch.empty() ? path : o.scratch) {}

  /// Bytes that a crash does not lose (append_options::commit_every).
  /// *Thread safety*: any thread.
  std::uint64_t committed() const noexcept { return stream_state().layout().committed(); }

 private:
  static std::unique_ptr<stream::stream_layout> layout_(const std::string& path, const append_options& o) {
    if (o.layout == append_layout::segmented)
      return std::make_unique<stream::segmented_layout>(
          path, stream::segmented_layout::options{o.overwrite, o.commit_every, o.sync, o.readable});
    return std::make_unique<stream::plain_layout>(
        path, stream::plain_layout::options{o.overwrite, o.commit_every, o.durable, o.sync, o.readable});
  }
};

}  // namespace weft::inline WEFT_ABI
