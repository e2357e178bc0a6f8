// SPDX-License-Identifier: BSL-1.0
// Timers: those that are due are called, in order of their times, once, and none that was taken back.
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/random.hpp"

#include <weft/sched/timers.hpp>

#include <algorithm>
#include <set>
#include <vector>

using steady = weft::base::clock;
using weft::sched::timer;
using weft::sched::timer_queue;

namespace {

struct noting_timer : timer {
  int number = 0;
  static inline std::vector<noting_timer*> called;
};

}  // namespace

TEST_CASE("random timers against a sorted list") {
  weft_test::random random(weft_test::seed());
  for (int round = 0; round < 50; ++round) {
    timer_queue queue;
    std::vector<noting_timer> timers(60);
    std::set<std::pair<steady::time_point, noting_timer*>> model;
    const auto start = steady::now();
    noting_timer::called.clear();
    std::size_t due = 0;
    for (int step = 0; step < 400; ++step) {
      noting_timer& t = timers[random.below(timers.size())];
      if (!t.queued) {
        // Half of them are due long since, the others not for hours.
        const auto at = std::chrono::milliseconds(random.below(50));
        t.when = random.one_in(2) ? start - std::chrono::hours(2) + at : start + std::chrono::hours(2) + at;
        t.expire = [](timer& of) noexcept {
          noting_timer::called.push_back(static_cast<noting_timer*>(&of));
        };
        const bool first = model.empty() || t.when < model.begin()->first;
        model.emplace(t.when, &t);
        const bool said = queue.add(t);
        CHECK((said || !first));
      } else if (random.one_in(2)) {
        model.erase({t.when, &t});
        queue.remove(t);
        CHECK_FALSE(t.queued);
      }
      CHECK(queue.earliest() == (model.empty() ? timer_queue::never : model.begin()->first));
      if (!random.one_in(20)) continue;
      queue.call_due();
      const auto end =
          std::find_if(model.begin(), model.end(), [&](const auto& m) { return m.first > start; });
      CHECK(noting_timer::called.size() - due == static_cast<std::size_t>(std::distance(model.begin(), end)));
      CHECK(std::is_sorted(noting_timer::called.begin() + static_cast<std::ptrdiff_t>(due),
                           noting_timer::called.end(),
                           [](const timer* a, const timer* b) { return a->when < b->when; }));
      for (auto m = model.begin(); m != end; ++m) CHECK_FALSE(m->second->queued);
      model.erase(model.begin(), end);
      due = noting_timer::called.size();
    }
    CHECK(due > 0);
    for (timer& t : timers) queue.remove(t);
    CHECK(queue.earliest() == timer_queue::never);
  }
}
