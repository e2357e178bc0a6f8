// SPDX-License-Identifier: BSL-1.0
// Where an algorithm is called from, who can help with it, and tasks that it waits for.
#pragma once

#include <weft/flow/runtime.hpp>

#include <concepts>
#include <utility>

namespace weft::inline WEFT_ABI::algorithms {

/// How an algorithm is called: in a task as Function says, or from anywhere with a runtime as its first
/// argument, as a run of its own. A function object, so that argument-dependent look-up never finds it beside
/// the standard's. (Function itself takes the runtime where `{}` may stand for an argument.)
template <class Function>
struct algorithm : Function {
  using Function::operator();

  template <class... A>
    requires std::invocable<const Function&, A...>
  auto operator()(runtime& rt, A&&... a) const {
    return rt.run([&] { return Function()(std::forward<A>(a)...); });
  }
};

/// *Returns*: the strand of the task that calls an algorithm. Contract violation outside tasks.
inline sched::strand& caller() noexcept {
  sched::strand& s = sched::current();
  if (is_outside(s))
    sched::fail_outside("an algorithm was called outside a task; pass the runtime as its first argument");
  return s;
}

/// Whether the serial form of an algorithm is to be used: where it is `better` anyway, or nobody can help.
/// Then waits, as the parallel form does, for what the caller has forked. *Throws*: as sync.
inline bool runs_serially(bool better = false) {
  if ((caller().wanted_surplus != 0 || WEFT_RACES) && !better) return false;
  weft::sync();
  return true;
}

/// How many workers there are.
inline unsigned workers() noexcept { return sched::count_workers(caller()); }

/// So many times a range is halved for each worker to get some parts.
inline unsigned halvings(unsigned parts_of_each) noexcept {
  unsigned n = 0;
  while ((1u << n) < workers() * parts_of_each) ++n;
  return n;
}

/// Runs f as a task with children of its own, and waits. *Throws*: as sync.
template <class F>
void run_and_wait(const char* name, F&& f) {
  fork({.name = name}, std::forward<F>(f));
  weft::sync();
}

/// Runs f and g as tasks, f before g in the reference order, and waits for both. *Throws*: as sync.
template <class F, class G>
void run_both(const F& f, const G& g) {
  try {
    fork([&f] { f(); });
    fork([&g] { g(); });
  } catch (...) {
    weft::sync();  // they may refer to what the caller's exception is about to end
    throw;
  }
  weft::sync();
}

/// Runs f(x) for each x of a range as a task, in the reference order of the range, and waits for all.
/// *Throws*: as sync.
template <class R, class F>
void run_each(R&& range, const F& f) {
  try {
    for (auto& x : range) fork([&f, &x] { f(x); });
  } catch (...) {
    weft::sync();  // they may refer to what the caller's exception is about to end
    throw;
  }
  weft::sync();
}

}  // namespace weft::inline WEFT_ABI::algorithms
