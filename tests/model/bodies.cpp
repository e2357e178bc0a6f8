// SPDX-License-Identifier: BSL-1.0
// Mutex, condition, barrier and channel between bodies, which wait on stacks of their own while their workers
// go on: nobody waits for ever, holders exclude each other, and who goes on finds what was done before.
#include "model/bodies.hpp"

#include "model/meetings.hpp"
//
#include <weft/threads/channel.hpp>
#include <weft/threads/mutex.hpp>

namespace {

using event = weft::observe::worker_counters;

/// Three that count under a lock, on two workers.
struct mutex_model : model::of_bodies<mutex_model, 2, 3> {
  weft::mutex door;
  model::data counted{0};

  void body(unsigned) {
    for (int k = 0; k < 2; ++k) {
      door.lock();
      counted.set(counted.get() + 1);
      door.unlock();
    }
  }
  void after() {
    model::require(counted.get() == 6, "who has the lock sees what was done before");
    all.add_to(waited, event::suspensions);
  }
  static inline model::tally waited{"bodies waited for a mutex"};
};

struct condition_model : model::of_bodies<condition_model, 2, 3> {
  model::turns three;

  void body(unsigned i) { three.take_part(i); }
  void after() {
    three.end();
    all.add_to(waited, event::suspensions);
    all.add_to(slept, event::sleeps);
  }
  static inline model::tally waited{"bodies waited for a condition"}, slept{"workers slept meanwhile"};
};

/// One worker has to execute two of them.
struct barrier_model : model::of_bodies<barrier_model, 2, 3> {
  model::meetings three;

  void body(unsigned i) { three.take_part(i); }
  void after() { all.add_to(waited, event::suspensions); }
  static inline model::tally waited{"bodies waited at a barrier"};
};

/// A producer and two consumers.
struct channel_model : model::of_bodies<channel_model, 2, 3> {
  weft::channel<int> items{1};
  model::data made{0};
  int got = 0, closed = 0;

  void body(unsigned i) {
    if (i == 0) {
      made.set(1);
      items.push(1);
      items.push(1);
      items.close();
      return;
    }
    for (int k = 0; k < 2; ++k) {
      const std::optional<int> item = items.pop();
      ++(item ? got : closed);
      if (item) model::require(made.get() == 1, "what was done before the item was sent");
    }
  }
  void after() {
    model::require(got == 2 && closed == 2, "each item arrives once, and every wait has an end");
    all.add_to(waited, event::suspensions);
  }
  static inline model::tally waited{"bodies waited at a channel"};
};

}  // namespace

int main() {
  using model::operation;
  const auto control = []<class Model>(Model*, const char* name, const char* what, const char* function,
                                       operation o) { model::control<Model>(name, what, {function, o}); };
  model::check<mutex_model>("bodies, mutex", 50'000);
  mutex_model* const m = nullptr;
  control(m, "bodies, mutex", "two take the lock", "take_", operation::atomicity);
  control(m, "bodies, mutex", "it is freed while somebody comes", "mutex::unlock", operation::atomicity);

  model::check<condition_model>("bodies, condition", 50'000);
  condition_model* const c = nullptr;
  control(c, "bodies, condition", "both go on, or none", "put_aside", operation::atomicity);
  control(c, "bodies, condition", "who waits is told without order", "signal::set", operation::rmw);
  control(c, "bodies, condition", "a kept strand is taken twice", "take_kept", operation::atomicity);

  model::check<barrier_model>("bodies, barrier", 50'000);
  barrier_model* const b = nullptr;
  control(b, "bodies, barrier", "both go on, or none", "put_aside", operation::atomicity);

  model::check<channel_model>("bodies, channel", 50'000);
  channel_model* const h = nullptr;
  control(h, "bodies, channel", "the list is not handed over", "spin_lock::unlock", operation::store);
  model::must_have_happened({&mutex_model::waited, &condition_model::waited, &condition_model::slept,
                             &barrier_model::waited, &channel_model::waited});
  return model::exit_status();
}
