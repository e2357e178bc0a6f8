// SPDX-License-Identifier: BSL-1.0
// Release of versions: the memory of a value is used again only when all who read it have ended, and the last
// value is written back.
#include "model/machine.hpp"

namespace {

using model::data;
using model::strand;
using model::task;
using event = weft::observe::worker_counters;

model::tally promotions{"frames promoted"}, renames{"writes renamed"}, steals{"tasks taken by thieves"};

/// A number that writers replace and readers read; with two versions the third writer uses the memory of the
/// first.
struct versions : model::suite<versions, 2> {
  model::machine all{2, 2};
  model::run_state run;
  data x{0};
  model::runs written[3], read[3];
  strand* first = nullptr;

  static versions& of(void* m) { return *static_cast<versions*>(m); }
  static data& number(task& t) { return *static_cast<data*>(t.objects[0]); }
  template <int i>
  static void write(void* m, strand&, task& t) {
    of(m).written[i].note();
    number(t).set(i + 1);
  }
  template <int i>
  static void see(void* m, strand&, task& t) {
    of(m).read[i].note();
    model::require(number(t).get() == i + 1, "the value of the writer before");
  }
  static constexpr weft::sched::version_kind kind{
      sizeof(data), alignof(data), [](void* p) { ::new (p) data; },
      [](void* from, void* to) { static_cast<data*>(to)->set(static_cast<data*>(from)->get()); },
      [](void* p) { static_cast<data*>(p)->~data(); }};

  template <int i>
  void fork_pair() {
    model::fork(*first, this, &write<i>, {model::writes(x)}, &kind);
    model::fork(*first, this, &see<i>, {model::reads(x)});
  }
  versions() {
    first = &all.begin_run(all.at(0), run, this);
    fork_pair<0>();
    fork_pair<1>();
    fork_pair<2>();
  }
  void thread(unsigned i) {
    if (i == 0) {
      all.execute(all.at(0), *first);
    } else {
      for (int visit = 0; visit < 3; ++visit)
        if (strand* s = all.steal(all.at(1), *first)) all.execute(all.at(1), *s);
    }
  }
  void after() {
    for (const auto& r : written) model::require(r.once(), "each writer ran once");
    for (const auto& r : read) model::require(r.once(), "each reader ran once");
    model::require(x.get() == 3, "the last value has come home");
    model::require(run.finished.state.newest() == model::signal::on, "the run has ended");
    all.add_to(promotions, event::promotions);
    all.add_to(renames, event::renames);
    all.add_to(steals, event::steals);
  }
};

}  // namespace

int main() {
  using model::operation;
  model::check<versions>("versions");
  model::must_have_happened({&promotions, &renames, &steals});
  const auto control = [](const char* what, const char* function, operation o) {
    model::control<versions>("versions", what, {function, o});
  };
  control("the graph's mutex is open", "try_lock", operation::atomicity);
  control("the mutex opens before all is written", "unlock", operation::store);
  control("who comes in sees nothing of those before", "try_lock", operation::rmw);
  control("thieves do not fence", "heavy_fence", operation::fence);
  return model::exit_status();
}
