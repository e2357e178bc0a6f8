// SPDX-License-Identifier: BSL-1.0
// Switching: order, arguments, ends of fibers, exceptions across switches and kernel threads, float flags.
#include "context/migration.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"

#include <cfenv>
#include <cmath>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using weft::context::fiber;
using weft::context::stack;
using weft_test::contains;

namespace {

constexpr std::size_t stack_bytes = 128 * 1024;

/// A fiber and its home, for bodies that go back and forth.
struct pair {
  fiber home;
  std::unique_ptr<fiber> away;
  void (*body)(pair&) = nullptr;
  std::vector<int> log;

  explicit pair(void (*f)(pair&)) : body(f) { restart(stack(stack_bytes)); }
  void restart(stack&& memory) { away = std::make_unique<fiber>(std::move(memory), &start, this); }
  void go() noexcept { fiber::switch_to(home, *away); }
  void back() noexcept { fiber::switch_to(*away, home); }
  static void start(void* self) noexcept {
    auto& here = *static_cast<pair*>(self);
    here.body(here);
    for (;;) here.back();
  }
};

}  // namespace

TEST_CASE("two contexts run by turns", "[context]") {
  pair p([](pair& q) {
    for (int i = 0; i < 1000; ++i) {
      q.log.push_back(2 * i + 1);
      q.back();
    }
  });
  CHECK(p.away->suspended());
  CHECK_FALSE(p.home.suspended());
  for (int i = 0; i < 1000; ++i) {
    p.log.push_back(2 * i);
    p.go();
  }
  REQUIRE(p.log.size() == 2000);
  int right = 0;
  for (int i = 0; i < 2000; ++i) right += p.log[static_cast<std::size_t>(i)] == i;
  CHECK(right == 2000);
}

TEST_CASE("a ring of contexts passes control on without going home", "[context]") {
  struct ring {
    fiber home;
    std::vector<std::unique_ptr<fiber>> members;
    std::size_t at = 0;
    int steps = 0;
  };
  ring r;
  const auto step = [](void* argument) noexcept {
    auto& here = *static_cast<ring*>(argument);
    for (;;) {
      ++here.steps;
      fiber& from = *here.members[here.at];
      here.at = (here.at + 1) % here.members.size();
      fiber& to = here.steps == 700 ? here.home : *here.members[here.at];
      fiber::switch_to(from, to);
    }
  };
  for (int i = 0; i < 7; ++i) r.members.push_back(std::make_unique<fiber>(stack(stack_bytes), +step, &r));
  fiber::switch_to(r.home, *r.members[0]);
  CHECK(r.steps == 700);
}

TEST_CASE("a context starts at the top of its stack and stays inside", "[context]") {
  static std::uintptr_t inside;
  pair p([](pair&) {
    int local = 0;
    inside = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    static_cast<void>(local);
  });
  p.go();
  stack memory = p.away->release_stack();
  CHECK(inside > reinterpret_cast<std::uintptr_t>(memory.lowest()));
  CHECK(inside <= reinterpret_cast<std::uintptr_t>(memory.top()));
  CHECK(memory.high_water() >= 1);
}

TEST_CASE("a suspended context gives its stack back, and another one runs on it", "[context]") {
  pair p([](pair& q) {
    volatile char used[4096];
    for (volatile char& c : used) c = 1;
    q.log.push_back(1);
    q.back();  // suspended for ever: locals above are alive
    q.log.push_back(-1);
  });
  const int rounds = 2000;
  void* const first = [&] {
    p.go();
    stack memory = p.away->release_stack();
    void* const lowest = memory.lowest();
    p.restart(std::move(memory));
    return lowest;
  }();
  for (int i = 1; i < rounds; ++i) {
    p.go();
    stack memory = p.away->release_stack();
    CHECK_FALSE(p.away->suspended());
    if (memory.lowest() != first) FAIL("another stack came back");
    p.restart(std::move(memory));
  }
  CHECK(p.log == std::vector<int>(rounds, 1));
}

