// SPDX-License-Identifier: BSL-1.0
// Tasks of a cluster that are recorded when they have ended, and not executed again by the next one. Here
// every task is recorded, however short it is.
#include "support/catch.hpp"

#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using weft::remote::finished_tasks;

// The processes are threads, so a task can tell the test that it has run.
std::atomic<int> executed{0};

/// A cluster whose processes record tasks in memory.
class recording_cluster {
 public:
  explicit recording_cluster(int processes, unsigned workers = 1)
      : it(processes, {.runtime = {.workers = workers}}) {
    for (int i = 0; i < processes; ++i) {
      records_.push_back(std::make_unique<finished_tasks>());
      weft::remote::thread_cluster_key::process(it, i).record_in(records_.back().get());
    }
  }
  /// What another one has recorded is known here.
  void resume(const recording_cluster& earlier) {
    for (const auto& own : records_)
      for (const auto& theirs : earlier.records_) own->expect(*theirs);
  }
  std::uint64_t found() const { return sum_(&weft::cluster_counters::tasks_found); }
  std::uint64_t recorded() const { return sum_(&weft::cluster_counters::tasks_recorded); }
  std::uint64_t sent() const { return sum_(&weft::cluster_counters::closures_sent); }
  /// Whether there are records of an earlier one that process 0 has not used.
  bool looking() const { return records_[0]->looking(); }
  /// How many records are left.
  std::size_t records() const {
    std::size_t all = 0;
    for (const auto& r : records_) all += r->size();
    return all;
  }
  template <class F>
  auto run(const F& f) {
    executed = 0;
    return it.run(f);
  }

  weft::thread_cluster it;

 private:
  std::uint64_t sum_(std::uint64_t weft::cluster_counters::* which) const {
    std::uint64_t all = 0;
    for (int i = 0; i < it.size(); ++i) all += it.counters(i).*which;
    return all;
  }
  std::vector<std::unique_ptr<finished_tasks>> records_;
};

/// Runs `f` in clusters of several sizes, each of which begins anew and records, and then in one that has the
/// records of it. *Requires*: all tasks travel.
template <class F>
void check_all_found(const F& f, decltype(f()) expected, int tasks) {
  for (int processes = 1; processes <= 3; ++processes)
    for (unsigned workers = 1; workers <= 2; ++workers) {
      INFO(processes << " processes with " << workers << " workers");
      recording_cluster first(processes, workers);
      CHECK(first.run(f) == expected);
      CHECK(executed == tasks);
      CHECK(first.found() == 0);
      CHECK(first.recorded() > 0);
      recording_cluster second(4 - processes, workers);
      second.resume(first);
      CHECK(second.run(f) == expected);
      CHECK(executed == 0);
      CHECK(second.found() > 0);
    }
}

long tree(int depth, long number) {
  ++executed;
  if (depth == 0) return number;
  const auto a = weft::fork(tree, depth - 1, 2 * number);
  const auto b = weft::fork(tree, depth - 1, 2 * number + 1);
  weft::sync();
  return a.get() + b.get();
}
long grow() {
  const auto a = weft::fork(tree, 6, 1L);
  weft::sync();
  return a.get();
}
constexpr int tree_size = 127;
constexpr long tree_value = (64 + 127) * 64 / 2;

