// SPDX-License-Identifier: BSL-1.0
// The right to read a stream that tasks append to: its bytes up to the place of the task, as the serial
// program would find them.
#pragma once

#include <weft/archive/seek.hpp>
#include <weft/flow/access.hpp>
#include <weft/stream/detail/begin_reading.hpp>
#include <weft/stream/handle.hpp>
#include <weft/task/run_recorder.hpp>

#include <algorithm>
#include <span>

namespace weft::inline WEFT_ABI {

class append_sink;

namespace stream {

struct reading_key;

/// What one reading task holds.
/// *Thread safety*: for the thread that holds the task.
class reading_seat {
 public:
  /// `position`: where a task of its own begins.
  reading_seat(reading& of, std::uint64_t position, bool shares, bool waits) noexcept
      : of_(&of), position_(position), shares_(shares), waits_(waits) {}
  reading_seat(reading_seat&& other) noexcept
      : of_(std::exchange(other.of_, nullptr)),
        position_(other.position_),
        shares_(other.shares_),
        waits_(other.waits_),
        begun_(other.begun_) {}
  reading_seat& operator=(reading_seat&&) = delete;
  ~reading_seat() {
    if (of_ == nullptr) return;  // it was moved from
    if (shares_) {
      if (begun_) of_->position = position_;
      of_->of.end_reading(*of_);
    } else {
      of_->release();
    }
  }

  reading& of() const noexcept { return *of_; }
  /// The event for which the task waits; if there is none, an object that no task writes.
  const void* awaits() const noexcept {
    return waits_ && of_->event != nullptr ? of_->event->object() : static_cast<const void*>(of_);
  }
  std::uint64_t& position() noexcept { return position_; }
  /// The task is the first one of a run: its caller waits for it.
  /// *Throws*: what the children of the running body have thrown; what writing bytes has failed with.
  void begin_run() {
    // What has failed may be an exception of a child, which then comes first.
    if (of_->event != nullptr && (!of_->is_known() || of_->failure)) sched::sync(sched::current());
    if (of_->failure) std::rethrow_exception(of_->failure);
  }
  /// Its body starts.
  void begin() noexcept {
    if (shares_) position_ = of_->position;
    begun_ = true;
  }
  std::size_t pread(std::span<std::byte> to, std::uint64_t offset) const {
    if (offset >= of_->end) return 0;
    to = to.first(static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), of_->end - offset)));
    of_->of.layout().read_at(to, offset);
    return to.size();
  }

 private:
  reading* of_;
  std::uint64_t position_;
  bool shares_;  ///< the position, with tasks before and after it
  bool waits_;   ///< for the event
  bool begun_ = false;
};

}  // namespace stream

/// The parameter of a task that reads a stream, given by weft::read(stream). It sees exactly the bytes that
/// earlier tasks in reference order have appended. A stream only grows, so no task waits for readers.
/// Delegated to another task, it gives that task the same bytes, and a position of its own that starts at the
/// current one. It may be copied within the task, and ends with its body.
/// *Throws*: std::system_error where the file cannot be read.
/// *Thread safety*: pread from any thread while the task runs; read and seek share one position.
/// *Example*: `weft::fork([](weft::stream_reader in) { check(in); }, weft::read(file));`
/// *Source*: serial-append of PLIO (read, seek); the modes of Cheerio.
class stream_reader {
 public:
  /// The bytes before the task.
  std::uint64_t size() const noexcept { return seat_->of().end; }
  /// The position of the next byte, in bytes from the beginning.
  std::uint64_t position() const noexcept { return seat_->position(); }
  /// Reads from the position, and advances it.
  /// *Returns*: the number of bytes read: fewer than requested only at the end.
  std::size_t read(std::span<std::byte> to) const {
    const std::size_t got = pread(to, position());
    seat_->position() += got;
    return got;
  }
  /// Sets the position; behind the end is allowed, and nothing is read there.
  /// *Returns*: the position.
  /// *Throws*: weft::error if it would be negative; the position is then what it was.
  std::uint64_t seek(std::int64_t offset, seek_from from = seek_from::begin) const {
    return seat_->position() = stream::sought(offset, from, position(), size(), seat_->of().of.name());
  }
  /// Reads at an offset of the stream.
  /// *Returns*: the number of bytes read: fewer than requested only at the end.
  std::size_t pread(std::span<std::byte> to, std::uint64_t offset) const {
    [[maybe_unused]] const sched::races::unseen library;
    return seat_->pread(to, offset);
  }

 private:
  friend struct stream::reading_key;
  explicit stream_reader(stream::reading_seat& s) noexcept : seat_(&s) {}
  stream::reading_seat* seat_;
};

