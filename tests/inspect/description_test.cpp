// SPDX-License-Identifier: BSL-1.0
// A runtime describes itself: who waits for what, by name; and its watchdog speaks when it should, once.
#include "flow/runtimes.hpp"
#include "support/child.hpp"
#include "support/environment.hpp"

#include <weft/inspect/detail/description.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using std::chrono::milliseconds;
using weft_test::contains;
using weft_test::wait_until;

namespace {

/// Runs `f` on a runtime beside the test; its end is the end of the run.
class run_beside {
 public:
  template <class F>
  run_beside(weft::runtime& rt, F f) : thread_([&rt, f] { rt.run(f); }) {}
  ~run_beside() { thread_.join(); }
  run_beside(const run_beside&) = delete;
  run_beside& operator=(const run_beside&) = delete;

 private:
  std::thread thread_;
};

/// The first description that contains all of these; the last one after too long a time.
std::string description_with(const weft::runtime& rt, const std::vector<std::string>& parts) {
  std::string text;
  wait_until([&] {
    text = rt.describe();
    for (const std::string& p : parts)
      if (text.find(p) == std::string::npos) return false;
    return true;
  });
  return text;
}

/// Sets a flag when a scope ends, so that tasks end even if a check throws.
struct set_at_end {
  std::atomic<bool>& flag;
  ~set_at_end() { flag = true; }
};

void wait_for(const std::atomic<bool>& flag) {
  while (!flag.load()) std::this_thread::yield();
}

void fib(long n, weft::write<long> r) {
  if (n < 2) {
    r = n;
    return;
  }
  weft::shared<long> a, b;
  weft::fork(fib, n - 1, a);
  weft::fork(fib, n - 2, b);
  weft::fork([](long x, long y, long& sum) { sum = x + y; }, weft::read(a), weft::read(b), r);
}

/// A task that is held open until somebody takes the completion.
struct event {
  std::optional<weft::completion> completion;
  std::atomic<bool> begun{false};

  void hold() {
    completion.emplace(weft::this_task::hold());
    begun = true;
  }
  void happen() {
    wait_for(begun);
    completion->complete();
  }
};

/// What the calls of the standard error stream have left in a file so far.
class error_file {
 public:
  error_file() { dup2(fileno(file_), STDERR_FILENO); }
  std::size_t count(const std::string& sentence) const {
    std::string text(std::size_t{1} << 16, '\0');
    text.resize(static_cast<std::size_t>(pread(fileno(file_), text.data(), text.size(), 0)));
    std::size_t n = 0;
    for (std::size_t at = text.find(sentence); at != std::string::npos; at = text.find(sentence, at + 1)) ++n;
    return n;
  }

 private:
  std::FILE* file_ = std::tmpfile();
};

/// What another thread says of all runtimes where it must not wait.
std::string dump() {
  std::FILE* const file = std::tmpfile();
  std::thread([&] { weft::sched::dump_living(fileno(file)); }).join();
  std::string text(std::size_t{1} << 16, '\0');
  text.resize(static_cast<std::size_t>(pread(fileno(file), text.data(), text.size(), 0)));
  std::fclose(file);
  return text;
}

const std::string stuck = "nothing was executed, while strands wait";
const std::string busy = "no task was seen to begin or end";

}  // namespace

TEST_CASE("an event that does not come is described, and who is held open by it") {
  weft::runtime rt({.workers = 1, .spin = std::chrono::microseconds(0)});
  weft::shared<int> x(0);
  event e;
  {
    const run_beside run(rt, [&] {
      weft::fork({.name = "reader", .event = true}, [&](int&) { e.hold(); }, weft::update(x));
      weft::fork({.name = "user"}, [](int&) {}, weft::update(x));
    });
    const std::string text = description_with(rt, {"waits for", "sleeps"});
    CHECK_THAT(text, contains(" with 1 worker\n  worker 0 sleeps\n"));
    CHECK_THAT(text,
               contains("in 'task' > 'reader' waits for an event outside the runtime, by which 'reader'"));
    CHECK(text.find("cycle") == std::string::npos);
    e.happen();
  }
  CHECK(description_with(rt, {"sleeps"}).find("strand") == std::string::npos);
}

