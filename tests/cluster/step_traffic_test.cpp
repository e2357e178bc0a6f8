// SPDX-License-Identifier: BSL-1.0
// What the messages of a partitioned step keep to: parts of long values, a limit for values that no task
// needs yet, processes without memory, and processes that are silent.
#include "fault/waiting.hpp"
#include "step_program.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/scratch.hpp"

#include <weft/cluster/partition.hpp>
#include <weft/cluster/threads.hpp>
#include <weft/placement/list_schedule.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using namespace weft_test;
using weft::partition_options, weft::thread_cluster;

namespace {

/// From so many bytes on the n-th allocation fails, counted from 0, while it is armed.
constexpr std::size_t large = 1 << 20;
std::atomic<bool> armed{false};
std::atomic<int> until_failure{0}, fired{0};

[[maybe_unused]] bool fails(std::size_t size) {
  if (size < large || !armed || until_failure-- != 0) return false;
  ++fired;
  return true;
}

}  // namespace

#ifndef WEFT_TEST_THREAD_SANITIZER  // it has replacements of its own
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const p = fails(size) ? nullptr : std::malloc(size);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return fails(size) ? nullptr : std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif

namespace {

/// Task t in process t, modulo their number.
weft::placement::schedule in_turns(const weft::placement::task_graph& g, const weft::placement::machine& m) {
  std::vector<unsigned> on;
  for (std::size_t t = 0; t < g.costs.size(); ++t) on.push_back(static_cast<unsigned>(t % m.processors));
  return weft::placement::list_schedule(g, m, on);
}
/// Another placement each time it is asked.
weft::placement::method anywhere(std::uint32_t seed) {
  return [random = std::make_shared<std::minstd_rand>(seed)](const weft::placement::task_graph& g,
                                                             const weft::placement::machine& m) {
    std::vector<unsigned> on(g.costs.size());
    for (unsigned& p : on) p = static_cast<unsigned>((*random)() % m.processors);
    return weft::placement::list_schedule(g, m, on);
  };
}

/// What each process says of `f(process)`.
template <class F>
std::vector<std::string> errors_of(thread_cluster& c, const F& f) {
  std::vector<std::string> said(static_cast<std::size_t>(c.size()));
  c.each([&](thread_cluster::process& here) {
    std::string& text = said[static_cast<std::size_t>(here.rank())];
    try {
      f(here);
      text = "nothing";
    } catch (const std::exception& e) {
      text = e.what();
    } catch (...) {
      text = "something";
    }
  });
  return said;
}

}  // namespace

TEST_CASE("values that are longer than a part, or than a message may be, go in parts", "[partition]") {
  constexpr std::size_t part = 1024, longest = 1200;
  for (const unsigned disorder : {0u, 1u, 2u, 3u}) {
    thread_cluster c(3, {.part_bytes = part}, {.disorder = disorder, .longest = longest});
    std::atomic<std::uint64_t> right{0}, longs{0}, messages{0}, bytes{0};
    c.each([&](thread_cluster::process& here) {
      weft::shared<std::string> x, y, z;
      weft::partitioned step(here,
                             [&] {
                               const auto longer = [](const std::string& a, std::string& b) {
                                 b = a + std::string(700, static_cast<char>('a' + a.size() / 700 % 26));
                               };
                               weft::fork(longer, weft::read(x), weft::update(y));
                               weft::fork(longer, weft::read(y), weft::update(z));
                               weft::fork(longer, weft::read(z), weft::update(x));
                             },
                             {.method = in_turns});
      step.run(4);
      std::string expected;
      for (std::size_t i = 0; i < 12; ++i) expected += std::string(700, static_cast<char>('a' + i % 26));
      right += x.get() == expected && y.get().size() == 700 * 10 && z.get().size() == 700 * 11;
      longs += step.counters().long_messages;
      messages += step.counters().messages;
      bytes += step.counters().bytes;
    });
    INFO("disorder " << disorder);
    CHECK(right == 3);
    CHECK(longs >= 10);
    CHECK(bytes / messages < longest);
  }
}

