// SPDX-License-Identifier: BSL-1.0
// The smallest task at which a runtime still keeps half of the processors busy, on a three-point stencil.
#pragma once

#include "config.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <vector>

namespace weft_bench {

/// Task (t, i) computes cell i of row t from cells i - 1, i and i + 1 of row t - 1. Two rows take turns. The
/// cells at both ends are only read.
class cells {
 public:
  explicit cells(int width) : width_(width) {
    for (auto& row : row_) row.resize(std::size_t(width) + 2);
    for (int i = 0; i < width + 2; ++i)
      for (auto& row : row_) row[std::size_t(i)].value = number(i);
  }
  int width() const { return width_; }
  /// Cell i of row t; cells 0 and width + 1 are the ends.
  number& at(int t, int i) { return row_[std::size_t(t % 2)][std::size_t(i)].value; }
  number sum() const {
    number s = 0;
    for (const auto& row : row_)
      for (const cell& c : row) s = s * 31 + c.value;
    return s;
  }

 private:
  struct alignas(64) cell {
    number value = 0;
  };
  int width_;
  std::array<std::vector<cell>, 2> row_;
};

/// A task of the stencil.
inline void blend(const number& left, const number& middle, const number& right, number& out, long steps) {
  out = work(left + 3 * middle + 5 * right, steps);
}

inline void serial_stencil(cells& c, int rows, long steps) {
  for (int t = 1; t <= rows; ++t)
    for (int i = 1; i <= c.width(); ++i)
      blend(c.at(t - 1, i - 1), c.at(t - 1, i), c.at(t - 1, i + 1), c.at(t, i), steps);
}

/// Searches the minimum effective task granularity (METG) of `run(cells, rows, steps)`, which executes the
/// stencil with tasks of so many steps and may return the time that counts. *Source*: Task Bench (Slaughter
/// et al., 2020), section IV.
template <class function>
class granularity_search {
 public:
  granularity_search(const problem& p, unsigned workers, const function& run)
      : run_(run), rows_(p.size), workers_(workers), width_(2 * int(workers)) {
    seconds_per_step_ = 1;
    for (int i = 0; i < 20; ++i) {
      const stopwatch clock;
      static_cast<void>(opaque(work(number(i), opaque(100000L))));
      seconds_per_step_ = std::min(seconds_per_step_, clock.seconds() / 100000);
    }
  }

  /// The outcome's time is that of one task; its value says whether all results were right.
  outcome result() {
    static_cast<void>(is_efficient(1));
    long high = 16, low = 0;
    while (!is_efficient(high)) {
      low = high;
      high *= 2;
      if (double(high) * seconds_per_step_ > 1e-3)
        throw std::runtime_error("half efficient at no size of tasks up to a millisecond");
    }
    while (high - low > std::max(1L, high / 32)) {
      const long middle = low + (high - low) / 2;
      (is_efficient(middle) ? high : low) = middle;
    }
    return plain_outcome(right_ ? 1 : 0, 1, double(high) * seconds_per_step_);
  }

 private:
  /// Whether the median of five runs is half efficient: three of them decide.
  bool is_efficient(long steps) {
    constexpr int majority = 3;
    const double busy = double(rows_) * width_ * double(steps) * seconds_per_step_;
    int good = 0, bad = 0;
    while (good < majority && bad < majority) {
      cells c(width_);
      const double seconds = seconds_of_call([&] { return run_(c, rows_, steps); });
      if (c.sum() != expected(steps)) right_ = false;
      ++(busy >= 0.5 * workers_ * seconds ? good : bad);
    }
    return good == majority;
  }
  number expected(long steps) {
    const auto [at, fresh] = known_.try_emplace(steps, 0);
    if (fresh) {
      cells c(width_);
      serial_stencil(c, rows_, steps);
      at->second = c.sum();
    }
    return at->second;
  }

  const function& run_;
  int rows_;
  unsigned workers_;
  int width_;
  double seconds_per_step_;
  std::map<long, number> known_;
  bool right_ = true;
};

/// The outcome of `run(cells)`, which executes a stencil of p.size rows and columns p.rounds times with tasks
/// of no steps, and may return the time that counts.
template <class function>
outcome repeated_outcome(const problem& p, const function& run) {
  cells warm(p.size), c(p.size);
  run(warm);
  const double seconds = seconds_of_call([&] { return run(c); });
  return plain_outcome(static_cast<long long>(c.sum() >> 1), 1LL * p.size * p.size * p.rounds, seconds);
}

template <class function>
outcome smallest_task(const problem& p, unsigned workers, const function& run) {
  return granularity_search<function>(p, workers, run).result();
}

}  // namespace weft_bench
