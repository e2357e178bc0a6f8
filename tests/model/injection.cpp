// SPDX-License-Identifier: BSL-1.0
// Injection from outside: a thread that is no worker submits runs and ends events, while workers search and
// sleep.
#include "model/machine.hpp"

namespace {

using model::data;
using model::strand;
using model::task;
using event = weft::observe::worker_counters;

model::tally sleeps{"workers slept"}, wakes_of_events{"workers slept before an event"},
    parkings{"strands waited for an event"};

/// A caller makes two runs, one after the other, and closes the engine.
struct injection : model::suite<injection, 3> {
  model::machine all{2};
  model::run_state run[2];
  data x;
  model::runs ran[2];

  static injection& of(void* m) { return *static_cast<injection*>(m); }
  static void root(void* m, strand&, task&) {
    injection& i = of(m);
    const bool second = i.run[0].finished.state.newest() == model::signal::on;
    i.ran[second].note();
    i.x.set(i.x.get() + 1);
  }
  void thread(unsigned i) {
    if (i != 0) {
      while (strand* s = all.find_work(all.at(i - 1))) all.execute(all.at(i - 1), *s);
      return;
    }
    for (model::run_state& r : run) {
      x.set(5);
      all.e.submit(all.make_run(r, this, &root));
      r.finished.block();
      model::require(x.get() == 6, "the result of the run");
    }
    all.close();
  }
  void after() {
    model::require(ran[0].once() && ran[1].once(), "each run ran once");
    all.add_to(sleeps, event::sleeps);
  }
};

/// A task waits for an event, which a thread outside ends, while the only worker parks the strand and sleeps.
struct external : model::suite<external, 2> {
  model::machine all{1};
  model::run_state run;
  weft::base::atomic<model::closure*> expected{nullptr};
  data x;
  model::runs holder_ran, reader_ran;
  strand* first = nullptr;

  static external& of(void* m) { return *static_cast<external*>(m); }
  static void holder(void* m, strand& s, task&) {
    of(m).holder_ran.note();
    of(m).expected.store(&begin_external(s), weft::base::memory_order_release);
  }
  static void reader(void* m, strand&, task&) {
    of(m).reader_ran.note();
    model::require(of(m).x.get() == 1, "what the event stands for");
    of(m).x.set(2);
  }

  external() {
    first = &all.begin_run(all.at(0), run, this);
    model::fork(*first, this, &holder, {model::writes(x)});
    model::fork(*first, this, &reader, {model::writes(x)});
  }
  void thread(unsigned i) {
    if (i != 0) {
      all.execute(all.at(0), *first);
      while (strand* s = all.find_work(all.at(0))) all.execute(all.at(0), *s);
      return;
    }
    model::closure* event_of_holder = nullptr;
    while ((event_of_holder = expected.load(weft::base::memory_order_acquire)) == nullptr) model::yield();
    x.set(1);
    end_external(all.e, *first, *event_of_holder, nullptr);
    run.finished.block();
    model::require(x.get() == 2, "the result of the run");
    all.close();
  }
  void after() {
    model::require(holder_ran.once() && reader_ran.once(), "each task ran once");
    all.add_to(wakes_of_events, event::sleeps);
    all.add_to(parkings, event::parkings);
  }
};

}  // namespace

int main() {
  using model::operation;
  model::check<injection>("injection");
  model::check<external>("injection of an event");
  model::must_have_happened({&sleeps, &wakes_of_events, &parkings});
  const auto control = [](const char* what, const char* function, operation o) {
    model::control<injection>("injection", what, {function, o});
  };
  control("who submits does not fence", "engine::enqueue", operation::fence);
  control("sleepers do not fence", "heavy_fence", operation::fence);
  control("the list of submitted strands is open", "try_lock", operation::atomicity);
  control("the end publishes no results", "signal::set", operation::rmw);
  control("the caller takes results without order", "signal::is_on", operation::load);
  model::control<external>("injection of an event", "the event publishes nothing",
                           {"end_external", operation::rmw});
  model::control<external>("injection of an event", "both may go on, or none",
                           {"end_external", operation::atomicity});
  return model::exit_status();
}
