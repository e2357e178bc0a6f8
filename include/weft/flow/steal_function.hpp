// SPDX-License-Identifier: BSL-1.0
// steal_function: what thieves call, while a body runs, to take part of what it has left to do.
#pragma once

#include <weft/flow/fork.hpp>
#include <weft/sched/divisible_body.hpp>

#include <array>
#include <memory>

namespace weft::inline WEFT_ABI {
namespace flow {

/// Whether a task that a steal function forks may have this argument: it starts while the body goes on.
template <class Argument>
inline constexpr bool given_while_running =
    (right_of<Argument>::held == right_kind::none || right_of<Argument>::held == right_kind::read ||
     right_of<Argument>::held == right_kind::reduce) &&
    !right_of<Argument>::weak && !list_of_rights<Argument>;

/// What is to be done for an argument where a part takes its place in reference order. Most have nothing.
struct no_place {
  void link(bool) noexcept {}
  void settle(bool) noexcept {}
};
template <class Adaptor>
auto place_of_part(typename Adaptor::kept& k, std::uint32_t worker) {
  if constexpr (requires { Adaptor::begin_part(k, worker); })
    return Adaptor::begin_part(k, worker);
  else
    return no_place();
}
template <class Adaptor>
using place_for_part = decltype(place_of_part<Adaptor>(std::declval<typename Adaptor::kept&>(), 0));

/// A stolen part with the closure of its task.
template <class Closure, class Places, std::size_t Rights>
struct stolen_task final : sched::stolen_part {
  template <class... A>
  explicit stolen_task(const Places& places, const std::array<sched::access, Rights>& told, A&&... arguments)
      : stolen_part(closure_), places_(places), rights_(told), closure_(std::forward<A>(arguments)...) {
    all_rights = rights_.data();
    right_count = Rights;
  }
  stolen_task(const stolen_task&) = delete;
  stolen_task& operator=(const stolen_task&) = delete;
  ~stolen_task() override {}  // the payload ends with the task
  void link(bool conditional) noexcept override {
    std::apply([&](auto&... p) { (p.link(conditional), ...); }, places_);
  }
  void settle(bool counts) noexcept override {
    std::apply([&](auto&... p) { (p.settle(counts), ...); }, places_);
  }

 private:
  Places places_;
  std::array<sched::access, Rights> rights_;
  union {
    Closure closure_;
  };
};

template <class F, class... Adaptors>
void fork_stolen(sched::theft& from, const task_options& options, F&& f, typename Adaptors::kept... kept) {
  using callable = std::decay_t<F>;
  using closure = task<callable, void, true, std::index_sequence_for<Adaptors...>, Adaptors...>;
  static_assert(std::is_void_v<called<callable, Adaptors...>>,
                "weft: a task that a steal function forks returns nothing; let it contribute to an object");
#if WEFT_CHECKED
  check_rights<Adaptors...>(options.name, kept...);
#endif
  if (options.event)
    throw error("weft: a task that a steal function forks cannot wait for an event (task_options::event)");
  constexpr std::size_t count = (std::size_t{Adaptors::access || Adaptors::more} + ... + 0);
  std::array<sched::access, count> rights;
  [[maybe_unused]] std::size_t i = 0;
  (tell_rights<Adaptors>(kept, [&](const sched::access& a) { rights[i++] = a; }), ...);
  static_assert((!(defers_specially<Adaptors> && std::is_same_v<place_for_part<Adaptors>, no_place>) && ...),
                "weft: a steal function cannot give away the right to read a stream");
  const std::tuple<place_for_part<Adaptors>...> places{place_of_part<Adaptors>(kept, from.worker_number)...};
  auto made = std::make_unique<stolen_task<closure, std::tuple<place_for_part<Adaptors>...>, count>>(
      places, rights, callable(std::forward<F>(f)), result<void>(), &options, std::move(kept)...);
  made->contributions = (Adaptors::parts + ... + 0u);
  made->task.privatized = made->contributions != 0;
  try {
    from.add(*made, options.priority);
  } catch (...) {
    made->task.what->drop(made->task);
    throw;
  }
  static_cast<void>(made.release());  // whoever joins it frees it
}

}  // namespace flow

/// The thief who calls a steal function, and to whom that gives tasks.
/// *Thread safety*: for the call.
class thief {
 public:
  /// Forks a task for the thief: it starts at once, while the body goes on. In reference order it stands
  /// behind the body, and before the tasks that steal functions of this body have forked earlier. The body's
  /// task has not ended before this one has.
  ///
  /// *Requires*: as weft::fork; `f` returns nothing. Arguments are values, rights to read, to contribute, and
  /// to append to a stream (checked at compile time): the body itself goes on with what it writes.
  ///
  /// *Throws*: what copying the arguments throws, std::bad_alloc; weft::error for a task with the option
  /// `event`, and for a stream that tasks may read while it is written.
  template <class F, class... A>
    requires(!std::is_same_v<std::remove_cvref_t<F>, task_options>)
  void fork(F&& f, A&&... arguments) {
    fork(task_options{}, std::forward<F>(f), std::forward<A>(arguments)...);
  }

