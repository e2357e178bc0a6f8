// SPDX-License-Identifier: BSL-1.0
// Starting and ending what a runtime consists of.
#pragma once

#include <weft/inspect/detail/watchdog.hpp>
#include <weft/inspect/runtime_state.hpp>
#include <weft/sched/checked_options.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace weft::inline WEFT_ABI::sched {

struct runtime_state::parts {
  explicit parts(const runtime_options& options, const weft::counters& before = {})
      : asked(options), past(before), home(checked_options(options)), living(home, &dump_living) {
    if (home.options.stall.count() != 0) watch = std::make_unique<stall_watch>(home);
  }

  const runtime_options asked;  ///< before the environment changes them
  const weft::counters past;    ///< of the engines before this one
  engine home;
  registered_engine living;
  std::unique_ptr<stall_watch> watch;
};

WEFT_FUNCTION runtime_state::runtime_state(const runtime_options& options) : parts_(new parts(options)) {}

WEFT_FUNCTION runtime_state::~runtime_state() {
  // In a forked child its locks may be held by threads that do not exist there, and the list of the living
  // has forgotten it.
  if (born_.in_this_process()) delete parts_;
}

WEFT_FUNCTION engine& runtime_state::home() const {
  if (!born_.in_this_process())
    throw error("weft: this runtime was made before fork(); its workers do not exist in the child process");
  return parts_->home;
}

WEFT_FUNCTION unsigned runtime_state::workers() const noexcept { return parts_->home.options.workers; }

WEFT_FUNCTION void runtime_state::resize(unsigned workers) {
  // Relaxed: whoever may call this has seen the ends of all runs.
  if (home().active_runs.load(base::memory_order_relaxed) != 0)
    throw error("weft: resize() was called while a run is going on; call it between runs");
  runtime_options options = parts_->asked;
  options.workers = workers;
  auto fresh = std::make_unique<parts>(options, counters());
  delete std::exchange(parts_, fresh.release());
}

WEFT_FUNCTION std::vector<int> runtime_state::processors() const {
  engine& e = home();
  std::vector<int> found;
  for (unsigned i = 0; i < e.workers.size(); ++i) {
    const auto wanted = e.processor_of(i);
    found.push_back(wanted && e.workers[i]->is_pinned(*wanted) ? static_cast<int>(*wanted) : -1);
  }
  return found;
}

WEFT_FUNCTION weft::counters runtime_state::counters() const {
  weft::counters sum = parts_->past;
  for (const auto& w : parts_->home.workers) w->counters().add_to(sum);
  sum.contexts += parts_->home.contexts.count();
  sum.stack_high_water = std::max(sum.stack_high_water, parts_->home.contexts.high_water());
  return sum;
}

WEFT_FUNCTION bool runtime_state::write_trace() const {
  const auto& trace = home().trace;
  if (trace == nullptr) return false;
  if (const int error = trace->write()) io::fail(error, "write the trace", trace->path());
  return true;
}

WEFT_FUNCTION void runtime_state::set_rank(unsigned rank, unsigned processes) const {
  if (const auto& trace = home().trace) trace->set_rank(rank, processes);
}

WEFT_FUNCTION void runtime_state::set_unit(kept_unit* unit) const { home().unit = unit; }
WEFT_FUNCTION bool runtime_state::is_traced() const { return home().trace != nullptr; }

WEFT_FUNCTION std::string runtime_state::describe() const {
  if (!born_.in_this_process()) return "this runtime was made before fork(); its workers do not exist here\n";
  return sched::describe(parts_->home);
}

}  // namespace weft::inline WEFT_ABI::sched