namespace {

struct lead {
  std::atomic<long> produced{0}, consumed{0}, most{0};
  void produce() {
    const long now = ++produced - consumed.load();
    long seen = most.load();
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
  }
};
struct pressed {
  bool right = false;
  long lead = 0;
  std::uint64_t ahead = 0, held = 0;
};
/// A process that writes values as fast as it can, for one that uses each for a millisecond.
pressed run_pressed(std::size_t value, std::size_t ahead_bytes, unsigned disorder) {
  thread_cluster c(2, {.part_bytes = 64 << 10}, {.disorder = disorder});
  lead l;
  pressed got;
  c.each([&](thread_cluster::process& here) {
    std::vector<char> x(value);
    long sum = 0;
    weft::partitioned step(here,
                           [&] {
                             weft::fork(
                                 [&l](std::vector<char>& v) {
                                   ++v[v.size() / 2];
                                   l.produce();
                                 },
                                 weft::update(weft::borrow(x)));
                             weft::fork(
                                 [&l](const std::vector<char>& v, long& all) {
                                   all += v[v.size() / 2];
                                   std::this_thread::sleep_for(1ms);
                                   ++l.consumed;
                                 },
                                 weft::read(weft::borrow(x)), weft::update(weft::borrow(sum)));
                           },
                           {.method = in_turns, .threshold = 1, .ahead_bytes = ahead_bytes});
    constexpr long steps = 100;
    step.run(steps);
    if (here.rank() == 0) {
      got.right = sum == steps * (steps + 1) / 2;
      got.held = step.counters().values_held + step.counters().long_messages;
    } else {
      got.ahead = step.counters().most_ahead;
    }
  });
  got.lead = l.most;
  return got;
}

}  // namespace

TEST_CASE("a process that is ahead of another one waits when enough of its values wait there",
          "[partition]") {
  constexpr std::size_t sizes[] = {10'000, 100'000};  // one message; parts
  for (const std::size_t value : sizes)
    for (const unsigned disorder : {0u, 1u}) {
      const std::size_t limit = 6 * value;
      const pressed p = run_pressed(value, limit, disorder);
      INFO("values of " << value << ", disorder " << disorder);
      CHECK(p.right);
      CHECK(p.held > 0);
      CHECK(p.ahead <= limit + 2 * value);
      // So many there, so many here; one that is used, one that is written, one of which the task waits.
      CHECK(p.lead <= 6 + 1 + 6 + 3);
      CHECK(p.lead >= 2);
    }
}

TEST_CASE("random steps give what the serial program gives, however few values may be ahead", "[partition]") {
  weft::remote::register_exception<step_failure>();
  std::uint64_t held = 0, threw = 0;
  const auto first = static_cast<std::uint32_t>(seed() % 1000000);
  for (std::uint32_t i = 0; i < 40; ++i) {
    const std::uint32_t s = i < 24 ? i + 1 : first + i;
    std::minstd_rand random(s);
    const step_program p = random_step(s, 2 + static_cast<unsigned>(random() % 40), i % 4 == 0 ? 1 : 0);
    const std::uint64_t n = 1 + random() % 40;
    step_values expected = first_values(p);
    std::string throws;
    try {
      for (std::uint64_t k = 0; k < n; ++k) interpret(p, expected);
    } catch (const step_failure& e) {
      throws = e.what();
    }
    threw += !throws.empty();
    const auto disorder = random() % 3 == 0 ? 0u : static_cast<std::uint32_t>(1 + random() % 1000);
    const std::size_t limits[] = {1, 100, 1000};
    const partition_options options{
        .method = anywhere(s), .threshold = i % 2 == 0 ? 1 : -1e9, .ahead_bytes = limits[i % 3]};
    thread_cluster c(2 + static_cast<int>(i % 5), {.runtime = {.workers = 1 + i % 2}},
                     {.disorder = disorder});
    std::atomic<std::uint64_t> waited{0};
    std::vector<step_values> got(static_cast<std::size_t>(c.size()));
    const auto said = errors_of(c, [&](thread_cluster::process& here) {
      step_objects objects(p);
      weft::partitioned step(here, [&] { objects.fork(); }, options);
      struct counted {
        weft::partitioned& of;
        std::atomic<std::uint64_t>& waited;
        ~counted() { waited += of.counters().values_held; }
      } const at_end{step, waited};
      step.run(n);
      got[static_cast<std::size_t>(here.rank())] = objects.values();
    });
    INFO("seed " << s << ", " << c.size() << " processes, disorder " << disorder << ", limit "
                 << limits[i % 3]);
    for (const std::string& t : said) CHECK(t == (throws.empty() ? "nothing" : throws));
    if (throws.empty())
      for (const step_values& v : got) CHECK(v == expected);
    held += waited;
  }
  std::printf("steps 40, that threw %llu, values held back %llu\n", static_cast<unsigned long long>(threw),
              static_cast<unsigned long long>(held));
  CHECK(held > 1000);
  CHECK(threw >= 3);
}

