// SPDX-License-Identifier: BSL-1.0
// Schedules of all methods that need no library: valid on random graphs, and as short as theory says.
#include "support/catch.hpp"
#include "validator.hpp"

#include <weft/placement/dsc.hpp>
#include <weft/placement/etf.hpp>
#include <weft/placement/owner_computes.hpp>

#include <cstdio>

using namespace weft_test;

namespace {

struct named {
  const char* name;
  placement::method place;
};
const named methods[] = {
    {"etf", placement::etf}, {"dsc", placement::dsc}, {"owner_computes", placement::owner_computes}};

/// Without latency, and one byte takes a second: arcs say delays.
placement::machine plain(unsigned processors) { return {processors, 0, 1}; }

}  // namespace

TEST_CASE("the validator finds planted faults") {
  const auto g = graph_of({1, 2, 3}, {{0, 1, 5}, {0, 2, 1}});
  const auto m = plain(2);
  CHECK(faults(g, m, {{0, 0, 1}, {0, 1, 2}, 5}) == "");
  CHECK(faults(g, m, {{0, 0, 1}, {0, 1, 1.5}, 4.5}).find("before it has the value") != std::string::npos);
  CHECK(faults(g, m, {{0, 0, 0}, {0, 1, 2}, 5}).find("overlaps") != std::string::npos);
  CHECK(faults(g, m, {{0, 0, 2}, {0, 1, 2}, 5}).find("no processor") != std::string::npos);
  CHECK(faults(g, m, {{0, 0, 1}, {0, 1, 2}, 4}).find("length") != std::string::npos);
  CHECK(faults(g, m, {{0, 0}, {0, 1}, 4}).find("missing") != std::string::npos);
}

TEST_CASE("schedules of random graphs are valid") {
  unsigned used = 0;
  for (std::uint32_t seed = 1; seed <= 120; ++seed) {
    const auto g = random_graph(seed, seed % 60 + 1, 1 + seed % 13, seed % 3 == 0 ? 1e-5 : 1e-3);
    for (const unsigned processors : {1u, 2u, 3u, 8u}) {
      const placement::machine m{processors, 1e-5, 1e9};
      for (const named& method : methods) {
        const auto s = method.place(g, m);
        INFO(method.name << ", seed " << seed << ", " << processors << " processors");
        REQUIRE(faults(g, m, s) == "");
        used = std::max(used, *std::max_element(s.processor.begin(), s.processor.end()));
        const auto again = method.place(g, m);
        REQUIRE(again.processor == s.processor);
        // What it predicts comes true if the tasks are executed as they get ready.
        const auto fixed = placement::list_schedule(g, m, s.processor);
        REQUIRE(faults(g, m, fixed) == "");
        REQUIRE(fixed.processor == s.processor);
      }
      const auto clusters = placement::dsc_clusters(g, m);
      placement::machine enough = m;
      enough.processors = static_cast<unsigned>(g.costs.size());
      REQUIRE(faults(g, enough, clusters) == "");
    }
  }
  CHECK(used == 7);
}

TEST_CASE("a list schedule takes the most urgent task first, and does not wait where it need not") {
  // 0 -> 2 is the long way; 1 is short and comes first in reference order.
  const auto g = graph_of({1, 1, 5}, {{0, 2, 0}});
  const auto s = placement::list_schedule(g, plain(1), {0, 0, 0});
  CHECK(s.start == std::vector<double>{0, 6, 1});
  // Task 2 is more urgent than 3, but its value comes late.
  const auto h = graph_of({1, 0, 5, 1}, {{0, 2, 3}});
  const auto t = placement::list_schedule(h, plain(2), {0, 1, 1, 1});
  CHECK(t.start == std::vector<double>{0, 1, 4, 0});
}

