// SPDX-License-Identifier: BSL-1.0
// Mutex, condition, barrier and channel between kernel threads: nobody waits for ever, holders exclude each
// other, and who goes on finds what was done before. Strands that wait are in the models hand_over and
// parked.
#include "model/meetings.hpp"
#include "model/model.hpp"
//
#include <weft/threads/channel.hpp>
#include <weft/threads/mutex.hpp>
#include <weft/threads/select.hpp>

namespace {

/// Two that count under a lock, and a third that only tries for a while.
struct mutex_model : model::suite<mutex_model, 3> {
  weft::mutex door;
  model::data counted{0};
  int done = 0;

  void thread(unsigned i) {
    for (int k = 0; k < 2; ++k) {
      if (i == 2 && k == 0) {
        if (!door.try_lock_for(std::chrono::microseconds(1))) {
          ++gave_up.count;
          continue;
        }
      } else {
        door.lock();
      }
      counted.set(counted.get() + 1);
      ++done;
      door.unlock();
    }
  }
  void after() {
    model::require(counted.get() == done, "who has the lock sees what was done before");
    model::require(door.try_lock(), "the lock is free in the end");
    door.unlock();
  }
  static inline model::tally gave_up{"gave up waiting for the mutex"};
};

struct condition_model : model::suite<condition_model, 3> {
  model::turns three;

  void thread(unsigned i) { three.take_part(i); }
  void after() { three.end(); }
};

struct barrier_model : model::suite<barrier_model, 3> {
  model::meetings three;

  void thread(unsigned i) { three.take_part(i); }
};

/// A producer, and two consumers: one pops, the other one selects from this channel and one that is closed
/// later.
struct channel_model : model::suite<channel_model, 3> {
  weft::channel<int> items{1}, others{1};
  model::data made{0};
  int got = 0, closed = 0;

  void take(std::optional<int> item) {
    if (!item) {
      ++closed;
      return;
    }
    model::require(made.get() >= *item, "what was done before the item was sent");
    ++got;
  }
  void thread(unsigned i) {
    if (i == 0) {
      made.set(1);
      items.push(1);
      others.push(1);
      items.close();
      others.close();
    } else if (i == 1) {
      take(items.pop());
    } else {
      // As often as there may be something: two items, or the end of one channel.
      for (int k = 0; k < 2; ++k)
        weft::select(weft::on_receive(items, [&](std::optional<int> v) { take(v); }),
                     weft::on_receive(others, [&](std::optional<int> v) { take(v); }));
    }
  }
  void after() {
    int left = 0;
    while (others.try_pop()) ++left;
    while (items.try_pop()) ++left;
    model::require(got + left == 2, "each item arrives once");
    model::require(got + closed == 3, "every wait has an end");
  }
};

}  // namespace

int main() {
  using model::operation;
  const auto control = []<class Model>(Model*, const char* name, const char* what, const char* function,
                                       operation o) { model::control<Model>(name, what, {function, o}); };
  model::check<mutex_model>("waits, mutex", 250'000);
  model::must_have_happened({&mutex_model::gave_up});
  mutex_model* const m = nullptr;
  control(m, "waits, mutex", "two take the lock", "take_", operation::atomicity);
  control(m, "waits, mutex", "it is taken without order", "take_", operation::rmw);
  control(m, "waits, mutex", "it is freed without order", "mutex::unlock", operation::rmw);
  control(m, "waits, mutex", "it is freed while somebody comes", "mutex::unlock", operation::atomicity);
  control(m, "waits, mutex", "who waits is told without order", "signal::set", operation::rmw);

  model::check<condition_model>("waits, condition", 250'000);
  condition_model* const c = nullptr;
  control(c, "waits, condition", "the list is not handed over", "spin_lock::unlock", operation::store);
  control(c, "waits, condition", "two hold the list", "spin_lock::try_lock", operation::atomicity);

  model::check<barrier_model>("waits, barrier", 250'000);
  barrier_model* const b = nullptr;
  control(b, "waits, barrier", "who waits is told without order", "signal::set", operation::rmw);
  control(b, "waits, barrier", "who waits looks without order", "is_on", operation::load);

  model::check<channel_model>("waits, channel", 250'000);
  channel_model* const h = nullptr;
  control(h, "waits, channel", "two end a select", "selection::claim", operation::atomicity);
  control(h, "waits, channel", "the list is not handed over", "spin_lock::unlock", operation::store);
  return model::exit_status();
}
