// SPDX-License-Identifier: BSL-1.0
// The stop of a run, and who describes a runtime, against bodies that wait without a lock: a stop ends each
// wait of its run, no other one, and touches none that is over; what is seen of a wait is there as long as it
// is looked at.
#include "model/bodies.hpp"
//
#include <weft/inspect/detail/strand_view.hpp>

namespace {

namespace base = weft::base;
using model::strand;
using weft::sched::abandonable;
using event = weft::observe::worker_counters;

struct place;

/// A wait that may be granted, or given up.
struct probe : abandonable {
  place* at;
  model::data touched{0};
  bool over = false;  // under the lock of the place
  bool given_up = false;

  explicit probe(place& p) : at(&p) {
    what = "a place";
    give_up = &end_early;
  }
  static void end_early(abandonable& a) noexcept;
};

/// Where one may wait. The lock stands for that of a list.
struct place {
  base::spin_lock mutex;
  probe* in = nullptr;
  bool granted = false;

  /// *Returns*: whether it was given up.
  bool wait() {
    probe p(*this);
    {
      weft::sched::signal_wait here(p, "waits at a place");
      bool waits = false;
      {
        const std::lock_guard hold(mutex);
        waits = !p.over && !granted;
        if (waits) in = &p;
      }
      if (waits) here.wait();
    }
    p.touched.set(2);  // whoever ends waits has done with it
    p.what = nullptr;
    return p.given_up;
  }
  void grant() {
    probe* who = nullptr;
    {
      const std::lock_guard hold(mutex);
      granted = true;
      who = std::exchange(in, nullptr);
      if (who != nullptr) who->over = true;
    }
    if (who != nullptr) weft::sched::raise_signal(*who);
  }
};

void probe::end_early(abandonable& a) noexcept {
  probe& self = static_cast<probe&>(a);
  bool waits = false;
  {
    const std::lock_guard hold(self.at->mutex);
    self.touched.set(1);
    waits = std::exchange(self.at->in, nullptr) != nullptr;
    if (!self.over) self.given_up = self.over = true;
  }
  if (waits) weft::sched::raise_signal(self);
}

/// One waits and is granted or stopped; nobody is lost, and nothing is touched when the wait is over.
struct stop_model : model::of_bodies<stop_model, 2, 2> {
  static constexpr unsigned stopped = 1;
  place first, second;

  void body(unsigned i) {
    if (i == 0) {
      ++(first.wait() ? given_up : granted).count;
      model::require(second.wait(), "only the stop ends this one");
    } else {
      first.grant();
    }
  }
  void outside() { all.e.stop(run[0]); }
  void after() { all.add_to(waited, event::suspensions); }
  static inline model::tally given_up{"waits given up"}, granted{"waits granted"}, waited{"bodies waited"};
};

/// A strand of the run that is stopped belongs to another one meanwhile, in which it waits, and comes back.
struct other_run_model : model::suite<other_run_model, 2> {
  model::machine all{1};
  model::run_state run[2];
  place there;
  strand& s = all.e.take_strand();

  other_run_model() { weft::sched::engine::join_run(s, run[0]); }
  void thread(unsigned i) {
    if (i == 0) return all.e.stop(run[0]);
    for (const int of : {1, 0}) {
      weft::sched::engine::join_run(s, run[of]);
      probe p(there);
      const bool stopped = weft::sched::engine::begin_stoppable(s, p);
      all.e.end_stoppable(s);
      p.touched.set(2);
      given_up.count += p.given_up;
      model::require(of == 0 || (!stopped && !p.given_up), "the stop of a run ends the waits of that run");
    }
  }
  void after() { all.e.put_strand(s); }
  static inline model::tally given_up{"waits given up in the run"};
};

/// One waits alone while somebody describes it.
struct visit_model : model::of_bodies<visit_model, 1, 2> {
  place there;

  void body(unsigned i) {
    if (i == 0)
      there.wait();
    else
      there.grant();
  }
  void outside() {
    for (int k = 0; k < 2; ++k)
      all.e.each_strand(1000, [&](strand& s, std::size_t) {
        if (s.status.load(base::memory_order_relaxed) == weft::sched::strand_status::idle) return;
        weft::sched::strand_view v;
        v.who = &s;
        look_at(v, 1000);
        if (v.is != weft::sched::strand_view::state::waiting) return;
        model::require(v.waits_in_words != nullptr, "what it waits for, while it does");
        ++seen.count;
      });
  }
  void after() {}
  static inline model::tally seen{"waits seen"};
};

}  // namespace

int main() {
  using model::operation;
  model::check<stop_model>("stop", 50'000);
  const auto control = []<class Model>(Model*, const char* name, const char* what, const char* function,
                                       operation o) { model::control<Model>(name, what, {function, o}); };
  stop_model* const s = nullptr;
  control(s, "stop", "who stops does not fence", "heavy_fence", operation::fence);
#if !WEFT_ASYMMETRIC
  control(s, "stop", "waits begin and end without order", "abandonable*; V", operation::store);
  control(s, "stop", "who has waited looks without order", "owner_load", operation::load);
#endif
  control(s, "stop", "who stops sees half of a wait", "end_waits", operation::load);
  control(s, "stop", "who has stopped leaves without order", "end_waits", operation::rmw);

  model::check<other_run_model>("stop, another run", 100'000);

  model::check<visit_model>("stop, a visitor", 50'000);
  visit_model* const v = nullptr;
  control(v, "stop, a visitor", "who visits does not fence", "heavy_fence", operation::fence);
#if !WEFT_ASYMMETRIC
  control(v, "stop, a visitor", "who goes on says so without order", "strand_status; V", operation::store);
#endif
  model::must_have_happened({&stop_model::given_up, &stop_model::granted, &stop_model::waited,
                             &other_run_model::given_up, &visit_model::seen});
  return model::exit_status();
}
