// SPDX-License-Identifier: BSL-1.0
// Where workers run: pinned to processors, refused by the kernel, moved from outside; and how many there are.
#include "flow/runtimes.hpp"
#include "support/environment.hpp"

#include <weft/system/cpu_count.hpp>

#include <sched.h>

#include <array>
#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <system_error>
#include <vector>

using weft_test::contains;
using weft_test::fork_to_thief;
using weft_test::kernel_thread;

namespace {

constexpr unsigned pretended = 60'000;  ///< a processor that this machine does not have
std::atomic<bool> pretends{false};

/// Keeps two workers inside tasks of their own at the same time, where each calls `f`.
template <class F>
void on_two_workers(weft::runtime& rt, F&& f) {
  rt.run([&] {
    CHECK(fork_to_thief(f));
    f();
  });
}

/// A tree of tasks that thieves take parts of.
long fib(int n) {
  if (n < 2) return n;
  auto a = weft::fork(fib, n - 1);
  const long b = fib(n - 2);
  weft::sync();
  return a.get() + b;
}

}  // namespace

// In place of the C library's: a kernel that says of a processor that we may use it, and refuses it then.
extern "C" int sched_getaffinity(pid_t thread, std::size_t bytes, cpu_set_t* mask) noexcept {
  std::memset(mask, 0, bytes);
  if (!pretends) return syscall(SYS_sched_getaffinity, thread, bytes, mask) < 0 ? -1 : 0;
  if (bytes * 8 <= pretended) {
    errno = EINVAL;
    return -1;
  }
  CPU_SET_S(pretended, bytes, mask);
  return 0;
}

TEST_CASE("workers run where they are pinned, and nowhere else") {
  const weft_test::scoped_variable unset("WEFT_PINNING", nullptr);
  const std::vector<unsigned> mask = weft::base::affinity_mask();
  const std::vector<unsigned> wanted{mask.back(), mask.front()};
  for (const weft::pinning& p : {weft::pinning(wanted), weft::pinning(weft::pinning::compact),
                                 weft::pinning(weft::pinning::scatter)}) {
    weft::runtime rt({.workers = 2, .pinning = p});
    const std::vector<int> processors = rt.processors();
    REQUIRE(processors.size() == 2);
    if (p.which() == weft::pinning::listed)
      CHECK(processors == std::vector<int>(wanted.begin(), wanted.end()));
    std::atomic<int> strays{0}, looks{0};
    on_two_workers(rt, [&] {
      const int here = sched_getcpu();
      ++looks;
      strays += here != processors[0] && here != processors[1];
      strays += weft::base::affinity_cpus() != 1;
    });
    CHECK(looks == 2);
    CHECK(strays == 0);
  }
}

TEST_CASE("more workers than processors share them in turn") {
  const weft_test::scoped_variable unset("WEFT_PINNING", nullptr);
  const unsigned one = weft::base::affinity_mask().front();
  weft::runtime rt({.workers = 3, .pinning = {one}});
  CHECK(rt.processors() == std::vector<int>(3, static_cast<int>(one)));
  std::atomic<int> sum{0};
  rt.run([&] {
    for (int i = 0; i < 100; ++i) weft::fork([&] { ++sum; });
  });
  CHECK(sum == 100);
}

TEST_CASE("without pinning the kernel chooses") {
  const weft_test::scoped_variable unset("WEFT_PINNING", nullptr);
  const unsigned cpus = weft::base::affinity_cpus();
  weft::runtime rt({.workers = 2});
  CHECK(rt.processors() == std::vector<int>{-1, -1});
  CHECK(rt.run([] { return weft::base::affinity_cpus(); }) == cpus);
}

TEST_CASE("a processor that the kernel refuses is named, and nothing is left of the runtime") {
  const weft_test::scoped_variable unset("WEFT_PINNING", nullptr);
  pretends = true;
  std::string said;
  try {
    const weft::runtime rt({.workers = 2, .pinning = {pretended}});
  } catch (const std::system_error& e) {
    CHECK(e.code() == std::errc::invalid_argument);
    said = e.what();
  }
  pretends = false;
  CHECK_THAT(said, contains("weft: worker 0 cannot be pinned to processor 60000"));
  CHECK(weft::runtime({.workers = 2}).run([] { return 7; }) == 7);
}

