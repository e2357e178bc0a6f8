// SPDX-License-Identifier: BSL-1.0
// The owner's verbs on strands made by hand, with stand-ins for the worker below them.
#include "sched/hand_made.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"

#include <weft/sched/detail/fork.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

using weft::sched::closure;
using weft::sched::closure_state;
using weft::sched::fork_action;
using weft::sched::frame;
using weft::sched::strand;
using weft_test::made_closure;
using weft_test::made_strand;
using weft_test::reads;
using weft_test::writes;

namespace {

/// What the worker would do; each test sets what it needs.
struct stand_in {
  std::function<bool(strand&, closure&, bool)> await;
  std::function<weft::sched::graph_outcome(strand&, frame&, bool)> run_promoted;
  const closure* before_graph = nullptr;  ///< the one that the owner still has to end in the ordinary way
  int awaits = 0, dropped = 0, capped = 0, offers = 0, certain = 0;
  bool sleepers = false;
} worker;

}  // namespace

namespace weft::inline WEFT_ABI::sched {
bool await(strand& s, closure& c, bool as_data) {
  ++::worker.awaits;
  return ::worker.await(s, c, as_data);
}
void offer(strand&, bool certain) noexcept {
  ++::worker.offers;
  ::worker.certain += certain;
}
bool sleepers_near(const strand&) noexcept { return ::worker.sleepers; }
void count_dropped(strand&) noexcept { ++::worker.dropped; }
std::byte* borrow_last_memory(strand&) noexcept { return nullptr; }
void count_inlined(strand&) noexcept {}
void count_capped(strand&) noexcept { ++::worker.capped; }
void set_inline_limit(strand&) noexcept {}
graph_outcome run_promoted(strand& s, frame& f, bool as_data) { return ::worker.run_promoted(s, f, as_data); }
bool comes_before_graph(strand&, const frame&, const closure& c) noexcept {
  return &c == ::worker.before_graph;
}
}  // namespace weft::inline WEFT_ABI::sched

namespace {

/// A strand that executes what is forked, recording numbers.
struct execution : made_strand {
  std::vector<int> log;
  int x = 0;

  execution() {
    ::worker = {};
    made_closure::dropped = 0;
    set_current(*this);
  }
  ~execution() { weft::sched::set_current(weft::context::outside); }

  /// Forks a task that records n and then does more, as fork would with inlining off.
  closure& fork(int n, std::function<void()> more = {},
                std::initializer_list<weft_test::access> rights = {}) {
    if (!pending()) open_frame(*this);
    made_closure& c = weft_test::make_closure(closures, rights, [this, n, more = std::move(more)] {
      log.push_back(n);
      if (more) more();
    });
    defer(*this, c);
    return c;
  }
  bool drain_all(bool as_data = false) {
    const bool ended = drain(*this, &root, as_data);
    if (ended) floor = &root;
    return ended;
  }
  /// The int that leaves the drained frames; -1 if none does.
  int thrown_number() {
    if (!thrown) return -1;
    try {
      std::rethrow_exception(*std::exchange(thrown, std::nullopt));
    } catch (int n) {
      return n;
    } catch (const weft::cancelled&) {
      return -2;
    }
  }
};

void set(closure& c, closure_state s) { c.state.store(s, std::memory_order_relaxed); }  // a single thread

using numbers = std::vector<int>;

}  // namespace

TEST_CASE("a frame is executed first to last, and is gone then") {
  execution e;
  for (int i = 0; i < 5; ++i) e.fork(i);
  CHECK(e.pending());
  CHECK(e.drain_all());
  CHECK(e.log == numbers{0, 1, 2, 3, 4});
  CHECK_FALSE(e.pending());
  CHECK(e.root.child == nullptr);
  CHECK(e.deferred == 5);
  CHECK(e.thrown_number() == -1);
}

TEST_CASE("children come before their parent's later siblings") {
  execution e;
  e.fork(1, [&] {
    e.fork(11, [&] { e.fork(111); });
    e.fork(12);
  });
  e.fork(2, [&] { e.fork(21); });
  e.fork(3);
  CHECK(e.drain_all());
  CHECK(e.log == numbers{1, 11, 111, 12, 2, 21, 3});
}

