// SPDX-License-Identifier: BSL-1.0
// What must end the process does so with a sentence: violated contracts and stack overflow, each in a child
// process that makes the first runtime of its own.
#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"

#include <weft/weft.hpp>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdio>

using weft_test::child_result;
using weft_test::contains;
using weft_test::run_in_child;

namespace {

/// Checks that f aborts with a sentence of the library that contains `word`.
template <class F>
void check_dies(const char* word, F&& f) {
  const child_result r = run_in_child(f);
  INFO("printed: " << r.output);
  CHECK(r.aborted());
  CHECK_THAT(r.output, contains("weft: "));
  CHECK_THAT(r.output, contains(word));
}

/// Uses about `bytes` of stack, a little per call, so that no call can jump over a guard page.
WEFT_TEST_OVERFLOWS [[gnu::noinline]] std::size_t use_stack(std::size_t bytes) {
  char here[256];
  here[0] = static_cast<char>(bytes);
  asm volatile("" : : "r"(here) : "memory");  // or the compiler keeps less of it
  const std::size_t frame = 256;
  if (bytes < frame) return static_cast<std::size_t>(here[0]);
  const std::size_t below = use_stack(bytes - frame);
  asm volatile("" : : "r"(here) : "memory");  // nor may it become a loop
  return below + static_cast<std::size_t>(here[0]);
}

std::atomic<std::size_t> sink{0};
int* volatile nowhere = nullptr;

}  // namespace

TEST_CASE("sync outside a task stops the program") {
  check_dies("sync", [] { weft::sync(); });
  check_dies("sync", [] {
    weft::runtime rt({.workers = 1});
    rt.run([] {});
    weft::sync();
  });
}

TEST_CASE("fork outside a task stops the program") {
  check_dies("fork", [] { weft::fork([] {}); });
  check_dies("fork", [] {
    weft::shared<int> a(1);
    weft::fork([](int&) {}, weft::update(a));
  });
}

TEST_CASE("get of a value that nobody gave stops the program") {
  check_dies("get", [] {
    const weft::shared<int> a;
    std::printf("%d\n", a.get());
  });
  check_dies("get", [] {
    weft::runtime rt({.workers = 1});
    rt.run([] {
      const weft::shared<int> a;
      std::printf("%d\n", a.get());
    });
  });
}

TEST_CASE("get of a result before sync stops the program") {
  check_dies("", [] {  // the sentence depends on whether the build checks the use of rights
    weft::runtime rt({.workers = 1, .inlining = false});
    rt.run([] {
      auto a = weft::fork([] { return 1; });
      std::printf("%d\n", a.get());
    });
  });
}

TEST_CASE("stack overflow in a task is named") {
  const auto overflow = [](unsigned workers, bool inlining) {
    return run_in_child([=] {
      weft::runtime rt({.workers = workers, .stack_size = 128 * 1024, .inlining = inlining});
      rt.run([] {
        weft::fork([] {});
        weft::fork({.name = "abyss"}, [] { sink = use_stack(std::size_t{1} << 40); });
        weft::sync();
      });
    });
  };
  for (const unsigned workers : {1u, 3u})
    for (const bool inlining : {true, false}) {
      INFO("workers " << workers << ", inlining " << inlining);
      const child_result r = overflow(workers, inlining);
      INFO("printed: " << r.output);
      CHECK(r.exit_code != 0);  // by a signal or with a status
      CHECK(r.signal != SIGALRM);
      CHECK_THAT(r.output, contains("stack"));
      if (!weft_test::sanitized) CHECK_THAT(r.output, contains("abyss"));
    }
}

TEST_CASE("stack overflow of a body that waited is named") {
  const child_result r = run_in_child([] {
    weft::runtime rt({.workers = 2, .stack_size = 128 * 1024, .inlining = false});
    rt.run([&] {
      weft::fork({.name = "abyss"}, [&] {
        const auto before = rt.counters().suspensions;
        std::atomic<bool> started{false};
        weft::fork([&] {
          started = true;
          weft_test::wait_until([&] { return rt.counters().suspensions > before; });
        });
        weft_test::wait_until([&] { return started.load(); });
        weft::sync();
        sink = use_stack(std::size_t{1} << 40);
      });
    });
  });
  INFO("printed: " << r.output);
  CHECK(r.exit_code != 0);
  CHECK(r.signal != SIGALRM);
  CHECK_THAT(r.output, contains("stack"));
  if (!weft_test::sanitized) CHECK_THAT(r.output, contains("abyss"));
}

TEST_CASE("a task that uses most of its stack does not overflow it") {
  if (weft_test::sanitized) return;  // sanitizers make frames larger
  const child_result r = run_in_child([] {
    weft::runtime rt({.workers = 2, .stack_size = 256 * 1024, .inlining = false});
    rt.run([] { weft::fork([] { sink = use_stack(128 * 1024); }); });
    std::printf("high water %d\n", rt.counters().stack_high_water >= 64 * 1024);
  });
  INFO("printed: " << r.output);
  CHECK(r.exit_code == 0);
  CHECK(r.output == "high water 1\n");
}

TEST_CASE("an ordinary invalid access is not reported as a stack overflow") {
  if (weft_test::sanitized) return;  // the sanitizer reports it in its own words
  const child_result r = run_in_child([] {
    weft::runtime rt({.workers = 2});
    rt.run([] { weft::fork({.name = "null"}, [] { *nowhere = 1; }); });
  });
  INFO("printed: " << r.output);
  CHECK(r.signal == SIGSEGV);
  CHECK(r.output.find("overflow") == std::string::npos);
}
