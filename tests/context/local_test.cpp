// SPDX-License-Identifier: BSL-1.0
// current() is fresh after a context has moved to another kernel thread; a plain thread-local is not.
#include "context/migration.hpp"
#include "support/catch.hpp"

#include <vector>

namespace context = weft::context;

namespace {

int objects[2];  // thread i has &objects[i] as its current
thread_local volatile int touched = 0;

void arrive(int index) { context::set_current(&objects[index]); }

/// Everything in one function, so that the optimiser may keep what it thinks cannot change.
struct read_in_line {
  std::vector<void*> seen;
  void operator()(weft_test::migrant& self) {
    void* found[4];
    found[0] = context::current();
    self.suspend();
    found[1] = context::current();
    self.suspend();
    found[2] = context::current();
    self.suspend();
    found[3] = context::current();
    seen.assign(found, found + 4);
  }
};

struct read_in_loop {
  std::vector<void*> seen;
  void operator()(weft_test::migrant& self) {
    void* found[100];
    for (void*& entry : found) {
      entry = context::current();
      self.suspend();
    }
    seen.assign(found, found + 100);
  }
};

/// Sets on the thread where it is, reads on the other one and on the first again.
struct set_and_read {
  int mine = 0;
  std::vector<void*> seen;
  void operator()(weft_test::migrant& self) {
    void* found[4];
    context::set_current(&mine);
    found[0] = context::current();
    self.suspend();
    found[1] = context::current();
    self.suspend();
    found[2] = context::current();
    context::set_current(&objects[0]);
    found[3] = context::current();
    seen.assign(found, found + 4);
  }
};

/// The negative control: the address of a thread-local taken twice in one function.
struct read_plain {
  std::vector<const volatile void*> where;
  void operator()(weft_test::migrant& self) {
    for (int i = 0; i < 4; ++i) {
      touched = touched + 1;
      where.push_back(&touched);
      self.suspend();
    }
  }
};

}  // namespace

TEST_CASE("current() names `outside` in a thread that never set it", "[context]") {
  void* seen = nullptr;
  std::thread([&seen] { seen = context::current(); }).join();
  CHECK(seen == &context::outside);
}

TEST_CASE("set_current() acts on its own thread alone", "[context]") {
  int mine = 0;
  void* const before = context::current();
  context::set_current(&mine);
  void* seen = nullptr;
  std::thread([&seen] {
    int other = 0;
    context::set_current(&other);
    seen = context::current() == &other ? nullptr : &other;
  }).join();
  CHECK(seen == nullptr);
  CHECK(context::current() == &mine);
  context::set_current(before);
  CHECK(context::current() == before);
}

TEST_CASE("current() is that of the kernel thread a context has moved to", "[context]") {
  read_in_line line;
  weft_test::migrant::run(line, arrive);
  CHECK(line.seen == std::vector<void*>{&objects[0], &objects[1], &objects[0], &objects[1]});

  read_in_loop loop;
  weft_test::migrant::run(loop, arrive);
  std::size_t right = 0;
  REQUIRE(loop.seen.size() == 100);
  for (std::size_t i = 0; i < loop.seen.size(); ++i) right += loop.seen[i] == &objects[i % 2];
  CHECK(right == 100);

  set_and_read set;
  weft_test::migrant::run(set, arrive);
  CHECK(set.seen == std::vector<void*>{&set.mine, &objects[1], &set.mine, &objects[0]});
}

TEST_CASE("control: a plain thread-local is stale after a move in optimised code", "[context]") {
  read_plain control;
  weft_test::migrant::run(control, arrive);
  REQUIRE(control.where.size() == 4);
  const bool stale = control.where[1] == control.where[0];
  INFO("address of the thread-local " << (stale ? "stale" : "fresh") << " after the move");
#if defined(WEFT_TEST_EXPECT_STALE)
  // Instrumentation keeps optimisers from merging the two.
  if (!context::detail::asan_on && !context::detail::tsan_on) CHECK(stale);
#endif
  CHECK(control.where[2] == control.where[0]);  // it came back to the first thread
}
