// SPDX-License-Identifier: BSL-1.0
// How a thief gets into a strand that is executed: it and the owner never have the same task, and it reads no
// memory that the owner uses again.
#include "model/machine.hpp"

namespace {

using model::data;
using model::strand;
using model::task;
using event = weft::observe::worker_counters;

model::tally steals{"closures stolen"}, barriers{"barriers without an answer"},
    answers{"answers of the owner"}, parkings{"strands parked"};

/// The root forks a, b, c; a and b write to their objects, c reads both. a forks a task of its own, so that
/// the owner pops a frame, and uses its memory again when b forks one, too.
struct hand_over : model::suite<hand_over, 2> {
  model::machine all{2};
  model::run_state run;
  data x, y;
  model::runs root_ran, a_ran, a_child_ran, b_ran, b_child_ran, c_ran;
  strand* first = nullptr;

  static hand_over& of(void* m) { return *static_cast<hand_over*>(m); }
  static void root(void* m, strand& s, task&) {
    of(m).root_ran.note();
    model::fork(s, m, &a, {model::writes(of(m).x)});
    model::fork(s, m, &b, {model::writes(of(m).y)});
    model::fork(s, m, &c, {model::reads(of(m).x), model::reads(of(m).y)});
  }
  static void a(void* m, strand& s, task&) {
    of(m).a_ran.note();
    model::fork(s, m, &a_child, {model::writes(of(m).x)});
  }
  static void a_child(void* m, strand&, task&) {
    of(m).a_child_ran.note();
    of(m).x.set(1);
  }
  static void b(void* m, strand& s, task&) {
    of(m).b_ran.note();
    model::fork(s, m, &b_child, {model::writes(of(m).y)});
  }
  static void b_child(void* m, strand&, task&) {
    of(m).b_child_ran.note();
    of(m).y.set(2);
  }
  static void c(void* m, strand&, task&) {
    of(m).c_ran.note();
    model::require(of(m).x.get() == 1 && of(m).y.get() == 2, "what earlier tasks wrote");
  }

  hand_over() { first = &all.begin_run(all.at(0), run, this, &root); }
  void thread(unsigned i) {
    if (i == 0) {
      all.execute(all.at(0), *first);
    } else {
      for (int visit = 0; visit < 2; ++visit)
        if (strand* s = all.steal(all.at(1), *first)) all.execute(all.at(1), *s);
    }
  }
  void after() {
    for (const auto* r : {&root_ran, &a_ran, &a_child_ran, &b_ran, &b_child_ran, &c_ran})
      model::require(r->once(), "each task ran once");
    model::require(run.finished.state.newest() == model::signal::on, "the run has ended");
    all.add_to(steals, event::steals);
    all.add_to(barriers, event::barriers);
    all.add_to(parkings, event::parkings);
    answers.count += first->answer.newest() != 0;
  }
};

}  // namespace

int main() {
  using model::operation;
  model::check<hand_over>("hand_over");
  model::must_have_happened({&steals, &barriers, &answers, &parkings});
  const auto control = [](const char* what, const char* function, operation o) {
    model::control<hand_over>("hand_over", what, {function, o});
  };
  control("thieves do not fence", "heavy_fence", operation::fence);
  control("claims are not published", "owner_store", operation::store);
  control("the owner looks without order", "owner_load", operation::load);
  control("the owner waits without order", "attend", operation::load);
  control("the answer publishes nothing", "attend", operation::store);
  control("the thief believes any answer", "steal_entry::wait", operation::load);
  control("the thief leaves without order", "~steal_entry", operation::rmw);
  control("links are followed without order", "find_ready", operation::load);
  control("a frame is linked before it is complete", "open_frame", operation::store);
  return model::exit_status();
}