TEST_CASE("a context that never ran, and one that is suspended, can be destroyed", "[context]") {
  pair never([](pair& q) { q.log.push_back(1); });
  never.away.reset();
  CHECK(never.log.empty());
  pair once([](pair& q) { q.back(); });
  once.go();
  once.away.reset();
  SUCCEED();
}

TEST_CASE("exceptions thrown and caught inside a context stay inside", "[context]") {
  pair p([](pair& q) {
    for (int i = 0; i < 10; ++i) {
      try {
        if (i % 2 == 0) throw i;
        q.back();
        throw std::runtime_error("odd");
      } catch (int value) {
        q.log.push_back(value);
      } catch (const std::runtime_error&) {
        q.log.push_back(-1);
      }
    }
  });
  for (int i = 0; i < 6; ++i) p.go();
  CHECK(p.log == std::vector<int>{0, -1, 2, -1, 4, -1, 6, -1, 8, -1});
}

TEST_CASE("a context suspended in a handler keeps its exception to itself", "[context]") {
  static std::string rethrown;
  static int uncaught_inside;
  pair p([](pair& q) {
    try {
      throw std::runtime_error("mine");
    } catch (...) {
      q.back();
      try {
        throw;
      } catch (const std::runtime_error& e) {
        rethrown = e.what();
      }
    }
    uncaught_inside = std::uncaught_exceptions();
  });
  p.go();
  CHECK(std::current_exception() == nullptr);  // it has not leaked to us
  try {
    throw std::logic_error("other");
  } catch (const std::logic_error&) {
    p.go();
    try {
      throw;
    } catch (const std::logic_error& e) {
      CHECK(std::string(e.what()) == "other");
    }
  }
  CHECK(rethrown == "mine");
  CHECK(uncaught_inside == 0);
  CHECK(std::current_exception() == nullptr);
}

TEST_CASE("a context suspended while it unwinds is not unwinding elsewhere", "[context]") {
  static int inside_before, inside_after;
  pair p([](pair& q) {
    struct suspends_in_destructor {
      pair& owner;
      ~suspends_in_destructor() {
        inside_before = std::uncaught_exceptions();
        owner.back();
        inside_after = std::uncaught_exceptions();
      }
    };
    try {
      suspends_in_destructor now{q};
      throw 1;
    } catch (int) {
      q.log.push_back(std::uncaught_exceptions());
    }
  });
  p.go();
  CHECK(std::uncaught_exceptions() == 0);
  p.go();
  CHECK(inside_before == 1);
  CHECK(inside_after == 1);
  CHECK(p.log == std::vector<int>{0});
}

TEST_CASE("exceptions follow a context to another kernel thread", "[context]") {
  struct throwing {
    std::vector<int> log;
    void operator()(weft_test::migrant& self) {
      for (int i = 0; i < 50; ++i) {
        try {
          throw i;
        } catch (int) {
          self.suspend();
          try {
            throw;
          } catch (int value) {
            self.suspend();
            log.push_back(value);
          }
        }
        log.push_back(std::current_exception() == nullptr ? 0 : -1);
      }
    }
  };
  throwing body;
  CHECK(weft_test::migrant::run(body, [](int) {}) == 0);
  std::vector<int> expected;
  for (int i = 0; i < 50; ++i) {
    expected.push_back(i);
    expected.push_back(0);
  }
  CHECK(body.log == expected);
}

TEST_CASE("several suspensions in one handler, in one function, on changing kernel threads", "[context]") {
  // What an optimiser would like to merge: the places of the exception state, one per kernel thread.
  struct throwing {
    std::vector<int> log;
    void operator()(weft_test::migrant& self) {
      try {
        throw 5;
      } catch (int) {
        self.suspend();
        self.suspend();
        self.suspend();
        self.suspend();
        self.suspend();
        try {
          throw;
        } catch (int value) {
          log.push_back(value);
        }
      }
    }
  };
  throwing body;
  CHECK(weft_test::migrant::run(body, [](int) {}) == 0);
  CHECK(body.log == std::vector<int>{5});
}

