// SPDX-License-Identifier: BSL-1.0
// Kept strands: what a worker keeps for itself and does not come to is executed by another one, which may be
// about to sleep just then.
#include "model/bodies.hpp"
//
#include <weft/threads/condition.hpp>

namespace {

namespace base = weft::base;
using event = weft::observe::worker_counters;

/// Busy until somebody has set it.
void await(const base::atomic<bool>& flag) {
  while (!flag.load(base::memory_order_acquire)) model::yield();
}

/// A body continues another one, and goes on until that has ended.
struct kept_model : model::of_bodies<kept_model, 2, 2> {
  weft::condition<int> turn{0};
  base::atomic<bool> ended{false};
  model::data x{0};

  void body(unsigned i) {
    if (i == 0) {
      turn.wait_equal(1);
      model::require(x.get() == 1, "what was done before it went on");
      ended.store(true, base::memory_order_release);
    } else {
      x.set(1);
      turn.set(1);
      await(ended);
    }
  }
  void after() {
    all.add_to(waited, event::suspensions);
    all.add_to(slept, event::sleeps);
  }
  static inline model::tally waited{"bodies waited"}, slept{"workers slept"};
};

/// The first of three continues the second one and ends, so that a sleeper who is told of that comes in vain.
/// The second one continues the third, and goes on until that has ended.
struct told_model : model::of_bodies<told_model, 2, 3> {
  weft::condition<int> turn{0};
  base::atomic<bool> ended{false};

  void body(unsigned i) {
    if (i == 2) return turn.set(1);
    turn.wait([i](int now) { return now > static_cast<int>(i); });
    if (i == 0) {
      turn.set(2);
      await(ended);
    } else {
      ended.store(true, base::memory_order_release);
    }
  }
  void after() {
    all.add_to(waited, event::suspensions);
    all.add_to(slept, event::sleeps);
  }
  static inline model::tally waited{"bodies waited in turn"}, slept{"workers slept in turn"};
};

/// A worker keeps a strand and goes on with it, and that keeps another one, which stays.
struct tell_model : model::suite<tell_model, 2> {
  model::machine all{2};
  model::strand& first = all.e.take_strand();
  model::strand& second = all.e.take_strand();

  void thread(unsigned i) {
    model::worker& w = all.at(i);
    if (i != 0) return all.sleep_until_kept(w);
    all.keep(w, first);
    if (all.take_kept(w) != nullptr) all.keep(w, second);
    while (all.has_kept(w)) model::yield();
  }
  void after() { all.add_to(slept, event::sleeps); }
  static inline model::tally slept{"workers slept before"};
};

}  // namespace

int main() {
  using model::operation;
  model::check<kept_model>("kept", 50'000);
  model::control<kept_model>("kept", "sleepers do not fence", {"heavy_fence", operation::fence});
  model::control<kept_model>("kept", "the strand is handed over without order",
                             {"owner_store", operation::store});
  model::check<told_model>("kept, one by one", 50'000);
  model::control<told_model>("kept, one by one", "sleepers do not fence", {"heavy_fence", operation::fence});
  model::check<tell_model>("kept, and told", 100'000);
  model::control<tell_model>("kept, and told", "sleepers do not fence", {"heavy_fence", operation::fence});
  model::must_have_happened(
      {&kept_model::waited, &kept_model::slept, &told_model::waited, &told_model::slept, &tell_model::slept});
  return model::exit_status();
}
