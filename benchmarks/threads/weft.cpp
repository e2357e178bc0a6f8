// SPDX-License-Identifier: BSL-1.0
// weft's mutex, condition, channel and barrier, with spawned bodies.
#include "config.hpp"
#include "weft_outcome.hpp"

#include <weft/threads.hpp>
#include <weft/weft.hpp>

namespace weft_bench {
namespace {

outcome run_alone(int index, weft::runtime& rt) {
  const long long n = problems[index].count;
  weft::mutex m;
  weft::condition<long long> value(0);
  long long counted = 0;
  return timed_run(
      rt, n, [&] { return counted; },
      [&] {
        if (is(index, lock)) {
          for (long long i = 0; i < n; ++i) {
            m.lock();
            ++counted;
            something();
            m.unlock();
          }
        } else {
          for (long long i = 1; i <= n; ++i) value.set(i);
          counted = value.get();
        }
      });
}

outcome run_ping_pong(int index, weft::runtime& rt) {
  const long long n = problems[index].count;
  weft::condition<int> turn(0);
  long long turns[2] = {0, 0};
  return timed_run(
      rt, n, [&] { return turns[0] + turns[1]; },
      [&] {
        for (int me = 0; me < 2; ++me)
          weft::spawn([&, me] {
            for (long long i = 0; i < n / 2; ++i) {
              turn.wait_equal(me);
              ++turns[me];
              turn.set(1 - me);
            }
          });
      });
}

outcome run_queue(int index, weft::runtime& rt) {
  const long long n = problems[index].count;
  weft::channel<long long> items(capacity);
  long long sum = 0;
  return timed_run(
      rt, n, [&] { return sum; },
      [&] {
        weft::spawn([&] {
          for (long long i = 0; i < n; ++i) items.push(i);
          items.close();
        });
        weft::spawn([&] {
          while (const auto i = items.pop()) sum += *i;
        });
      });
}

outcome run_crowd(int index, unsigned workers) {
  const long long n = problems[index].count;
  weft::runtime rt({.workers = workers, .stack_size = stack_bytes});
  rt.run([] {});
  weft::latch all(n);
  long long passed = 0;
  weft::mutex m;
  return timed_run(
      rt, n, [&] { return passed; },
      [&] {
        for (long long i = 0; i < n; ++i)
          weft::spawn([&] {
            all.arrive_and_wait();
            const std::lock_guard hold(m);
            ++passed;
          });
      });
}

outcome run(int index, unsigned workers) {
  if (is(index, crowd)) return run_crowd(index, workers);
  weft::runtime rt({.workers = workers});
  rt.run([] {});
  if (takes_one(index)) return run_alone(index, rt);
  return is(index, ping_pong) ? run_ping_pong(index, rt) : run_queue(index, rt);
}

bool fits(int index, unsigned workers) { return workers == 1 || !takes_one(index); }

const registration entry("weft", run, fits);

}  // namespace
}  // namespace weft_bench
