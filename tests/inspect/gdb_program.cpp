// SPDX-License-Identifier: BSL-1.0
// A program that stops in a known state, for a debugger: bodies wait for all kinds of things, and one runs.
#include <weft/threads.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

/// Where the debugger stops it.
extern "C" [[gnu::noinline]] void known_state() { asm volatile("" ::: "memory"); }

namespace {

constexpr int count = 3;
std::atomic<bool> locked{false};
std::atomic<int> held{0};
std::optional<weft::completion> events[count + 1], never;

template <class Happened>
void wait_until(Happened happened) {
  while (!happened()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void hold(int i) {
  events[i].emplace(weft::this_task::hold());
  ++held;
}

/// Where bodies wait for each other, beside a mutex.
struct meeting_points {
  weft::shared_mutex list;
  weft::condition<int> stage{3};
  weft::mutex paper;
  weft::condition_variable news;
  weft::channel<int> orders{2};
};

/// One task runs and has two locks, one waits for the first, one for a task elsewhere, one for an event, one
/// for those of its tasks that its graph has given to others, and one at each of the other places.
void all_kinds(weft::mutex& door, meeting_points& at, weft::shared<int>& y, weft::shared<int> (&x)[count]) {
  weft::fork(
      {.name = "runs", .event = true},
      [&](int& v) {
        const std::unique_lock lock(door);
        const std::unique_lock writes(at.list);
        locked = true;
        wait_until([] { return false; });
        v = 1;
      },
      weft::update(y));
  wait_until([] { return locked.load(); });
  weft::spawn({.name = "locks"}, [&] { const std::unique_lock lock(door); });
  weft::spawn({.name = "small"}, [] {
    weft::shared<int> z(0);
    weft::fork({.name = "held", .event = true}, [](int&) { hold(count); }, weft::update(z));
    for (int i = 0; i < 3; ++i) weft::fork({.name = "behind"}, [](int& v) { ++v; }, weft::update(z));
  });
  weft::spawn({.name = "large"}, [&] {
    weft::fork({.name = "gate", .local = true, .event = true},
               [] { wait_until([] { return held == count + 1; }); });
    for (int i = 0; i < count; ++i)
      weft::fork({.name = "held", .event = true}, [i](int&) { hold(i); }, weft::commute(x[i]));
    for (int i = 0; i < 2 * count; ++i)
      weft::fork({.name = "behind"}, [](int& v) { ++v; }, weft::commute(x[i / 2]));
  });
  weft::spawn({.name = "reads"}, [&] { const std::shared_lock lock(at.list); });
  weft::spawn({.name = "watches"}, [&] { at.stage.wait_equal(4); });
  weft::spawn({.name = "hears"}, [&] {
    std::unique_lock lock(at.paper);
    at.news.wait(lock);
  });
  weft::spawn({.name = "takes"}, [&] { at.orders.pop(); });
}

/// Two bodies wait for each other for ever, and one for an event.
void deadlock() {
  weft::mutex left, right;
  weft::latch both(2);
  const auto lock = [&](weft::mutex& a, weft::mutex& b) {
    const std::unique_lock first(a);
    both.arrive_and_wait();
    const std::unique_lock second(b);
  };
  weft::spawn({.name = "left first"}, [&] { lock(left, right); });
  weft::spawn({.name = "right first"}, [&] { lock(right, left); });
  weft::fork({.name = "traced", .event = true}, [] { never.emplace(weft::this_task::hold()); });
  weft::sync();
}

/// When the description has all that, nothing but `runs` goes on any more.
bool stands(const std::string& first, const std::string& second) {
  for (const char* part :
       {"waits for a mutex", "of 9 unfinished", "'small' > 'held' waits", "waits for 'runs'", "'reads' waits",
        "'watches' waits", "'hears' waits", "'takes' waits"})
    if (first.find(part) == std::string::npos) return false;
  const std::size_t one = first.find(" sleeps");
  return one != std::string::npos && first.find(" sleeps", one + 1) != std::string::npos &&
         second.find(" sleeps") != std::string::npos && second.find("'traced' waits") != std::string::npos &&
         second.find("cycle:") != std::string::npos;
}

/// Tells the compiler that somebody looks at it, so that it is in memory.
void keep_one(const void* place) { asm volatile("" ::"r"(place) : "memory"); }
template <class... T>
void keep(const T&... values) {
  (keep_one(&values), ...);
}

/// Stops in a task that has rights.
void with_rights() {
  weft::runtime one({.workers = 1});
  weft::shared<int> seven(7);
  weft::shared<std::vector<int>> list(std::size_t{3}, 5);
  weft::shared_array<int> array(4);
  one.run(
      [](weft::read<int> r, weft::update<std::vector<int>> u, weft::write<int[]> part) {
        const weft::interval<long> range(3, 30);
        weft::shared<std::string> local("in a task");
        const auto lost = weft::fork([]() -> int { throw 0; });
        try {
          weft::sync();
        } catch (int) {
        }
        const auto result = weft::fork({.event = true}, [] { return 4; });
        part[1] = 6;
        keep(r, u, part, range, local, lost, result);
        known_state();
        keep(r, u, part, range, local, lost, result);
      },
      weft::read(seven), weft::update(list), weft::write(array.slice(1, 2)));
}

}  // namespace

int main() {
  with_rights();
  // Static, so that the debugger finds them, however they are used.
  static weft::runtime first({.workers = 3}), second({.workers = 1, .trace = "trace.json"});
  static weft::mutex door;
  static weft::semaphore permits(2);
  static meeting_points at;
  static weft::shared_mutex open, shelf;
  static weft::condition_variable silence;
  static weft::channel<int> shut(1);
  shelf.lock_shared();
  shelf.lock_shared();
  shut.push(5);
  shut.close();
  static weft::shared<int> y(7), nothing, x[count];
  static weft::shared<std::string> words("of a string");
  static weft::shared_array<int> array(4);
  std::thread beside([&] { first.run([&] { all_kinds(door, at, y, x); }); });
  std::thread third([&] { second.run([] { deadlock(); }); });
  std::string said;
  wait_until([&] {
    const std::string a = first.describe(), b = second.describe();
    said = a + b;
    return stands(a, b);
  });
  std::printf("%s----\n", said.c_str());
  std::fflush(stdout);
  known_state();
  std::_Exit(0);
}
