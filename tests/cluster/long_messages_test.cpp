// SPDX-License-Identifier: BSL-1.0
// Values longer than a message, and processes without memory for them.
#include "fault/waiting.hpp"
#include "support/catch.hpp"

#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

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

using numbers = std::vector<long>;
constexpr std::size_t many = 1 << 18;  // 2 MiB

std::atomic<int> executed{0};
/// Until others have executed so many tasks, or this process has to.
void wait_for_others(int tasks) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (executed < tasks && fired == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

void add_one(weft::update<numbers> v) {
  for (long& x : *v) ++x;
  ++executed;
}
void add_up(weft::read<numbers> v, weft::write<long> sum) {
  long all = 0;
  for (const long x : *v) all += x;
  sum = all;
  ++executed;
}
numbers make_numbers(long n) {
  ++executed;
  return numbers(static_cast<std::size_t>(n), 3);
}

long update_elsewhere(std::size_t n, int rounds) {
  weft::shared<numbers> v(numbers(n, 1));
  weft::shared<long> sum;
  for (int i = 0; i < rounds; ++i) weft::fork(add_one, v);
  weft::fork(add_up, v, sum);
  wait_for_others(rounds + 1);
  weft::sync();
  return sum.get();
}

/// Tasks that read one value, which the process that executes them keeps.
long read_often_elsewhere(std::size_t n, int tasks) {
  weft::shared<numbers> v(numbers(n, 1));
  std::deque<weft::shared<long>> sums(static_cast<std::size_t>(tasks));
  for (auto& s : sums) weft::fork(add_up, v, s);
  wait_for_others(tasks);
  weft::sync();
  long all = 0;
  for (auto& s : sums) all += s.get();
  return all;
}

struct done {
  bool right = false, no_memory = false;
  std::string error;
};
/// One run with one large allocation that fails.
template <class F>
done run_failing(weft::thread_cluster& c, int which, F body) {
  done d;
  executed = fired = 0;
  until_failure = which;
  armed = true;
  try {
    if constexpr (std::is_same_v<decltype(c.run(body)), bool>)
      d.right = c.run(body);
    else
      d.right = c.run(body) == body();
  } catch (const std::bad_alloc&) {
    d.no_memory = true;
  } catch (const weft::error& e) {
    d.error = e.what();
  }
  armed = false;
  return d;
}

}  // namespace

TEST_CASE("a long message goes in parts, which may overtake each other", "[cluster]") {
  for (unsigned disorder = 0; disorder < 6; ++disorder) {
    const int processes = 2 + static_cast<int>(disorder) % 3;
    weft::thread_cluster c(processes, {.part_bytes = 1024}, {.disorder = disorder});
    executed = fired = 0;
    CHECK(c.run([] { return update_elsewhere(5000, 3); }) == 20000);
    CHECK(executed == 4);
    executed = 0;
    const numbers made = c.run([] {
      auto a = weft::fork(make_numbers, 4000), b = weft::fork(make_numbers, 3000);
      wait_for_others(2);
      weft::sync();
      numbers both = a.get();
      both.insert(both.end(), b.get().begin(), b.get().end());
      return both;
    });
    CHECK(made == numbers(7000, 3));
    std::uint64_t bytes = 0, messages = 0, taken = 0;
    for (int i = 0; i < processes; ++i) {
      const weft::cluster_counters n = c.counters(i);
      bytes += n.bytes;
      messages += n.messages;
      taken += n.closures_received;
      CHECK(n.memory_refused == 0);
    }
    CHECK(taken >= 6);
    CHECK(c.counters(0).long_messages >= 4);  // tasks, and the result of the run
    CHECK(bytes / messages < 1100);
  }
}

namespace {

using weft::remote::bytes;
using weft::remote::incoming;
using weft::remote::kind;
using weft::remote::outgoing;
using weft::remote::parcels;

/// Two processes that send each other long messages, in parts of 1 KiB.
struct two_ends {
  weft::remote::thread_hub hub{2, {}};
  weft::remote::thread_transport here{hub, 0}, there{hub, 1};
  weft::cluster_counters sent, received;
  parcels from{here, 1024, sent}, to{there, 1024, received};

