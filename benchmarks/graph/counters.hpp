// SPDX-License-Identifier: BSL-1.0
// Graphs for programs that count by hand: each task has a counter of the inputs that are still to come, and
// whoever completes the last one runs the task, or hands it on. A task is known by the number of the object
// that it updates. A graph has start(), execute(task) and
// complete(task, f).
#pragma once

#include "config.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <vector>

namespace weft_bench {

static const int no_task = -1;

/// How many inputs of a task are still to come.
class open_inputs {
 public:
  // Relaxed: no task runs yet.
  void start(int inputs) { open_.store(static_cast<unsigned char>(inputs), std::memory_order_relaxed); }
  /// Counts an input. *Returns*: whether it was the last one.
  bool complete() {
    // Acquire: pairs with the releases of whoever counted before. Who finds 1 is alone with the counter.
    return open_.load(std::memory_order_acquire) == 1 || open_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

 private:
  std::atomic<unsigned char> open_ = 0;
};

/// The tasks in the border, which do not exist, have an input that never comes.
class counted_wavefront {
 public:
  counted_wavefront(const problem& p, field& f)
      : field_(f),
        width_(p.size + 1),
        steps_(p.steps),
        open_(std::size_t(p.size + 2) * std::size_t(width_)) {}

  /// Sets the counters. *Returns*: the tasks that wait for none.
  std::vector<int> start() {
    const int last = (width_ - 1) * width_;  // of the last row
    for (int row = width_; row <= last; row += width_) {
      at(row).start(3);
      for (int task = row + 1; task < row + width_; ++task)
        at(task).start((row > width_ ? 1 : 0) + (task > row + 1 ? 1 : 0));
    }
    for (int task = last + width_; task < last + 2 * width_; ++task) at(task).start(3);
    return {width_ + 1};
  }
  void execute(int task) { meet(field_[task - width_], field_[task - 1], field_[task], steps_); }
  /// Calls `f` for the tasks that `task` makes ready; first for the one that reads what the cache has.
  template <class function>
  void complete(int task, const function& f) {
    if (at(task + 1).complete()) f(task + 1);
    if (at(task + width_).complete()) f(task + width_);
  }

 private:
  open_inputs& at(int task) { return open_[std::size_t(task)]; }

  field& field_;
  int width_;
  long steps_;
  std::vector<open_inputs> open_;
};

/// A list per object leads through the places where it is read: number of the reading task and of its input.
class counted_random {
 public:
  counted_random(const problem&, field& f) : field_(f), nodes_(std::size_t(f.objects())) {}

  std::vector<int> start() {
    std::vector<int> ready;
    for (int task = ends; task < field_.objects(); ++task) {
      const auto& in = field_.inputs(task);
      int open = 0;
      for (int k = 0; k < ends; ++k) {
        const int input = in[std::size_t(k)];
        if (input < ends) continue;
        at(task).next[std::size_t(k)] = at(input).first;
        at(input).first = task * ends + k;
        ++open;
      }
      at(task).open.start(open);
      if (open == 0) ready.push_back(task);
    }
    return ready;
  }
  void execute(int task) {
    const auto& in = field_.inputs(task);
    gather(field_[in[0]], field_[in[1]], field_[in[2]], field_[task]);
  }
  template <class function>
  void complete(int task, const function& f) {
    for (int use = at(task).first; use != no_task;) {
      const int reader = use / ends;
      use = at(reader).next[std::size_t(use % ends)];
      if (at(reader).open.complete()) f(reader);
    }
  }

 private:
  static const int ends = random_inputs::ends;
  struct node {
    int first = no_task;
    std::array<int, ends> next{};
    open_inputs open;
  };
  node& at(int task) { return nodes_[std::size_t(task)]; }

  field& field_;
  std::vector<node> nodes_;
};

/// Executes a task, and, as long as there is one, a task that it made ready; calls `hand_on` with the others.
/// *Returns*: how many were executed.
template <class graph, class function>
long run_along(graph& g, int task, const function& hand_on) {
  long count = 0;
  while (task != no_task) {
    g.execute(task);
    ++count;
    int next = no_task;
    g.complete(task, [&](int ready) {
      if (next == no_task)
        next = ready;
      else
        hand_on(ready);
    });
    task = next;
  }
  return count;
}

/// Times `run(graph, tasks)`, which starts with the time when it begins and ends with all tasks; making what
/// the graph is kept in does not count.
template <class function>
outcome counted_outcome(const problem& p, const function& run) {
  return field_outcome(p, [&](const problem& q, field& f) {
    if (q.shape == random_graph) {
      counted_random g(q, f);
      return run(g, field::tasks(q));
    }
    counted_wavefront g(q, f);
    return run(g, field::tasks(q));
  });
}

}  // namespace weft_bench