TEST_CASE("addresses of locals survive a migration", "[context]") {
  struct counting {
    int visits = 0;
    int sum = 0;
    void operator()(weft_test::migrant& self) {
      int local = 0;
      int* const there = &local;
      for (int i = 0; i < 200; ++i) {
        *there += i;
        ++visits;
        self.suspend();
      }
      sum = local;
    }
  };
  counting body;
  weft_test::migrant::run(body, [](int) {});
  CHECK(body.visits == 200);
  CHECK(body.sum == 199 * 100);
}

#if defined(__x86_64__)
TEST_CASE("sticky float flags make contexts equal, however they computed before", "[context]") {
  static unsigned inside;
  static volatile double three;
  three = 3.0;
  const auto control_of_fresh = [](bool sticky) {
    unsigned outside = 0;
    std::thread([&] {
      __builtin_ia32_ldmxcsr(0x1f80);  // as the kernel starts a thread
      if (sticky) weft::context::set_sticky_float_flags();
      pair p([](pair&) { inside = __builtin_ia32_stmxcsr(); });
      three = 1.0 / three;  // inexact
      p.go();
      outside = __builtin_ia32_stmxcsr();
    }).join();
    return inside == outside;
  };
  CHECK_FALSE(control_of_fresh(false));  // the trap is there
  CHECK(control_of_fresh(true));
  CHECK((inside & 0x3f) == 0x3f);
}

TEST_CASE("rounding mode belongs to a context", "[context]") {
  pair p([](pair& q) {
    std::fesetround(FE_UPWARD);
    q.back();
    q.log.push_back(std::fegetround());
  });
  p.go();
  const int outside = std::fegetround();
  p.go();
  CHECK(outside == FE_TONEAREST);
  CHECK(p.log == std::vector<int>{FE_UPWARD});
}
#endif

TEST_CASE("misuse of contexts ends the program with a sentence", "[context]") {
  const auto to_running = weft_test::run_in_child([] {
    fiber home;
    fiber::switch_to(home, home);
  });
  CHECK(to_running.aborted());
  CHECK_THAT(to_running.output, contains("weft: a switch between contexts must go from the running one"));

  const auto destroys_itself = weft_test::run_in_child([] {
    pair p([](pair& q) { q.away.reset(); });
    p.go();
  });
  CHECK(destroys_itself.aborted());
  CHECK_THAT(destroys_itself.output, contains("weft: a fiber is ended that is running"));

  const auto returns = weft_test::run_in_child([] {
    fiber home;
    fiber away(stack(stack_bytes), [](void*) noexcept {}, nullptr);
    fiber::switch_to(home, away);
  });
  CHECK(returns.aborted());
  CHECK_THAT(returns.output, contains("weft: the entry function of a fiber returned"));

  const auto without_stack =
      weft_test::run_in_child([] { fiber away(stack(), [](void*) noexcept {}, nullptr); });
  CHECK(without_stack.aborted());
  CHECK_THAT(without_stack.output, contains("weft: a fiber is made without a stack"));

  const auto home_lost = weft_test::run_in_child([] {
    static auto* home = new fiber;
    fiber away(stack(stack_bytes), [](void*) noexcept { delete home; }, nullptr);
    fiber::switch_to(*home, away);
  });
  CHECK(home_lost.aborted());
  CHECK_THAT(home_lost.output, contains("weft: a fiber that adopted its stack is destroyed while"));

  const auto left_twice = weft_test::run_in_child([] {
    static fiber home;
    static fiber* other;
    fiber second(stack(stack_bytes), [](void*) noexcept {}, nullptr);
    other = &second;
    fiber away(stack(stack_bytes), [](void*) noexcept { fiber::switch_to(home, *other); }, nullptr);
    fiber::switch_to(home, away);
  });
  CHECK(left_twice.aborted());
  CHECK_THAT(left_twice.output, contains("weft: a switch between contexts must go from the running one"));

  const auto home_ended = weft_test::run_in_child([] {
    static fiber home;
    fiber away(stack(stack_bytes), [](void*) noexcept { static_cast<void>(home.release_stack()); }, nullptr);
    fiber::switch_to(home, away);
  });
  CHECK(home_ended.aborted());
  CHECK_THAT(home_ended.output, contains("weft: a fiber is ended that is running or has no stack"));
}
