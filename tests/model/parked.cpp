// SPDX-License-Identifier: BSL-1.0
// A strand that waits for a stolen closure, against the thief that ends it: exactly one of the two goes on
// with the strand, and finds all that both have done.
#include "model/machine.hpp"

namespace {

using model::data;
using model::strand;
using model::task;
using event = weft::observe::worker_counters;

model::tally by_thief{"continued by the thief"}, by_owner{"continued by the owner"};

/// The first of two tasks is stolen already; the other one reads its result.
struct parked : model::suite<parked, 2> {
  model::machine all{2};
  model::run_state run;
  data x, earlier;
  model::runs a_ran, b_ran;
  strand* first = nullptr;
  strand* stolen = nullptr;

  static parked& of(void* m) { return *static_cast<parked*>(m); }
  static void a(void* m, strand&, task&) {
    of(m).a_ran.note();
    of(m).x.set(1);
  }
  static void b(void* m, strand&, task&) {
    of(m).b_ran.note();
    model::require(of(m).x.get() == 1, "the result of the stolen task");
    model::require(of(m).earlier.get() == 5, "what was done before the strand waited");
    ++(rl::ctx().threadx_->index_ == 0 ? by_owner : by_thief).count;
  }

  parked() {
    first = &all.begin_run(all.at(0), run, this);
    model::fork(*first, this, &a, {model::writes(x)});
    model::fork(*first, this, &b, {model::reads(x)});
    stolen = all.steal(all.at(1), *first);
    model::require(stolen != nullptr, "there is something to steal");
  }
  void thread(unsigned i) {
    if (i == 0) earlier.set(5);
    all.execute(all.at(i), i == 0 ? *first : *stolen);
  }
  void after() {
    model::require(a_ran.once() && b_ran.once(), "each task ran once");
    model::require(run.finished.state.newest() == model::signal::on, "the run has ended");
  }
};

}  // namespace

int main() {
  using model::operation;
  model::check<parked>("parked");
  model::must_have_happened({&by_thief, &by_owner});
  const auto control = [](const char* what, const char* function, operation o) {
    model::control<parked>("parked", what, {function, o});
  };
  control("both may go on, or none", "end_stolen", operation::atomicity);
  control("the owner looks, then waits", "put_aside", operation::atomicity);
  control("a task ends before its result is there", "end_stolen", operation::rmw);
  control("results are taken without order", "settle", operation::load);
  return model::exit_status();
}