TEST_CASE("a nested run is described from both sides, and one that has not begun") {
  weft::runtime outer({.workers = 1}), inner({.workers = 1});
  std::atomic<bool> go{false}, of_same{false};
  const run_beside run(outer, [&] {
    weft::fork({.name = "caller", .event = true}, [&] {
      inner.run([&] { weft::fork({.name = "busy", .event = true}, [&] { wait_for(go); }); });
      outer.run([&] { weft::fork({.name = "below", .event = true}, [&] { wait_for(of_same); }); });
    });
  });
  const set_at_end last{of_same}, first{go};
  const std::string there = description_with(inner, {"'busy'"});
  CHECK_THAT(there, contains("  worker 0 runs 'task' > 'busy' (strand 1)\n"));
  const std::string here = description_with(outer, {"waits for a run of runtime", "on worker 0"});
  CHECK_THAT(here, contains("in 'task' > 'caller' waits for a run of runtime "));
  CHECK_THAT(here, contains(": strand 1 of runtime "));
  go = true;
  const std::string same = description_with(outer, {"waits for a run of this runtime", "'below'"});
  const run_beside second(outer, [] {});
  CHECK_THAT(description_with(outer, {"is to begin"}), contains(" is to begin 'task'\n"));
  of_same = true;
  CHECK_THAT(same, contains("worker 0 runs 'task' > 'below' (strand "));
  CHECK_THAT(same, contains(" on worker 0\n"));
}

TEST_CASE("a stolen task is named, with its worker") {
  weft::runtime rt({.workers = 3, .inlining = false});
  std::atomic<bool> go{false}, own{false};
  const run_beside run(rt, [&] {
    weft::fork({.name = "parent"}, [&] {
      std::atomic<bool> started{false};
      weft::fork({.name = "stolen"}, [&] {
        started = true;
        wait_for(go);
      });
      wait_for(started);
      weft::sync();
    });
    weft::fork({.name = "other"}, [&] { wait_for(own); });
  });
  const set_at_end last{own}, first{go};
  const std::string text = description_with(rt, {"waits for 'stolen': strand ", "'other'", "sleeps"});
  CHECK_THAT(text, contains("'parent' waits for 'stolen': strand "));
  CHECK_THAT(text, contains(" runs 'stolen' (strand "));
  CHECK_THAT(text, contains(" runs 'other' (strand "));
}

