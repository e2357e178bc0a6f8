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
