// SPDX-License-Identifier: BSL-1.0
// How bodies get into a trace, and what happens to them there when their strand waits.
#pragma once

#include <weft/observe/trace.hpp>
#include <weft/observe/traced_body.hpp>
#include <weft/task/current.hpp>
#include <weft/task/signal.hpp>
#include <weft/task/task_keeper.hpp>

namespace weft::inline WEFT_ABI::observe {

WEFT_FUNCTION traced_body::traced_body(sched::strand& s, const char* name, std::uint64_t fork) noexcept
    : strand_(s) {
  if (s.row == nullptr) return;
  here_.name = s.row->keep(name);
  here_.fork = fork != 0 && fork_stamp::worker(fork) != s.row->worker() ? fork : 0;
  here_.outer = std::exchange(s.slices, &here_);
  here_.begin = ticks();
}

WEFT_FUNCTION traced_body::~traced_body() {
  if (strand_.row == nullptr) return;
  strand_.slices = here_.outer;
  const std::uint64_t now = strand_.row->add(trace_kind::task, here_.begin, here_.name, here_.fork);
  strand_.row->add_level(now, strand_.surplus, strand_.live);
}

WEFT_FUNCTION std::uint64_t stamp_fork(const sched::strand& s) noexcept {
  return s.row != nullptr ? s.row->stamp() : reinterpret_cast<std::uintptr_t>(s.unit);
}

WEFT_FUNCTION void run_traced(sched::closure& c) {
  sched::strand& s = sched::current();
  if (s.row == nullptr) {
    sched::kept_unit& around = sched::unit_around(c);
    return around.keeper->run(s, c, around);
  }
  const traced_body here(s, c.what->options(c).name, c.stamp());
  c.what->untraced->run(c);
}

/// The bodies of a strand that is about to wait are interrupted. `until`: the signal for which it waits, if
/// it does for one.
inline void interrupt_slices(sched::strand& s, const char* reason, const sched::signal* until) noexcept {
  for (open_slice* o = s.slices; o != nullptr; o = o->outer)
    s.row->add(trace_kind::task, o->begin, o->name, std::exchange(o->fork, 0));
  s.waits_for = s.row->keep(reason);
  s.waits_on = until == nullptr          ? wait_place::pack(s.row->worker(), nullptr)
               : until->label != nullptr ? wait_place::pack_named(s.row->worker(), s.row->keep(until->label))
                                         : wait_place::pack(s.row->worker(), until->object);
  s.waits_since = ticks();
}

/// They go on, on the worker of this row.
inline void resume_slices(sched::strand& s, trace_row& here) noexcept {
  here.add(trace_kind::wait, std::exchange(s.waits_since, 0), s.waits_for, s.waits_on);
  const std::uint64_t now = ticks();
  for (open_slice* o = s.slices; o != nullptr; o = o->outer) o->begin = now;
}

}  // namespace weft::inline WEFT_ABI::observe
