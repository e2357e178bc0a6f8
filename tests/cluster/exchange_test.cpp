// SPDX-License-Identifier: BSL-1.0
// Runs of a cluster whose processes are threads: what goes to others and how it comes back.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <weft/append.hpp>
#include <weft/cluster/threads.hpp>
#include <weft/threads.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

// The processes are threads, so a task can tell the test that it has run. While a root that has forked tasks
// waits for that, its one worker runs none of them: others have.
std::atomic<int> executed{0};

void wait_for_others(int tasks) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (executed.load() < tasks && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

/// How many tasks a process has sent; one that was given back and sent again counts twice.
std::uint64_t sent(const weft::thread_cluster& c, int from = 0) { return c.counters(from).closures_sent; }
std::uint64_t sent_by_others(const weft::thread_cluster& c) {
  std::uint64_t all = 0;
  for (int i = 1; i < c.size(); ++i) all += sent(c, i);
  return all;
}

void sum(weft::read<long> a, weft::read<long> b, weft::write<long> r) { r = *a + *b; }
void fib(long n, weft::write<long> r) {
  ++executed;
  if (n < 2) {
    r = n;
    return;
  }
  weft::shared<long> a, b;
  weft::fork(fib, n - 1, a);
  weft::fork(fib, n - 2, b);
  weft::fork(sum, a, b, r);
}
/// Fibonacci numbers, of which other processes compute at least a part.
long fib_elsewhere(weft::thread_cluster& c, long n) {
  executed = 0;
  return c.run([n, others = c.size() > 1] {
    weft::shared<long> r;
    weft::fork(fib, n, r);
    if (others) wait_for_others(1);
    weft::sync();
    return r.get();
  });
}

struct person {
  std::string name;
  std::vector<int> marks;
  std::map<std::string, double> more;
};

void read_one(weft::read<person> p, weft::write<std::string> out) {
  out = p->name + ":" + std::to_string(p->marks.at(1)) + ":" + std::to_string(p->more.at("x") == 0.5);
  ++executed;
}
void change_one(weft::update<person> p, std::string more) {
  p->name += more;
  ++executed;
}
std::string make_text(int i) {
  ++executed;
  return "result " + std::to_string(i);
}
struct scale {
  int factor = 1;
  void operator()(weft::update<int> v) const {
    *v *= factor;
    ++executed;
  }
};
void contribute(int i, weft::reduce<std::string, std::plus<>> out) {
  out += "<" + std::to_string(i);
  out += ">";
  ++executed;
}

std::atomic<bool> saw_stop{false};
int wait_for_stop(int) {
  ++executed;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!weft::this_task::stop_token().stop_requested() && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  saw_stop = weft::this_task::stop_token().stop_requested();
  return 0;
}
void find_and_stop(int value, weft::write<int> found) {
  ++executed;
  found = value;
  weft::this_task::request_stop();
}
void fork_below(int depth) {
  const int begun = ++executed;
  if (depth == 0) return static_cast<void>(wait_for_stop(0));
  weft::fork(fork_below, depth - 1);
  wait_for_others(begun + 1);
}

void traced_inner(int) { ++executed; }
void traced_outer(int) {
  ++executed;
  for (int i = 0; i < 4; ++i) weft::fork({.name = "inner"}, traced_inner, i);
  weft::sync();
}

std::atomic<bool> released{false};
int short_task(int) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(30);
  while (std::chrono::steady_clock::now() < end) {
  }
  ++executed;
  return 0;
}
int held_task(int) {
  ++executed;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!released && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return 0;
}
/// Lets a process get used to short tasks, so that it asks ahead.
void run_short_tasks(int n) {
  for (int i = 0; i < n; ++i) weft::fork(short_task, i);
  wait_for_others(n);
}
std::atomic<int> packed{0};
/// A contribution that counts how often it is sent, or has come.
struct named {
  std::string name;
  template <class A>
  void serialize(A& a) {
    ++packed;
    a(name);
  }
  void operator()(weft::reduce<std::string, std::plus<>> out) const {
    out += name;
    ++executed;
  }
};
int stop_and_stay(int i) {
  wait_for_stop(i);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return 0;
}

struct own_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct unknown_error {};
struct shy_error : std::exception {
  template <class A>
  void serialize(A&) {
    throw std::runtime_error("not me");
  }
};

