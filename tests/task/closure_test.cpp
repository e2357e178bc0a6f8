// SPDX-License-Identifier: BSL-1.0
// Records of tasks: objects, their failures, and the exception of a frame.
#include "sched/hand_made.hpp"
#include "support/catch.hpp"
#include "support/tracked.hpp"

#include <cstddef>
#include <exception>
#include <string>

using weft::sched::closure;
using weft::sched::closure_state;
using weft::sched::frame;
using weft_test::made_closure;
using weft_test::tracked;

namespace {

/// The number in an exception of type tracked; -1 if there is none of that type.
long number(const std::exception_ptr& e) {
  if (e == nullptr) return -1;
  try {
    std::rethrow_exception(e);
  } catch (const tracked& t) {
    return t.value;
  } catch (...) {
    return -1;
  }
}

std::exception_ptr failure(long n) { return std::make_exception_ptr(tracked(n)); }

}  // namespace

TEST_CASE("a closure knows its objects, rights and options") {
  weft::sched::arena memory;
  int a = 0, b = 0;
  const weft::sched::task_options options{.name = "sum", .priority = 2, .local = true};
  made_closure& c = weft_test::make_closure(memory, {weft_test::reads(a), weft_test::writes(b)}, {}, options);
  REQUIRE(c.what->objects == 2);
  CHECK(c.objects()[0] == &a);
  CHECK(c.objects()[1] == &b);
  CHECK(c.what->modes[0] == weft_test::access_mode::read);
  CHECK(c.what->modes[1] == weft_test::access_mode::write);
  CHECK(std::string(c.what->options(c).name) == "sum");
  CHECK(c.what->options(c).priority == 2);
  CHECK(c.local);
  CHECK_FALSE(c.counted);
  CHECK(c.state == closure_state::created);
  CHECK(c.next == nullptr);
}

TEST_CASE("a task is named task unless it is told otherwise") {
  const weft::sched::task_options o;
  CHECK(std::string(o.name) == "task");
  CHECK(o.priority == 0);
  CHECK_FALSE(o.local);
}

TEST_CASE("a closure is run once or dropped once, and then has destroyed what it kept") {
  tracked::reset();
  made_closure::dropped = 0;
  weft::sched::arena memory;
  int ran = 0;
  made_closure& run =
      weft_test::make_closure(memory, {}, [&ran, t = tracked(1)] { ran += static_cast<int>(t.value); });
  made_closure& drop =
      weft_test::make_closure(memory, {}, [&ran, t = tracked(1)] { ran += static_cast<int>(t.value); });
  CHECK(tracked::alive == 2);
  run.what->run(run);
  CHECK(tracked::alive == 1);
  drop.what->drop(drop);
  CHECK(tracked::alive == 0);
  CHECK(ran == 1);
  CHECK(made_closure::dropped == 1);
}

TEST_CASE("a failure is kept until it is taken out") {
  tracked::reset();
  weft::sched::arena memory;
  made_closure& c = weft_test::make_closure(memory);
  c.what->drop(c);
  c.set_failure(failure(5));
  CHECK(tracked::alive == 1);
  {
    const std::exception_ptr e = c.take_failure();
    CHECK(number(e) == 5);
  }
  CHECK(tracked::alive == 0);
}

TEST_CASE("a failure leaves the objects readable, as thieves need them") {
  weft::sched::arena memory;
  int a = 0, b = 0;
  made_closure& c = weft_test::make_closure(memory, {weft_test::reads(a), weft_test::writes(b)});
  c.what->drop(c);
  c.set_failure(failure(1));
  CHECK(c.objects()[0] == &a);
  CHECK(c.objects()[1] == &b);
  CHECK(number(c.take_failure()) == 1);
}

TEST_CASE("a frame keeps the first exception only") {
  tracked::reset();
  {
    frame f;
    CHECK_FALSE(f.is(frame::closed));
    static constexpr weft::sched::descriptor nothing{};
    const closure first(nothing), second(nothing);
    f.close(failure(1), &first);
    CHECK(f.is(frame::closed));
    f.close(failure(2), &second);
    CHECK(tracked::alive == 1);
    const weft::sched::placed_exception kept = f.take_failure();
    CHECK(number(kept.error) == 1);
    CHECK(kept.place == &first);
    CHECK_FALSE(f.is(frame::closed));
  }
  CHECK(tracked::alive == 0);
}