/// Names the right to read a stream up to the place of the task: an append_file that was opened with
/// append_options::readable, or one to which the forking task may append. The task's parameter is a
/// weft::stream_reader. The task starts when everything before it is known and written; no worker is blocked
/// meanwhile. An earlier exception drops it.
/// *Throws*: (fork, run) weft::error if the stream cannot be read, or run() is called outside tasks while
/// some append; what placing bytes has met; std::bad_alloc. A task that commutes must not have the right to
/// append to such a stream: fork throws weft::error.
template <>
class read<append_stream> {
 public:
  /// The right to read a stream up to the place of the task.
  read(const append_stream& s, file_pointer p = file_pointer::local) noexcept
      : from_(&stream::key::seat_of(s)), pointer_(p) {}
  /// Delegates a right that includes this one.
  read(const append& held, file_pointer p = file_pointer::local) noexcept
      : from_(&stream::key::seat_of(held)), pointer_(p) {}

 private:
  friend struct stream::reading_key;
  const stream::append_context* from_;
  file_pointer pointer_;
};
/// Does not compile: what was written to a sink cannot be read.
template <>
class read<append_sink> {
 public:
  /// Does not compile: what was written to a sink cannot be read.
  template <class Sink>
  explicit read(const Sink&, file_pointer = file_pointer::local) {
    static_assert(flow::never<Sink>, "weft: what has gone into a sink cannot be read; use an append_file");
  }
};
read(const append_stream&) -> read<append_stream>;
read(const append_stream&, file_pointer) -> read<append_stream>;
read(const append&) -> read<append_stream>;
read(const append&, file_pointer) -> read<append_stream>;
read(const append_sink&) -> read<append_sink>;
read(const append_sink&, file_pointer) -> read<append_sink>;

namespace stream {

/// Access to them for this room.
struct reading_key {
  static reading_seat begin(const append_context& s, file_pointer p) {
    reading& r = s.of().begin_reading(s.at(), p);
    reading_seat made(r, 0, p == file_pointer::global, true);
    if (r.event == nullptr && r.failure) std::rethrow_exception(r.failure);
    return made;
  }
  static reading_seat begin(const read<append_stream>& r) { return begin(*r.from_, r.pointer_); }
  static reading_seat begin(const append& a) { return begin(key::seat_of(a), file_pointer::local); }
  static reading_seat begin(const append_stream& s) { return begin(key::seat_of(s), file_pointer::local); }
  static reading_seat begin(const stream_reader& held) noexcept {
    reading& r = held.seat_->of();
    r.add_user();
    return {r, held.position(), false, false};
  }
  static stream_reader make(reading_seat& s) noexcept { return stream_reader(s); }
};

}  // namespace stream

namespace flow {

/// An argument that is the right to read a stream, or a stream that the parameter asks to read.
template <class Parameter, class Argument>
struct reading_binding {
  static_assert(std::is_same_v<Parameter, stream_reader> || std::is_same_v<Parameter, undeclared>,
                "weft: a task that reads a stream declares the parameter as weft::stream_reader");
  static_assert(!std::is_same_v<Argument, append_sink>,
                "weft: what has gone into a sink cannot be read; use an append_file");
  static constexpr bool access = false, strong = true, weak = false, more = false, plain = true;
  static constexpr std::uint32_t parts = 0;
  static constexpr bool parts_meet = false;  // iterations of a loop go on at one position
  using kept = stream::reading_seat;
  static constexpr access_mode mode = access_mode::read;

  static kept keep(const std::remove_cvref_t<Argument>& a) { return stream::reading_key::begin(a); }
  static void begin_run(kept& k) { k.begin_run(); }
  static stream_reader pass(kept& k) noexcept {
    k.begin();
    return stream::reading_key::make(k);
  }
  /// In a recorded run: it waits for all that append before it, and no task waits for it but those that go on
  /// reading where it ends.
  template <class Body>
  static void record(Body& body, const kept& k) {
    const stream::stream_state& s = k.of().of;
    body.add({.object = &s, .mode = access_mode::read}, sched::recorded_use::waits_only);
    // The shared position, under an address that nothing else has.
    if (k.of().from == file_pointer::global)
      body.add({.object = reinterpret_cast<const char*>(&s) + 1, .mode = access_mode::update});
  }
  /// The task waits for the event as for an object. Where there is none, nobody writes it either.
  static const void* object(const kept& k) noexcept { return k.awaits(); }
};

template <class Parameter, class Argument>
  requires std::is_same_v<Argument, read<append_stream>> || std::is_same_v<Argument, stream_reader> ||
           (std::is_same_v<Parameter, stream_reader> &&
            (std::is_same_v<Argument, append> || std::is_base_of_v<append_stream, Argument>))
struct special_binding<Parameter, Argument> {
  using type = reading_binding<Parameter, Argument>;
};

}  // namespace flow
}  // namespace weft::inline WEFT_ABI
