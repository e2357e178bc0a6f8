// SPDX-License-Identifier: BSL-1.0
// Cancellation: a task that has found what all are looking for stops the run; what has not started is
// dropped.
//
// Prints:
//   a divisor of 1000036000099 is 1000003
//   stopped from outside: yes

#include <weft/weft.hpp>

#include <atomic>
#include <cstdio>
#include <stop_token>

static constexpr long n = 1000036000099;  // 1000003 * 1000033

static void search(long from, long to, std::atomic<long>& found) {
  for (long d = from; d < to; d += 2)
    if (n % d == 0) {
      found = d;
      weft::this_task::request_stop();
      return;
    }
}

int main() {
  weft::runtime rt;
  std::atomic<long> found = 0;
  try {
    rt.run([&] {
      for (long from = 3; from * from <= n; from += 10000)
        weft::fork([&found, from] { search(from, from + 10000, found); });
    });
  } catch (const weft::cancelled&) {
    std::printf("a divisor of %ld is %ld\n", n, found.load());
  }

  std::stop_source source;
  source.request_stop();
  try {
    rt.run({.stop = source.get_token()}, [] {});
  } catch (const weft::cancelled&) {
    std::printf("stopped from outside: yes\n");
  }
}
