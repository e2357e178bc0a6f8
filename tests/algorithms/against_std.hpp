// SPDX-License-Identifier: BSL-1.0
// Random ranges of many sizes on runtimes of many shapes, and values whose operations do not commute.
#pragma once

#include "flow/runtimes.hpp"
#include "support/environment.hpp"
#include "support/random.hpp"

#include <weft/algorithms.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace weft_test {

using number = std::uint64_t;

/// Calls f(runtime, n, random) with sizes at the edges and others, on runtimes with 1 to 8 workers.
template <class F>
void on_all_sizes(std::size_t largest, const F& f) {
  if (sanitized) largest /= 8;
  random r(seed() + largest);
  for (const unsigned workers : {1u, 2u, 3u, 5u, 8u}) {
    weft::runtime rt({.workers = workers, .inlining = workers != 3});
    std::vector<std::size_t> sizes{0, 1, 2, 3, 4, 7, 15, 16, 17, 31, 33, 100, largest};
    for (int i = 0; i < 4; ++i) sizes.push_back(std::size_t(r.below(largest)));
    for (const std::size_t n : sizes)
      if (n <= largest) {
        INFO("seed " << seed() << ", workers " << workers << ", size " << n);
        f(rt, n, r);
      }
  }
}

inline std::vector<number> numbers(std::size_t n, random& r, number below) {
  std::vector<number> v(n);
  for (number& e : v) e = r.below(below);
  return v;
}

/// x to a x + b: composition is associative, and does not commute.
struct affine {
  number a = 1, b = 0;
  friend affine operator+(const affine& f, const affine& g) { return {f.a * g.a, f.b * g.a + g.b}; }
  friend bool operator==(const affine&, const affine&) = default;
};

/// Several microseconds, so that others have time to come.
inline void dawdle() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(8);
  while (std::chrono::steady_clock::now() < until) {
  }
}

inline affine affine_of(number x) {
  if (x % 512 == 5) dawdle();
  return {2 * x + 1, x * x + 7};
}

/// Where functions wait until two kernel threads have called them at some time: so that there are steals.
class company {
 public:
  void await() {
    const long me = kernel_thread();
    long first = 0;
    if (first_.compare_exchange_strong(first, me)) first = me;
    if (first != me) met_ = true;
    if (!met_ && !gave_up_ && !wait_until([this] { return met_.load(); })) gave_up_ = true;
  }
  bool met() const { return met_; }

 private:
  std::atomic<long> first_{0};
  std::atomic<bool> met_{false}, gave_up_{false};
};

/// A value that can be moved and not copied.
struct only_moved {
  std::unique_ptr<number> value;
  only_moved() = default;
  explicit only_moved(number x) : value(std::make_unique<number>(x)) {}
  number get() const { return value ? *value : 0; }
};

/// What f throws, as a number; -1: nothing.
template <class F>
long thrown_by(const F& f) {
  try {
    f();
  } catch (const long& e) {
    return e;
  }
  return -1;
}

}  // namespace weft_test
