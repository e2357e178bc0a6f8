// SPDX-License-Identifier: BSL-1.0
// A thief outside the engine: what it takes from a large frame, and how often it enters a strand.
#include "sched/hand_made.hpp"
#include "support/catch.hpp"

#include <weft/inspect/detail/strand_view.hpp>
#include <weft/sched/definitions.hpp>
#include <weft/sched/outside_thief.hpp>
#include <weft/sched/run.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

using weft::sched::closure;
using weft::sched::engine;
using weft::sched::outside_thief;
using weft::sched::strand;

namespace {

bool any(const closure&) noexcept { return true; }

/// Runs a body on the one worker of an engine, while the test is the thief outside.
class visited {
 public:
  explicit visited(std::function<void()> body)
      : engine_({.workers = 1}), thief(engine_, &any), root_([this, body = std::move(body)] {
          weft::sched::run_call call(engine_);
          call.execute(weft_test::make_closure(call.memory(), {}, body, {}), {});
        }) {}
  ~visited() { root_.join(); }

 private:
  engine engine_;

 public:
  outside_thief thief;

 private:
  std::thread root_;
};

void fork_task() {
  strand& s = weft::sched::current();
  static_cast<void>(classify_fork(s));
  if (!s.pending()) open_frame(s);
  defer(s, weft_test::make_closure(s.closures, {}, [] {}, {}));
}

template <class P>
bool wait_until(P&& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// As if it had run elsewhere.
void end(outside_thief& t, strand& s) {
  closure& c = outside_thief::task_of(s);
  c.what->drop(c);
  t.end(s, nullptr);
}

}  // namespace

TEST_CASE("who takes several tasks of a large frame leaves as many") {
  std::atomic<bool> forked{false}, go_on{false};
  visited v([&] {
    for (int i = 0; i < 200; ++i) fork_task();
    forked = true;
    wait_until([&] { return go_on.load(); });
  });
  CHECK(wait_until([&] { return forked.load(); }));
  std::vector<strand*> taken;
  for (strand* s = v.thief.steal(); s != nullptr; s = v.thief.steal_beside(*s, taken.size()))
    taken.push_back(s);
  CHECK(taken.size() == 100);
  for (strand* s : taken) end(v.thief, *s);
  go_on = true;
}

TEST_CASE("a task that was given back waits for nothing but a worker") {
  std::atomic<bool> forked{false}, go_on{false};
  visited v([&] {
    fork_task();
    forked = true;
    wait_until([&] { return go_on.load(); });
  });
  CHECK(wait_until([&] { return forked.load(); }));
  strand* s = nullptr;
  CHECK(wait_until([&] { return (s = v.thief.steal()) != nullptr; }));
  REQUIRE(s != nullptr);
  v.thief.give_back(*s);
  weft::sched::strand_view seen;
  seen.who = s;
  look_at(seen, 1000);
  CHECK(seen.is == weft::sched::strand_view::state::submitted);
  go_on = true;
}

TEST_CASE("who wants several tasks of a small frame takes half of them in one visit, in order") {
  std::atomic<bool> forked{false}, go_on{false};
  visited v([&] {
    for (int i = 0; i < 8; ++i) fork_task();
    forked = true;
    wait_until([&] { return go_on.load(); });
  });
  CHECK(wait_until([&] { return forked.load(); }));
  const std::uint64_t before = v.thief.visits();
  std::vector<strand*> taken{v.thief.steal(100)};
  REQUIRE(taken[0] != nullptr);
  while (strand* const s = v.thief.next_taken()) taken.push_back(s);
  CHECK(taken.size() == 4);
  CHECK(v.thief.visits() == before + 1);
  CHECK(v.thief.steal_beside(*taken[0], 1) == nullptr);
  const closure* last = &outside_thief::task_of(*taken[0]);
  for (std::size_t i = 1; i < taken.size(); ++i) {
    CHECK(last->next.load() == &outside_thief::task_of(*taken[i]));
    last = &outside_thief::task_of(*taken[i]);
  }
  taken.push_back(v.thief.steal(2));  // of the four that are left
  REQUIRE(taken.back() != nullptr);
  taken.push_back(v.thief.next_taken());
  REQUIRE(taken.back() != nullptr);
  CHECK(v.thief.next_taken() == nullptr);
  for (strand* s : taken) end(v.thief, *s);
  go_on = true;
}

TEST_CASE("who wants one task of a small frame takes one") {
  std::atomic<bool> forked{false}, go_on{false};
  visited v([&] {
    for (int i = 0; i < 8; ++i) fork_task();
    forked = true;
    wait_until([&] { return go_on.load(); });
  });
  CHECK(wait_until([&] { return forked.load(); }));
  strand* const s = v.thief.steal();
  REQUIRE(s != nullptr);
  CHECK(v.thief.next_taken() == nullptr);
  end(v.thief, *s);
  go_on = true;
}

TEST_CASE("a body that forks nothing is left alone for a while after a visit in vain") {
  std::atomic<bool> forked{false}, go_on{false};
  visited v([&] {
    fork_task();
    forked = true;
    wait_until([&] { return go_on.load(); });
  });
  CHECK(wait_until([&] { return forked.load(); }));
  strand* const s = v.thief.steal();
  REQUIRE(s != nullptr);
  constexpr std::uint64_t looks = 10'000;
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t before = v.thief.visits();
  for (std::uint64_t i = 0; i < looks; ++i) CHECK_FALSE(v.thief.steal());
  const std::uint64_t visits = v.thief.visits() - before;
  const auto took = std::chrono::steady_clock::now() - begin;
  CHECK(visits >= 1);
  CHECK(visits < looks);
  CHECK((visits - 1) * std::chrono::microseconds(200) <= took);
  end(v.thief, *s);
  go_on = true;
}

TEST_CASE("a body that has forked since the last visit is visited at once") {
  constexpr int rounds = 40;  // the frame stays small
  std::atomic<int> asked{0}, forked{0};
  visited v([&] {
    fork_task();
    forked = 1;
    for (int i = 1; i <= rounds; ++i) {
      wait_until([&] { return asked.load() == i; });
      fork_task();
      forked = i + 1;
    }
    wait_until([&] { return asked.load() > rounds; });
  });
  CHECK(wait_until([&] { return forked.load() == 1; }));
  std::vector<strand*> taken;
  if (strand* const s = v.thief.steal()) taken.push_back(s);
  REQUIRE(taken.size() == 1);
  for (int i = 1; i <= rounds; ++i) {
    static_cast<void>(v.thief.steal());  // in vain
    asked = i;
    wait_until([&] { return forked.load() == i + 1; });
    if (strand* const s = v.thief.steal()) taken.push_back(s);
  }
  CHECK(taken.size() == rounds + 1);
  for (strand* s : taken) end(v.thief, *s);  // short ones would have been left alone
  asked = rounds + 1;
}

TEST_CASE("a worker asks no strand whose cooldown lies ahead, and sleeps until that is over") {
  engine e({.workers = 2});
  weft::sched::run_call call(e);
  bool slept = false, slept_again = false, was_asked = true;
  const std::function<void()> body = [&] {
    slept = wait_until([&] { return e.bell.any_waiting(); });
    strand& s = weft::sched::current();
    s.cooldown.begin(s.root, weft::sched::deadline::clock::now() + std::chrono::hours(1));
    attend(s);
    s.surplus = weft::sched::left_alone_surplus;
    e.bell.notify_one();
    slept_again = wait_until([&] { return e.timed_sleepers == 1; });
    was_asked = (s.attention & weft::sched::hungry) != 0;
  };
  call.execute(weft_test::make_closure(call.memory(), {}, body, {}), {});
  CHECK(slept);
  CHECK(slept_again);
  CHECK(!was_asked);
}