TEST_CASE("a body that syncs drains its own frames only") {
  execution e;
  e.fork(1, [&] {
    e.fork(11, [&] { e.fork(111); });
    sync(e);
    e.log.push_back(-1);
    e.fork(12);
    sync(e);
    sync(e);
    e.log.push_back(-2);
    e.fork(13);
  });
  e.fork(2);
  CHECK(e.drain_all());
  CHECK(e.log == numbers{1, 11, 111, -1, 12, -2, 13, 2});
}

TEST_CASE("objects of ended tasks are released between siblings, those of the parent are not") {
  execution e;
  e.objects.allocate(40);
  const auto* const start = e.objects.top();
  std::vector<const std::byte*> tops;
  for (int i = 0; i < 3; ++i)
    e.fork(i, [&] {
      tops.push_back(e.objects.top());
      e.objects.allocate(100'000);
      e.fork(10, [&] { e.objects.allocate(100); });
    });
  CHECK(e.drain_all());
  CHECK(tops == std::vector<const std::byte*>{start, start, start});
  CHECK(e.log == numbers{0, 10, 1, 10, 2, 10});
}

TEST_CASE("an exception drops what comes later, and nothing before it") {
  execution e;
  e.fork(1);
  e.fork(2, [&] {
    e.fork(21);
    throw 7;
  });
  e.fork(3);
  e.fork(4);
  CHECK(e.drain_all());
  CHECK(e.log == numbers{1, 2, 21});
  CHECK(e.thrown_number() == 7);
  CHECK(worker.dropped == 2);
  CHECK(made_closure::dropped == 2);
}

TEST_CASE("of a parent's exception and one of its earlier child the child's is kept") {
  execution e;
  e.fork(1, [&] {
    e.fork(11, [] { throw 1; });
    e.fork(12);
    throw 2;
  });
  e.fork(2);
  CHECK(e.drain_all());
  CHECK(e.log == numbers{1, 11});
  CHECK(e.thrown_number() == 1);
}

TEST_CASE("an exception passes up through frames") {
  execution e;
  e.fork(1, [&] {
    e.fork(11, [&] { e.fork(111, [] { throw 5; }); });
    e.fork(12);
  });
  e.fork(2);
  CHECK(e.drain_all());
  CHECK(e.log == numbers{1, 11, 111});
  CHECK(e.thrown_number() == 5);
}

TEST_CASE("sync rethrows, and a body that catches goes on") {
  execution e;
  int caught = 0;
  e.fork(1, [&] {
    for (int i = 1; i <= 3; ++i) {
      e.fork(10 * i, [i] { throw i; });
      e.fork(10 * i + 1);
      try {
        sync(e);
      } catch (int n) {
        caught = 10 * caught + n;
      }
    }
    e.fork(99);
  });
  e.fork(2);
  CHECK(e.drain_all());
  CHECK(e.log == numbers{1, 10, 20, 30, 99, 2});
  CHECK(caught == 123);
  CHECK(e.thrown_number() == -1);
}

TEST_CASE("only the first raise of a body counts, and forks behind it are dropped") {
  execution e;
  e.fork(1);
  raise(e, std::make_exception_ptr(3));
  CHECK(failing(e));
  CHECK(classify_fork(e) == fork_action::drop);
  CHECK(worker.dropped == 1);
  raise(e, std::make_exception_ptr(4));
  CHECK(e.drain_all());
  CHECK(e.log == numbers{1});
  CHECK(e.thrown_number() == 3);
  CHECK_FALSE(failing(e));
}

TEST_CASE("a raise without any fork opens a frame") {
  execution e;
  CHECK_FALSE(failing(e));
  raise(e, std::make_exception_ptr(3));
  CHECK(e.pending());
  CHECK(e.drain_all());
  CHECK(e.thrown_number() == 3);
}

TEST_CASE("a stopped run drops what has not started") {
  execution e;
  e.fork(1, [&] {
    e.fork(11);
    e.run_of_all.stopped = true;
    e.attention.fetch_or(weft::sched::stop_asked);
  });
  e.fork(2);
  CHECK(e.drain_all());
  CHECK(e.log == numbers{1});
  CHECK(e.thrown_number() == -2);
  CHECK(worker.dropped == 2);
}

TEST_CASE("sync in a stopped run throws cancelled, with children and without") {
  for (const bool with_child : {true, false}) {
    execution e;
    e.run_of_all.stopped = true;
    e.attention = weft::sched::stop_asked;
    if (with_child) e.fork(1);
    CHECK_THROWS_AS(sync(e), weft::cancelled);
    CHECK(e.log.empty());
    CHECK_FALSE(e.thrown);
  }
}

TEST_CASE("a closure that a thief ended is passed over; what it threw counts at its place") {
  execution e;
  e.fork(1);
  closure& done = e.fork(2);
  closure& failed = e.fork(3);
  e.fork(4);
  for (closure* c : {&done, &failed}) c->what->drop(*c);  // the thief destroyed their arguments
  set(done, closure_state::done);
  failed.set_failure(std::make_exception_ptr(8));
  set(failed, closure_state::failed);
  CHECK(e.drain_all());
  CHECK(e.log == numbers{1});
  CHECK(e.thrown_number() == 8);
  CHECK(worker.awaits == 0);
}

TEST_CASE("a body's drain waits for a stolen closure with its stack") {
  execution e;
  e.fork(1);
  closure& stolen = e.fork(2);
  e.fork(3);
  stolen.what->drop(stolen);
  set(stolen, closure_state::stolen);
  worker.await = [&](strand& s, closure& c, bool as_data) {
    CHECK(&s == &e);
    CHECK(&c == &stolen);
    CHECK_FALSE(as_data);
    if (worker.awaits == 2) set(c, closure_state::done);  // the first time it returns too early
    return true;
  };
  CHECK(e.drain_all());
  CHECK(worker.awaits == 2);
  CHECK(e.log == numbers{1, 3});
}

TEST_CASE("a strand may be put aside as data at a stolen closure, and continued there") {
  execution e;
  closure* stolen = nullptr;
  e.fork(1, [&] {
    e.fork(11);
    stolen = &e.fork(12);
    e.fork(13);
    stolen->what->drop(*stolen);
    set(*stolen, closure_state::stolen);
  });
  e.fork(2);
  worker.await = [](strand&, closure&, bool as_data) {
    CHECK(as_data);
    return false;
  };
  CHECK_FALSE(e.drain_all(true));
  CHECK(e.log == numbers{1, 11});
  CHECK(worker.awaits == 1);
  set(*stolen, closure_state::done);
  CHECK(e.drain_all(true));
  CHECK(e.log == numbers{1, 11, 13, 2});
  CHECK(worker.awaits == 1);
}

TEST_CASE("the verdict on a fork: at once, deferred, dropped") {
  execution e;
  CHECK(classify_fork(e) == fork_action::defer);  // inlining is off: no stack address is high enough
  e.allow_inlining();
  CHECK(classify_fork(e) == fork_action::run_inline);
  CHECK(e.may_inline());  // the limit was restored on the way
  e.wanted_surplus = 2;
  e.exposed.begin(weft::context::stack_pointer() + 4'096, weft::sched::exposure::unlimited);
  CHECK(classify_fork(e) == fork_action::defer);  // exposed
  unsigned exposed = 1;
  while (classify_fork(e) == fork_action::defer) ++exposed;
  CHECK(exposed >= weft::sched::granularity::exposed_at_first);
  CHECK(classify_fork(e) == fork_action::run_inline);
  e.fork(1);
  CHECK(classify_fork(e) == fork_action::defer);
  CHECK_FALSE(e.may_inline());
  e.run_of_all.stopped = true;
  CHECK(classify_fork(e) == fork_action::defer);  // nobody told the strand yet
  e.attention = weft::sched::stop_asked;
  CHECK(classify_fork(e) == fork_action::drop);
  CHECK(e.drain_all());
  CHECK(e.thrown_number() == -2);
}

TEST_CASE("a hungry thief takes the surplus away, one that took something a part of it") {
  execution e;
  e.wanted_surplus = 2;
  e.surplus = 5;
  e.taken = 2;
  e.attention = weft::sched::took;
  CHECK_FALSE(look(e));
  CHECK(e.surplus == 3);
  CHECK(e.taken == 0u);
  CHECK(e.attention == 0);
  e.taken = 7;  // more than the owner knows of: a hint
  e.attention = weft::sched::took;
  CHECK_FALSE(look(e));
  CHECK(e.surplus == 0);
  e.surplus = 5;
  e.attention = weft::sched::hungry;
  CHECK_FALSE(look(e));
  CHECK(e.surplus == 0);
  CHECK(e.attention == 0);
}

TEST_CASE("a hungry thief makes deeper forks leave their tasks to it") {
  execution e;
  e.allow_inlining();
  e.wanted_surplus = 1;
  e.exposed.begin(weft::context::stack_pointer() + 8'192, 8);
  e.restore_window();
  e.restore_limit();
  CHECK(e.may_inline());
  e.attention = weft::sched::hungry;
  CHECK_FALSE(look(e));
  CHECK_FALSE(e.may_inline());  // nothing has been exposed for a while
}

TEST_CASE("a stop left over from an earlier run is forgotten; a real one stays") {
  execution e;
  e.attention = weft::sched::stop_asked;
  CHECK_FALSE(look(e));
  CHECK(e.attention == 0);
  e.run_of_all.stopped = true;
  e.attention = weft::sched::stop_asked;
  CHECK(look(e));
  CHECK(look(e));
}

TEST_CASE("the owner stands still, and says so, while a thief is inside") {
  execution e;
  e.attention = weft::sched::thief_inside;
  e.entry = 41;
  std::atomic<bool> returned{false};
  bool too_early = false;
  std::thread thief([&] {
    while (e.answer != 41) std::this_thread::yield();
    too_early = returned;
    e.attention.fetch_or(weft::sched::took);
    e.attention.fetch_and(static_cast<std::uint8_t>(~weft::sched::thief_inside));
  });
  CHECK_FALSE(look(e));
  returned = true;
  thief.join();
  CHECK_FALSE(too_early);
  CHECK(e.answer == 41u);
  CHECK(e.attention == 0);
}

TEST_CASE("only closures that could be stolen count as surplus, until they are executed") {
  execution e;
  int a = 0, b = 0;
  e.wanted_surplus = 4;
  CHECK(e.fork(1, {}, {writes(a)}).counted);
  CHECK_FALSE(e.fork(2, {}, {reads(a)}).counted);
  CHECK(e.fork(3, {}, {reads(b)}).counted);
  CHECK(e.fork(4, {}, {reads(b)}).counted);
  CHECK_FALSE(e.fork(5, {}, {writes(b)}).counted);
  made_closure& local = weft_test::make_closure(e.closures, {}, [] {}, {.local = true});
  defer(e, local);
  CHECK_FALSE(local.counted);
  CHECK(e.surplus == 3);
  CHECK(e.drain_all());
  CHECK(e.surplus == 0);
}

TEST_CASE("a strand without thieves counts no surplus") {
  execution e;
  CHECK_FALSE(e.fork(1).counted);
  CHECK(e.surplus == 0);
  CHECK(e.drain_all());
}

TEST_CASE("sleepers are told of what is forked, and whether it can be stolen") {
  execution e;
  int a = 0;
  e.wanted_surplus = 1;
  e.fork(1);
  CHECK(worker.offers == 0);  // nobody sleeps
  worker.sleepers = true;
  e.fork(2, {}, {writes(a)});
  CHECK(worker.offers == 1);
  CHECK(worker.certain == 1);
  e.fork(3, {}, {reads(a)});
  CHECK(worker.offers == 2);
  CHECK(worker.certain == 1);
  worker.sleepers = false;
  CHECK(e.drain_all());
}

TEST_CASE("where tasks pass fast, sleepers are not told of each, unless it can be stolen") {
  execution e;
  int a = 0;
  e.wanted_surplus = 1;
  e.quiet_tasks = e.quiet_length = 7;
  for (int i = 0; i < 5; ++i) e.fork(i, {}, {writes(a)});
  CHECK(e.quiet_tasks == 7);
  worker.sleepers = true;
  e.fork(5, {}, {writes(a)});
  CHECK(e.quiet_tasks == 0);  // who forks has something to tell
  e.fork(6);
  worker = {};
  worker.sleepers = true;
  e.quiet_tasks = 3;
  CHECK(e.drain_all());
  CHECK(e.log == numbers{0, 1, 2, 3, 4, 5, 6});
  CHECK(e.quiet_tasks == 0);
  CHECK(worker.certain == 1);  // the last
  CHECK(worker.offers == 4);
}

TEST_CASE("the running task's name is that of its closure, or of the innermost named one inside fork") {
  CHECK(weft::sched::current_task_name() == nullptr);  // outside
  execution e;
  std::vector<std::string> names;
  const auto note = [&] {
    const char* const name = weft::sched::current_task_name();
    names.emplace_back(name != nullptr ? name : "none");
  };
  note();
  if (!e.pending()) open_frame(e);
  defer(e, weft_test::make_closure(e.closures, {},
                                   [&] {
                                     note();
                                     e.inline_name = "inside";
                                     note();
                                     e.fork(1, note);
                                     sync(e);
                                     note();  // again what it was before
                                     e.inline_name = nullptr;
                                     note();
                                   },
                                   {.name = "first"}));
  defer(e, weft_test::make_closure(e.closures, {}, note, {.name = "second"}));
  CHECK(e.drain_all());
  CHECK(names == std::vector<std::string>{"none", "first", "inside", "task", "inside", "first", "second"});
}

TEST_CASE("where the cap is reached, fork runs the pending children of its body first") {
  execution e;
  e.cap = 4;  // of which two are taken by the frame below
  e.fork(0, [&] {
    for (int i = 1; i <= 8; ++i) {
      CHECK(classify_fork(e) == fork_action::defer);
      CHECK(e.live < 4);
      e.fork(i);
    }
    CHECK(worker.capped == 3);
    CHECK(e.log == numbers{0, 1, 2, 3, 4, 5, 6});
  });
  e.fork(9);
  CHECK(e.drain_all());
  CHECK(e.live == 0);
  CHECK(e.log == numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("beyond the cap with nothing pending in the body, nesting goes on") {
  execution e;
  e.cap = 2;
  e.fork(0, [&] {
    CHECK(classify_fork(e) == fork_action::defer);
    e.fork(1, [&] {
      CHECK(e.live == 2);
      CHECK(classify_fork(e) == fork_action::defer);
      e.fork(2);
    });
  });
  CHECK(e.drain_all());
  CHECK(worker.capped == 0);
  CHECK(e.log == numbers{0, 1, 2});
}

TEST_CASE("deep in the stack, room is made only for a body that has forked very many tasks") {
  execution e;
  e.cap = 2;
  e.stack_limit = UINTPTR_MAX;
  std::size_t most = 0;
  e.fork(0, [&] {
    for (int i = 1; i <= 10'000; ++i) {
      CHECK(classify_fork(e) == fork_action::defer);
      e.fork(i);
      most = std::max<std::size_t>(most, e.live);
    }
  });
  CHECK(e.drain_all());
  CHECK(worker.capped > 0);
  CHECK(most > 1000);
  CHECK(most < 6000);
  CHECK(e.log.size() == 10'001);
  CHECK(std::is_sorted(e.log.begin(), e.log.end()));
}

TEST_CASE("what is thrown while room is made stays at that place of the reference order") {
  execution e;
  e.cap = 3;
  e.fork(0, [&] {
    e.fork(1);
    e.fork(2, [] { throw 5; });
    CHECK(classify_fork(e) == fork_action::drop);
    CHECK(failing(e));
    CHECK(classify_fork(e) == fork_action::drop);
    e.log.push_back(-1);
  });
  e.fork(3);
  CHECK(e.drain_all());
  CHECK(e.log == numbers{0, 1, 2, -1});
  CHECK(e.thrown_number() == 5);
  CHECK(worker.capped == 1);
}

TEST_CASE("a promoted frame is left to its graph; a frame that a task of it opens is executed as usual") {
  using weft::sched::graph_outcome;
  execution e;
  e.fork(1);
  e.fork(2);
  frame& f = *e.top;
  f.flags.fetch_or(frame::promoted);
  int calls = 0;
  worker.run_promoted = [&](strand& s, frame& g, bool) {
    CHECK(&g == &f);
    if (++calls == 3) {
      g.flags.fetch_or(frame::over);
      return graph_outcome::ended;
    }
    closure* c = g.first.load();
    if (calls == 2) c = c->next.load();
    weft::base::owner_store(g.current, c);
    enter(s, g, *c);
    run_body(s, *c);
    e.fork(10 * calls);
    return graph_outcome::opened;
  };
  CHECK(e.drain_all());
  CHECK(calls == 3);
  CHECK(e.log == numbers{1, 10, 2, 20});
  CHECK_FALSE(e.pending());
}

TEST_CASE("the closure at which the owner was when the frame was promoted is ended in the ordinary way") {
  using weft::sched::graph_outcome;
  execution e;
  closure& first = e.fork(1);
  closure& second = e.fork(2);
  second.what->drop(second);
  frame& f = *e.top;
  f.flags.fetch_or(frame::promoted);
  worker.before_graph = &first;
  worker.run_promoted = [&](strand&, frame& g, bool) {
    g.flags.fetch_or(frame::over);
    return graph_outcome::ended;
  };
  weft::base::owner_store(f.current, begin_frame(e, f));
  CHECK(e.drain_all());
  CHECK(e.log == numbers{1});
}

TEST_CASE("behind what a graph has ended the owner goes on in the ordinary way") {
  using weft::sched::graph_outcome;
  execution e;
  closure& first = e.fork(1);
  closure& second = e.fork(2);
  e.fork(3, [&e] { e.fork(4); });
  e.fork(5);
  frame& f = *e.top;
  f.flags.fetch_or(frame::promoted);
  worker.run_promoted = [&](strand& s, frame& g, bool) {
    for (closure* c : {&second, &first}) {  // as a graph may order them
      weft::base::owner_store(g.current, c);
      enter(s, g, *c);
      run_body(s, *c);
    }
    set(second, closure_state::done);
    weft::base::owner_store(g.current, &second);
    g.flags.fetch_and(static_cast<std::uint8_t>(~frame::promoted));
    return graph_outcome::left;
  };
  CHECK(e.drain_all());
  CHECK(e.log == numbers{2, 1, 3, 4, 5});
  CHECK_FALSE(e.pending());
}

TEST_CASE("a graph that was left at the end of its frame leaves nothing") {
  execution e;
  closure& only = e.fork(1);
  only.what->drop(only);
  frame& f = *e.top;
  f.flags.fetch_or(frame::promoted);
  worker.run_promoted = [&](strand&, frame& g, bool) {
    weft::base::owner_store(g.current, &only);
    g.flags.fetch_and(static_cast<std::uint8_t>(~frame::promoted));
    return weft::sched::graph_outcome::left;
  };
  CHECK(e.drain_all());
  CHECK(e.log.empty());
  CHECK_FALSE(e.pending());
}

TEST_CASE("a strand may be put aside as data in a promoted frame") {
  execution e;
  closure& only = e.fork(1);
  only.what->drop(only);
  frame& f = *e.top;
  f.flags.fetch_or(frame::promoted);
  worker.run_promoted = [](strand&, frame&, bool as_data) {
    CHECK(as_data);
    return weft::sched::graph_outcome::aside;
  };
  CHECK_FALSE(e.drain_all(true));
  CHECK(e.log.empty());
}

TEST_CASE("outside tasks fork and sync stop the program") {
  const auto forked = weft_test::run_in_child([] { classify_fork(weft::sched::current()); });
  CHECK(forked.aborted());
  CHECK_THAT(forked.output, weft_test::contains("weft: fork() was called outside a task"));
  const auto synced = weft_test::run_in_child([] { weft::sched::sync(weft::sched::current()); });
  CHECK(synced.aborted());
  CHECK_THAT(synced.output, weft_test::contains("weft: sync() was called outside a task"));
}
