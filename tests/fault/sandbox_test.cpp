// SPDX-License-Identifier: BSL-1.0
// A program that takes system calls away from itself while its runtimes work: thieves fence otherwise, or
// leave without a task, and results stay right.
#include "support/catch.hpp"
#include "support/child.hpp"

#include <weft/weft.hpp>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <vector>

#if WEFT_ASYMMETRIC
namespace {

/// Lets all threads of this process get EPERM from membarrier, and, if `pages`, from what takes the right to
/// write away from a page.
bool refuse_fences(bool pages) {
  constexpr unsigned number = offsetof(seccomp_data, nr), third = offsetof(seccomp_data, args) + 16;
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, pages ? SYS_mprotect : -1u, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, third),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_READ, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  sock_fprog program{sizeof steps / sizeof *steps, steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

/// A chain beside independent tasks. *Returns*: whether the values are those of the serial program.
bool right(weft::runtime& rt) {
  constexpr int tasks = 200;
  std::vector<int> cells(tasks, 0);
  int last = 1;
  rt.run([&] {
    for (int& c : cells) {
      weft::fork([](int& here, const int& from) { here = 2 * from; }, weft::write(weft::borrow(c)),
                 weft::read(weft::borrow(last)));
      weft::fork([](int& here) { here = (here * 7 + 1) % 1000; }, weft::update(weft::borrow(last)));
    }
  });
  int expected = 1;
  for (int c : cells) {
    if (c != 2 * expected) return false;
    expected = (expected * 7 + 1) % 1000;
  }
  return last == expected;
}

/// A body that forks a task and executes no further one until `enough`: thieves need a fence.
template <class Enough>
void work_on_until(weft::runtime& rt, Enough enough) {
  rt.run([&] {
    weft::fork([] {});
    while (!enough()) {
    }
  });
}

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  _exit(2);
}

void take_away(bool pages) {
  weft::runtime rt({.workers = 3, .inlining = false});
  work_on_until(rt, [&] { return rt.counters().barriers != 0; });
  expect(rt.counters().barriers_refused == 0 && right(rt), "membarrier works at first");
  expect(refuse_fences(pages), "a process may take system calls away from itself");
  expect(weft::base::heavy_fence() == (pages ? weft::base::fenced::by_nothing : weft::base::fenced::by_pages),
         "a fence says by what means it had its effect");
  work_on_until(rt, [&] { return rt.counters().barriers_refused != 0; });
  for (int round = 0; round < 50; ++round) expect(right(rt), "the values are right");
  // Tasks are stolen: by pages from a body that works on, else from owners who come to their next task.
  const auto before = rt.counters().steals;
  const auto stolen = [&] { return rt.counters().steals != before; };
  if (!pages)
    work_on_until(rt, stolen);
  else
    while (!stolen()) expect(right(rt), "the values are right");
  static_cast<void>(rt.describe());
}

}  // namespace

TEST_CASE("a program that takes membarrier away from itself goes on, and is told so once") {
  for (const bool pages : {false, true}) {
    INFO((pages ? "pages as well" : "membarrier"));
    const auto child = weft_test::run_in_child([&] { take_away(pages); });
    CHECK(child.exit_code == 0);
    CHECK(
        child.output ==
        (pages
             ? "weft: membarrier is refused (error 1); thieves take only what owners show them, so long "
               "tasks "
               "may run one after the other\n"
             : "weft: membarrier is refused (error 1); thieves fence by changing pages instead, which takes "
               "longer\n"));
  }
}
#endif
