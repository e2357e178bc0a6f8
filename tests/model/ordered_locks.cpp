// SPDX-License-Identifier: BSL-1.0
// The hand-over of an ordered lock: holders exclude each other, in the order of the requests, and whoever is
// granted the lock, told or not, finds what the holders before have done.
#include "model/model.hpp"
//
#include <weft/orwl/detail/queue.hpp>

namespace {

using weft::orwl::detail::queue;
using weft::orwl::detail::request;

model::tally waits{"waits for the lock"}, meetings{"readers together"}, withdrawals{"requests withdrawn"};

/// Two writers take turns; a third thread reads once, or thinks better of it.
struct ordered_locks : model::suite<ordered_locks, 3> {
  static constexpr int turns = 2;
  queue lock;
  request writer[2][2], reader;
  model::data value{0};
  int written = 0;

  ordered_locks() {
    lock.post(writer[0][0], true);
    lock.post(reader, false);
    lock.post(writer[1][0], true);
  }
  void thread(unsigned i) {
    if (i == 2) {
      if (rl::rand(4) == 0) {
        lock.withdraw(reader);
        ++withdrawals.count;
        return;
      }
      wait_for(reader);
      model::require(value.get() == 1, "what the writer before has written");
      lock.release(reader);
      return;
    }
    for (int k = 0; k < turns; ++k) {
      request &now = writer[i][k % 2], &next = writer[i][(k + 1) % 2];
      wait_for(now);
      model::require(value.get() == 2 * k + static_cast<int>(i), "the turns are in order");
      value.set(value.get() + 1);
      ++written;
      k + 1 < turns ? lock.pass_on(now, next) : lock.release(now);
    }
  }
  void wait_for(request& r) {
    waits.count += !r.granted();
    lock.acquire(r);
  }
  void after() {
    model::require(written == 2 * turns, "all turns were taken");
    model::require(lock.unused(), "nobody is left");
  }
};

/// A writer, and two readers that come at the same time.
struct shared_lock : model::suite<shared_lock, 3> {
  queue lock;
  request writer, reader[2];
  model::data value{0}, seen[2]{model::data{0}, model::data{0}};

  shared_lock() { lock.post(writer, true); }
  void thread(unsigned i) {
    if (i == 2) {
      lock.acquire(writer);
      value.set(7);
      lock.release(writer);
      return;
    }
    lock.post(reader[i], false);
    lock.acquire(reader[i]);
    seen[i].set(value.get());
    meetings.count += reader[1 - i].granted();
    lock.release(reader[i]);
  }
  void after() { model::require(seen[0].get() == 7 && seen[1].get() == 7, "readers come behind the writer"); }
};

}  // namespace

int main() {
  using model::operation;
  model::check<ordered_locks>("ordered_locks");
  model::check<shared_lock>("ordered_locks, readers");
  model::must_have_happened({&waits, &meetings, &withdrawals});
  const auto control = [](const char* what, const char* function, operation o) {
    model::control<ordered_locks>("ordered_locks", what, {function, o});
  };
  control("the grant publishes nothing", "queue::grant", operation::store);
  control("the lock is taken without order", "request::granted", operation::load);
  control("two hold the mutex", "try_lock", operation::atomicity);
  control("the queue is not handed over", "unlock", operation::store);
  return model::exit_status();
}