void fill(int i, weft::write<std::string> out) {
  ++executed;
  out = "<" + std::to_string(i) + ">";
}
void append(const std::string& more, std::string& all) {
  ++executed;
  all += more;
}
void contribute(int i, weft::reduce<std::string, std::plus<>> out) {
  ++executed;
  out += "(" + std::to_string(i);
  out += ")";
}
/// Contributes itself, and by two children.
void contribute_below(int i, weft::reduce<std::string, std::plus<>> out) {
  ++executed;
  out += "[";
  weft::fork(contribute, 2 * i, out);
  weft::fork(contribute, 2 * i + 1, out);
  weft::sync();
  out += "]";
}
/// The children come behind the body.
void write_below(int i, weft::write<std::string> out) {
  ++executed;
  weft::fork(fill, i, out);
}
int throw_at(int i) {
  ++executed;
  if (i % 3 == 2) throw std::out_of_range("at " + std::to_string(i));
  return i;
}
void throw_below(int i) {
  ++executed;
  weft::fork(throw_at, i);
  weft::fork(throw_at, i + 1);
  if (i == 0) throw std::runtime_error("too late");
}
/// What the run throws, or how often it has not thrown.
template <class F>
std::string thrown_by(recording_cluster& c, const F& f) {
  try {
    c.run(f);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a tree that has ended is not executed again", "[cluster]") {
  check_all_found(grow, tree_value, tree_size);
}

TEST_CASE("a record replaces those below it", "[cluster]") {
  for (int processes = 1; processes <= 2; ++processes) {
    recording_cluster c(processes);
    c.run(grow);
    CHECK(c.recorded() >= tree_size);
    CHECK(c.records() == 1);
  }
}

TEST_CASE("what tasks have written by all rights is found", "[cluster]") {
  check_all_found(
      [] {
        weft::shared<std::string> all(std::string{}), one, two;
        for (int i = 0; i < 5; ++i) {
          weft::fork(fill, i, one);
          weft::fork(append, weft::read(one), weft::update(all));
          weft::fork(write_below, i + 10, two);
          weft::fork(append, weft::read(two), weft::update(all));
        }
        weft::sync();
        return all.get();
      },
      "<0><10><1><11><2><12><3><13><4><14>", 25);
}

TEST_CASE("contributions are found, and folded in reference order", "[cluster]") {
  const auto f = [] {
    weft::shared<std::string> all(std::string{});
    for (int i = 0; i < 8; ++i) weft::fork(contribute_below, i, weft::reduce(all, std::plus<>{}));
    weft::sync();
    return all.get();
  };
  std::string expected;
  for (int i = 0; i < 8; ++i)
    expected += "[(" + std::to_string(2 * i) + ")(" + std::to_string(2 * i + 1) + ")]";
  check_all_found(f, expected, 24);
}

TEST_CASE("many contributions at once are found", "[cluster]") {
  const auto f = [] {
    weft::shared<std::string> all(std::string{});
    for (int i = 0; i < 200; ++i) weft::fork(contribute, i, weft::reduce(all, std::plus<>{}));
    weft::sync();
    return all.get();
  };
  std::string expected;
  for (int i = 0; i < 200; ++i) expected += "(" + std::to_string(i) + ")";
  check_all_found(f, expected, 200);
}

TEST_CASE("a task that throws is executed again, and those that have ended well are not", "[cluster]") {
  const auto f = [] {
    for (int i = 0; i < 4; ++i) weft::fork(throw_at, i);
    weft::sync();
  };
  for (int processes = 1; processes <= 3; ++processes) {
    recording_cluster first(processes);
    CHECK(thrown_by(first, f) == "at 2");
    const std::uint64_t recorded = first.recorded();
    CHECK(recorded >= 2);
    CHECK(recorded <= (processes == 1 ? 2 : 3));  // another process may have the one behind it
    recording_cluster second(processes);
    second.resume(first);
    CHECK(thrown_by(second, f) == "at 2");
    CHECK(executed >= 1);
    CHECK(executed <= 2);  // as above
    CHECK(second.found() >= 2);
  }
}

TEST_CASE("of several exceptions in one task, the first in reference order is thrown", "[cluster]") {
  recording_cluster c(1);
  CHECK(thrown_by(c, [] { weft::fork(throw_below, 1); }) == "at 2");
  CHECK(thrown_by(c, [] { weft::fork(throw_below, 0); }) == "too late");
  CHECK(thrown_by(c, [] { weft::fork(throw_below, 3); }) == "nothing");
}

TEST_CASE("a program with other arguments finds nothing", "[cluster]") {
  recording_cluster first(2);
  first.run(grow);
  recording_cluster second(2);
  second.resume(first);
  CHECK(second.run([] {
    const auto a = weft::fork(tree, 6, 2L);
    weft::sync();
    return a.get();
  }) == (128 + 191) * 64 / 2);
  CHECK(executed == tree_size);
  CHECK(second.found() == 0);
}

TEST_CASE("nothing is recorded of what a stop has cut short", "[cluster]") {
  const auto stop = [](int) {
    ++executed;
    weft::this_task::request_stop();
    return 1;
  };
  for (int processes = 1; processes <= 2; ++processes) {
    recording_cluster c(processes);
    CHECK_THROWS_AS(c.run([stop] {
      weft::fork(stop, 1);
      weft::sync();
    }),
                    weft::cancelled);
    CHECK(executed == 1);
    CHECK(c.recorded() == 0);
  }
}

TEST_CASE("a job that was cut short goes on with any number of processes", "[cluster]") {
  constexpr int parts = 40;
  for (int processes = 1; processes <= 3; ++processes) {
    INFO(processes << " processes");
    const auto job = [](bool breaks) {
      long sum = 0;
      for (int i = 0; i < parts; ++i) {
        const auto part = weft::fork(tree, 3, long{i});
        weft::sync();
        sum += part.get();
        if (breaks && i == parts / 2) throw std::runtime_error("killed");
      }
      return sum;
    };
    recording_cluster first(processes);
    CHECK_THROWS_AS(first.run([&job] { return job(true); }), std::runtime_error);
    CHECK(executed == 15 * (parts / 2 + 1));
    recording_cluster second(4 - processes);
    second.resume(first);
    CHECK(second.run([&job] { return job(false); }) == 8 * 8 * parts * (parts - 1) / 2 + 28 * parts);
    CHECK(executed == 15 * (parts / 2 - 1));
    recording_cluster third(processes);
    third.resume(first);
    third.resume(second);
    CHECK(third.run([&job] { return job(false); }) == 8 * 8 * parts * (parts - 1) / 2 + 28 * parts);
    CHECK(executed == 0);
  }
}

TEST_CASE("what a stop has left half done goes on", "[cluster]") {
  // The eighth of the leaves stops the run; what has ended by then is recorded.
  const auto job = [](bool stops) {
    for (int i = 0; i < 16; ++i) {
      weft::fork(tree, 2, long{i});
      if (stops && i == 8) {
        weft::sync();
        weft::this_task::request_stop();
      }
    }
    weft::sync();
  };
  recording_cluster first(2);
  CHECK_THROWS_AS(first.run([&job] { job(true); }), weft::cancelled);
  CHECK(executed == 7 * 9);
  recording_cluster second(3);
  second.resume(first);
  second.run([&job] { job(false); });
  CHECK(executed == 7 * 7);
}

namespace {

/// Returns when `n` have begun, so that as many workers are needed.
int meet(int, int n) {
  ++executed;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (executed < n && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return executed >= n;
}
int meet_below(int i) {
  const auto one = weft::fork(meet, 2 * i, 3);
  const auto two = weft::fork(meet, 2 * i + 1, 3);
  const int third = meet(0, 3);
  weft::sync();
  return one.get() + two.get() + third;
}
}  // namespace

TEST_CASE("other workers and processes execute tasks that are shown to the keeper", "[cluster]") {
  for (const auto& [processes, workers] : {std::pair(1, 3u), std::pair(3, 1u)}) {
    recording_cluster c(processes, workers);
    const auto f = [] {
      const auto all = weft::fork(meet_below, 1);
      weft::sync();
      return all.get();
    };
    CHECK(c.run(f) == 3);
    CHECK(c.records() == 1);
    CHECK((c.sent() > 0) == (processes > 1));
    recording_cluster second(1);
    second.resume(c);
    CHECK(second.run(f) == 3);
    CHECK(executed == 0);
  }
}

TEST_CASE("a task that another process asks for is found before it is sent", "[cluster]") {
  recording_cluster first(1);
  first.run(grow);
  recording_cluster second(2);
  second.resume(first);
  bool found_by_others = false;
  const auto with_busy_root = [&] {
    const auto a = weft::fork(tree, 6, 1L);
    // The worker of process 0 is here, so only those that ask can look.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (second.looking() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    found_by_others = !second.looking();
    weft::sync();
    return a.get();
  };
  CHECK(second.run(with_busy_root) == tree_value);
  CHECK(found_by_others);
  CHECK(executed == 0);
  CHECK(second.sent() == 0);
}
