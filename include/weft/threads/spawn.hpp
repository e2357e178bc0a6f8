// SPDX-License-Identifier: BSL-1.0
// spawn: a body with a flow of control of its own, which may wait for what comes later.
#pragma once

#include <weft/blocking/definitions.hpp>
#include <weft/blocking/spawn.hpp>
#include <weft/flow/fork.hpp>

#include <concepts>
#include <cstddef>

namespace weft::inline WEFT_ABI {

/// What may be said about a body when it is spawned.
struct spawn_options {
  const char* name = "thread";  ///< shown by reports; must outlive the body (a string literal)
  int priority = 0;  ///< larger is more urgent; 0: that of the body around it. Of equals, those that
                     ///< take turns on a worker may come before others up to 64 times in a row.
  std::size_t stack_size = 0;  ///< bytes of its stack; 0: runtime_options::stack_size. What it forks may run
                               ///< on other stacks.
};

/// Starts a body that runs beside the body around it, with options. It never runs inside spawn, and never
/// instead of a task that a worker could run: it has a flow of its own, so it may wait for what the body
/// around it does later. There is nothing to join: sync() and run() wait for it, and so does every task that
/// waits for the one around it.
///
/// *Requires*: called in a task; `body` is called without arguments, and what it captures by reference lives
/// until it has ended. Objects that it shares with other bodies are not ordered by rights: use weft::mutex
/// and its relatives.
///
/// *Throws*: std::bad_alloc; if a stack size is given, weft::option_error if that is too small, and
/// std::system_error if there is no memory for it; never what the body throws. That counts as if a task
/// forked here had thrown it; moreover the other waits of the run end by weft::cancelled, since what they
/// wait for may never come.
///
/// *Suspends*: no. *Cost*: about a microsecond. *Thread safety*: each task its own.
///
/// *Example*: `weft::spawn({.name = "reader"}, [&] { while (auto item = channel.pop()) use(*item); });`
///
/// *Source*: the threads of KAAPI (PASCO'07, section 3), which are not joined either.
template <class F>
  requires std::invocable<std::decay_t<F>&>
void spawn(const spawn_options& options, F&& body) {
#if WEFT_RACES
  sched::races::event_happened();  // what was done before is seen by the body
#endif
  [[maybe_unused]] const sched::races::unseen library;
  sched::strand& s = sched::current();
  if (is_outside(s)) sched::fail_outside("spawn() was called outside a task");
  if (sched::drops_forks(s)) return;
#if WEFT_RACES
  auto call = [f = std::forward<F>(body), around = s.racing]() mutable {
    {
      const sched::races::event_seen before;
    }
    struct seen_by_others {
      const sched::races::task* around;
      ~seen_by_others() {
        {
          const sched::races::synced with_all_below(sched::current().racing);
        }
        sched::races::event_happened();
        sched::races::release_below(around);
      }
    } const at_end{around.get()};
#else
  auto call = [f = std::forward<F>(body)]() mutable {
#endif
    static_cast<void>(f());
  };
  using callable = decltype(call);
  using closure = flow::task<callable, void, true, std::index_sequence<>>;
  const sched::task_options shown{.name = options.name, .priority = options.priority};
  sched::spawn_call spawned(s, options.stack_size);
  auto& made = *::new (spawned.memory().allocate(sizeof(closure), alignof(closure)))
                   closure(std::move(call), flow::result<void>(), &shown);
  spawned.start(made);
}

/// The same with default options.
template <class F>
  requires(std::invocable<std::decay_t<F>&> && !std::is_same_v<std::remove_cvref_t<F>, spawn_options>)
void spawn(F&& body) {
  spawn(spawn_options{}, std::forward<F>(body));
}

}  // namespace weft::inline WEFT_ABI
