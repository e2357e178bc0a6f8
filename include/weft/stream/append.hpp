// SPDX-License-Identifier: BSL-1.0
// The right to append to a stream, as a task's parameter; and how fork gives a task its place in the stream.
#pragma once

#include <weft/flow/argument_adaptor.hpp>
#include <weft/stream/detail/ostream_adaptor.hpp>
#include <weft/stream/detail/stream_state.hpp>

#include <span>
#include <string_view>

namespace weft::inline WEFT_ABI {

class append;
class append_stream;
class stream_reader;

namespace stream {

/// What one task has of a stream: a node of its own if it was deferred, else that of the task around it.
/// *Thread safety*: for whoever has the task.
class append_context {
 public:
  explicit append_context(stream_state& of, node& at) noexcept : of_(&of), at_(&at) {}
  append_context(append_context&& other) noexcept
      : of_(std::exchange(other.of_, nullptr)),
        at_(other.at_),
        deferred_(other.deferred_),
        begun_(other.begun_) {}
  append_context& operator=(append_context&&) = delete;
  ~append_context() {
    if (of_ == nullptr) return;  // it was moved from
    delete face_;
    if (deferred_ && begun_)
      of_->end_body(*at_, well_);
    else if (deferred_)
      of_->drop(*at_);
  }

  stream_state& of() const noexcept { return *of_; }
  node& at() const noexcept { return *at_; }
  /// The task is being deferred.
  /// *Throws*: std::bad_alloc; what placing bytes has met.
  append_context defer(sched::closure& c) && {
    if (deferred_) return std::move(*this);  // the first task of a run
    append_context deferred(*of_, of_->begin_child(*at_, c));
    deferred.deferred_ = true;
    c.may_wait_for_earlier = of_->readable();  // it may fork tasks that read, and they wait for the frontier
    of_ = nullptr;
    return deferred;
  }
  /// The task is the first one of a run. Where it may wait for tasks before it, the running body must not
  /// hold them up: it waits for its children.
  /// *Throws*: also what they have thrown.
  void begin_run() {
    if (sched::strand& s = sched::current(); of_->readable() && !is_outside(s)) sched::sync(s);
    at_ = &of_->begin_run(*at_);
    deferred_ = true;
  }
  /// Its body is called now.
  void begin() noexcept {
    if (!deferred_) return;
    begun_ = true;
    of_->begin_body(*at_);
  }
  /// It has returned.
  void end_well() noexcept { well_ = true; }
  /// It will never be called, because a task before it has failed or the run was stopped.
  void drop() noexcept { of_->cut(*at_); }
  void write(const void* bytes, std::size_t size) { of_->write(*at_, bytes, size); }
  std::ostream& text() {
    if (face_ == nullptr) face_ = new ostream_adaptor(&write_, this);
    return *face_;
  }

 private:
  static void write_(void* self, const char* text, std::size_t size) {
    static_cast<append_context*>(self)->write(text, size);
  }

  stream_state* of_;
  node* at_;
  ostream_adaptor* face_ = nullptr;  // made by the body that asks for it; one with an adaptor is never moved
  bool deferred_ = false;
  bool begun_ = false;
  bool well_ = false;
};

/// Opens the handles for this room.
struct key {
  template <class Handle>
  static append_context& seat_of(const Handle& h) noexcept {
    return *h.seat_;
  }
  static append make(append_context& s) noexcept;
};

}  // namespace stream

/// What a function given to append::finalise appends with.
class append_tail {
 public:
  /// The own appending of the program, behind all tasks.
  explicit append_tail(stream::stream_state& of) noexcept : of_(&of) {}
  /// Bytes of the stream before this place, those written by this function included.
  std::uint64_t position() const noexcept { return of_->known(); }
  /// Appends bytes.
  /// *Throws*: std::bad_alloc; what placing bytes has met.
  void write(std::span<const std::byte> bytes) { of_->append_known(bytes.data(), bytes.size()); }
  /// Delegates a right that includes this one.
  void write(std::string_view text) { of_->append_known(text.data(), text.size()); }

