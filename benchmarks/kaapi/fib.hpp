// SPDX-License-Identifier: BSL-1.0
// Fibonacci as the paper has it: every call is a task that writes a shared object, down to a threshold.
#pragma once

#include <weft/weft.hpp>

namespace weft_bench {

inline constexpr long threshold = 2;  // below it a call forks nothing

/// Called once for each task, with what it computes; the simulation charges time there.
template <class Charge>
struct fib {
  static void sum(weft::read<long> a, weft::read<long> b, weft::write<long> r) {
    Charge::task();
    r = *a + *b;
  }
  static void call(long n, weft::write<long> r) {
    Charge::task();
    if (n < threshold) {
      r = n;
      return;
    }
    weft::shared<long> a, b;
    weft::fork(call, n - 1, a);
    weft::fork(call, n - 2, b);
    weft::fork(sum, a, b, r);
  }
  static long all(long n) {
    weft::shared<long> r;
    weft::fork(call, n, r);
    weft::sync();
    return r.get();
  }
};

}  // namespace weft_bench
