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
  /// Takes over the stream.
  append_stream(append_stream&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)), seat_(std::move(other.seat_)) {}
  append_stream& operator=(append_stream&&) = delete;
  /// Without close(): bytes known so far have been placed, failures are lost. Tasks that still append get a
  /// weft::error.
  ~append_stream() {
    if (state_ == nullptr) return;
    seat_.reset();
    stream::stream_state::end_handle(state_);
  }

  /// Appends outside tasks, or in the task that made the stream: behind all that was forked or run before.
  /// *Throws*,
  /// *Suspends*: as append::write.
  void write(std::span<const std::byte> bytes) { seat_->write(bytes.data(), bytes.size()); }
  /// Delegates a right that includes this one.
  void write(std::string_view text) { seat_->write(text.data(), text.size()); }
  /// An std::ostream whose text is appended.
  std::ostream& stream() { return seat_->text(); }

  /// Places everything and ends the stream; does nothing the second time.
  /// *Requires*: all tasks that append or read have ended: it waits for the sink, not for them.
  /// *Throws*: weft::error if they do not; std::system_error, or what a sink has thrown, if bytes could not
  /// be placed, every time.
  /// *Suspends*: if the sink is behind.
  void close() { state_->close(); }
  /// Bytes in front of the first that is not known yet. *Requires*,
  /// *Throws*: as close().
  std::uint64_t size() { return state_->placed(); }
  /// Bytes that were written twice, because memory was short.
  /// *Thread safety*: any thread.
  std::uint64_t spilled() const noexcept { return state_->spilled(); }

 protected:
  /// Opens a stream over a layout.
  /// *Throws*: as that.
  append_stream(std::string name, std::unique_ptr<stream::stream_layout> layout, const append_options& o,
                std::string scratch)
      : state_(new stream::stream_state(std::move(name), std::move(layout), o.buffer, o.memory,
                                        std::move(scratch))) {
    try {
      seat_ = std::make_unique<stream::append_context>(*state_, state_->root());
    } catch (...) {
      stream::stream_state::end_handle(state_);
      throw;
    }
  }
  /// The shared state, for rights.
  const stream::stream_state& stream_state() const noexcept { return *state_; }

 private:
  friend struct stream::key;
  stream::stream_state* state_;
  std::unique_ptr<stream::append_context> seat_;
};

}  // namespace weft::inline WEFT_ABI
