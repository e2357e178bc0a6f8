// SPDX-License-Identifier: BSL-1.0
// Processes of a cluster that are silent: who notices, what the job ends with, and what it costs to notice.
#include "support/catch.hpp"

#include <weft/cluster/detail/neighbours.hpp>
#include <weft/cluster/detail/thread_transport.hpp>
#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>

using namespace std::chrono_literals;

namespace {

std::atomic<int> executed{0};

void work(int i, weft::update<long> sum) {
  *sum += i;
  ++executed;
}
/// A run in which at least one task is executed elsewhere.
long run(weft::thread_cluster& c) {
  executed = 0;
  return c.run([] {
    std::deque<weft::shared<long>> sums;
    for (int i = 0; i < 8; ++i) weft::fork(work, i, sums.emplace_back(0));
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (executed.load() == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    weft::sync();
    long all = 0;
    for (auto& s : sums) all += s.get();
    return all;
  });
}
void take_time(std::chrono::milliseconds time, weft::write<int> done) {
  ++executed;
  std::this_thread::sleep_for(time);
  done = 1;
}
/// For so long each of two processes executes a task, so that none asks for others.
void keep_busy(weft::thread_cluster& c, std::chrono::milliseconds time) {
  executed = 0;
  const int result = c.run([time] {
    weft::shared<int> done(0);
    weft::fork(take_time, time, done);
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (executed.load() == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    std::this_thread::sleep_for(time);
    weft::sync();
    return done.get();
  });
  CHECK(result == 1);
}
/// What two processes have sent in a run that was kept busy, without requests, their answers, the result of
/// the task, and the three messages of the end.
std::uint64_t beats(const weft::thread_cluster& c) {
  std::uint64_t all = 0;
  for (int i = 0; i < 2; ++i) {
    const weft::cluster_counters n = c.counters(i);
    all += n.messages - 2 * (n.requests + n.lifelines);  // with their answers
  }
  return all - 4;
}
std::string failure(weft::thread_cluster& c) {
  try {
    c.run([] { std::this_thread::sleep_for(1s); });
  } catch (const weft::error& e) {
    return e.what();
  }
  return "none";
}

weft::cluster_options patient_for(std::chrono::milliseconds silence) { return {.silence = silence}; }

/// One of two processes, without a runtime.
struct process {
  process(weft::remote::thread_hub& hub, int rank) : by(hub, rank), near(by, {}, counters) {}
  /// Takes the next message.
  void take() {
    weft::remote::bytes message;
    int from = by.receive(message);
    for (; from < 0; from = by.receive(message)) by.wait(1ms);
    near.take(weft::remote::incoming(message, from));
  }

  weft::remote::thread_transport by;
  weft::cluster_counters counters;
  weft::remote::neighbours near;
};
std::string failure_of(process& p, void (*does)(process&)) {
  try {
    does(p);
  } catch (const weft::error& e) {
    return e.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("a process whose messages are lost is named, and the run ends in all of them") {
  // Only the first request of process 1 arrives.
  weft::thread_cluster c(2, patient_for(3s), {.mute = 1, .mute_after = 1});
  CHECK(failure(c) == "weft: process 1 of the cluster has not answered for 3 s");
}

TEST_CASE("so is process 0") {
  // Only its first answer, or request, arrives.
  weft::thread_cluster c(2, patient_for(3s), {.mute = 0, .mute_after = 1});
  CHECK(failure(c) == "weft: process 0 of the cluster has not answered for 3 s");
}

TEST_CASE("processes that have nothing to say are not silent") {
  weft::thread_cluster c(2, patient_for(3s));
  CHECK(run(c) == 28);
  keep_busy(c, 7s);
  // Other runs after a time in which no process is in one.
  std::this_thread::sleep_for(2s);
  for (int i = 0; i < 3; ++i) CHECK(run(c) == 28);
}

TEST_CASE("processes that have nothing to say send a message for each third of the limit") {
  weft::thread_cluster c(2, patient_for(3s));
  const auto begin = std::chrono::steady_clock::now();
  keep_busy(c, 5200ms);
  const auto thirds = static_cast<std::uint64_t>((std::chrono::steady_clock::now() - begin) / 1s);
  CHECK(beats(c) >= 4);
  CHECK(beats(c) <= 2 * (thirds + 1) + 4);
}

TEST_CASE("without a limit no process is watched") {
  weft::thread_cluster c(2, patient_for(0ms));
  keep_busy(c, 300ms);
  CHECK(beats(c) == 0);
}

TEST_CASE("a limit out of range is refused") {
  CHECK_THROWS_AS(weft::thread_cluster(1, patient_for(9ms)), weft::option_error);
  CHECK_THROWS_AS(weft::thread_cluster(2, patient_for(-1ms)), weft::option_error);
  CHECK_THROWS_AS(weft::thread_cluster(2, patient_for(24h + 1ms)), weft::option_error);
}

TEST_CASE("a process that has ended is named by one that is in another run, or begins one") {
  weft::remote::thread_hub hub(2, {});
  process stays(hub, 0), ends(hub, 1);
  stays.near.begin(1);
  ends.near.begin(1);
  std::thread end([&] { ends.near.leave(); });
  stays.take();  // the run that both have taken part in may go on for a moment
  const char* const ended =
      "weft: process 1 of the cluster has ended, and has called run() less often than process 0";
  CHECK(failure_of(stays, [](process& p) { p.near.begin(2); }) == ended);
  stays.near.leave();
  end.join();

  weft::remote::thread_hub other_hub(2, {});
  process is_ahead(other_hub, 0), is_behind(other_hub, 1);
  is_ahead.near.begin(1);
  std::thread other_end([&] { is_behind.near.leave(); });
  CHECK(failure_of(is_ahead, [](process& p) { p.take(); }) == ended);
  is_ahead.near.leave();
  other_end.join();
}

TEST_CASE(
    "processes that have taken part in the same runs wait for each other, and leave no message behind") {
  weft::remote::thread_hub hub(3, {});
  process p0(hub, 0), p1(hub, 1), p2(hub, 2);
  for (process* p : {&p0, &p1, &p2}) p->near.begin(1);
  std::atomic<int> left{0};
  std::thread end([&] { p1.near.leave(), ++left; }), other_end([&] { p2.near.leave(), ++left; });
  std::this_thread::sleep_for(20ms);
  CHECK(left.load() == 0);
  p0.near.leave();
  end.join();
  other_end.join();
  weft::remote::bytes message;
  for (process* p : {&p0, &p1, &p2}) CHECK(p->by.receive(message) == -1);
}