TEST_CASE("a process forks more tasks than it may have, while others wait until it takes a value",
          "[partition]") {
  // Both execute what they have forked before they have forked the tasks for which the other one waits:
  // process 0 sends `early` among that, process 1 needs `late` among that.
  thread_cluster c(2, {.runtime = {.cap = 100}});
  std::atomic<int> right{0};
  c.each([&](thread_cluster::process& here) {
    constexpr std::size_t many = 1000;
    int early = 0, late = 0, sum = 0, mine = 0, other = 0;
    const weft::placement::method halves = [](const auto& g, const auto& m) {
      std::vector<unsigned> on(g.costs.size());
      for (std::size_t t = many + 2; t < on.size(); ++t) on[t] = 1;
      return weft::placement::list_schedule(g, m, on);
    };
    weft::partitioned step(here,
                           [&] {
                             const auto increase = [](int& v) { ++v; };
                             const auto add = [](const int& v, int& to) { to += v; };
                             weft::fork(increase, weft::update(weft::borrow(early)));
                             for (std::size_t i = 0; i < many; ++i)
                               weft::fork(increase, weft::update(weft::borrow(mine)));
                             weft::fork(increase, weft::update(weft::borrow(late)));
                             weft::fork(add, weft::read(weft::borrow(late)), weft::update(weft::borrow(sum)));
                             for (std::size_t i = 0; i < many; ++i)
                               weft::fork(increase, weft::update(weft::borrow(other)));
                             weft::fork(add, weft::read(weft::borrow(early)),
                                        weft::update(weft::borrow(sum)));
                           },
                           {.method = halves, .threshold = 1, .ahead_bytes = 1});
    step.run(3);
    right += early == 3 && late == 3 && sum == 12 && mine == 3000 && other == 3000;
  });
  CHECK(right == 2);
}

TEST_CASE("where memory is refused for a value, all processes throw, and the next run goes on",
          "[partition]") {
  if (weft_test::thread_sanitized) return;
  int named = 0, refused = 0;
  for (int which = 0;; ++which) {
    REQUIRE(which < 100);
    thread_cluster c(2, {.part_bytes = 64 << 10}, {.disorder = static_cast<unsigned>(which % 3)});
    std::atomic<int> right{0};
    std::atomic<std::uint64_t> counted{0};
    fired = 0;
    std::vector<std::string> thrown(2);
    const auto said = errors_of(c, [&](thread_cluster::process& here) {
      std::vector<char> x(large), y(large);
      weft::partitioned step(here,
                             [&] {
                               const auto copy = [](const std::vector<char>& from, std::vector<char>& to) {
                                 to.front() = static_cast<char>(from.front() + 1);
                               };
                               weft::fork(copy, weft::read(weft::borrow(x)), weft::update(weft::borrow(y)));
                               weft::fork(copy, weft::read(weft::borrow(y)), weft::update(weft::borrow(x)));
                             },
                             {.method = in_turns, .threshold = 1});
      step.run(1);
      if (here.rank() == 0) {
        until_failure = which;
        armed = true;
      }
      step.run(0);
      try {
        step.run(3);
      } catch (const std::exception& e) {
        thrown[static_cast<std::size_t>(here.rank())] = e.what();
      }
      armed = false;
      x.assign(large, 0);
      y.assign(large, 0);
      step.run(2);
      right += x.front() == 4 && y.front() == 3;
      counted += step.counters().memory_refused;
    });
    INFO("allocation " << which << ": " << said[0] << ", " << said[1] << "; " << thrown[0]);
    CHECK(thrown[0] == thrown[1]);
    CHECK(right == 2);
    if (fired == 0) {
      CHECK(thrown[0].empty());
      break;
    }
    CHECK(!thrown[0].empty());
    named += thrown[0].find("weft: no memory in process ") == 0 &&
             thrown[0].find(" of the cluster for what a partitioned step sends to it, which has 1048") !=
                 std::string::npos;
    refused += counted != 0;
  }
  CHECK(named >= 4);
  CHECK(refused == named);
}

namespace {

/// Two processes, of which each waits for the other in each iteration; process `slow` takes a while.
void ping_pong(thread_cluster::process& here, std::uint64_t steps, std::chrono::milliseconds takes) {
  weft::shared<int> x(0), y(0);
  weft::partitioned step(
      here,
      [&] {
        weft::fork([takes](const int& a, int& b) { std::this_thread::sleep_for(takes), b = a + 1; },
                   weft::read(x), weft::update(y));
        weft::fork([](const int& a, int& b) { b = a + 1; }, weft::read(y), weft::update(x));
      },
      {.method = in_turns, .threshold = 1});
  step.run(steps);
  if (x.get() != static_cast<int>(2 * steps)) throw std::logic_error("wrong");
}

}  // namespace