  /// The same, with options.
  template <class F, class... A>
  void fork(const task_options& options, F&& f, A&&... arguments) {
    fork_(std::index_sequence_for<A...>{}, options, std::forward<F>(f), std::forward<A>(arguments)...);
  }

 private:
  template <class F>
  friend class steal_function;
  explicit thief(sched::theft& t) noexcept : theft_(t) {}
  template <std::size_t... N, class F, class... A>
  void fork_(std::index_sequence<N...>, const task_options& options, F&& f, A&&... a) {
    using callable = std::decay_t<F>;
    static_assert(!flow::signature<callable>::known || flow::parameter_count<callable> == sizeof...(A),
                  "weft: fork needs exactly one argument for each parameter of the task");
    static_assert(
        (flow::given_while_running<A> && ...),
        "weft: a steal function can give away values and rights to read, contribute and append; what the "
        "body writes or updates it goes on with itself");
    if constexpr ((flow::given_while_running<A> && ...))
      flow::fork_stolen<F, flow::argument_adaptor<typename flow::parameter_of<callable, N>::type, A>...>(
          theft_, options, std::forward<F>(f),
          flow::argument_adaptor<typename flow::parameter_of<callable, N>::type, A>::keep(
              std::forward<A>(a))...);
  }
  sched::theft& theft_;
};

/// A function that thieves call while the running body lives on: `give(thief&)` takes something from what the
/// body has left to do, usually half of a weft::interval, and forks a task for it. So a body needs no pieces
/// chosen in advance, and forks nothing where nobody asks.
///
/// The object is a variable of the body, behind what its function refers to; better of its outermost scope:
/// what thieves have taken stands in reference order behind all that the body has forked when this object
/// ends, each part before those taken earlier. So work is cut off at the back. Reductions, streams,
/// exceptions and later tasks come out as if the body had forked the parts there.
///
/// *Requires*: made in a task. `give` is called on thieves' threads, one at a time, also while the body
/// waits; it must not wait (one that would stops the program), and what it shares with the body is theirs to
/// protect (weft::interval does).
///
/// An exception of `give` counts as one of the first part; it is not called again. It is not called at all
/// where no other worker is idle, and where races between tasks are looked for.
///
/// *Cost*: a lock at the beginning and at the end; nothing for other tasks.
///
/// *Example*:
/// @code
/// weft::interval<long> left(first, last);
/// const weft::steal_function give([&](weft::thief& t) {
///   if (const auto part = left.take_back_half(1024)) t.fork(add_up, part->first, part->last, total);
/// });
/// while (const auto part = left.take_front(256)) ...
/// @endcode
///
/// *Source*: the steal function attribute of KAAPI's threads (PASCO'07, section 3.1).
template <class F>
class steal_function {
 public:
  static_assert(std::is_invocable_v<F&, thief&>,
                "weft: a steal function is called with a weft::thief&, and forks through that");

  /// From now on thieves may call it.
  explicit steal_function(F give) : give_(std::move(give)), body_(&call, this) {}
  steal_function(const steal_function&) = delete;
  steal_function& operator=(const steal_function&) = delete;

 private:
  static void call(void* self, sched::theft& by) {
    thief t(by);
    static_cast<steal_function*>(self)->give_(t);
  }

  F give_;
  sched::divisible_body body_;  // ends first
};

}  // namespace weft::inline WEFT_ABI
