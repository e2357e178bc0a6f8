// SPDX-License-Identifier: BSL-1.0
// What append_file and append_sink have in common: a stream that is open, and its own appending.
#pragma once

#include <weft/stream/append.hpp>
#include <weft/stream/append_options.hpp>

namespace weft::inline WEFT_ABI {

/// A stream to which tasks append in parallel, with the bytes of the serial program.
/// *Thread safety*: used by the thread or task that made it; tasks get the right to append.
class append_stream {
 public:
  /// Takes over the stream.
  append_stream(append_stream&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)), seat_(std::move(other.seat_)) {}
  append_stream& operator=(append_stream&&) = delete;
  /// Without close(), bytes known so far are written, and errors are lost. Tasks that still append get a
  /// weft::error.
  ~append_stream() {
    if (state_ == nullptr) return;
    seat_.reset();
    stream::stream_state::end_handle(state_);
  }

  /// Appends outside tasks, or in the task that made the stream, behind everything that was forked or run
  /// before.
  /// *Throws*,
  /// *Suspends*: as append::write.
  void write(std::span<const std::byte> bytes) { seat_->write(bytes.data(), bytes.size()); }
  /// The same.
  void write(std::string_view text) { seat_->write(text.data(), text.size()); }
  /// A std::ostream that appends.
  std::ostream& stream() { return seat_->text(); }

  /// Writes everything and ends the stream. A second call does nothing.
  /// *Requires*: all tasks that append or read have ended; it waits for the sink only.
  /// *Throws*: weft::error if they have not; std::system_error, or the exception of a sink, if the stream
  /// could not be written, at every call.
  /// *Suspends*: while the sink is too slow.
  void close() { state_->close(); }
  /// The number of bytes before the first that is not known yet. *Requires*,
  /// *Throws*: as close().
  std::uint64_t size() { return state_->placed(); }
  /// The number of bytes that were written twice because the memory budget was exhausted.
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