TEST_CASE("workers that are moved from outside go on elsewhere, and processors() says so") {
  // What the kernel does to a thread when its only processor is taken away: it may run on all that are left.
  const weft_test::scoped_variable unset("WEFT_PINNING", nullptr);
  const std::vector<unsigned> mask = weft::base::affinity_mask();
  if (mask.size() < 2) return;
  weft::runtime rt({.workers = 2, .pinning = {mask[0], mask[0]}});
  cpu_set_t left;
  CPU_ZERO(&left);
  for (const unsigned p : mask)
    if (p < CPU_SETSIZE) CPU_SET(p, &left);
  std::array<std::atomic<long>, 2> threads{};
  std::atomic<std::size_t> begun{0}, known{0};
  std::atomic<bool> moved{false};
  std::atomic<int> sum{0};
  std::thread mover([&] {
    if (weft_test::wait_until([&] { return known == 2; }))
      for (const auto& thread : threads) sched_setaffinity(static_cast<pid_t>(thread), sizeof left, &left);
    moved = true;
  });
  on_two_workers(rt, [&] {
    threads[begun++] = kernel_thread();
    ++known;
    weft_test::wait_until([&] { return moved.load(); });
    for (int i = 0; i < 1000; ++i) weft::fork([&] { ++sum; });
  });
  mover.join();
  CHECK(sum == 2000);
  CHECK(rt.processors() == std::vector<int>{-1, -1});
}

TEST_CASE("a runtime is resized between runs, any number of times") {
  const weft_test::scoped_variable unset("WEFT_WORKERS", nullptr);
  weft::runtime rt({.workers = 1, .spin = std::chrono::microseconds(0)});
  std::uint64_t steals = 0, deferred = 0;
  std::size_t contexts = 0;
  for (const unsigned n : {4u, 1u, 2u, 2u, 8u, 3u, 1u, 5u}) {
    rt.resize(n);
    CHECK(rt.workers() == n);
    CHECK(rt.processors().size() == n);
    CHECK(rt.run(fib, 16) == 987);
    if (n > 1) CHECK(rt.run([] { return fork_to_thief([] {}); }));
    const weft::counters now = rt.counters();
    CHECK(now.steals >= steals + (n > 1));  // totals go on
    CHECK(now.deferred >= deferred);
    CHECK(now.contexts > contexts);
    steals = now.steals;
    deferred = now.deferred;
    contexts = now.contexts;
  }
  rt.resize(0);
  CHECK(rt.workers() == weft::base::usable_cpus());
}

TEST_CASE("resizing to 0 asks anew how many processors there are") {
  const weft_test::scoped_variable unset("WEFT_WORKERS", nullptr);
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  weft::runtime rt({.workers = 3});
  rt.resize(0);
  const unsigned all = rt.workers();
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  rt.resize(0);
  CHECK(rt.workers() == 1);
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
  rt.resize(0);
  CHECK(rt.workers() == all);
}

TEST_CASE("a runtime is resized right behind a run, whatever its thieves still have to do") {
  weft::runtime rt({.workers = 4});
  for (unsigned round = 0; round < 100; ++round) {
    rt.run([] {
      for (int i = 0; i < 20; ++i) weft::fork([] { std::this_thread::yield(); });
    });
    CHECK_NOTHROW(rt.resize(4 - round % 2));
  }
}

TEST_CASE("objects and recorded graphs outlive the workers that have used them") {
  weft::runtime rt({.workers = 2, .inlining = false});
  weft::shared<int> object(0);
  weft::recorded step;
  for (const unsigned n : {3u, 1u, 2u}) {
    rt.run([&] {
      for (int k = 0; k < 5; ++k)
        step([&] {
          for (int i = 0; i < 100; ++i) weft::fork([](weft::update<int> v) { ++*v; }, object);
        });
    });
    rt.resize(n);
  }
  CHECK(object.get() == 1500);
}

TEST_CASE("a runtime is not resized while a run is active, nor to nonsense, and stays as it was") {
  const weft_test::scoped_variable unset("WEFT_WORKERS", nullptr);
  weft::runtime rt({.workers = 2});
  std::string said;
  rt.run([&] {
    try {
      rt.resize(3);
    } catch (const weft::error& e) {
      said = e.what();
    }
  });
  CHECK(said == "weft: resize() was called while a run is going on; call it between runs");
  CHECK_THROWS_AS(rt.resize(5000), weft::option_error);
  CHECK(rt.workers() == 2);
  CHECK(rt.run(fib, 10) == 55);
  weft::runtime other({.workers = 1});
  other.run([&] { rt.resize(1); });  // another runtime's task may
  CHECK(rt.workers() == 1);
  CHECK(rt.run(fib, 10) == 55);
}

TEST_CASE("resizing obeys the environment, and pins the new workers") {
  const std::vector<unsigned> mask = weft::base::affinity_mask();
  weft::runtime rt({.workers = 1, .pinning = {mask.front()}});
  rt.resize(3);
  if (std::getenv("WEFT_PINNING") == nullptr && std::getenv("WEFT_WORKERS") == nullptr)
    CHECK(rt.processors() == std::vector<int>(3, static_cast<int>(mask.front())));
  const weft_test::scoped_variable serial("WEFT_WORKERS", "1");
  rt.resize(3);
  CHECK(rt.workers() == 1);
}
