// SPDX-License-Identifier: BSL-1.0
// The surroundings: one CPU, POSIX fork, the end of the process, many runtimes.
#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/environment.hpp"
#include "support/scratch.hpp"

#include <weft/append.hpp>
#include <weft/weft.hpp>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

using weft_test::child_result;
using weft_test::contains;
using weft_test::run_in_child;
using weft_test::wait_until;
using weft_test::works;

namespace {

/// Confines this process to the first CPU it may use.
void use_one_cpu() {
  cpu_set_t may;
  sched_getaffinity(0, sizeof may, &may);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &may)) {
      CPU_ZERO(&may);
      CPU_SET(cpu, &may);
      break;
    }
  if (sched_setaffinity(0, sizeof may, &may) != 0) std::_Exit(98);
}

/// Runs f in a POSIX child of a process that may have threads, and waits for it; what it prints goes where
/// ours does.
template <class F>
int forked(F&& f) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    alarm(20);  // a hang ends the child by a signal
    f();
    std::fflush(nullptr);
    ::_exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

long entries(const char* directory) {
  return std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator());
}

long lines(const char* file) {
  std::ifstream in(file);
  return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
}

}  // namespace

TEST_CASE("a process confined to one CPU gets one worker") {
  const child_result r = run_in_child([] {
    use_one_cpu();
    weft::runtime rt;
    std::printf("workers %u works %d\n", rt.workers(), works(rt));
  });
  CHECK(r.exit_code == 0);
  CHECK(r.output == "workers 1 works 1\n");
}

TEST_CASE("sixteen workers on one CPU compute the right thing") {
  const child_result r = run_in_child([] {
    use_one_cpu();
    weft::runtime rt({.workers = 16, .inlining = false});
    bool right = true;
    for (int i = 0; i < 30; ++i) right = works(rt) && right;
    rt.run([&] {
      std::atomic<bool> started{false};
      weft::fork([&] { started = true; });
      right = weft_test::wait_until([&] { return started.load(); }) && right;  // only a thief can start it
      weft::sync();
    });
    std::printf("works %d steals %d\n", right, rt.counters().steals > 0);
  });
  CHECK(r.exit_code == 0);
  CHECK(r.output == "works 1 steals 1\n");
}

