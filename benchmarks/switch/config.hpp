// SPDX-License-Identifier: BSL-1.0
// Changing from one stack to another, and resuming a body that waits for a child which runs elsewhere.
#pragma once

#include "rival.hpp"

#include <atomic>
#include <stdexcept>
#include <string>

namespace weft_bench {

static const char* const kernel_name = "switch";
static const char* const task_name = "switch";
static const char* const reference_name = "serial";

enum form { change_stacks, resume_waiting };

struct problem {
  const char* name;
  form what;
  int repetitions;
};

static const problem problems[] = {
    {"context-switch", change_stacks, 5},
    {"resume-after-sync", resume_waiting, 5},
};

/// context-switch: this many switches to and fro in all.
static const long switches = 10000000;

/// resume-after-sync: a body starts a child, gives another worker time to take it, and waits for it; the
/// child computes for a while, so that the body is surely suspended. Timed: from the child's last act to the
/// body's next. Rounds whose child was not taken in time do not count.
static const int wanted_rounds = 500;
static const int least_rounds = 20;
static const double most_seconds = 5;
static const double time_to_take = 0.01;
static const long child_steps = 200000;

inline unsigned long long compute() {
  unsigned long long x = opaque(1ull);
  for (long i = 0; i < child_steps; ++i) x = (x ^ (x >> 29)) * 6364136223846793005ull;
  return x;
}

/// One round, as its child and its body share it.
struct exchange {
  std::atomic<bool> started = false;
  unsigned long long value = 0;
  double ended = 0;

  void child() {
    started.store(true, std::memory_order_relaxed);  // only a sign of life; the join orders the rest
    value = compute();
    ended = now();
  }
  /// Whether another worker has taken the child.
  bool taken() const {
    const stopwatch waiting;
    while (!started.load(std::memory_order_relaxed))
      if (waiting.seconds() > time_to_take) return false;
    return true;
  }
};

/// Sum over all rounds.
class resumptions {
 public:
  bool enough() const { return count_ >= wanted_rounds || all_.seconds() > most_seconds; }

  /// A round that counts if `taken`; the body's first act after it waited was at `resumed`.
  void add(const exchange& x, bool taken, double resumed) {
    const double seconds = resumed - x.ended;
    if (x.value != expected_) throw std::runtime_error("a child computed a wrong value");
    if (!taken) return;
    seconds_ += seconds;
    ++count_;
  }
  outcome result() const {
    if (count_ < least_rounds)
      throw std::runtime_error("only " + std::to_string(count_) +
                               " bodies waited for a child on another worker");
    return plain_outcome(static_cast<long long>(expected_ >> 1), count_, seconds_);
  }

 private:
  stopwatch all_;
  unsigned long long expected_ = compute();
  double seconds_ = 0;
  int count_ = 0;
};

}  // namespace weft_bench