TEST_CASE("who waits for a large frame says so") {
  bool seen = false;
  for (int i = 0; i < 200 && !seen; ++i) {
    weft::runtime rt(weft_test::two_and_deferring());
    weft::shared<int> x(0), y(0);
    std::atomic<bool> go{false}, forked{false};
    std::atomic<int> begun{0};
    const run_beside run(rt, [&] {
      for (int k = 0; k < 12; ++k)
        weft::fork(
            {.name = "link"},
            [&](int&) {
              if (begun.fetch_add(1) == 0) wait_for(go);
            },
            weft::update(k % 2 == 0 ? x : y));
      forked = true;
      for (int t = 0; t < 1000 && begun.load() == 0; ++t) std::this_thread::yield();
    });
    const set_at_end end{go};
    wait_until([&] { return forked.load(); });
    for (int t = 0; t < 50 && !seen; ++t) {
      const std::string text = rt.describe();
      seen = text.find(" waits for a task that is ready, of ") != std::string::npos &&
             text.find(" unfinished ones that it has forked: strand ") != std::string::npos;
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  CHECK(seen);
}

TEST_CASE("describing disturbs nobody, in tasks and beside them") {
  for (const bool inlining : {true, false}) {
    weft::runtime rt({.workers = 4, .inlining = inlining}), other({.workers = 2, .inlining = inlining});
    std::atomic<bool> end{false};
    std::size_t length = 0;
    std::thread observer([&] {
      for (; !end.load(); std::this_thread::sleep_for(std::chrono::microseconds(100)))
        length += rt.describe().size() + other.describe().size();
    });
    long wrong = 0;
    std::atomic<std::size_t> inside{0};
    for (unsigned i = 0; i < 300 / weft_test::scale() + 5; ++i) {
      weft::shared<long> r, nested;
      std::array<weft::shared<long>, 3> cells{weft::shared<long>(0L), weft::shared<long>(0L),
                                              weft::shared<long>(0L)};
      rt.run([&] {
        weft::fork(fib, 12L, r);
        weft::fork(
            {.name = "nested"},
            [&](long& v) {
              other.run([&] { weft::fork(fib, 8L, weft::write(weft::borrow(v))); });
              inside += rt.describe().size();
            },
            weft::write(nested));
        for (unsigned k = 0; k < 60; ++k)
          weft::fork({.name = "link"}, [](long& v) { ++v; }, weft::update(cells[k % 3]));
      });
      wrong += r.get() != 144 || nested.get() != 21;
      for (auto& c : cells) wrong += c.get() != 20;
    }
    end = true;
    observer.join();
    CHECK(wrong == 0);
    CHECK(length > 0);
    CHECK(inside > 0);
  }
}

TEST_CASE("the watchdog speaks once of a standstill, and again after progress") {
  const auto child = weft_test::run_in_child([] {
    const error_file errors;
    weft::runtime rt({.workers = 2, .stall = milliseconds(20)});
    for (std::size_t round = 1; round <= 2; ++round) {
      event e;
      const run_beside run(rt, [&] { weft::fork({.name = "held", .event = true}, [&] { e.hold(); }); });
      const bool spoke = wait_until([&] { return errors.count(stuck) == round; });
      std::this_thread::sleep_for(milliseconds(200));
      std::printf("%d %zu %zu\n", spoke, errors.count(stuck), errors.count("by which 'held' is held open"));
      e.happen();
    }
  });
  CHECK(child.exit_code == 0);
  CHECK(child.output == "1 1 1\n1 2 2\n");
}

TEST_CASE("the watchdog says of long tasks that they may be just that") {
  const auto child = weft_test::run_in_child([] {
    const error_file errors;
    weft::runtime rt({.workers = 2, .stall = milliseconds(20)});
    std::atomic<bool> go{false};
    const run_beside run(rt, [&] { weft::fork({.name = "long", .event = true}, [&] { wait_for(go); }); });
    const bool spoke = wait_until([&] { return errors.count(" runs 'task' > 'long'") == 1; });
    const std::size_t reports = errors.count(busy);  // another one, if it has begun late
    std::this_thread::sleep_for(milliseconds(200));
    std::printf("%d %zu %zu\n", spoke, errors.count(busy) - reports, errors.count(" runs 'task' > 'long'"));
    go = true;
  });
  CHECK(child.exit_code == 0);
  CHECK(child.output == "1 0 1\n");
}

TEST_CASE("the watchdog is silent while a runtime is idle or busy") {
  const auto child = weft_test::run_in_child([] {
    const error_file errors;
    const auto last = [](milliseconds time) {
      return [end = weft::base::clock::now() + time] { return weft::base::clock::now() < end; };
    };
    {
      weft::runtime rt({.workers = 2, .stall = milliseconds(5)});
      rt.run([] {});
      const std::size_t before = errors.count("weft");  // its threads may have begun late
      std::this_thread::sleep_for(milliseconds(100));
      std::printf("%zu\n", errors.count("weft") - before);
    }
    for (const bool inlining : {true, false}) {
      weft::runtime rt(
          {.workers = inlining ? 1u : 2u, .inlining = inlining, .cap = 64, .stall = milliseconds(400)});
      for (const auto goes_on = last(milliseconds(700)); goes_on();) {  // the same task at the same place
        rt.run([&] {
          for (int i = 0; i < 50; ++i) {
            weft::fork([] { std::this_thread::sleep_for(milliseconds(1)); });
            weft::sync();
          }
        });
      }
      rt.run([goes_on = last(milliseconds(700))] {  // a body that only forks
        while (goes_on()) weft::fork([] { std::this_thread::sleep_for(milliseconds(1)); });
      });
      std::printf("%zu\n", errors.count("weft"));
    }
  });
  CHECK(child.exit_code == 0);
  CHECK(child.output == "0\n0\n0\n");
}

TEST_CASE("names are cut where there is no room for them") {
  weft::sched::strand_view v;
  v.add(nullptr);
  v.add(std::string(47, 'a').c_str());
  v.add(std::string(48, 'b').c_str());
  v.add(std::string(1000, 'c').c_str());
  CHECK(std::string(v.in[0].text) == "task");
  CHECK(std::string(v.in[1].text) == std::string(47, 'a'));
  CHECK(std::string(v.in[2].text) == std::string(44, 'b') + "...");
  CHECK(std::string(v.in[3].text) == std::string(44, 'c') + "...");
  v.add("deep");  // the outermost task stays, and the innermost ones
  CHECK(v.depth == 5);
  CHECK(std::string(v.in[0].text) == "task");
  CHECK(std::string(v.in[1].text) == std::string(44, 'b') + "...");
  CHECK(std::string(v.in[3].text) == "deep");
}

TEST_CASE("more strands than there is room for are counted") {
  weft::runtime rt({.workers = 1});
  std::atomic<bool> go{false};
  std::vector<std::thread> callers;
  {
    const run_beside first(rt, [&] { weft::fork({.name = "busy", .event = true}, [&] { wait_for(go); }); });
    const set_at_end end{go};
    description_with(rt, {"'busy'"});
    for (int i = 0; i < 130; ++i) callers.emplace_back([&] { rt.run([] {}); });
    CHECK_THAT(description_with(rt, {"  and 30 more strands\n"}), contains("  and 30 more strands\n"));
    const std::string dumped = dump();  // which has memory for 128
    CHECK_THAT(dumped, contains(" with 1 worker\n  worker 0 "));
    CHECK_THAT(dumped, contains("  not looked at: 3 strands\n"));
    std::string missing;
    weft::sched::registered_engine::first()->home().submitted.each(1'000'000u, [&](weft::sched::strand&) {
      if (missing.empty()) missing = dump();
    });
    CHECK_THAT(missing, contains("  some lists of strands are locked and missing here\n"));
  }
  for (std::thread& t : callers) t.join();
}

TEST_CASE("of many who are at what somebody waits for, some are named") {
  bool seen = false;
  for (int i = 0; i < 50 && !seen; ++i) {
    weft::runtime rt(weft_test::two_and_deferring());
    std::array<event, 20> events;
    const run_beside run(rt, [&] {
      for (event& e : events) weft::fork({.name = "held", .event = true}, [&e] { e.hold(); });
      // The other worker takes them one after the other; what this body executes itself has no strand.
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
      const auto all_begun = [&] {
        for (const event& e : events)
          if (!e.begun) return false;
        return true;
      };
      while (!all_begun() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    });
    for (const event& e : events) wait_for(e.begun);
    for (int t = 0; t < 50 && !seen; ++t) {
      const std::string text = rt.describe();
      seen = text.find(" unfinished ones that it has forked: strand ") != std::string::npos &&
             text.find(" waits, strand ") != std::string::npos && text.find(", and ") != std::string::npos;
      std::this_thread::sleep_for(milliseconds(1));
    }
    for (event& e : events) e.happen();
  }
  CHECK(seen);
}

TEST_CASE("what is locked is not waited for, and said") {
  using weft::sched::registered_engine;
  weft::runtime rt({.workers = 1});
  event e;
  const run_beside run(rt, [&] { weft::fork({.name = "held", .event = true}, [&] { e.hold(); }); });
  description_with(rt, {"waits for an event"});
  weft::sched::engine& home = registered_engine::first()->home();
  {
    const std::lock_guard hold(registered_engine::mutex);
    std::string described;
    std::thread([&] { described = rt.describe(); }).join();
    CHECK(described == "somebody else describes a runtime just now\n");
    CHECK(dump() == "the list of runtimes is locked\n");
  }
  std::string missing;
  home.each_strand(1'000'000u, [&](weft::sched::strand& s, std::size_t) {
    if (s.status.load() != weft::sched::strand_status::waiting) return;
    missing = dump();
  });
  CHECK_THAT(missing, contains("  some lists of strands are locked and missing here\n"));
  CHECK(missing.find("held") == std::string::npos);
  weft::sched::strand* waiting = nullptr;
  home.each_strand(1'000'000u, [&](weft::sched::strand& s, std::size_t) {
    if (s.status.load() == weft::sched::strand_status::waiting) waiting = &s;
  });
  REQUIRE(waiting != nullptr);
  waiting->mutex.lock();
  const std::string unseen = dump();
  waiting->mutex.unlock();
  CHECK_THAT(unseen, contains(" cannot be looked at: its door is locked\n"));
  CHECK_THAT(dump(), contains("'held' waits for an event outside the runtime"));
  e.happen();
}

TEST_CASE("a cycle is described only if all of it stands still") {
  using weft::sched::describer;
  using weft::sched::registered_engine;
  using weft::sched::strand_view;
  weft::runtime rt({.workers = 1});
  event first, second, third;
  const run_beside a(rt, [&] {
    weft::fork({.event = true}, [&] { first.hold(); });
    weft::sync();
    weft::fork({.event = true}, [&] { second.hold(); });
  });
  const run_beside b(rt, [&] { weft::fork({.event = true}, [&] { third.hold(); }); });
  wait_for(first.begun);
  wait_for(third.begun);
  std::array<strand_view, 8> room;
  std::size_t n = 0;
  wait_until([&] {
    weft::sched::strand_views views(room, 20'000);
    const std::lock_guard hold(registered_engine::mutex);
    views.add(registered_engine::first()->home());
    n = views.all().size();
    return n == 2 && room[0].is == strand_view::state::waiting && room[1].is == strand_view::state::waiting;
  });
  REQUIRE(n == 2);
  // As if each waited for the run of the other, which the library never does.
  const auto described = [&] {
    weft::sched::strand_views views(room, 20'000);
    const std::lock_guard hold(registered_engine::mutex);
    views.add(registered_engine::first()->home());
    for (strand_view& v : views.all()) {
      v.external = v.ended = false;
      v.awaits = {};
      v.awaits.happens = &(&v == &room[0] ? room[1] : room[0]).who->run.load()->finished;
    }
    return views;
  };
  const auto text_of = [](weft::sched::strand_views views) {
    std::string text;
    const auto append = [](void* to, const char* t, std::size_t length) {
      static_cast<std::string*>(to)->append(t, length);
    };
    const std::lock_guard hold(registered_engine::mutex);
    describer(weft::sched::description_sink(append, &text), views).describe(*registered_engine::first());
    return text;
  };
  const weft::sched::strand_views views = described();
  const std::string text = text_of(views);
  const auto name = [](const strand_view& v) { return "strand " + std::to_string(v.number + 1); };
  CHECK_THAT(text, contains("  cycle: "));
  CHECK_THAT(text, contains(name(room[0]) + " in 'task' waits for " + name(room[1]) + " in 'task'"));
  CHECK_THAT(text, contains(name(room[1]) + " in 'task' waits for " + name(room[0])));
  first.happen();  // one of them goes on, and waits again
  wait_for(second.begun);
  CHECK(text_of(views).find("cycle") == std::string::npos);
  second.happen();
  third.happen();
}

TEST_CASE("a cycle of waits is found, and only a cycle") {
  using weft::sched::strand_view;
  weft::sched::strand s[4];
  weft::sched::run_state runs[4];
  std::array<strand_view, 4> all;
  // A strand waits for a run whose root is the next strand.
  for (std::size_t i = 0; i < 4; ++i) {
    all[i].who = &s[i];
    all[i].is = strand_view::state::waiting;
    all[i].run = &runs[i];
    all[i].awaits.happens = &runs[(i + 1) % 4].finished;
  }
  const auto find = [&](std::size_t start) {
    for (strand_view& v : all) v.mark = 0, v.next = 0;
    return weft::sched::find_cycle(all, start);
  };
  for (std::size_t start = 0; start < 4; ++start) {
    REQUIRE(find(start) == start);
    std::size_t at = start;
    for (int i = 0; i < 4; ++i) at = all[at].parent;
    CHECK(at == start);
  }
  all[3].awaits.happens = &runs[1].finished;  // 0 -> 1 -> 2 -> 3 -> 1
  CHECK(find(0) == 1);
  CHECK(all[1].parent == 3);
  all[3].is = strand_view::state::running;
  for (std::size_t start = 0; start < 4; ++start) CHECK(find(start) == 4);
}
