// SPDX-License-Identifier: BSL-1.0
// The first request of a process, which lets the forks of all its tasks defer; alone in a process of its own.
#include "flow/runtimes.hpp"

#include <weft/orwl.hpp>

#include <atomic>
#include <thread>

TEST_CASE("from the first request on, forks defer, also those of tasks that run already") {
  if (WEFT_RACES) return;
  weft::orwl::location<int> l(0);
  weft::runtime rt({.workers = 1}), other({.workers = 1});
  std::atomic<bool> begun{false}, requested{false};
  const auto runs_inside_fork = [] {
    bool ran = false;
    weft::fork([&] { ran = true; });
    const bool now = ran;
    weft::sync();
    return now && ran;
  };
  bool before = false, after = true, beside_before = false, beside_after = true, met = false;
  std::thread beside([&] {
    other.run([&] {
      beside_before = runs_inside_fork();
      begun = true;
      met = weft_test::wait_until([&] { return requested.load(); });
      beside_after = runs_inside_fork();
    });
  });
  rt.run([&] {
    weft_test::wait_until([&] { return begun.load(); });
    before = runs_inside_fork();
    weft::orwl::handle<int> h;
    h.request_write(l);
    requested = true;
    after = runs_inside_fork();
    h.acquire();
    h.write() = 1;
  });
  beside.join();
  CHECK(met);
  CHECK(before);
  CHECK(beside_before);
  CHECK_FALSE(after);
  CHECK_FALSE(beside_after);
  CHECK(l.get() == 1);
  bool later = true;
  rt.run([&] { later = runs_inside_fork(); });
  CHECK_FALSE(later);
}
