// SPDX-License-Identifier: BSL-1.0
// fork: makes a task of a callable and its arguments, and runs it at once where nobody else needs it.
#pragma once

#include <weft/base/error.hpp>
#include <weft/flow/detail/checked.hpp>
#include <weft/flow/detail/record_accesses.hpp>
#include <weft/flow/detail/task.hpp>
#include <weft/flow/detail/task_name.hpp>
#include <weft/observe/traced_body.hpp>
#include <weft/sched/definitions.hpp>
#include <weft/sched/sync.hpp>
#include <weft/task/task_keeper.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>

namespace weft::inline WEFT_ABI {

using sched::task_options;

namespace flow {

/// Whether the body of a task with this argument may wait for tasks before it with which it shares no object;
/// the argument tells.
template <class Adaptor>
concept tells_whether_it_waits =
    requires(const typename Adaptor::kept& k) { Adaptor::may_wait_for_earlier(k); };

/// *Throws*: weft::error for a task that may wait for earlier tasks and commutes: any order would do for
/// those that commute, and only one for those that wait for earlier tasks.
template <class... Adaptors, class... Kept>
void refuse_to_wait_and_commute(const Kept&... kept) {
  if constexpr ((tells_whether_it_waits<Adaptors> || ...) &&
                ((Adaptors::more || Adaptors::mode == sched::access_mode::commute) || ...)) {
    bool back = false, commutes = false;
    [[maybe_unused]] const auto look = [&]<class Adaptor>(std::type_identity<Adaptor>, const auto& k) {
      if constexpr (tells_whether_it_waits<Adaptor>) back |= Adaptor::may_wait_for_earlier(k);
    };
    (look(std::type_identity<Adaptors>(), kept), ...);
    (tell_rights<Adaptors>(
         kept, [&](const sched::access& a) { commutes |= a.mode == sched::access_mode::commute; }),
     ...);
    if (back && commutes)
      throw error("weft: a task that may append to a readable stream must not commute; let it update");
  }
}

/// Runs the body inside fork. What it throws stays at this place of the reference order.
template <class... Adaptors, class R, class F, class... Kept>
WEFT_ALWAYS_INLINE void run_inline(result<R> r, F&& f, Kept&... kept) {
#if WEFT_CHECKED
  const checked_body body;
#endif
#if WEFT_COUNT_INLINED
  sched::count_inlined(sched::current());
#endif
  try {
    r.take([&]() -> decltype(auto) { return call_with<Adaptors...>(std::forward<F>(f), kept...); });
  } catch (...) {
    [[maybe_unused]] const sched::races::unseen library;
    r.lose();
    sched::raise(sched::current(), std::current_exception());
  }
}

/// The task will never be, because one before it has failed or the run was stopped.
template <class... Adaptors, class R, class... Kept>
void drop(result<R> r, Kept&... kept) noexcept {
  r.lose();
  [[maybe_unused]] const auto tell = [&]<class Adaptor>(std::type_identity<Adaptor>, auto& k) {
    if constexpr (requires { Adaptor::drop(k); }) Adaptor::drop(k);
  };
  (tell(std::type_identity<Adaptors>(), kept), ...);
}

/// Runs the task inside fork, off the fast path: with a name, or where the body around it has left objects.
template <bool WithOptions, class R, class F, class... Adaptors>
WEFT_NOINLINE void run_interrupting(sched::strand& s, [[maybe_unused]] const task_options* options,
                                    result<R> r, F f, typename Adaptors::kept... kept) {
  sched::interruption of_caller;
  sched::interrupt(s, of_caller);
  if constexpr (WithOptions) s.inline_name = options->name;
  run_inline<Adaptors...>(r, std::move(f), kept...);
  sched::go_on(s, of_caller);
}

/// Makes a closure of the task and appends it to the frame.
template <bool Traced, bool WithOptions, class R, class F, class... Adaptors>
WEFT_ALWAYS_INLINE void fork_deferred(sched::strand& s, const task_options* options, result<R> r, F& f,
                                      typename Adaptors::kept&... kept) {
  using closure = task<F, R, WithOptions, std::index_sequence_for<Adaptors...>, Adaptors...>;
  if (!s.pending()) open_frame(s);
  const sched::arena_mark before = s.closures.mark();
  void* const place = s.closures.allocate(sizeof(closure), alignof(closure));
  const auto* const link = s.top->link;
  try {
    closure& made = *::new (place) closure(std::move(f), r, options, std::move(kept)...);
    made.set_lists_apart(s.closures);
    if constexpr (Traced) made.trace(observe::stamp_fork(s));
    tell_deferred<WithOptions>(options, made, s);
    defer(s, made);
  } catch (...) {
    if (s.top->link == link) s.closures.release_to(before);  // else a fence lies behind it
    throw;
  }
}

/// fork in a run that is recorded: the task runs at once.
template <bool WithOptions, class R, class F, class... Adaptors>
WEFT_NOINLINE void fork_recorded(sched::strand& s, const task_options* options, result<R> r, F f,
                                 typename Adaptors::kept... kept) {
  constexpr bool plain = (is_value<Adaptors> && ...);
  const void* place = nullptr;
  if constexpr (!std::is_void_v<R>) place = r.place;
  observe::recorded_body body(s, name_of<WithOptions>(options), std::bool_constant<plain>(), place);
  if constexpr (!plain) record_accesses<Adaptors...>(body, r, kept...);
  if (s.left.any()) [[unlikely]] {
    run_interrupting<WithOptions, R, F, Adaptors...>(s, options, r, std::move(f), std::move(kept)...);
  } else {
    [[maybe_unused]] const char* const outer = s.inline_name;
    if constexpr (WithOptions) s.inline_name = options->name;
    run_inline<Adaptors...>(r, std::move(f), kept...);
    if constexpr (WithOptions) s.inline_name = outer;
  }
  if constexpr (WithOptions) {
    if (!options->event || !s.pending() || sched::failing(s)) return;
    sched::drain_children(s);
    if (s.thrown) sched::raise(s, *std::exchange(s.thrown, std::nullopt));
  }
}

/// fork in a run that is traced, or whose tasks are shown to a keeper. Those that may have ended in another
/// process, or an earlier job, are never run inside fork.
template <bool WithOptions, class R, class F, class... Adaptors>
WEFT_COLD void fork_traced(sched::strand& s, sched::fork_action v, const task_options* options, result<R> r,
                           F& f, typename Adaptors::kept&... kept) {
  if constexpr (WithOptions)
    if (options->event) v = sched::fork_action::defer_traced;
  if (rights_travel<Adaptors...> && sched::is_kept(s)) v = sched::fork_action::defer_traced;
  if (v == sched::fork_action::defer_traced)
    return fork_deferred<true, WithOptions, R, F, Adaptors...>(s, options, r, f, kept...);
  const observe::traced_body here(s, name_of<WithOptions>(options), 0);
  run_interrupting<WithOptions, R, F, Adaptors...>(s, options, r, std::move(f), std::move(kept)...);
}

/// fork off both short ways: whatever may have to be done is considered.
template <bool WithOptions, class R, class F, class... Adaptors>
WEFT_NOINLINE void fork_classified(sched::strand& s, const task_options* options, result<R> r, F f,
                                   typename Adaptors::kept... kept) {
  sched::fork_action v = sched::classify_fork(s);
  if constexpr (WithOptions)
    if (options->event && v == sched::fork_action::run_inline) v = sched::fork_action::defer;
  if (v == sched::fork_action::defer) {
    fork_deferred<false, WithOptions, R, F, Adaptors...>(s, options, r, f, kept...);
  } else if (v == sched::fork_action::run_inline) {
    run_interrupting<WithOptions, R, F, Adaptors...>(s, options, r, std::move(f), std::move(kept)...);
  } else if (v == sched::fork_action::drop) {
    drop<Adaptors...>(r, kept...);
  } else if (v == sched::fork_action::record) {
    fork_recorded<WithOptions, R, F, Adaptors...>(s, options, r, std::move(f), std::move(kept)...);
  } else {
    fork_traced<WithOptions, R, F, Adaptors...>(s, v, options, r, f, kept...);
  }
}

/// fork where the task is not run at once. The short way to a closure, without a call, is for strands that no
/// thief can enter; everything else is left to fork_classified.
template <bool WithOptions, class R, class F, class... Adaptors>
WEFT_NOINLINE void fork_out_of_line(sched::strand& s, const task_options* options, result<R> r, F f,
                                    typename Adaptors::kept... kept) {
  using closure = task<F, R, WithOptions, std::index_sequence_for<Adaptors...>, Adaptors...>;
  if constexpr (closure::nothrow && alignof(closure) <= sched::arena::grain) {
    const std::uint8_t bits = base::owner_load(s.attention);
    if (bits != 0) [[unlikely]] {
      if (sched::only_records(s, bits))
        return fork_recorded<WithOptions, R, F, Adaptors...>(s, options, r, std::move(f), std::move(kept)...);
    } else if (sched::defers_simply(s, sizeof(closure))) [[likely]] {
      if (!s.pending()) open_frame(s, s.closures.allocate_here(sizeof(sched::frame)));
      void* const place = s.closures.allocate_here(sizeof(closure));
      closure& made = *::new (place) closure(std::move(f), r, options, std::move(kept)...);
      tell_deferred<WithOptions>(options, made, s);
      link(*s.top, made);
      ++s.live;
      return;
    }
  }
  return fork_classified<WithOptions, R, F, Adaptors...>(s, options, r, std::move(f), std::move(kept)...);
}

/// Forks a task that has weak rights only: it starts at once, whatever is pending, and what it forks takes
/// its place among the children of the body around it.
template <bool WithOptions, class R, class F, class... Adaptors>
WEFT_NOINLINE void fork_weak(sched::strand& s, const task_options* options, result<R> r, F f,
                             typename Adaptors::kept... kept) {
  bool at_once = sched::may_start_weak(s);
  if constexpr (WithOptions) at_once = at_once && !options->event;
  if (!at_once)
    return fork_out_of_line<WithOptions, R, F, Adaptors...>(s, options, r, std::move(f), std::move(kept)...);
  const char* const outer = s.inline_name;
  sched::weak_body here{s.weak, s.floor, s.pending() ? s.top->link : nullptr};
  s.weak = &here;
  if constexpr (WithOptions) s.inline_name = options->name;
  if (s.recorder != nullptr) [[unlikely]] {
    observe::recorded_body body(s, name_of<WithOptions>(options));
    record_accesses<Adaptors...>(body, r, kept...);
    run_inline<Adaptors...>(r, std::move(f), kept...);
  } else if (s.row != nullptr) [[unlikely]] {
    const observe::traced_body body(s, name_of<WithOptions>(options), 0);
    run_inline<Adaptors...>(r, std::move(f), kept...);
  } else {
    run_inline<Adaptors...>(r, std::move(f), kept...);
  }
  s.weak = here.outer;
  s.inline_name = outer;
}

#if WEFT_RACES

/// fork where races are looked for: the task runs at once, apart.
template <bool WithOptions, class R, class F, class... Adaptors>
void fork_apart(sched::strand& s, const sched::races::token& start, const task_options* options, result<R> r,
                F f, typename Adaptors::kept... kept) {
  if (sched::classify_rare_fork(s) == sched::fork_action::drop) return drop<Adaptors...>(r, kept...);
  std::vector<sched::access> accesses;
  if constexpr (!weak_only<Adaptors...>)
    (tell_rights<Adaptors>(kept, [&](const sched::access& a) { accesses.push_back(a); }), ...);
  if constexpr (!std::is_void_v<R>) accesses.push_back({.object = r.place, .mode = access_mode::write});
  sched::interruption of_caller;
  sched::interrupt(s, of_caller);
  if constexpr (WithOptions) s.inline_name = options->name;
  sched::weak_body here{s.weak, s.floor, nullptr};
  if constexpr (weak_only<Adaptors...>) s.weak = &here;
  // What lies on this stack is taken over unseen: the next task finds its own there.
  sched::races::run_apart(s.racing, std::move(accesses), start, [&] {
    std::optional<sched::races::unseen> library(std::in_place);
    const result<R> own_result = r;
    F own(std::move(f));
    std::tuple<typename Adaptors::kept...> own_kept(std::move(kept)...);
    library.reset();
    std::apply([&](auto&... k) { run_inline<Adaptors...>(own_result, std::move(own), k...); }, own_kept);
  });
  if constexpr (weak_only<Adaptors...>) s.weak = here.outer;
  sched::go_on(s, of_caller);
  if constexpr (WithOptions) {
    if (!options->event || !s.pending() || sched::failing(s)) return;
    sched::drain_children(s);
    if (s.thrown) sched::raise(s, *std::exchange(s.thrown, std::nullopt));
  }
}

#endif

template <bool WithOptions, class... Adaptors, class F>
WEFT_ALWAYS_INLINE auto fork_kept(const task_options* options, F&& f, typename Adaptors::kept... kept) {
  using callable = std::decay_t<F>;
  using R = std::remove_cvref_t<called<callable, Adaptors...>>;
#if WEFT_RACES
  const sched::races::token start = sched::races::begin_task();
  const sched::races::event_seen at_end;
#endif
  [[maybe_unused]] const sched::races::unseen library;
  sched::strand& s = sched::current();
  refuse_to_wait_and_commute<Adaptors...>(kept...);
#if WEFT_CHECKED
  const char* const name = options != nullptr ? options->name : task_options{}.name;
  check_rights<Adaptors...>(name, kept...);
  check_results<Adaptors...>(name, kept...);
#endif
  place<R> p{};
  if constexpr (!std::is_void_v<R>) p = allocate_result<R>(s);
  const result<R> r = result_at<R>(p);
#if WEFT_CHECKED
  const void* const here = base::here();
  delegation given(s);
  (note_rights_delegated<Adaptors>(s, kept, name, here), ...);
  if constexpr (!std::is_void_v<R>)
    note_delegated(s, p.value, access_mode::write, name, here, &presence_of(p.value));
#endif
#if WEFT_RACES
  fork_apart<WithOptions, R, callable, Adaptors...>(s, start, options, r, callable(std::forward<F>(f)),
                                                    std::move(kept)...);
#else
  if constexpr (weak_only<Adaptors...>) {
    fork_weak<WithOptions, R, callable, Adaptors...>(s, options, r, std::forward<F>(f), std::move(kept)...);
  } else if (!WithOptions && s.may_inline()) [[likely]] {
    if constexpr (std::is_class_v<callable> &&
                  (std::is_lvalue_reference_v<F> || !std::is_trivially_destructible_v<callable>)) {
      callable own(std::forward<F>(f));  // the task's own, as in a closure
      run_inline<Adaptors...>(r, std::move(own), kept...);
    } else {
      run_inline<Adaptors...>(r, std::forward<F>(f), kept...);
    }
  } else {
    fork_out_of_line<WithOptions, R, callable, Adaptors...>(s, options, r, std::forward<F>(f),
                                                            std::move(kept)...);
  }
#endif
#if WEFT_CHECKED
  given.made();
#endif
  if constexpr (!std::is_void_v<R>) return key::result<R>(p);
}

template <bool WithOptions, std::size_t... I, class F, class... A>
WEFT_ALWAYS_INLINE auto fork_arguments(std::index_sequence<I...>, const task_options* options, F&& f,
                                       A&&... a) {
  using callable = std::decay_t<F>;
  static_assert(!signature<callable>::known || parameter_count<callable> == sizeof...(A),
                "weft: fork needs exactly one argument for each parameter of the task");
  static_assert(
      std::is_invocable_v<callable, passed<argument_adaptor<typename parameter_of<callable, I>::type, A>>...>,
      "weft: the task cannot be called with these arguments; values arrive as rvalues, objects held for "
      "reading as const T&, "
      "for writing or updating as T&");
  return fork_kept<WithOptions, argument_adaptor<typename parameter_of<callable, I>::type, A>...>(
      options, std::forward<F>(f),
      argument_adaptor<typename parameter_of<callable, I>::type, A>::keep(std::forward<A>(a))...);
}

}  // namespace flow

/// Makes a task that calls `f` with the arguments, ordered against other tasks by the rights it declares on
/// objects.
///
/// *Requires*: called in a task. Rights are delegated as the table in
/// docs/how-to/use-more-access-modes.md allows (checked at compile time).
///
/// *Effects*: as if `f` were called here; it may run now, later, or on another worker, but only when all
/// earlier tasks that conflict with it have ended. Arguments that are not objects are copied or moved.
///
/// *Returns*: nothing, or the future value of `f` as a shared object.
///
/// *Throws*: what copying the arguments throws, std::bad_alloc; never what the task throws.
///
/// *Suspends*: if `f` runs here and suspends; and where runtime_options::cap tasks are pending, or the tasks
/// are so short that no other worker takes them: fork then runs those first that this body has forked before,
/// as sync would. The latter not inside the scope of a this_task::no_suspend.
///
/// *Cost*: about one nanosecond if it runs at once, some seven if it is deferred; a thief pays the rest.
///
/// *Thread safety*: each task its own.
/// *Example*: `weft::fork(sum, a, b, r);` or `weft::fork([](int& v) { ++v; }, weft::update(x));`
///
/// *Source*: Fork of Athapascan-1; frames and closures of KAAPI (PASCO'07, section 2).
template <class F, class... A>
  requires(!std::is_same_v<std::remove_cvref_t<F>, task_options>)
WEFT_ALWAYS_INLINE auto fork(F&& f, A&&... arguments) {
  return flow::fork_arguments<false>(std::index_sequence_for<A...>{}, nullptr, std::forward<F>(f),
                                     std::forward<A>(arguments)...);
}

/// The same, with options: `weft::fork({.name = "potrf", .priority = 3}, potrf, weft::update(a));`
template <class F, class... A>
WEFT_ALWAYS_INLINE auto fork(task_options options, F&& f, A&&... arguments) {
  return flow::fork_arguments<true>(std::index_sequence_for<A...>{}, &options, std::forward<F>(f),
                                    std::forward<A>(arguments)...);
}

/// Waits for all children of the running task, and then has full use of what it delegated.
///
/// *Requires*: called in a task.
///
/// *Throws*: the exception that the serial program would have thrown first among them; weft::cancelled if the
/// run was stopped, or (in a body with weak rights only) if a task before this one has failed.
///
/// *Suspends*: if a child runs elsewhere; the body may continue on another kernel thread.
///
/// *Cost*: one comparison where nothing is pending.
///
/// *Source*: sync of Cilk; Sync of Kaapi++.
WEFT_ALWAYS_INLINE void sync() {
#if WEFT_RACES
  const sched::races::synced at_end(sched::current().racing);
  const sched::races::unseen library;
#endif
  sched::strand& s = sched::current();
  if (WEFT_CHECKED || s.limit == sched::no_inlining) [[unlikely]]
    sched::sync(s);
}

}  // namespace weft::inline WEFT_ABI
