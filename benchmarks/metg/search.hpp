// SPDX-License-Identifier: BSL-1.0
// The search for the shortest body with which a rival is half efficient, and the main program of every rival.
#pragma once

#include "config.hpp"

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace weft_bench {

/// One run of the graph: its time, and the sum that the serial program's must equal.
struct timed_sum {
  double seconds;
  number sum;
};

/// What a rival whose workers are threads of one process has in common. A rival has `run(steps, fault)`
/// besides.
class threads_rival {
 public:
  explicit threads_rival(const graph_shape& s) : shape_(s) {}
  const graph_shape& shape() const { return shape_; }
  /// Whether this process prints.
  bool prints() const { return true; }
  /// What else is to be said about the last run.
  std::string note() const { return {}; }
  /// Runs `seconds()` on every core at once. *Returns*: the longest time.
  template <class function>
  double slowest(const function& seconds) const {
    std::vector<double> took(shape_.workers);
    std::atomic<unsigned> missing = shape_.workers;
    std::vector<std::thread> threads;
    for (double& t : took)
      threads.emplace_back([&] {
        // Relaxed, both: nothing is handed over, they only begin together.
        missing.fetch_sub(1, std::memory_order_relaxed);
        while (missing.load(std::memory_order_relaxed) != 0) std::this_thread::yield();
        t = seconds();
      });
    for (std::thread& t : threads) t.join();
    return *std::max_element(took.begin(), took.end());
  }

 private:
  graph_shape shape_;
};

/// Seconds of a step of a long body while all cores execute such bodies and nothing else. Each takes the
/// least of many trials, shorter than a time slice, so that other programs do not lengthen it: too long a
/// step would make one worker look like half of two.
template <class rival_type>
double seconds_per_step(const rival_type& r) {
  constexpr long steps = 40000;
  const double slowest = r.slowest([] {
    double least = 1;
    for (int trial = 0; trial < 1000; ++trial) {
      const stopwatch clock;
      static_cast<void>(opaque(work(number(trial), opaque(steps))));
      least = std::min(least, clock.seconds());
    }
    return least;
  });
  return slowest / double(steps);
}

/// Searches the minimum effective task granularity, METG(50 %): the steps of the shortest body with which
/// `run(steps)`, a timed_sum, does at least half of the work that all cores can do in that time.
/// `expected(steps)` is the sum that it must have. *Returns*: 0 if a millisecond is too short. *Throws*:
/// std::runtime_error, if a sum is wrong.
template <class run_function, class sum_function>
long shortest_body(const graph_shape& s, double step, const run_function& run, sum_function&& expected) {
  const double tasks = double(s.rows()) * s.columns;
  // The median of five runs decides, so three that agree do.
  const auto is_efficient = [&](long steps) {
    constexpr int majority = 3;
    int good = 0, bad = 0;
    while (good < majority && bad < majority) {
      const timed_sum found = run(steps);
      if (found.sum != expected(steps)) throw std::runtime_error("the result is not the serial program's");
      ++(tasks * double(steps) * step >= 0.5 * s.workers * found.seconds ? good : bad);
    }
    return good == majority;
  };
  static_cast<void>(is_efficient(1));  // warm-up
  long low = 0, high = 16;
  while (!is_efficient(high)) {
    low = high;
    high *= 2;
    if (double(high) * step > 1e-3) return 0;
  }
  while (high - low > std::max(1L, high / 32)) {
    const long middle = low + (high - low) / 2;
    (is_efficient(middle) ? high : low) = middle;
  }
  return high;
}

/// The sums of the serial program, computed once each.
class known_sums {
 public:
  explicit known_sums(const graph_shape& s) : shape_(s) {}
  number operator()(long steps) {
    const auto [at, fresh] = known_.try_emplace(steps, 0);
    if (fresh) at->second = serial_sum(shape_, steps);
    return at->second;
  }

 private:
  graph_shape shape_;
  std::map<long, number> known_;
};

/// Compares results for a few lengths of bodies, measures nothing; and gives the search made-up times.
template <class rival_type>
void check(rival_type& r, fault f) {
  const graph_shape& s = r.shape();
  known_sums expected(s);
  for (const long steps : {0L, 1L, 100L})
    for (int i = 0; i < 3; ++i)
      if (r.run(steps, f).sum != expected(steps))
        throw std::runtime_error("the result is not the serial program's");
  // Each task costs a body of 1000 steps besides its own.
  constexpr long overhead = 1000;
  const long found = shortest_body(
      s, 1e-9,
      [&](long steps) {
        const double tasks = double(s.rows()) * s.columns;
        return timed_sum{tasks * double(steps + overhead) * 1e-9 / s.workers, 0};
      },
      [](long) { return number(0); });
  if (found < overhead || found > overhead + overhead / 16)
    throw std::runtime_error("the search finds " + std::to_string(found) + " steps in place of " +
                             std::to_string(overhead));
}

/// The shape that the arguments from number `at` on say: inputs, columns, workers.
inline graph_shape shape_of(int argc, char** argv, int at) {
  graph_shape s;
  if (argc > at + 2)
    s = {std::atoi(argv[at]), std::atoi(argv[at + 1]), static_cast<unsigned>(std::atoi(argv[at + 2]))};
  if ((s.inputs != 3 && s.inputs != 5) || s.columns < 1 || s.workers < 1 || s.workers > 4096) {
    std::fprintf(stderr, "usage: %s ... 3|5 COLUMNS WORKERS [check|wrong-stamp|wrong-value]\n", argv[0]);
    std::exit(2);
  }
  return s;
}

/// Prints the microseconds of the shortest body (inf: there is none) and the rival's note, or, with a word
/// behind the shape, "right". *Returns*: the exit status of main().
template <class rival_type>
int measure(rival_type& r, const char* mode) {
  try {
    if (mode != nullptr) {
      const bool stamp = std::strcmp(mode, "wrong-stamp") == 0, value = std::strcmp(mode, "wrong-value") == 0;
      check(r, stamp ? fault::stamp : value ? fault::value : fault::none);
      if (r.prints()) std::puts("right");
      return 0;
    }
    const double step = seconds_per_step(r);
    known_sums expected(r.shape());
    const long steps =
        shortest_body(r.shape(), step, [&](long n) { return r.run(n, fault::none); }, expected);
    const double seconds = steps == 0 ? std::numeric_limits<double>::infinity() : step * double(steps);
    if (r.prints()) std::printf("%.4f %s\n", 1e6 * seconds, r.note().c_str());
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    std::_Exit(1);  // the other processes of a job end with this one
  }
}

}  // namespace weft_bench