  static bytes message(std::byte content, std::size_t size = 10'000) { return bytes(size, content); }
  /// Hands on what has come. *Returns*: the last of what came of long messages.
  static parcels::outcome deliver(parcels& p, weft::remote::thread_transport& at) {
    parcels::outcome last;
    bytes b;
    for (int source = at.receive(b); source >= 0; source = at.receive(b)) {
      incoming m(b, source);
      if (auto o = p.handle(m); o.state != parcels::fate::open) last = std::move(o);
    }
    return last;
  }
  /// Until a message is complete.
  parcels::outcome deliver_one() {
    for (int round = 0; round < 10'000; ++round) {
      if (auto o = deliver(to, there); o.state == parcels::fate::complete) return o;
      to.begin_next();
      deliver(from, here);
    }
    return {};
  }
  /// The receiver handles a message that the sender would not have sent.
  template <class... Values>
  void forge(kind of, const Values&... values) {
    outgoing m(of, 0);
    m.body()(values...);
    const bytes b = m.seal();
    incoming i(b, 0);
    to.handle(i);
  }
};

}  // namespace

TEST_CASE("a process asks for few parts, and for one long message at a time", "[cluster]") {
  two_ends t;
  t.from.send(1, kind::ended, t.message(std::byte{1}), {1, 1});
  t.from.send(1, kind::ended, t.message(std::byte{2}), {2, 2});
  CHECK(t.sent.messages == 2);
  CHECK(!t.from.all_settled());
  bytes all[2];
  int complete = 0;
  for (int round = 0; round < 100 && complete < 2; ++round) {
    const auto asked = t.received.messages;
    if (auto o = t.deliver(t.to, t.there); o.state == parcels::fate::complete) {
      CHECK(o.about.first == static_cast<std::uint64_t>(complete) + 1);
      all[complete++] = o.message;
    }
    t.to.begin_next();
    t.to.begin_next();
    CHECK(t.received.messages - asked <= 2);
    t.deliver(t.from, t.here);
  }
  REQUIRE(complete == 2);
  CHECK(t.from.all_settled());
  CHECK(all[0] == t.message(std::byte{1}));
  CHECK(all[1] == t.message(std::byte{2}));
}

TEST_CASE("a long message for which there is no memory is refused to its sender, and the next one comes",
          "[cluster]") {
  if (weft_test::thread_sanitized) return;
  two_ends t;
  t.from.send(1, kind::tasks, t.message(std::byte{1}, large), {5, 9});
  t.from.send(1, kind::ended, t.message(std::byte{2}), {3, 3});
  t.deliver(t.to, t.there);
  until_failure = fired = 0;
  armed = true;
  const parcels::outcome mine = t.to.begin_next();
  armed = false;
  REQUIRE(fired == 1);
  CHECK(mine.state == parcels::fate::refused_here);
  CHECK(mine.of == kind::tasks);
  CHECK(mine.from == 0);
  CHECK(mine.size == large);
  CHECK(t.received.memory_refused == 1);
  CHECK(!t.from.all_settled());
  const parcels::outcome theirs = t.deliver(t.from, t.here);
  CHECK(theirs.state == parcels::fate::refused_there);
  CHECK(theirs.of == kind::tasks);
  CHECK(theirs.from == 1);
  CHECK(theirs.about.first == 5);
  CHECK(theirs.about.last == 9);
  const parcels::outcome next = t.deliver_one();
  CHECK(next.of == kind::ended);
  CHECK(next.message == t.message(std::byte{2}));
  CHECK(t.from.all_settled());
}

TEST_CASE("an announced message larger than any memory is refused", "[cluster]") {
  two_ends t;
  t.forge(kind::offer, std::uint64_t{1}, ~std::uint64_t{0}, static_cast<std::uint8_t>(kind::tasks),
          std::uint64_t{1}, std::uint64_t{1});
  const parcels::outcome o = t.to.begin_next();
  CHECK(o.state == parcels::fate::refused_here);
  CHECK(t.received.memory_refused == 1);
}

TEST_CASE("parts that were not asked for, and answers to what was not sent, are damage", "[cluster]") {
  const auto damaged = weft_test::contains("is damaged");
  const auto thrown_by = [](auto act) {
    try {
      act();
    } catch (const weft::error& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  constexpr std::uint64_t number = 7;
  two_ends t;
  CHECK_THAT(thrown_by([&] { t.forge(kind::part, number, std::uint64_t{0}, 'x'); }), damaged);  // no offer
  CHECK_THAT(thrown_by([&] { t.forge(kind::more, number, std::uint64_t{0}); }), damaged);
  CHECK_THAT(thrown_by([&] { t.forge(kind::refused, number); }), damaged);
  t.forge(kind::offer, number, std::uint64_t{3}, static_cast<std::uint8_t>(kind::tasks), std::uint64_t{1},
          std::uint64_t{1});
  CHECK_THAT(thrown_by([&] { t.forge(kind::part, number, std::uint64_t{0}, 'x'); }), damaged);  // no room yet
  t.to.begin_next();
  CHECK_THAT(thrown_by([&] { t.forge(kind::part, number + 1, std::uint64_t{0}, 'x'); }), damaged);
  CHECK_THAT(thrown_by([&] { t.forge(kind::part, number, std::uint64_t{4}, 'x'); }), damaged);
  CHECK_THAT(thrown_by([&] { t.forge(kind::part, number, std::uint64_t{2}, 'x', 'y'); }), damaged);
  t.forge(kind::part, number, std::uint64_t{2}, 'x');
}

TEST_CASE("a task that has too many bytes is executed at home", "[cluster]") {
  weft::thread_cluster c(2, {.largest_task = 10'000});
  executed = fired = 0;
  const long got = c.run([] {
    weft::shared<numbers> v(numbers(5000, 1)), w(numbers(1000, 1));
    weft::shared<long> a, b;
    weft::fork(add_up, v, a);
    weft::fork(add_up, w, b);
    wait_for_others(1);
    weft::sync();
    return a.get() + b.get();
  });
  CHECK(got == 6000);
  CHECK(c.counters(0).closures_kept == 1);
  CHECK(c.counters(0).closures_sent == 1);
}

TEST_CASE("of tasks that may have no bytes none goes to another process", "[cluster]") {
  weft::thread_cluster c(2, {.largest_task = 0});
  executed = fired = 0;
  const long got = c.run([] {
    weft::shared<numbers> v(numbers(10, 1));
    weft::shared<long> a;
    weft::fork(add_up, v, a);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    weft::sync();
    return a.get();
  });
  CHECK(got == 10);
  CHECK(c.counters(0).closures_sent == 0);
}

TEST_CASE("results that wait for each other are no long message", "[cluster]") {
  weft::thread_cluster c(2, {.part_bytes = 1024});
  executed = fired = 0;
  constexpr int tasks = 2000;
  const std::size_t got = c.run([] {
    std::deque<weft::shared<std::string>> texts(tasks);
    for (auto& text : texts)
      weft::fork([](weft::write<std::string> out) { out = std::string(200, 'x'), ++executed; }, text);
    wait_for_others(tasks);
    weft::sync();
    std::size_t size = 0;
    for (auto& text : texts) size += text.get().size();
    return size;
  });
  CHECK(got == tasks * 200);
  CHECK(c.counters(1).long_messages == 0);
}

TEST_CASE("parts of a few bytes are refused", "[cluster]") {
  CHECK_THROWS_AS(weft::thread_cluster(2, {.part_bytes = 100}), weft::option_error);
}

TEST_CASE("where memory is refused, a task is executed at home, or its result is that", "[cluster]") {
  if (weft_test::thread_sanitized) return;
  int right = 0, no_memory = 0;
  std::uint64_t refused = 0, kept = 0;
  for (const std::size_t part_bytes : {std::size_t{64} << 10, std::size_t{16} << 20})
    for (int which = 0;; ++which) {
      REQUIRE(which < 100);
      weft::thread_cluster c(2, {.part_bytes = part_bytes}, {.disorder = static_cast<unsigned>(which)});
      const done d =
          run_failing(c, which, [] { return update_elsewhere(many, 1) == 2 * static_cast<long>(many); });
      INFO("allocation " << which << ", parts of " << part_bytes);
      CHECK((d.right || d.no_memory || d.error.find("memory") != std::string::npos ||
             d.error.find("bad_alloc") != std::string::npos));
      if (part_bytes < large) CHECK(d.error.empty());
      if (fired == 0) {
        CHECK(d.right);
        break;
      }
      if (!d.error.empty()) continue;  // a process without memory for a message ends them all
      right += d.right;
      no_memory += d.no_memory;
      refused += c.counters(0).memory_refused + c.counters(1).memory_refused;
      kept += c.counters(0).closures_kept;
      fired = executed = 0;
      CHECK(c.run([] { return update_elsewhere(100, 1); }) == 200);
    }
  CHECK(right > 2);
  CHECK(no_memory > 2);
  CHECK(refused > 2);
  CHECK(kept > 0);
}

namespace {
/// Goes to process 1 if there is memory for it.
struct loaded {
  numbers load{};
  bool refused = false, was_there = false;
  void operator()() {
    was_there |= weft::this_thread::process() == 1;
    if (!was_there && !refused) {
      try {
        weft::this_thread::migrate(1);
      } catch (const weft::error&) {
        refused = true;
      }
    }
    for (long& x : load) ++x;
  }
};
}  // namespace

TEST_CASE("where memory is refused, a thread goes on at home, or ends by that", "[cluster]") {
  if (weft_test::thread_sanitized) return;
  int right = 0, no_memory = 0, stayed = 0, went = 0;
  for (const std::size_t part_bytes : {std::size_t{64} << 10, std::size_t{16} << 20})
    for (int which = 0;; ++which) {
      REQUIRE(which < 100);
      weft::thread_cluster c(2, {.part_bytes = part_bytes}, {.disorder = static_cast<unsigned>(which)});
      loaded ended;
      const done d = run_failing(c, which, [&ended] {
        weft::spawn(weft::migratable, loaded{numbers(many, 1)},
                    [&ended](loaded& l) { ended = std::move(l); });
        weft::sync();
        return ended.load == numbers(many, 2);
      });
      INFO("allocation " << which << ", parts of " << part_bytes);
      CHECK((d.right || d.no_memory || d.error.find("memory") != std::string::npos ||
             d.error.find("bad_alloc") != std::string::npos));
      if (part_bytes < large) CHECK(d.error.empty());
      if (fired == 0) {
        CHECK(d.right);
        CHECK(ended.was_there);
        break;
      }
      if (!d.error.empty()) continue;  // a process without memory for a message ends them all
      right += d.right;
      no_memory += d.no_memory;
      if (d.right) stayed += ended.refused && !ended.was_there, went += ended.was_there;
      CHECK(c.run([] { return 3; }) == 3);
    }
  CHECK(no_memory > 2);
  CHECK(stayed > 2);
  CHECK(right == stayed + went);
}

TEST_CASE("where memory is refused for a value that many read, the others are executed all the same",
          "[cluster]") {
  if (weft_test::thread_sanitized) return;
  std::uint64_t refused = 0, cached = 0;
  for (int which = 0;; ++which) {
    REQUIRE(which < 100);
    weft::thread_cluster c(2, {.part_bytes = 64 << 10});
    const done d =
        run_failing(c, which, [] { return read_often_elsewhere(many, 6) == 6 * static_cast<long>(many); });
    INFO("allocation " << which);
    CHECK((d.right || d.no_memory));
    CHECK(d.error.empty());
    if (fired == 0) {
      CHECK(d.right);
      break;
    }
    refused += c.counters(0).closures_kept + c.counters(1).memory_refused;
    fired = executed = 0;
    CHECK(c.run([] { return read_often_elsewhere(2000, 6); }) == 12'000);
    cached += c.counters(0).values_cached;
  }
  CHECK(refused > 2);
  CHECK(cached > 0);
}

TEST_CASE("where memory is refused for the result of a run, that is named", "[cluster]") {
  if (weft_test::thread_sanitized) return;
  int named = 0;
  for (int which = 0;; ++which) {
    REQUIRE(which < 100);
    weft::thread_cluster c(2);
    const done d = run_failing(c, which, [] { return numbers(many, 1); });
    if (fired == 0) break;
    named += d.error.find("no memory") != std::string::npos;
  }
  CHECK(named > 1);
}
