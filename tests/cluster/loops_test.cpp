// SPDX-License-Identifier: BSL-1.0
// Loops that are divided among the processes of a cluster, against serial ones.
#include "support/catch.hpp"

#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<int> elsewhere{0};    // iterations in other processes than the first
std::atomic<bool> patient{true};  // until the first one has waited for others in vain

/// An iteration; in process 0 it takes until others have executed one, and some time everywhere.
void iterate() {
  if (weft::this_thread::process() != 0) {
    ++elsewhere;
  } else if (weft::this_thread::processes() > 1) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (elsewhere == 0 && patient && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (elsewhere == 0) patient = false;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
  while (std::chrono::steady_clock::now() < end) {
  }
}

using text = weft::reduce<std::string, std::plus<>>;
void write_number(int i, const std::vector<std::string>& names, text out) {
  iterate();
  out += names.at(static_cast<std::size_t>(i) % names.size()) + std::to_string(i) + ",";
}

std::uint64_t sent(const weft::thread_cluster& c) {
  std::uint64_t all = 0;
  for (int i = 0; i < c.size(); ++i) all += c.counters(i).closures_sent;
  return all;
}
std::uint64_t sent_by_others(const weft::thread_cluster& c) { return sent(c) - c.counters(0).closures_sent; }

/// Adds what it has to each index.
struct add_to_each {
  long own = 0;
  void operator()(weft::indices<std::int64_t> part, weft::reduce<long, std::plus<>> sum) const {
    iterate();
    for (const std::int64_t i : part) sum += i + own;
  }
};

}  // namespace

TEST_CASE("a loop goes to other processes in parts, and contributes in its order", "[cluster]") {
  const std::vector<std::string> names{"a", "b", "c"};
  std::string serial = "<";
  for (int i = 3; i < 400; ++i) serial += names[static_cast<std::size_t>(i) % 3] + std::to_string(i) + ",";
  std::uint64_t went_on = 0;
  for (const std::uint32_t disorder : {0u, 1u, 2u})
    for (int processes = 1; processes <= 4; ++processes) {
      weft::thread_cluster c(processes, {}, {.disorder = disorder});
      elsewhere = 0;
      const std::string got = c.run([&names] {
        weft::shared<std::vector<std::string>> words(names);
        weft::shared<std::string> all(std::string("<"));
        weft::fork_for({.name = "numbers", .priority = 2}, 3, 400, write_number, weft::read(words),
                       weft::reduce(all, std::plus<>{}));
        weft::sync();
        return all.get();
      });
      CHECK(got == serial);
      CHECK((sent(c) > 0) == (processes > 1));
      CHECK((elsewhere > 0) == (processes > 1));
      went_on += sent_by_others(c);
    }
  CHECK(went_on > 0);  // parts of parts
}

TEST_CASE("a loop that takes several indices at once takes its state along", "[cluster]") {
  weft::thread_cluster c(3);
  elsewhere = 0;
  const long got = c.run([] {
    weft::shared<long> sum(1);
    weft::fork_for({.grain = 7}, std::int64_t{-1000}, std::int64_t{1001}, add_to_each{5},
                   weft::reduce(sum, std::plus<>{}));
    weft::sync();
    return sum.get();
  });
  CHECK(got == 1 + 2001 * 5);
  CHECK(sent(c) > 0);
}

TEST_CASE("a loop that is not divided goes as a whole", "[cluster]") {
  weft::thread_cluster c(2);
  elsewhere = 0;
  const std::string got = c.run([] {
    weft::shared<std::string> all(std::string{});
    weft::fork_for(
        0, 10,
        [](int i, weft::update<std::string> s) {
          *s += std::to_string(i);
          elsewhere += weft::this_thread::process() != 0;
        },
        all);
    iterate();
    weft::sync();
    return all.get();
  });
  CHECK(got == "0123456789");
  CHECK(elsewhere == 10);
  CHECK(sent(c) >= 1);  // again, if it was given back
}

TEST_CASE("the exception of a loop in several processes is that of the serial loop", "[cluster]") {
  for (const std::uint32_t disorder : {0u, 1u, 2u, 3u}) {
    weft::thread_cluster c(3, {}, {.disorder = disorder});
    for (const int first : {20, 150, 290}) {
      elsewhere = 0;
      std::string what;
      try {
        c.run([first] {
          weft::fork_for(
              0, 300,
              [](int i, int from) {
                iterate();
                if (i >= from && i % 10 == 0) throw std::runtime_error(std::to_string(i));
              },
              first);
          weft::sync();
        });
      } catch (const std::runtime_error& e) {
        what = e.what();
      }
      CHECK(what == std::to_string(first));
    }
    CHECK(sent(c) > 0);
    CHECK(c.run([] { return 3; }) == 3);
  }
}

TEST_CASE("a stop reaches the parts of a loop in other processes", "[cluster]") {
  weft::thread_cluster c(2);
  elsewhere = 0;
  CHECK_THROWS_AS(c.run([] {
    weft::fork_for(0, 1'000'000'000, [](int) {
      iterate();
      if (elsewhere > 3 && weft::this_thread::process() == 0) weft::this_task::request_stop();
    });
    weft::sync();
  }),
                  weft::cancelled);
  CHECK(elsewhere > 3);
}

TEST_CASE("a loop whose function cannot be sent stays, and is divided among the workers", "[cluster]") {
  weft::thread_cluster c(2, {.runtime = {.workers = 2}});
  elsewhere = 0;
  std::vector<int> all(1000);
  c.run([&all] {
    weft::fork_for(0, 1000, [&all](int i) {
      elsewhere += weft::this_thread::process() != 0;
      all[static_cast<std::size_t>(i)] = i;
    });
    weft::sync();
  });
  std::vector<int> serial(1000);
  std::iota(serial.begin(), serial.end(), 0);
  CHECK(all == serial);
  CHECK(elsewhere == 0);
  CHECK(sent(c) == 0);
}
