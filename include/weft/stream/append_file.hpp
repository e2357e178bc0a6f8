// SPDX-License-Identifier: BSL-1.0
// A file that tasks append to in parallel, with the bytes of the serial program.
#pragma once

#include <weft/stream/detail/plain.hpp>
#include <weft/stream/detail/segmented.hpp>
#include <weft/stream/handle.hpp>

namespace weft::inline WEFT_ABI {

/// A file that tasks write in parallel with the bytes of the serial program. Its name is `<path>.weft-part`
/// until close() renames the complete file, and gives it the mode of the file that it replaces. Without
/// close(), the unfinished file remains for weft::recover, if anything was committed.
/// *Thread safety*: used by the thread or task that made it; tasks get the right to append.
/// *Example*: `weft::append_file log("log.txt"); rt.run(work, log); log.close();`
/// *Source*: serial-append of PLIO (open, write, close).
class append_file : public append_stream {
 public:
  /// Creates the file.
  /// *Throws*: std::system_error naming the path, with EEXIST if it, or an unfinished file of an earlier
  /// writer, exists and may not be overwritten, or if a name that it needs is taken, and with EBUSY if
  /// another writer has it open; weft::error if it is a directory, pipe, socket or device;
  /// weft::option_error.
  explicit append_file(const std::string& path, const append_options& o = {})
      : append_stream(path, layout_(path, stream::checked(o)), o, o.scratch.empty() ? path : o.scratch) {}

  /// The number of bytes that survive a crash (append_options::commit_every).
  /// *Thread safety*: any thread.
  std::uint64_t committed() const noexcept { return stream_state().layout().committed(); }

 private:
  static std::unique_ptr<stream::stream_layout> layout_(const std::string& path, const append_options& o) {
    if (o.layout == append_layout::segmented)
      return std::make_unique<stream::segmented_layout>(
          path,
          stream::segmented_layout::options{o.overwrite, o.commit_every, o.durable, o.sync, o.readable});
    return std::make_unique<stream::plain_layout>(
        path, stream::plain_layout::options{o.overwrite, o.commit_every, o.durable, o.sync, o.readable});
  }
};

}  // namespace weft::inline WEFT_ABI