 private:
  stream::stream_state* of_;
};

/// The right to append to a stream: a task's parameter. What a task appends stands, in the stream, where the
/// serial program (every fork read as a call) would have written it, whoever runs the task and whenever. As
/// an argument: an append_file, an append_sink, or a right that the forking task holds. It may be copied
/// within the task, and ends with its body.
/// *Thread safety*: one thread at a time, as the task.
/// *Example*: `void leaf(int i, weft::append out) { out.write(name(i)); }`, and `weft::fork(leaf, 3, out);`
/// *Source*: serial-append of PLIO; here the place belongs to the task.
class append {
 public:
  /// Appends bytes.
  /// *Throws*: std::system_error if bytes of the stream could not be placed; weft::error if the stream was
  /// destroyed; std::bad_alloc.
  /// *Suspends*: if the sink is behind.
  /// *Cost*: that of the copy; no atomic operation but loads and stores, and a call of the layout for every
  /// full buffer.
  void write(std::span<const std::byte> bytes) const { write_(bytes.data(), bytes.size()); }
  /// Delegates a right that includes this one.
  void write(std::string_view text) const { write_(text.data(), text.size()); }
  /// The same as an output stream, which belongs to the task: it begins without any format flags set, and
  /// throws what write() throws.
  std::ostream& stream() const {
    [[maybe_unused]] const sched::races::unseen library;
    return seat_->text();
  }
  /// Keeps `f` and calls it as `f(append_tail&)` when everything before this place of the stream is known: in
  /// the order of the stream, one at a time, on whatever worker comes by. What it appends stands here. It is
  /// destroyed without a call where an earlier exception makes it moot.
  /// *Requires*: what f refers to lives as long as the stream, whose close() may be what calls it; f does not
  /// wait, and does not use this stream otherwise; what it throws fails the stream.
  /// *Throws*: as write(); what moving f throws.
  template <class F>
  void finalise(F&& f) const {
    [[maybe_unused]] const sched::races::unseen library;
    using hook = hook_of<std::decay_t<F>>;
    seat_->of().template hook<hook>(seat_->at(), std::forward<F>(f));
  }

 private:
  friend struct stream::key;
  template <class F>
  struct hook_of final : stream::hook_element {
    explicit hook_of(F f) : hook_element(&call_), f_(std::move(f)) {}
    static void call_(stream::hook_element& h, stream::stream_state* of) {
      auto& self = static_cast<hook_of&>(h);
      const std::unique_ptr<F, destroyer> at_end(&self.f_);
      if (of == nullptr) return;
      append_tail tail(*of);
      self.f_(tail);
    }
    /// Destroys a hook that was not called.
    struct destroyer {
      /// Destroys it.
      void operator()(F* f) const noexcept { std::destroy_at(f); }
    };
    union {
      F f_;
    };
    ~hook_of() {}
  };

  explicit append(stream::append_context& s) noexcept : seat_(&s) {}
  void write_(const void* bytes, std::size_t size) const {
    [[maybe_unused]] const sched::races::unseen library;
    seat_->write(bytes, size);
  }
  stream::append_context* seat_;
};

inline append stream::key::make(append_context& s) noexcept { return append(s); }

namespace flow {

/// An argument that is a stream, or the right to append to one.
template <class Parameter, class Argument>
struct append_binding {
  static_assert(
      std::is_same_v<Parameter, append> || std::is_same_v<Parameter, undeclared>,
      "weft: a task that is given a stream gets the right to append to it; declare the parameter as "
      "weft::append");
  static constexpr bool access = false, strong = false, weak = false, more = false, plain = true;
  static constexpr std::uint32_t parts = 0;
  using kept = stream::append_context;
  static constexpr access_mode mode = access_mode::read;  // not used

  static kept keep(const std::remove_cvref_t<Argument>& a) noexcept {
    const stream::append_context& s = stream::key::seat_of(a);
    return stream::append_context(s.of(), s.at());
  }
  static bool may_wait_for_earlier(const kept& k) noexcept { return k.of().readable(); }
  static kept defer(kept& k, sched::closure& c) { return std::move(k).defer(c); }
  static void begin_run(kept& k) { k.begin_run(); }
  static void drop(kept& k) noexcept { k.drop(); }
  static void end_well(kept& k) noexcept { k.end_well(); }
  static append pass(kept& k) noexcept {
    k.begin();
    return stream::key::make(k);
  }
};

template <class Parameter, class Argument>
  requires(!std::is_same_v<Parameter, stream_reader>) &&
          (std::is_same_v<Argument, append> || std::is_base_of_v<append_stream, Argument>)
struct special_binding<Parameter, Argument> {
  using type = append_binding<Parameter, Argument>;
};

}  // namespace flow
}  // namespace weft::inline WEFT_ABI
