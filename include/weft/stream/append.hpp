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

/// What one task holds of a stream: its own node if it was deferred, else that of the enclosing task.
/// *Thread safety*: for the thread that holds the task.
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
    delete ostream_;
    if (deferred_ && begun_)
      of_->end_body(*at_, well_);
    else if (deferred_)
      of_->drop(*at_);
  }

  stream_state& of() const noexcept { return *of_; }
  node& at() const noexcept { return *at_; }
  /// The task is being deferred.
  /// *Throws*: std::bad_alloc; what writing bytes has failed with.
  append_context defer(sched::closure& c) && {
    if (deferred_) return std::move(*this);  // the first task of a run
    append_context deferred(*of_, of_->begin_child(*at_, c));
    deferred.deferred_ = true;
    c.may_wait_for_earlier = of_->readable();  // it may fork tasks that read, and they wait for the frontier
    of_ = nullptr;
    return deferred;
  }
  /// The task is the first one of a run. If it may wait for earlier tasks, the running body first waits for
  /// its children, so that it does not delay them.
  /// *Throws*: also what they have thrown.
  void begin_run() {
    if (sched::strand& s = sched::current(); of_->readable() && !is_outside(s)) sched::sync(s);
    at_ = &of_->begin_run(*at_);
    deferred_ = true;
  }
  /// What joins a part to the stream that a thief has taken from the running body.
  class part {
   public:
    part(stream_state& of, node& parent, node& own) noexcept : of_(&of), parent_(&parent), own_(&own) {}
    /// Its place is here. `conditional`: settle() tells whether it counts.
    void link(bool conditional) noexcept { condition_ = of_->add_part(*parent_, *own_, conditional); }
    void settle(bool counts) noexcept {
      if (condition_ != nullptr) of_->end_condition(*condition_, counts);
    }

   private:
    stream_state* of_;
    node *parent_, *own_;
    fence_element* condition_ = nullptr;
  };
  /// The task is taken by a thief, on the worker with that number, while the body goes on to which this
  /// belongs. *Throws*: std::bad_alloc; weft::error if the stream can be read.
  part begin_part(std::uint32_t worker) {
    node& parent = *at_;
    at_ = &of_->begin_part(parent, worker);
    deferred_ = true;
    return part(*of_, parent, *at_);
  }
  /// Its body starts.
  void begin() noexcept {
    if (!deferred_) return;
    begun_ = true;
    of_->begin_body(*at_);
  }
  /// Its body has returned.
  void end_well() noexcept { well_ = true; }
  /// The task was dropped: an earlier one has failed, or the run was stopped.
  void drop() noexcept { of_->cut(*at_); }
  void write(const void* bytes, std::size_t size) { of_->write(*at_, bytes, size); }
  std::ostream& text() {
    if (ostream_ == nullptr) ostream_ = new ostream_adaptor(&write_, this);
    return *ostream_;
  }

 private:
  static void write_(void* self, const char* text, std::size_t size) {
    static_cast<append_context*>(self)->write(text, size);
  }

  stream_state* of_;
  node* at_;
  ostream_adaptor* ostream_ =
      nullptr;  // made by the body that asks for it; one with an adaptor is never moved
  bool deferred_ = false;
  bool begun_ = false;
  bool well_ = false;
};

/// Access to the handles for this room.
struct key {
  template <class Handle>
  static append_context& seat_of(const Handle& h) noexcept {
    return *h.seat_;
  }
  static append make(append_context& s) noexcept;
};

}  // namespace stream

/// The argument of a function given to append::finalise.
class append_tail {
 public:
  /// The program's own appending, behind all tasks.
  explicit append_tail(stream::stream_state& of) noexcept : of_(&of) {}
  /// The bytes of the stream before this place, including those that this function has written.
  std::uint64_t position() const noexcept { return of_->known(); }
  /// Appends bytes.
  /// *Throws*: std::bad_alloc; what writing bytes has failed with.
  void write(std::span<const std::byte> bytes) { of_->append_known(bytes.data(), bytes.size()); }
  /// Delegates a right that includes this one.
  void write(std::string_view text) { of_->append_known(text.data(), text.size()); }

 private:
  stream::stream_state* of_;
};

/// The right to append to a stream: a parameter of a task. The bytes that a task appends are in the stream
/// where the serial program (with every fork read as a call) would have written them, for every schedule. As
/// an argument: an append_file, an append_sink, or a right that the forking task holds. It may be copied
/// within the task, and ends with its body.
/// *Thread safety*: one thread at a time, as the task.
/// *Example*: `void leaf(int i, weft::append out) { out.write(name(i)); }`, and `weft::fork(leaf, 3, out);`
/// *Source*: serial-append of PLIO; here by a tree of tasks, independent of steals.
class append {
 public:
  /// Appends bytes.
  /// *Throws*: std::system_error if the stream could not be written; weft::error if the stream was destroyed;
  /// std::bad_alloc.
  /// *Suspends*: while the sink is too slow.
  /// *Cost*: a copy; no atomic read-modify-write, and a call of the layout for every full buffer.
  void write(std::span<const std::byte> bytes) const { write_(bytes.data(), bytes.size()); }
  /// Delegates a right that includes this one.
  void write(std::string_view text) const { write_(text.data(), text.size()); }
  /// An output stream of the task, with default format flags, that appends and throws what write() throws.
  std::ostream& stream() const {
    [[maybe_unused]] const sched::races::unseen library;
    return seat_->text();
  }
  /// Registers `f`, called as `f(append_tail&)` once all preceding bytes are known: in stream order, one at a
  /// time, on any worker. What it appends goes to this place. It is destroyed without a call if an earlier
  /// exception ends the stream before it.
  /// *Requires*: what f refers to lives as long as the stream, since close() may call it; f does not wait,
  /// and does not use this stream otherwise. An exception of f fails the stream.
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
  /// In a recorded run: tasks that append need not wait for each other.
  template <class Body>
  static void record(Body& body, const kept& k) {
    body.add({.object = &k.of(), .mode = access_mode::reduce, .operation = &k.of()});
  }
  static kept defer(kept& k, sched::closure& c) { return std::move(k).defer(c); }
  static stream::append_context::part begin_part(kept& k, std::uint32_t worker) {
    return k.begin_part(worker);
  }
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
