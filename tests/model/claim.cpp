// SPDX-License-Identifier: BSL-1.0
// The claim of a closure: of an owner and two thieves exactly one has it, and whoever passes it later finds
// its result.
#include "model/machine.hpp"

namespace {

using model::data;
using model::strand;
using model::task;
using event = weft::observe::worker_counters;

model::tally steals{"closures stolen"}, both{"executions in which both thieves had one"};

/// Two independent tasks, and one that reads both results.
struct claim : model::suite<claim, 3> {
  model::machine all{3};
  model::run_state run;
  data x, y;
  model::runs a_ran, b_ran, sum_ran;
  strand* first = nullptr;
  int thieves = 0;

  static claim& of(void* m) { return *static_cast<claim*>(m); }
  static void a(void* m, strand&, task&) {
    of(m).a_ran.note();
    of(m).x.set(1);
  }
  static void b(void* m, strand&, task&) {
    of(m).b_ran.note();
    of(m).y.set(2);
  }
  static void sum(void* m, strand&, task&) {
    of(m).sum_ran.note();
    model::require(of(m).x.get() + of(m).y.get() == 3, "the results of both");
  }

  claim() {
    first = &all.begin_run(all.at(0), run, this);
    model::fork(*first, this, &a, {model::writes(x)});
    model::fork(*first, this, &b, {model::writes(y)});
    model::fork(*first, this, &sum, {model::reads(x), model::reads(y)});
  }
  void thread(unsigned i) {
    if (i == 0) {
      all.execute(all.at(0), *first);
    } else if (strand* s = all.steal(all.at(i), *first)) {
      ++thieves;
      all.execute(all.at(i), *s);
    }
  }
  void after() {
    for (const auto* r : {&a_ran, &b_ran, &sum_ran}) model::require(r->once(), "each task ran once");
    model::require(run.finished.state.newest() == model::signal::on, "the run has ended");
    all.add_to(steals, event::steals);
    both.count += thieves == 2;
  }
};

}  // namespace

int main() {
  using model::operation;
  model::check<claim>("claim");
  model::must_have_happened({&steals, &both});
  const auto control = [](const char* what, const char* function, operation o) {
    model::control<claim>("claim", what, {function, o});
  };
  control("thieves do not fence", "heavy_fence", operation::fence);
  control("the owner looks without order", "owner_load", operation::load);
  control("two thieves come in at once", "try_lock", operation::atomicity);
  control("a task ends before its result is there", "end_stolen", operation::rmw);
  control("results are taken without order", "settle", operation::load);
  return model::exit_status();
}
