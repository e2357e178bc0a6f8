// SPDX-License-Identifier: BSL-1.0
// What append_file and append_sink have in common: a stream that is open, and its own appending.
#pragma once

#include <weft/stream/append.hpp>
#include <weft/stream/append_options.hpp>

namespace weft::inline WEFT_ABI {

/// A stream that tasks append to in parallel, with the bytes of the serial program.
/// *Thread safety*: for the thread or task that made it; it is handed to tasks as the right to append.
class append_stream {
 public:
  append_stream(append_stream&& other) noexcept
      : core_(std::exchange(other.core_, nullptr)), seat_(std::move(other.seat_)) {}
  append_stream& operator=(append_stream&&) = delete;
  /// Without close(): bytes known so far have been placed, failures are lost. Tasks that still append get a
  /// weft::error.
  ~append_stream() {
    if (core_ == nullptr) return;
    seat_.reset();
    stream::core::end_handle(core_);
  }

  /// Appends outside tasks, or in the task that made the stream: behind all that was forked or run before.
  /// *Throws*, *Suspends*: as append::write.
  void write(std::span<const std::byte> bytes) { seat_->write(bytes.data(), bytes.size()); }
  void write(std::string_view text) { seat_->write(text.data(), text.size()); }
  std::ostream& stream() { return seat_->text(); }

  /// Places everything and ends the stream; does nothing the second time. *Requires*: all tasks that append
  /// or read have ended: it waits for the sink, not for them. *Throws*: weft::error if they do not;
  /// std::system_error, or what a sink has thrown, if bytes could not be placed, every time. *Suspends*: if
  /// the sink is behind.
  void close() { core_->close(); }
  /// Bytes in front of the first that is not known yet. *Requires*, *Throws*: as close().
  std::uint64_t size() { return core_->placed(); }
  /// Bytes that were written twice, because memory was short. *Thread safety*: any thread.
  std::uint64_t spilled() const noexcept { return core_->spilled(); }

 protected:
  append_stream(std::string name, std::unique_ptr<stream::placer> layout, const append_options& o,
                std::string scratch)
      : core_(new stream::core(std::move(name), std::move(layout), o.buffer, o.memory, std::move(scratch))) {
    try {
      seat_ = std::make_unique<stream::seat>(*core_, core_->root());
    } catch (...) {
      stream::core::end_handle(core_);
      throw;
    }
  }
  const stream::core& core() const noexcept { return *core_; }

 private:
  friend struct stream::key;
  stream::core* core_;
  std::unique_ptr<stream::seat> seat_;
};

}  // namespace weft::inline WEFT_ABI