TEST_CASE("a process whose messages are lost in a step is named, and the step ends in all", "[partition]") {
  for (const int mute : {1, 0}) {
    // What is reported, or told, when the step is made, and when it is run; then nothing.
    thread_cluster c(2, {.silence = 3s}, {.mute = mute, .mute_after = 2});
    const auto said = errors_of(c, [](thread_cluster::process& here) { ping_pong(here, 1000, 0ms); });
    const std::string expected =
        "weft: process " + std::to_string(mute) + " of the cluster has not answered for 3 s";
    for (const std::string& s : said) CHECK(s == expected);
  }
}

TEST_CASE("the others end when a process is silent, while tasks still run in the one that tells",
          "[partition]") {
  thread_cluster c(2, {.silence = 3s}, {.mute = 1, .mute_after = 2});
  std::atomic<bool> other_has_ended{false};
  std::atomic<int> seen{0};
  const auto said = errors_of(c, [&](thread_cluster::process& here) {
    weft::shared<int> x(0), y(0);
    weft::partitioned step(here,
                           [&] {
                             weft::fork(
                                 [&](int& v) {
                                   const auto end = std::chrono::steady_clock::now() + 30s;
                                   while (!other_has_ended && std::chrono::steady_clock::now() < end)
                                     std::this_thread::sleep_for(1ms);
                                   seen += other_has_ended;
                                   ++v;
                                 },
                                 weft::update(x));
                             weft::fork([](const int& a, int& b) { b = a; }, weft::read(x), weft::update(y));
                           },
                           {.method = in_turns});
    try {
      step.run(1);
    } catch (...) {
      if (here.rank() == 1) other_has_ended = true;
      throw;
    }
  });
  for (const std::string& s : said) CHECK(s == "weft: process 1 of the cluster has not answered for 3 s");
  CHECK(seen == 1);
}

namespace {

/// It takes a while to read.
struct slow {
  int value = 0;
  std::chrono::milliseconds takes{0};
  template <class A>
  void serialize(A& a) {
    if (std::is_same_v<A, weft::remote::reader>) std::this_thread::sleep_for(takes);
    a(value);
  }
};
/// Writes a checkpoint, or, if there is one, reads it.
void save_and_resume(thread_cluster::process& here, const std::string& file,
                     std::chrono::milliseconds takes) {
  slow x[2] = {{0, takes}, {0, takes}};
  weft::partitioned step(here,
                         [&] {
                           for (slow& s : x)
                             weft::fork([](slow& v) { ++v.value; }, weft::update(weft::borrow(s)));
                         },
                         {.method = in_turns, .checkpoint = file, .checkpoint_seconds = 1000});
  if (step.resume() == 0) {
    step.run(1);
    step.save();
  }
  if (x[0].value != 1 || x[1].value != 1) throw std::logic_error("wrong");
}

}  // namespace

TEST_CASE("a process that hangs while others go on from a checkpoint is named, one that reads it is not",
          "[partition]") {
  const scratch folder(medium::memory);
  const std::string file = folder / "state";
  {
    thread_cluster c(2);
    for (const std::string& s : errors_of(c, [&](auto& here) { save_and_resume(here, file, 0ms); }))
      CHECK(s == "nothing");
  }
  {
    thread_cluster c(2, {.silence = 2s});
    for (const std::string& s : errors_of(c, [&](auto& here) { save_and_resume(here, file, 3s); }))
      CHECK(s == "nothing");
  }
  thread_cluster c(2, {.silence = 2s}, {.mute = 1, .mute_after = 2});
  for (const std::string& s : errors_of(c, [&](auto& here) { save_and_resume(here, file, 0ms); }))
    CHECK(s == "weft: process 1 of the cluster has not answered for 2 s");
}

TEST_CASE("processes that compute in a step are not silent, nor are those between two runs", "[partition]") {
  thread_cluster c(3, {.silence = 2s});
  const auto said = errors_of(c, [](thread_cluster::process& here) {
    weft::shared<int> x(0), y(0);
    std::chrono::milliseconds takes = 5s;
    weft::partitioned step(
        here,
        [&] {
          weft::fork([&](const int& a, int& b) { std::this_thread::sleep_for(takes), b = a + 1; },
                     weft::read(x), weft::update(y));
          weft::fork([](const int& a, int& b) { b = a + 1; }, weft::read(y), weft::update(x));
        },
        {.method = in_turns, .threshold = 1});
    step.run(1);
    if (here.rank() == 1) std::this_thread::sleep_for(5s);
    takes = 0ms;
    step.run(10);
    if (x.get() != 22) throw std::logic_error("wrong");
  });
  for (const std::string& s : said) CHECK(s == "nothing");
}
