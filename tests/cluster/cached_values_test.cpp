// SPDX-License-Identifier: BSL-1.0
// Values that the processes keep which have read them: what goes to others, and what tasks see.
#include "support/catch.hpp"

#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using numbers = std::vector<long>;

std::atomic<int> executed{0};
/// Until others have executed so many tasks, or this process has to.
void wait_for_others(int tasks) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (executed < tasks && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

void find(long i, weft::read<numbers> v, weft::write<long> found) {
  found = v->at(static_cast<std::size_t>(i));
  ++executed;
}

std::atomic<bool> released{false};
/// Reads when it begins, and again when it is let go.
void hold(weft::read<numbers> v, weft::write<long> seen) {
  const long before = v->front();
  ++executed;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!released && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  seen = before == v->front() ? before : -1;
}
void add_one(weft::update<numbers> v) {
  for (long& x : *v) ++x;
  ++executed;
}
/// Its tasks read what it reads; it keeps its worker meanwhile, so they are executed in other processes.
void pass_on(int tasks, weft::read<numbers> v, weft::update<std::vector<long>> all) {
  const int begun = ++executed;
  std::deque<weft::shared<long>> out(static_cast<std::size_t>(tasks));
  for (int i = 0; i < tasks; ++i) weft::fork(find, i, v, out[static_cast<std::size_t>(i)]);
  wait_for_others(begun + tasks);
  weft::sync();
  for (auto& o : out) all->push_back(o.get());
}

/// Counts its objects.
class counted {
 public:
  static inline std::atomic<long> alive{0};
  counted() { ++alive; }
  counted(const counted& o) : text_(o.text_) { ++alive; }
  counted& operator=(const counted&) = default;
  ~counted() { --alive; }
  template <class Archive>
  void serialize(Archive& a) {
    a(text_);
  }
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_ = std::string(20'000, 'x');
};

weft::cluster_counters all_counters(const weft::thread_cluster& c) {
  weft::cluster_counters all;
  for (int i = 0; i < c.size(); ++i) {
    const weft::cluster_counters n = c.counters(i);
    all.closures_sent += n.closures_sent;
    all.closures_received += n.closures_received;
    all.values_cached += n.values_cached;
    all.bytes_saved += n.bytes_saved;
    all.bytes += n.bytes;
    all.messages += n.messages;
    all.memory_refused += n.memory_refused;
  }
  return all;
}

/// So many tasks read one value; others execute all of them.
bool read_elsewhere(weft::thread_cluster& c, int tasks, std::size_t size) {
  executed = 0;
  const numbers found = c.run([=] {
    numbers all(size);
    std::iota(all.begin(), all.end(), 3);
    weft::shared<numbers> v(std::move(all));
    std::deque<weft::shared<long>> out(static_cast<std::size_t>(tasks));
    for (int i = 0; i < tasks; ++i) weft::fork(find, i, v, out[static_cast<std::size_t>(i)]);
    wait_for_others(tasks);
    weft::sync();
    numbers result;
    for (auto& f : out) result.push_back(f.get());
    return result;
  });
  numbers want(static_cast<std::size_t>(tasks));
  std::iota(want.begin(), want.end(), 3);
  return found == want && executed == tasks;
}

}  // namespace

TEST_CASE("a value that many tasks read goes once to each process", "[cluster]") {
  constexpr std::size_t size = 1 << 20;
  constexpr std::uint64_t bytes = size * sizeof(long);
  for (const int processes : {2, 3, 4}) {
    weft::thread_cluster c(processes);
    CHECK(read_elsewhere(c, 64, size));
    const weft::cluster_counters n = all_counters(c);
    CHECK(n.closures_sent >= 64);
    INFO(processes << " processes, " << n.bytes << " bytes");
    CHECK(n.bytes <= (static_cast<std::uint64_t>(processes) - 1) * bytes * 11 / 10);
    CHECK(n.values_cached >= 64 - static_cast<std::uint64_t>(processes) + 1);
    CHECK(n.bytes_saved >= n.values_cached * bytes);
  }
}

TEST_CASE("without room for values each task has its own", "[cluster]") {
  constexpr std::size_t size = 10'000;
  for (const weft::cluster_options& o : {weft::cluster_options{.cache_bytes = 0},
                                         weft::cluster_options{.cached_from = size * sizeof(long) + 1}}) {
    weft::thread_cluster c(2, o);
    CHECK(read_elsewhere(c, 16, size));
    CHECK(all_counters(c).values_cached == 0);
    CHECK(all_counters(c).bytes > 16 * size * sizeof(long));
  }
  weft::thread_cluster c(2, {.cached_from = size * sizeof(long)});
  CHECK(read_elsewhere(c, 16, size));
  CHECK(all_counters(c).values_cached >=
        13);  // it goes again with tasks sent before the other has told that it keeps it
}

TEST_CASE("values go once, also in parts and where messages overtake each other", "[cluster]") {
  std::uint64_t cached = 0;
  for (unsigned disorder = 1; disorder < 8; ++disorder) {
    weft::thread_cluster c(2 + static_cast<int>(disorder) % 3, {.part_bytes = 1024}, {.disorder = disorder});
    CHECK(read_elsewhere(c, 20, 3000));
    const weft::cluster_counters n = all_counters(c);
    // The word of a receiver that it keeps a value may come after its next request.
    CHECK(n.bytes + n.bytes_saved >= 20 * 3000 * sizeof(long));
    cached += n.values_cached;
  }
  CHECK(cached > 20);
}

TEST_CASE("who reads after a value was written gets the new one, and nobody sees the old one change",
          "[cluster]") {
  weft::thread_cluster c(3);
  for (int round = 0; round < 5; ++round) {
    executed = 0;
    released = false;
    const numbers seen = c.run([] {
      weft::shared<numbers> v(numbers(5000, 1)), same(numbers(5000, 1));
      std::deque<weft::shared<long>> out(7);
      weft::fork(hold, v, out[0]);
      for (std::size_t i = 1; i < 7; ++i) {
        weft::fork(find, 7, same, out[i]);
        if (i % 2 == 0) weft::fork(add_one, same);
      }
      wait_for_others(10);
      released = true;
      weft::sync();
      numbers all;
      for (auto& o : out) all.push_back(o.get());
      return all;
    });
    CHECK(seen == numbers{1, 1, 1, 2, 2, 3, 3});
    CHECK(executed == 10);
  }
}

TEST_CASE("a small cache keeps what was read last", "[cluster]") {
  constexpr std::size_t size = 10'000, bytes = size * sizeof(long);
  for (const std::size_t room : {bytes / 2, bytes + 100, 2 * bytes + 100, 10 * bytes}) {
    weft::thread_cluster c(2, {.cache_bytes = room});
    executed = 0;
    const numbers found = c.run([] {
      std::deque<weft::shared<numbers>> v;
      std::deque<weft::shared<long>> out(64);
      for (long i = 0; i < 4; ++i) v.emplace_back(numbers(size, i));
      for (std::size_t i = 0; i < 64; ++i) weft::fork(find, 5, v[i / 4 % 4], out[i]);  // each four times
      wait_for_others(64);
      weft::sync();
      numbers all;
      for (auto& o : out) all.push_back(o.get());
      return all;
    });
    bool right = found.size() == 64;
    for (std::size_t i = 0; i < found.size(); ++i) right &= found[i] == static_cast<long>(i / 4 % 4);
    CHECK(right);
    const weft::cluster_counters n = all_counters(c);
    INFO("room for " << room << " bytes: " << n.values_cached << " not sent");
    if (room < bytes) CHECK(n.values_cached == 0);
    if (room > bytes) CHECK(n.values_cached > 0);
    if (room > 4 * bytes) CHECK(n.values_cached >= 56);  // as above
    CHECK(n.bytes >= (64 - n.values_cached) * bytes);
  }
}

TEST_CASE("a process lends what it has got on to a third one", "[cluster]") {
  weft::thread_cluster c(3);
  executed = 0;
  const numbers found = c.run([] {
    numbers all(5000);
    std::iota(all.begin(), all.end(), 0);
    weft::shared<numbers> v(std::move(all));
    weft::shared<std::vector<long>> out(std::vector<long>{});
    weft::fork(pass_on, 16, v, out);
    wait_for_others(17);
    weft::sync();
    return out.get();
  });
  numbers want(16);
  std::iota(want.begin(), want.end(), 0);
  CHECK(found == want);
  CHECK(c.counters(1).closures_sent + c.counters(2).closures_sent >= 16);
  CHECK(c.counters(1).values_cached + c.counters(2).values_cached >= 13);
}

TEST_CASE("tasks of one process share a value; after the run nobody has it", "[cluster]") {
  for (int round = 0; round < 2; ++round) {
    weft::thread_cluster c(2);
    executed = 0;
    long most = 0;
    const std::uint64_t before = static_cast<std::uint64_t>(counted::alive);
    c.run([&most] {
      weft::shared<counted> v;
      std::deque<weft::shared<long>> out(10);
      for (auto& o : out)
        weft::fork(
            [](weft::read<counted> x, weft::write<long> alive) {
              alive = static_cast<long>(x->text().size()) == 20'000 ? counted::alive.load() : 1000;
              ++executed;
            },
            v, o);
      wait_for_others(10);
      weft::sync();
      for (auto& o : out) most = std::max(most, o.get());
    });
    CHECK(all_counters(c).values_cached >= 7);  // as above
    CHECK(most <= 4);  // that of the root, and the other process's; more while they are read
    CHECK(static_cast<std::uint64_t>(counted::alive) == before);
    // The next run sends it anew.
    const std::uint64_t bytes = all_counters(c).bytes;
    CHECK(read_elsewhere(c, 4, 5000));
    CHECK(read_elsewhere(c, 4, 5000));
    CHECK(all_counters(c).bytes - bytes >= 2 * 5000 * sizeof(long));
  }
}