template <class E>
std::string caught_from(weft::thread_cluster& c, void (*body)(int)) {
  executed = 0;
  try {
    c.run([body] {
      weft::fork(body, 1);
      wait_for_others(1);
      weft::sync();
    });
  } catch (const E& e) {
    return e.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a cluster of any number of processes computes the same", "[cluster]") {
  for (int processes = 1; processes <= 4; ++processes) {
    weft::thread_cluster c(processes);
    REQUIRE(fib_elsewhere(c, 21) == 10946);
    std::uint64_t received = 0;
    for (int i = 1; i < processes; ++i) received += c.counters(i).closures_received;
    CHECK((received > 0) == (processes > 1));
  }
}

TEST_CASE("values of all rights go to another process and come back", "[cluster]") {
  weft::thread_cluster c(2);
  executed = 0;
  const std::string got = c.run([] {
    weft::shared<person> p(person{"Ada", {1, 2, 3}, {{"x", 0.5}}});
    weft::shared<std::string> line;
    weft::shared<int> v(7);
    weft::fork(read_one, p, line);
    weft::fork(change_one, p, std::string(" Lovelace"));
    auto made = weft::fork(make_text, 5);
    weft::fork(scale{6}, v);
    wait_for_others(4);
    weft::sync();
    return line.get() + "|" + p.get().name + "|" + made.get() + "|" + std::to_string(v.get());
  });
  CHECK(got == "Ada:2:1|Ada Lovelace|result 5|42");
  CHECK(executed == 4);
  CHECK(sent(c) >= 4);
}

TEST_CASE("contributions of other processes are folded in reference order", "[cluster]") {
  for (int processes = 2; processes <= 4; ++processes) {
    weft::thread_cluster c(processes, {}, {.disorder = static_cast<unsigned>(processes)});
    std::string expected = "start";
    for (int i = 0; i < 40; ++i) expected += "<" + std::to_string(i) + ">";
    executed = 0;
    const std::string got = c.run([] {
      weft::shared<std::string> all("start");
      for (int i = 0; i < 40; ++i) weft::fork(contribute, i, weft::reduce(all, std::plus<>{}));
      wait_for_others(20);
      weft::sync();
      return all.get();
    });
    CHECK(got == expected);
    CHECK(sent(c) >= 20);
  }
}

TEST_CASE("exceptions of other processes keep their type, or tell it", "[cluster]") {
  weft::remote::register_exception<own_error>();
  weft::thread_cluster c(2);
  CHECK(caught_from<std::out_of_range>(c, [](int) {
          ++executed;
          throw std::out_of_range("too far");
        }) == "too far");
  CHECK(caught_from<own_error>(c, [](int) {
          ++executed;
          throw own_error("mine");
        }) == "mine");
  CHECK(caught_from<weft::remote_error>(c, [](int) {
          ++executed;
          throw unknown_error();
        }).find("no text") != std::string::npos);
  CHECK(sent(c) >= 3);
  // One that cannot be packed is replaced by the reason.
  weft::remote::register_exception<shy_error>();
  CHECK(caught_from<std::runtime_error>(c, [](int) {
          ++executed;
          throw shy_error();
        }) == "not me");
  // The cluster goes on.
  CHECK(c.run([] { return 3; }) == 3);
}

TEST_CASE("the first exception in reference order counts, with what was written until then", "[cluster]") {
  weft::thread_cluster c(3);
  executed = 0;
  const auto got = c.run([] {
    weft::shared<int> a(1), b(2);
    std::string what;
    try {
      weft::fork(
          [](weft::update<int> v) {
            *v = 10;
            ++executed;
            wait_for_others(2);  // the other one does not begin any more if this has failed
            throw std::runtime_error("first");
          },
          a);
      weft::fork(
          [](weft::update<int> v) {
            *v = 20;
            ++executed;
            throw std::runtime_error("second");
          },
          b);
      wait_for_others(2);
      weft::sync();
    } catch (const std::runtime_error& e) {
      what = e.what();
    }
    return what + std::to_string(a.get());
  });
  CHECK(got == "first10");
  CHECK(sent(c) >= 2);
}

TEST_CASE("a stop reaches tasks in other processes", "[cluster]") {
  for (const std::uint32_t disorder : {0u, 1u, 2u, 3u}) {
    weft::thread_cluster c(2, {}, {.disorder = disorder});
    executed = 0;
    saw_stop = false;
    CHECK_THROWS_AS(c.run([] {
      weft::fork(wait_for_stop, 1);
      wait_for_others(1);
      weft::this_task::request_stop();
    }),
                    weft::cancelled);
    CHECK(executed == 1);
    CHECK(saw_stop);
    // The next run is not stopped, nor are its tasks.
    executed = 0;
    CHECK(c.run([] {
      auto made = weft::fork(make_text, 7);
      wait_for_others(1);
      weft::sync();
      return made.get();
    }) == "result 7");
  }
}

TEST_CASE("a stop that a task in another process requests stops the run everywhere", "[cluster]") {
  for (const std::uint32_t disorder : {0u, 1u, 2u, 3u}) {
    weft::thread_cluster c(3, {}, {.disorder = disorder});
    executed = 0;
    saw_stop = false;
    int found = 0;
    std::atomic<int> after{0};
    CHECK_THROWS_AS(c.run([&] {
      weft::fork(wait_for_stop, 1);
      wait_for_others(1);
      weft::fork(find_and_stop, 5, weft::borrow(found));
      wait_for_others(2);
      weft::sync();
      ++after;
    }),
                    weft::cancelled);
    CHECK(found == 5);  // what the task has written that requested it
    CHECK(saw_stop);
    CHECK(after == 0);
    CHECK(c.run([] {
      auto made = weft::fork(make_text, 8);
      weft::sync();
      return made.get();
    }) == "result 8");
  }
}

TEST_CASE("a stop goes on to tasks that were stolen from guests", "[cluster]") {
  weft::thread_cluster c(3);
  executed = 0;
  saw_stop = false;
  CHECK_THROWS_AS(c.run([] {
    weft::fork(fork_below, 1);
    wait_for_others(2);
    weft::this_task::request_stop();
  }),
                  weft::cancelled);
  CHECK(saw_stop);
  CHECK(sent_by_others(c) >=
        1);  // more if it was sent to process 0, which waited for work before, and has given it back
}

TEST_CASE("a task that has come behind a long one goes to another process", "[cluster]") {
  weft::thread_cluster c(3);
  constexpr int rounds = 30;
  for (int round = 0; round < rounds; ++round) {
    executed = 0;
    released = false;
    bool in_time = false;
    c.run([&in_time] {
      run_short_tasks(64);
      // Whoever gets the long one gets others in the same answer, since tasks were short before.
      weft::fork(held_task, 1);
      for (int i = 0; i < 8; ++i) weft::fork(make_text, i);
      wait_for_others(64 + 9);
      in_time = executed == 64 + 9;
      released = true;
      weft::sync();
    });
    REQUIRE(in_time);
  }
  CHECK(sent(c) > rounds * (64 + 9));  // some were given back, and sent again
}

TEST_CASE("several short tasks go in one answer, and their results in one message", "[cluster]") {
  for (const std::uint32_t disorder : {0u, 1u}) {
    weft::thread_cluster c(2, {}, {.disorder = disorder});
    executed = 0;
    double each = 0;  // seconds for each task that goes away
    const int got = c.run([&each] {
      std::vector<weft::shared<int>> all(2000);
      for (auto& r : all) weft::fork([](weft::write<int> w) { w = short_task(1) + 1; }, r);
      const auto begin = std::chrono::steady_clock::now();
      wait_for_others(1000);
      each = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 1000;
      weft::sync();
      int sum = 0;
      for (auto& r : all) sum += r.get();
      return sum;
    });
    CHECK(got == 2000);
    const weft::cluster_counters home = c.counters(0), other = c.counters(1);
    CHECK(home.closures_sent >= 1000);
    CHECK(other.closures_received == home.closures_sent);
    // Answers with tasks, and messages with results, are fewer than tasks: where tasks are short as measured,
    // which includes the time until a worker has woken. On a machine that others keep busy that takes
    // milliseconds.
    if (each > 100e-6) continue;
    CHECK(other.requests - other.requests_in_vain < other.closures_received);
    CHECK(other.messages - other.requests < other.closures_received);
  }
}

TEST_CASE("a contribution that is stopped before it begins is destroyed once", "[cluster]") {
  weft::thread_cluster c(2);
  int went = 0;
  for (int round = 0; round < 30 || (went == 0 && round < 300); ++round) {
    executed = packed = 0;
    CHECK_THROWS_AS(c.run([] {
      weft::shared<std::string> all;
      run_short_tasks(8);
      weft::fork(stop_and_stay, 1);
      wait_for_others(9);
      weft::fork(named{std::string(100, 'x')}, weft::reduce(all, std::plus<>()));
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
      while (packed < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      weft::this_task::request_stop();
    }),
                    weft::cancelled);
    CHECK(executed == 9);
    went += packed == 2;
  }
  CHECK(went > 0);  // the other process asks ahead if its short tasks have been short
}

TEST_CASE("what a guest forks is in the trace of its process", "[cluster]") {
  const weft_test::scratch in;
  {
    weft::thread_cluster c(2, {.runtime = {.trace = in / "trace.json"}});
    executed = 0;
    c.run([] {
      weft::fork({.name = "outer"}, traced_outer, 1);
      wait_for_others(5);
      weft::sync();
    });
    CHECK(sent(c) >= 1);
  }
  std::ifstream file(in / "trace.2.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto slices = [&text](const std::string& name) {
    int count = 0;
    const std::string slice = "\"name\":\"" + name + "\",\"cat\":\"task\"";
    for (std::size_t at = text.find(slice); at != std::string::npos; at = text.find(slice, at + 1)) ++count;
    return count;
  };
  CHECK(slices("outer") == 1);
  CHECK(slices("inner") == 4);
}

TEST_CASE("the exception of the root leaves run in every process", "[cluster]") {
  weft::thread_cluster c(3);
  CHECK_THROWS_AS(c.run([]() -> int { throw std::domain_error("none"); }), std::domain_error);
  CHECK(c.run([] { return std::string("again"); }) == "again");
}

TEST_CASE("tasks that cannot be sent stay, and those behind them go", "[cluster]") {
  weft::thread_cluster c(2);
  executed = 0;
  int here = 0;
  const int got = c.run([&here] {
    weft::fork([&here] { here = 1; });                // a capture
    weft::fork([](int* p) { *p += 1; }, &here);       // an address
    weft::fork({.local = true}, [] { ++executed; });  // at the user's word
    weft::fork([] { ++executed; });
    wait_for_others(1);
    const int others = executed;
    weft::sync();
    return others;
  });
  CHECK(got == 1);
  CHECK(here == 2);
  CHECK(executed == 2);
  CHECK(sent(c) >= 1);
}

namespace {
std::atomic<int> refusals{0};
/// Cannot be packed, which shows only when it is tried.
struct stubborn {
  int value = 3;
  template <class A>
  void serialize(A& a) {
    if (value == 3) {
      ++refusals;
      throw std::runtime_error("not me");
    }
    a(value);
  }
};
/// Can be sent, but not be made again.
struct unreadable {
  int value = 3;
  template <class A>
  void serialize(A& a) {
    a(value);
    if constexpr (std::is_same_v<A, weft::remote::reader>) {
      ++refusals;
      throw std::logic_error("not here");
    }
  }
};
}  // namespace

TEST_CASE("a task that cannot be packed is executed at home", "[cluster]") {
  weft::thread_cluster c(2);
  refusals = 0;
  const int got = c.run([] {
    weft::shared<int> v(1);
    weft::fork([](stubborn s, weft::update<int> w) { *w += s.value; }, stubborn{}, v);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (refusals == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    weft::sync();
    return v.get();
  });
  CHECK(got == 4);
  CHECK(c.counters(0).closures_kept == 1);
  CHECK(sent(c) == 0);
}

TEST_CASE("a task that cannot be made elsewhere is executed at home", "[cluster]") {
  weft::thread_cluster c(2);
  refusals = 0;
  const int got = c.run([] {
    weft::shared<int> v(1);
    weft::fork([](unreadable u, weft::update<int> w) { *w += u.value; }, unreadable{}, v);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (refusals == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    weft::fork([](weft::update<int> w) { *w *= 2; }, v);  // goes on as before
    weft::sync();
    return v.get();
  });
  CHECK(got == 8);
  CHECK(refusals == 1);
  CHECK(c.counters(0).closures_sent >= 1);
  CHECK(c.counters(1).memory_refused == 0);
}

TEST_CASE("what a guest forks goes on to third processes", "[cluster]") {
  weft::thread_cluster c(3);
  executed = 0;
  const int got = c.run([] {
    weft::shared<int> total(0);
    weft::fork(
        [](weft::update<int> all) {
          for (int i = 0; i < 8; ++i)
            weft::fork(
                [](int k, weft::reduce<int, std::plus<>> out) {
                  out += k;
                  ++executed;
                },
                i, weft::reduce(all, std::plus<>{}));
          wait_for_others(4);
        },
        total);
    wait_for_others(4);
    weft::sync();
    return total.get();
  });
  REQUIRE(got == 28);
  CHECK(sent_by_others(c) > 0);
}

static std::thread::id first_worker;  // of the first process's only worker

TEST_CASE("a stream is written by the process that has it, with lines that others have made", "[cluster]") {
  const weft_test::scratch in;
  constexpr int lines = 300;
  std::string expected;
  for (int i = 0; i < lines; ++i)
    expected += std::string(static_cast<std::size_t>(i % 17), 'a') + std::to_string(i) + '\n';
  for (unsigned disorder = 0; disorder < 4; ++disorder) {
    const int processes = 1 + static_cast<int>(disorder);
    const std::string path = (in.path() / std::to_string(processes)).string();
    weft::thread_cluster c(processes, {}, {.disorder = disorder});
    executed = 0;
    c.run([&path, others = processes > 1] {
      weft::append_file out(path, {.sync = false});
      first_worker = std::this_thread::get_id();
      weft::fork(
          [others](weft::append to) {  // the serial program writes this body's lines between those around it
            for (int i = 0; i < lines; ++i) {
              weft::shared<std::string> line;
              weft::fork(
                  weft::anywhere,
                  [](int k, weft::write<std::string> l) {
                    l = std::string(static_cast<std::size_t>(k % 17), 'a') + std::to_string(k) + '\n';
                    if (std::this_thread::get_id() != first_worker) ++executed;
                  },
                  i, line);
              weft::fork([](weft::read<std::string> l, weft::append at) { at.write(*l); }, line, to);
              if (others && i % 100 == 10) wait_for_others(1 + i / 100);
            }
          },
          out);
      weft::sync();
      out.close();
    });
    CHECK(weft_test::slurp(path) == expected);
    if (processes > 1) CHECK(sent(c) >= lines / 100);
  }
}

TEST_CASE("messages that overtake each other, and come late, change nothing", "[cluster]") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    weft::thread_cluster c(2 + static_cast<int>(seed) % 4, {}, {.disorder = seed});
    for (int round = 0; round < 5; ++round) REQUIRE(fib_elsewhere(c, 15) == 610);
    CHECK(sent(c) >= 5);
  }
}

TEST_CASE("what a guest does to the waits of its run does not reach later runs", "[cluster]") {
  weft::thread_cluster c(2);
  executed = 0;
  CHECK_THROWS_AS(c.run([] {
    weft::fork([] {
      ++executed;
      weft::spawn([] { throw std::runtime_error("in a spawned body"); });
    });
    wait_for_others(1);
    weft::sync();
  }),
                  std::runtime_error);
  CHECK(sent(c) >= 1);
  executed = 0;
  const int got = c.run([] {
    weft::shared<int> v(0);
    weft::fork(
        [](weft::write<int> out) {
          ++executed;
          weft::latch both(2);
          weft::spawn([&] { both.arrive_and_wait(); });
          both.arrive_and_wait();
          out = 5;
          weft::sync();
        },
        v);
    wait_for_others(1);
    weft::sync();
    return v.get();
  });
  CHECK(got == 5);
  CHECK(sent(c) >= 2);
}

TEST_CASE("a damaged message ends the run in all processes", "[cluster]") {
  for (std::uint64_t which = 1; which <= 8; ++which) {
    bool told = false;
    // The other process goes on to ask for work; where it is slow, there may be fewer messages at first.
    for (auto time = std::chrono::milliseconds(50); !told && time < std::chrono::seconds(13); time *= 3) {
      weft::thread_cluster c(2, {}, {.damaged = which});
      executed = 0;
      try {
        c.run([time] {
          for (int i = 0; i < 4; ++i) weft::fork([] { ++executed; });
          std::this_thread::sleep_for(time);
          weft::sync();
        });
      } catch (const weft::error& e) {
        told = std::string(e.what()).find("is damaged") != std::string::npos;
        CHECK(told);
      }
    }
    CHECK(told);
  }
}
