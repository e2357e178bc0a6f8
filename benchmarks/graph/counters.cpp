// SPDX-License-Identifier: BSL-1.0
// The graphs without any library: counters, and a stack of ready tasks per thread, from which others steal.
#include "counters.hpp"

#include <atomic>
#include <deque>
#include <thread>
#include <vector>

namespace weft_bench {
namespace {

/// Its owner pushes and pops at one end, others take at the other end. As many places as there are tasks:
/// none is used twice before it is free. *Source*: Chase and Lev, Dynamic circular work-stealing deque, 2005.
class stack {
 public:
  explicit stack(long tasks) : task_(std::size_t(tasks)) {}

  void push(int task) {
    const long back = back_.load(std::memory_order_relaxed);  // the owner's own
    place(back).store(task, std::memory_order_relaxed);       // published by the next line
    back_.store(back + 1, std::memory_order_release);         // pairs with steal()
  }
  int pop() {
    const long back = back_.load(std::memory_order_relaxed) - 1;
    if (back < front_.load(std::memory_order_relaxed)) return no_task;  // the front never goes back
    // One order of this store, the load below, and both loads of steal(): the last task goes to one only.
    back_.store(back, std::memory_order_seq_cst);
    long front = front_.load(std::memory_order_seq_cst);
    if (front < back) return place(back).load(std::memory_order_relaxed);
    int task = front == back ? place(back).load(std::memory_order_relaxed) : no_task;
    if (front == back && !front_.compare_exchange_strong(front, front + 1, std::memory_order_seq_cst))
      task = no_task;
    back_.store(back + 1, std::memory_order_release);  // pairs with steal()
    return task;
  }
  int steal() {
    long front = front_.load(std::memory_order_seq_cst);
    if (front >= back_.load(std::memory_order_seq_cst)) return no_task;
    const int task = place(front).load(std::memory_order_relaxed);  // counts only if the exchange succeeds
    return front_.compare_exchange_strong(front, front + 1, std::memory_order_seq_cst) ? task : no_task;
  }

 private:
  std::atomic<int>& place(long i) { return task_[std::size_t(i)]; }

  alignas(64) std::atomic<long> front_ = 0;
  alignas(64) std::atomic<long> back_ = 0;
  alignas(64) std::vector<std::atomic<int>> task_;
};

class team {
 public:
  team(unsigned workers, long tasks) : left_(tasks) {
    for (unsigned i = 0; i < workers; ++i) stack_.emplace_back(tasks);
  }
  /// *Returns*: the time from the first task to the last one.
  template <class graph>
  double run(graph& g) {
    std::vector<std::thread> thieves;
    for (std::size_t me = 1; me < stack_.size(); ++me)
      thieves.emplace_back([this, &g, me] { work_off(g, me); });
    const stopwatch clock;
    for (const int task : g.start()) stack_[0].push(task);
    work_off(g, 0);
    const double seconds = clock.seconds();
    for (std::thread& t : thieves) t.join();
    return seconds;
  }

 private:
  template <class graph>
  void work_off(graph& g, std::size_t me) {
    stack& own = stack_[me];
    const auto hand_on = [&own](int task) { own.push(task); };
    long done = 0;
    for (std::size_t victim = me;;) {
      int task = own.pop();
      if (task == no_task) {
        // Acquire and release: who finds that none is left knows what all have done.
        if (done != 0) left_.fetch_sub(done, std::memory_order_acq_rel);
        done = 0;
        if (left_.load(std::memory_order_acquire) == 0) return;
        victim = (victim + 1) % stack_.size();
        if (victim != me) task = stack_[victim].steal();
        if (task == no_task) {
          pause();
          continue;
        }
      }
      done += run_along(g, task, hand_on);
    }
  }
  /// Leaves the cache lines of others alone for a while.
  static void pause() {
    for (int i = 0; i < pauses; ++i) static_cast<void>(opaque(i));
  }

  static const int pauses = 32;
  std::deque<stack> stack_;
  alignas(64) std::atomic<long> left_;
};

outcome run(int index, unsigned workers) {
  return counted_outcome(problems[index], [workers](auto& g, long tasks) {
    team t(workers, tasks);
    return t.run(g);
  });
}

const registration entry("counters", run, fits_counters);

}  // namespace
}  // namespace weft_bench