TEST_CASE("etf keeps the bound of its authors, and is best without arcs to choose from") {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    auto g = random_graph(seed, 7, 5, 1);
    for (auto& a : g.arcs) a.bytes = seed % 4;
    for (const unsigned processors : {2u, 3u}) {
      const auto m = plain(processors);
      auto free_of_delays = g;
      for (auto& a : free_of_delays.arcs) a.bytes = 0;
      const double best = best_length(free_of_delays, m).get();
      double longest = 0;  // the delays of one chain: at most so many arcs
      longest = static_cast<double>(seed % 4) * 6;
      CHECK(placement::etf(g, m).length <= (2 - 1.0 / processors) * best + longest + 1e-9);
    }
  }
  const auto chain = graph_of({1, 1, 1, 1}, {{0, 1, 9}, {1, 2, 9}, {2, 3, 9}});
  CHECK(placement::etf(chain, plain(3)).length == 4);
  const auto apart = graph_of({2, 2, 2, 2, 2, 2}, {});
  CHECK(placement::etf(apart, plain(3)).length == 4);
}

TEST_CASE("dsc is best on forks, joins and chains") {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    std::minstd_rand random(seed);
    const std::uint32_t n = 3 + static_cast<std::uint32_t>(random() % 3);
    std::vector<double> costs(n + 1);
    for (double& c : costs) c = static_cast<double>(1 + random() % 5);
    std::vector<placement::arc> fork, join, chain;
    for (std::uint32_t t = 1; t <= n; ++t) {
      const auto bytes = static_cast<double>(random() % 6);
      fork.push_back({0, t, bytes});
      join.push_back({t - 1, n, bytes});
      chain.push_back({t - 1, t, bytes});
    }
    const auto m = plain(n + 1);
    const char* const names[] = {"fork", "join", "chain"};
    const char* const* name = names;
    for (const auto& arcs : {fork, join, chain}) {
      const auto g = graph_of(costs, arcs);
      INFO(*name++ << ", seed " << seed);
      CHECK(placement::dsc_clusters(g, m).length == Approx(best_length(g, m).get()));
    }
  }
}

TEST_CASE("dsc is at most twice as long as the best where tasks are long") {
  double worst = 0;
  for (std::uint32_t seed = 1; seed <= 80; ++seed) {
    auto g = random_graph(seed, 7, 5, 1);
    for (double& c : g.costs) c = 1 + c;  // at least as long as each delay
    for (auto& a : g.arcs) a.bytes = 1;
    const auto m = plain(7);
    const double ratio = placement::dsc_clusters(g, m).length / best_length(g, m).get();
    worst = std::max(worst, ratio);
  }
  std::printf("dsc, longest against best: %.3f\n", worst);
  CHECK(worst <= 2);
}

TEST_CASE("no schedule is shorter than the longest way, or than the work of each processor") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    const auto g = random_graph(seed, 50, 7, 1e-3);
    const placement::machine m{4, 1e-6, 1e9};
    const double work = std::accumulate(g.costs.begin(), g.costs.end(), 0.0);
    for (const named& method : methods) {
      const double length = method.place(g, m).length;
      CHECK(length >= work / 4);
      CHECK(length <= work + 1);
    }
    CHECK(placement::etf(g, m).length < 0.8 * work);
  }
}

TEST_CASE("owners are neighbours, and have as much to do") {
  const auto g = grid(8);
  const placement::machine m{4, 1e-6, 1e9};
  const auto s = placement::owner_computes(g, m);
  for (std::uint32_t t = 0; t < 64; ++t) CHECK(s.processor[t] == t / 16);
  CHECK(cut(s, 8) == 24);
  auto uneven = g;
  for (std::uint32_t t = 0; t < 16; ++t) uneven.costs[t] = 5e-3;  // 80 of 128 milliseconds
  const auto moved = placement::owner_computes(uneven, m);
  std::vector<double> load(4);
  for (std::uint32_t t = 0; t < 64; ++t) load[moved.processor[t]] += uneven.costs[t];
  for (const double l : load) CHECK(l == Approx(32e-3).epsilon(0.2));
  std::vector<unsigned> owner(g.bytes.size());
  for (std::uint32_t t = 0; t < 64; ++t) owner[64 + t] = t % 4;
  const auto by_hand = placement::place_by_owner(g, m, owner);
  for (std::uint32_t t = 0; t < 64; ++t) CHECK(by_hand.processor[t] == t % 4);
}
