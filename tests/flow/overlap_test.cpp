// SPDX-License-Identifier: BSL-1.0
// Independent tasks run at the same time, whatever their rights look like: two of them meet on two workers.
#include "support/catch.hpp"

#include <weft/append.hpp>
#include <weft/weft.hpp>

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

/// Where two tasks wait for each other: each has begun before the other one ends.
class meeting {
 public:
  void attend() {
    begun_.fetch_add(1);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (begun_.load() < 2) {
      if (std::chrono::steady_clock::now() > limit) return missed_.store(true);
      std::this_thread::yield();
    }
  }
  bool took_place() const { return begun_.load() == 2 && !missed_.load(); }

 private:
  std::atomic<int> begun_{0};
  std::atomic<bool> missed_{false};
};

void work_for(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// What the two tasks work on; one of each for each of them.
struct world {
  meeting here;
  std::deque<weft::shared<int>> shared;
  weft::shared<int> sum{0};
  int own[2] = {};
  weft::shared_array<int> array{8};
  weft::append_sink sink{[](std::span<const std::byte>) {}};
  world() {
    for (int i = 0; i < 2; ++i) shared.emplace_back(i);
  }
};

/// fork with options or without.
using options = std::optional<weft::task_options>;
template <class F, class... A>
void go(const options& o, F f, A&&... a) {
  if (o)
    weft::fork(*o, f, std::forward<A>(a)...);
  else
    weft::fork(f, std::forward<A>(a)...);
}

/// A list that consists of one right.
template <class Right>
std::vector<Right> list(Right r) {
  return {r};
}

/// Forks the i-th of the two tasks, which meet.
using form = void (*)(world& w, std::size_t i, const options& o);
struct named_form {
  const char* name;
  form fork;
};

// Reading the same object in both is independent, too, as is contributing to the same.
const named_form forms[] = {
    {"no rights", [](world& w, std::size_t, const options& o) { go(o, [&w] { w.here.attend(); }); }},
    {"a result",
     [](world& w, std::size_t, const options& o) {
       if (o)
         weft::fork(*o, [&w] { return w.here.attend(), 1; });
       else
         weft::fork([&w] { return w.here.attend(), 1; });
     }},
    {"read",
     [](world& w, std::size_t i, const options& o) {
       go(o, [&w](weft::read<int>) { w.here.attend(); }, weft::read(w.shared[i]));
     }},
    {"read the same",
     [](world& w, std::size_t, const options& o) {
       go(o, [&w](const int&) { w.here.attend(); }, weft::read(w.sum));
     }},
    {"write",
     [](world& w, std::size_t i, const options& o) {
       go(o, [&w](weft::write<int> x) { w.here.attend(), x = 1; }, weft::write(w.shared[i]));
     }},
    {"write the same, renamed",
     [](world& w, std::size_t, const options& o) {
       go(o, [&w](weft::write<int> x) { x = 1, w.here.attend(); }, weft::write(w.sum));
     }},
    {"update",
     [](world& w, std::size_t i, const options& o) {
       go(o, [&w](int& x) { w.here.attend(), ++x; }, weft::update(w.shared[i]));
     }},
    {"update borrowed",
     [](world& w, std::size_t i, const options& o) {
       const weft::borrowed<int> b = weft::borrow(w.own[i]);
       go(o, [&w](weft::update<int> x) { w.here.attend(), ++*x; }, weft::update(b));
     }},
    {"reduce",
     [](world& w, std::size_t i, const options& o) {
       go(o, [&w](auto t) { w.here.attend(), t += 1; }, weft::reduce(w.shared[i], std::plus<>{}));
     }},
    {"reduce the same",
     [](world& w, std::size_t, const options& o) {
       go(o, [&w](auto t) { w.here.attend(), t += 1; }, weft::reduce(w.sum, std::plus<>{}));
     }},
    {"commute",
     [](world& w, std::size_t i, const options& o) {
       go(o, [&w](int& x) { w.here.attend(), ++x; }, weft::commute(w.shared[i]));
     }},
    {"list of read",
     [](world& w, std::size_t i, const options& o) {
       go(o, [&w](std::vector<weft::read<int>>) { w.here.attend(); }, list(weft::read(w.shared[i])));
     }},
    {"list of read of the same",
     [](world& w, std::size_t, const options& o) {
       go(o, [&w](std::vector<weft::read<int>>) { w.here.attend(); }, list(weft::read(w.sum)));
     }},
    {"list of write",
     [](world& w, std::size_t i, const options& o) {
       go(
           o, [&w](std::vector<weft::write<int>> l) { w.here.attend(), l[0] = 1; },
           list<weft::write<int>>(weft::write(w.shared[i])));
     }},
    {"list of update",
     [](world& w, std::size_t i, const options& o) {
       const weft::borrowed<int> b = weft::borrow(w.own[i]);
       go(o, [&w](std::vector<weft::update<int>> l) { w.here.attend(), ++*l[0]; }, list(weft::update(b)));
     }},
    {"array of update",
     [](world& w, std::size_t i, const options& o) {
       const weft::borrowed<int> b = weft::borrow(w.own[i]);
       go(
           o, [&w](std::array<weft::update<int>, 1> l) { w.here.attend(), ++*l[0]; },
           std::array<weft::update<int>, 1>{weft::update(b)});
     }},
    {"list of commute",
     [](world& w, std::size_t i, const options& o) {
       go(
           o, [&w](std::vector<weft::commute<int>> l) { w.here.attend(), ++*l[0]; },
           list<weft::commute<int>>(weft::commute(w.shared[i])));
     }},
    {"empty list",
     [](world& w, std::size_t, const options& o) {
       go(o, [&w](std::vector<weft::update<int>>) { w.here.attend(); }, std::vector<weft::update<int>>());
     }},
    {"list and right",
     [](world& w, std::size_t i, const options& o) {
       const weft::borrowed<int> b = weft::borrow(w.own[i]);
       go(
           o, [&w](std::vector<weft::update<int>> l, int& x) { w.here.attend(), x += ++*l[0]; },
           list(weft::update(b)), weft::update(w.shared[i]));
     }},
    {"part read",
     [](world& w, std::size_t i, const options& o) {
       go(o, [&w](std::span<const int>) { w.here.attend(); }, weft::read(w.array.slice(4 * i, 4)));
     }},
    {"part read, overlapping",
     [](world& w, std::size_t, const options& o) {
       go(o, [&w](std::span<const int>) { w.here.attend(); }, weft::read(w.array.slice(2, 4)));
     }},
    {"part written",
     [](world& w, std::size_t i, const options& o) {
       go(o, [&w](weft::write<int[]> p) { w.here.attend(), p[0] = 1; }, weft::write(w.array.slice(4 * i, 4)));
     }},
    {"part updated",
     [](world& w, std::size_t i, const options& o) {
       go(o, [&w](std::span<int> p) { w.here.attend(), ++p[0]; }, weft::update(w.array.slice(4 * i, 4)));
     }},
    {"list of parts",
     [](world& w, std::size_t i, const options& o) {
       go(
           o, [&w](std::vector<weft::update<int[]>> l) { w.here.attend(), ++l[0][0]; },
           list<weft::update<int[]>>(weft::update(w.array.slice(4 * i, 4))));
     }},
    {"weak",
     [](world& w, std::size_t i, const options& o) {
       go(
           o,
           [&w](weft::weak_update<int> x) {
             weft::fork([&w](int& v) { w.here.attend(), ++v; }, weft::update(x));
           },
           weft::weak_update(w.shared[i]));
     }},
    {"list of weak",
     [](world& w, std::size_t i, const options& o) {
       go(
           o,
           [&w](std::vector<weft::weak_update<int>> l) {
             weft::fork([&w](int& v) { w.here.attend(), ++v; }, weft::update(l[0]));
           },
           list<weft::weak_update<int>>(weft::weak_update(w.shared[i])));
     }},
    {"weak part",
     [](world& w, std::size_t i, const options& o) {
       go(
           o,
           [&w](weft::weak_update<int[]> p) {
             weft::fork([&w](std::span<int> v) { w.here.attend(), ++v[0]; }, weft::update(p));
           },
           weft::weak_update(w.array.slice(4 * i, 4)));
     }},
    {"append",
     [](world& w, std::size_t, const options& o) {
       go(o, [&w](weft::append out) { w.here.attend(), out.write("x"); }, w.sink);
     }},
    {"loop",
     [](world& w, std::size_t i, const options& o) {
       weft::fork_for(
           {.priority = o ? o->priority : 0}, 0, 1, [&w](int, int& x) { w.here.attend(), ++x; },
           weft::update(w.shared[i]));
     }},
    {"loop that divides itself",
     [](world& w, std::size_t, const options& o) {
       weft::fork_for({.priority = o ? o->priority : 0}, 0, 1, [&w](int) { w.here.attend(); });
     }},
    {"loop with a list",
     [](world& w, std::size_t i, const options& o) {
       const weft::borrowed<int> b = weft::borrow(w.own[i]);
       weft::fork_for(
           {.priority = o ? o->priority : 0}, 0, 1,
           [&w](int, const std::vector<weft::update<int>>& l) { w.here.attend(), ++*l[0]; },
           list(weft::update(b)));
     }},
};

const std::pair<const char*, options> all_options[] = {
    {"without options", {}},
    {"named", weft::task_options{.name = "named"}},
    {"with priority", weft::task_options{.priority = 3}},
    {"with an event", weft::task_options{.event = true}},
};

/// How the body stands that forks the two.
enum class shape { ends, syncs, busy_before, in_weak_task, in_task };
const std::pair<const char*, shape> shapes[] = {
    {"the body ends", shape::ends},        {"the body waits", shape::syncs},
    {"behind others", shape::busy_before}, {"in a weak task", shape::in_weak_task},
    {"in a task", shape::in_task},
};

void fork_both(world& w, const form& f, const options& o, shape s) {
  const auto both = [&w, f, o] {
    f(w, 0, o);
    f(w, 1, o);
  };
  switch (s) {
    case shape::ends:
      return both();
    case shape::syncs:
      return both(), weft::sync();
    case shape::busy_before:
      // Long enough that nobody takes several at once: what is taken with a task waits for its end.
      for (int i = 0; i < 10; ++i) weft::fork([] { work_for(std::chrono::microseconds(30)); });
      return both();
    case shape::in_weak_task:
      return weft::fork(
          [both](weft::weak_update<int>, weft::weak_update<int>, weft::weak_update<int>) { both(); },
          weft::weak_update(w.shared[0]), weft::weak_update(w.shared[1]), weft::weak_update(w.sum));
    case shape::in_task:
      return weft::fork([both] { both(); });
  }
}

}  // namespace

TEST_CASE("two independent tasks overlap on two workers, whatever their rights, options and place") {
  weft::runtime rt({.workers = 2});
  int meetings = 0;
  for (const auto& how : all_options)
    for (const auto& where : shapes)
      for (const named_form& f : forms) {
        INFO(f.name << ", " << how.first << ", " << where.first);
        world w;
        rt.run([&] { fork_both(w, f.fork, how.second, where.second); });
        REQUIRE(w.here.took_place());
        ++meetings;
      }
  CHECK(meetings == 4 * 5 * int(std::size(forms)));
}
