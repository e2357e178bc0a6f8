// SPDX-License-Identifier: BSL-1.0
// A file that tasks append to in parallel, with the bytes of the serial program.
#pragma once

#include <weft/stream/append.hpp>
#include <weft/stream/plain.hpp>
#include <weft/stream/segmented.hpp>

namespace weft {

/// How the bytes of an append_file lie on disk. plain: an ordinary file. segmented: one file for each worker
/// and an index, to be read through append_reader.
enum class append_layout : unsigned char { plain, segmented };

/// What may be said of an append_file, or (memory, buffer, scratch) of an append_sink.
struct append_options {
  append_layout layout = append_layout::plain;
  bool overwrite = false;  ///< an existing file may be replaced, when the stream is closed
  std::size_t memory = std::size_t{64} << 20;  ///< bytes in memory before later parts go to scratch files
  std::size_t buffer = std::size_t{1} << 20;   ///< bytes that a worker appends before they are written
  std::uint64_t commit_every = std::uint64_t{64}
                               << 20;  ///< bytes between commits; 0: no commits. Plain files only
  bool durable = false;                ///< commits survive a power failure, not only a crash
  bool sync = true;                    ///< close() returns when the file is safe on disk
  std::string scratch{};               ///< prefix of scratch files; empty: the path, or a temporary one
};

/// A file that is written by tasks in parallel and has, in the end, the bytes that the serial program would
/// have written. While it is written it is called `<path>.part`; close() gives it its name, complete. Without
/// close() the part stays for weft::recover. *Thread safety*: for the thread or task that made it; it is
/// handed to tasks as the right to append. *Example*: `weft::append_file log("log.txt"); rt.run(work, log);
/// log.close();` *Source*: serial-append of PLIO (open, write, close).
class append_file {
 public:
  /// Creates it. *Throws*: std::system_error naming the path, also if it exists and is not to be overwritten;
  /// weft::option_error.
  explicit append_file(const std::string& path, const append_options& o = {})
      : core_(make_(path, o)), seat_(new stream::seat(*core_, core_->root())) {}
  append_file(append_file&& other) noexcept
      : core_(std::exchange(other.core_, nullptr)), seat_(std::exchange(other.seat_, nullptr)) {}
  append_file& operator=(append_file&&) = delete;
  /// Without close(): bytes known so far are in the part, which can be recovered. Tasks that still append get
  /// a weft::error.
  ~append_file() {
    if (core_ == nullptr) return;
    delete seat_;
    stream::core::end_handle(core_);
  }

  /// Appends outside tasks, or in the task that made it: behind all that was forked or run before.
  void write(std::span<const std::byte> bytes) { seat_->write(bytes.data(), bytes.size()); }
  void write(std::string_view text) { seat_->write(text.data(), text.size()); }
  std::ostream& stream() { return seat_->text(); }

  /// Waits for nothing: all tasks that append must have ended. Gives the file its name; with the option
  /// `sync`, durably. Does nothing the second time. *Throws*: weft::error if tasks append; std::system_error
  /// if bytes could not be placed: then the part stays.
  void close() {
    if (closed_) return;
    core_->close();
    closed_ = true;
  }
  /// Bytes in front of the first that is not known yet. *Requires*: no task appends. *Throws*: as close().
  std::uint64_t size() { return core_->placed(); }
  /// Bytes that a crash does not lose. *Thread safety*: any thread.
  std::uint64_t committed() const noexcept { return core_->layout().committed(); }
  /// Bytes that were written twice, because memory was short. *Thread safety*: any thread.
  std::uint64_t spilled() const noexcept { return core_->spilled(); }

 private:
  friend struct stream::key;
  static stream::core* make_(const std::string& path, const append_options& o) {
    if (o.buffer < 4096 || o.buffer > (std::size_t{1} << 30))
      throw option_error("weft: append_options::buffer must be between 4 KiB and 1 GiB");
    std::unique_ptr<stream::placer> layout;
    if (o.layout == append_layout::segmented)
      layout = std::make_unique<stream::segmented_layout>(path, o.overwrite, o.sync);
    else
      layout = std::make_unique<stream::plain_layout>(
          path, stream::plain_layout::options{o.overwrite, o.commit_every, o.durable, o.sync});
    return new stream::core(path, std::move(layout), o.buffer, o.memory,
                            o.scratch.empty() ? path : o.scratch);
  }

  stream::core* core_;
  stream::seat* seat_;
  bool closed_ = false;
};

}  // namespace weft
