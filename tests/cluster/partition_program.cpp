// SPDX-License-Identifier: BSL-1.0
// A partitioned step of real processes. usage: partition_program [throw|differ|die|stop]; prints "right" in
// process 0. partition_program resume <file> <steps>: goes on from a checkpoint up to so many steps, or with
// so many more if there is a + before them; prints from where, and the result.
#include "step_program.hpp"

#include <weft/cluster.hpp>
#include <weft/cluster/partition.hpp>
#include <weft/placement/dsc.hpp>
#include <weft/placement/etf.hpp>
#include <weft/weft.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace weft_test;

bool check(bool right, const char* what) {
  if (!right) std::printf("wrong: %s\n", what);
  return right;
}

weft::placement::schedule in_turns(const weft::placement::task_graph& g, const weft::placement::machine& m) {
  std::vector<unsigned> on(g.costs.size());
  std::iota(on.begin(), on.end(), 0u);
  for (unsigned& p : on) p %= m.processors;
  return weft::placement::list_schedule(g, m, on);
}

/// A stencil over rows, with some milliseconds for a step.
int resume(weft::cluster& c, const std::string& file, const std::string& steps) {
  constexpr std::size_t rows = 12;
  std::vector<std::vector<std::uint64_t>> row(rows, std::vector<std::uint64_t>(500));
  for (std::size_t i = 0; i < rows; ++i) std::iota(row[i].begin(), row[i].end(), i);
  weft::partitioned step(c,
                         [&] {
                           for (std::size_t i = 0; i < rows; ++i)
                             weft::fork(
                                 [](const auto& above, auto& here) {
                                   for (int k = 0; k < 100; ++k)
                                     for (std::size_t j = 0; j < here.size(); ++j)
                                       here[j] = mix(here[j], above[j]);
                                 },
                                 weft::read(weft::borrow(row[(i + 1) % rows])),
                                 weft::update(weft::borrow(row[i])));
                         },
                         {.checkpoint = file, .checkpoint_seconds = 0.05});
  const std::uint64_t done = step.resume();
  if (c.rank() == 0)
    std::printf("resumed %llu\n", static_cast<unsigned long long>(done)), std::fflush(stdout);
  const std::uint64_t n = std::stoull(steps);  // a sign is read
  step.run(steps.front() == '+' ? n : n - done);
  std::uint64_t sum = 0;
  for (const auto& r : row)
    for (const std::uint64_t v : r) sum = mix(sum, v);
  if (c.rank() == 0) std::printf("result %llu\n", static_cast<unsigned long long>(sum));
  return 0;
}

/// Process 1 gets a signal in the tenth iteration of a step.
int send_signal(weft::cluster& c, int signal) {
  weft::shared<int> counts[2] = {weft::shared<int>(0), weft::shared<int>(0)};
  const bool here = c.rank() == 1;
  weft::partitioned step(c,
                         [&] {
                           for (int i = 0; i < 2; ++i)
                             weft::fork(
                                 [here, signal](const int& before, int& count) {
                                   if (here && before == 10) std::raise(signal);
                                   ++count;
                                 },
                                 weft::read(counts[1 - i]), weft::update(counts[i]));
                         },
                         {.method = in_turns});
  step.run(100000);
  return 0;
}

int run(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  weft::cluster_options cluster{.runtime = {.workers = 1}};
  if (mode == "stop") cluster.silence = std::chrono::seconds(4);
  weft::cluster c(argc, argv, cluster);
  if (mode == "differ") {
    weft::shared<int> x(0);
    weft::partitioned step(c, [&] {
      for (int i = 0; i <= c.rank(); ++i) weft::fork([](int& v) { ++v; }, weft::update(x));
    });
    return 0;
  }
  if (mode == "die" || mode == "stop") return send_signal(c, mode == "stop" ? SIGSTOP : SIGKILL);
  if (mode == "resume") return resume(c, argv[2], argv[3]);
  weft::remote::register_exception<step_failure>();
  bool right = true;
  const weft::placement::method methods[] = {weft::placement::owner_computes, weft::placement::etf,
                                             weft::placement::dsc, in_turns};
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    const step_program p = random_step(seed, 30, mode == "throw" ? 2 : 0);
    step_values expected = first_values(p);
    std::string throws;
    try {
      for (int k = 0; k < 25; ++k) interpret(p, expected);
    } catch (const step_failure& e) {
      throws = e.what();
    }
    step_objects objects(p);
    weft::partitioned step(c, [&] { objects.fork(); },
                           {.method = methods[seed % 4], .ahead_bytes = seed % 3 == 0 ? 1u : 64u << 20});
    std::string thrown;
    try {
      step.run(10);
      step.run(15);
    } catch (const step_failure& e) {
      thrown = e.what();
    }
    right &= check(thrown == throws, "exception");
    if (throws.empty()) right &= check(objects.values() == expected, "values");
    if (c.size() > 1 && throws.empty()) right &= check(step.counters().messages > 2, "messages");
    // A run of the cluster between two steps.
    right &= check(c.run([] { return 7; }) == 7, "run");
  }
  // Values that do not go in one piece.
  std::vector<double> large[2] = {std::vector<double>(100000, 1.0), std::vector<double>(100000)};
  weft::partitioned step(c,
                         [&] {
                           for (int i = 0; i < 2; ++i)
                             weft::fork(
                                 [](const std::vector<double>& from, std::vector<double>& to) {
                                   for (std::size_t k = 0; k < to.size(); ++k) to[k] = from[k] + 1;
                                 },
                                 weft::read(weft::borrow(large[i])), weft::write(weft::borrow(large[1 - i])));
                         },
                         {.method = in_turns});
  step.run(20);
  right &= check(large[0][99999] == 41 && large[1][0] == 40, "large values");
  if (c.size() > 1 && c.rank() < 2) right &= check(step.counters().long_messages >= 20, "long messages");
  if (c.rank() == 0 && right) std::printf("right\n");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv); }