TEST_CASE("the processors of a process may be taken away while it runs") {
  const child_result r = run_in_child([] {
    weft::runtime rt({.workers = 4, .inlining = false});
    std::atomic<bool> stop{false};
    std::thread taker([&stop] {  // as an administrator would: every thread, from outside
      for (bool one = true; !stop.load(); one = !one) {
        cpu_set_t some;
        CPU_ZERO(&some);
        for (unsigned i = 0; i < (one ? 1u : CPU_SETSIZE); ++i) CPU_SET(i, &some);
        for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
          sched_setaffinity(std::atoi(thread.path().filename().c_str()), sizeof some, &some);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    bool right = true;
    for (int i = 0; i < 200; ++i) right = works(rt) && right;
    stop = true;
    taker.join();
    std::printf("works %d\n", right);
  });
  CHECK(r.exit_code == 0);
  CHECK(r.output == "works 1\n");
}

TEST_CASE("after POSIX fork the child gets an error from its parent's runtime, and may make its own") {
  if (weft_test::thread_sanitized) return;
  const child_result r = run_in_child([] {
    auto rt = std::make_unique<weft::runtime>(weft::runtime_options{.workers = 2});
    std::printf("parent %d\n", works(*rt));
    const int status = forked([&] {
      try {
        rt->run([] {});
        std::printf("no error\n");
      } catch (const weft::error& e) {
        std::printf("error '%s'\n", e.what());
      }
      rt.reset();
      weft::runtime own({.workers = 2});
      std::printf("own %d\n", works(own));
    });
    std::printf("child %d parent %d\n", status, works(*rt));
  });
  CHECK(r.exit_code == 0);
  CHECK_THAT(r.output, contains("parent 1\nerror '"));
  CHECK_THAT(r.output, contains("fork"));
  CHECK_THAT(r.output, contains("own 1\nchild 0 parent 1\n"));
}

TEST_CASE("after POSIX fork the child may write a file durably, as its parent has done") {
  const weft_test::scratch in;
  const child_result r = run_in_child([&] {
    const auto write = [&](const char* name) {
      weft::runtime rt({.workers = 2});
      weft::append_file file(in / name, {.buffer = 4096, .commit_every = 4096, .durable = true});
      rt.run(
          [](weft::append out) {
            for (int i = 0; i < 20; ++i)
              weft::fork([](weft::append to) { to.write(std::string(4096, 'x')); }, out);
          },
          file);
      const bool committed = file.committed() > 0;
      file.close();
      return committed;
    };
    std::printf("parent %d\n", write("parent"));
    const int status = forked([&] { std::printf("own %d\n", write("child")); });
    std::printf("child %d parent %d\n", status, write("again"));
  });
  CHECK(r.exit_code == 0);
  CHECK(r.output == "parent 1\nown 1\nchild 0 parent 1\n");
}

TEST_CASE("after POSIX fork the child may destroy its parent's runtime at once, or leave it to exit") {
  if (weft_test::thread_sanitized) return;
  const child_result r = run_in_child([] {
    static auto rt = std::make_unique<weft::runtime>(weft::runtime_options{.workers = 3});
    std::printf("parent %d\n", works(*rt));
    int status = forked([] { rt.reset(); });
    std::printf("destroyed %d\n", status);
    status = forked([] { std::exit(0); });
    std::printf("exited %d parent %d\n", status, works(*rt));
  });
  CHECK(r.exit_code == 0);
  CHECK_THAT(r.output, contains("parent 1\ndestroyed 0\n"));
  CHECK_THAT(r.output, contains("exited 0 parent 1\n"));
}

TEST_CASE("a POSIX fork while the runtime is busy does not hang either process") {
  if (weft_test::thread_sanitized) return;
  const child_result r = run_in_child([] {
    weft::runtime rt({.workers = 3});
    std::atomic<int> bad{0};
    std::thread busy([&] {
      for (int i = 0; i < 200; ++i) bad += rt.run(weft_test::fib, 15L) != 610;
    });
    for (int i = 0; i < 20; ++i)
      bad += forked([&] {
               try {
                 rt.run([] {});
                 ::_exit(1);
               } catch (const weft::error&) {
               }
               weft::runtime own({.workers = 2});
               if (!works(own)) ::_exit(2);
             }) != 0;
    busy.join();
    std::printf("bad %d works %d\n", bad.load(), works(rt));
  });
  CHECK(r.exit_code == 0);
  CHECK(r.output == "bad 0 works 1\n");
}

TEST_CASE("a process may end with a runtime alive in a static, or never destroyed") {
  const child_result in_static = run_in_child([] {
    static weft::runtime rt({.workers = 3});
    std::printf("works %d\n", works(rt));
    std::exit(0);
  });
  CHECK(in_static.exit_code == 0);
  CHECK_THAT(in_static.output, contains("works 1\n"));
  const child_result leaked = run_in_child([] {
    static weft::runtime* rt = new weft::runtime({.workers = 3});
    std::printf("works %d\n", works(*rt));
    std::exit(0);
  });
  CHECK(leaked.exit_code == 0);
  CHECK_THAT(leaked.output, contains("works 1\n"));
}

TEST_CASE("thousands of runtimes leave nothing behind") {
  const child_result r = run_in_child([] {
    const auto round = [](unsigned i) {
      weft::runtime rt({.workers = 1 + i % 3});
      if (i % 2 == 0 && !works(rt)) std::exit(1);
    };
    for (unsigned i = 0; i < 12; ++i) round(i);
    const auto ended = [] {
      return entries("/proc/self/task") == 1;
    };  // those joined may be listed for a moment
    const bool alone = wait_until(ended);
    const long files = entries("/proc/self/fd"), maps = lines("/proc/self/maps");
    for (unsigned i = 0; i < 3000 / weft_test::scale(); ++i) round(i);
    std::printf("alone %d and %d, files %+ld\n", alone, wait_until(ended), entries("/proc/self/fd") - files);
    const long more = lines("/proc/self/maps") - maps;  // the C library keeps some stacks of ended threads
    std::printf("mappings %s\n", more < 50 ? "ok" : std::to_string(more).c_str());
  });
  CHECK(r.exit_code == 0);
  CHECK(r.output == "alone 1 and 1, files +0\nmappings ok\n");
}

TEST_CASE("many runtimes may live at once") {
  std::deque<weft::runtime> all;
  for (int i = 0; i < 100; ++i) all.emplace_back(weft::runtime_options{.workers = 2});
  int right = 0;
  for (weft::runtime& rt : all) right += works(rt);
  CHECK(right == 100);
}
