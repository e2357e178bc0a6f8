// SPDX-License-Identifier: BSL-1.0
// A partitioned step of real processes. usage: partition_program [throw|differ]; prints "right" in process 0.
#include "step_program.hpp"

#include <weft/cluster.hpp>
#include <weft/cluster/partition.hpp>
#include <weft/placement/dsc.hpp>
#include <weft/placement/etf.hpp>
#include <weft/weft.hpp>

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

int run(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  weft::cluster c(argc, argv, {.runtime = {.workers = 1}});
  if (mode == "differ") {
    weft::shared<int> x(0);
    weft::partitioned step(c, [&] {
      for (int i = 0; i <= c.rank(); ++i) weft::fork([](int& v) { ++v; }, weft::update(x));
    });
    return 0;
  }
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
    weft::partitioned step(c, [&] { objects.fork(); }, {.method = methods[seed % 4]});
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
  if (c.rank() == 0 && right) std::printf("right\n");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv); }
