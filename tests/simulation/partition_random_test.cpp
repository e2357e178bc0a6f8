// SPDX-License-Identifier: BSL-1.0
// Partitioned steps of processes on a simulated network whose messages are delayed and overtake each other,
// against the serial program. Each run can be repeated from its seed.
#include "cluster/step_program.hpp"
#include "network.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"

#include <weft/cluster/partition.hpp>
#include <weft/placement/dsc.hpp>
#include <weft/placement/etf.hpp>
#include <weft/weft.hpp>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

using namespace weft_test;

namespace {

/// Another placement each time it is asked.
weft::placement::method anywhere(std::uint64_t seed) {
  return [dice = std::make_shared<weft_test::random>(seed)](const weft::placement::task_graph& g,
                                                            const weft::placement::machine& m) {
    std::vector<unsigned> on(g.costs.size());
    for (unsigned& p : on) p = static_cast<unsigned>(dice->below(m.processors));
    return weft::placement::list_schedule(g, m, on);
  };
}

/// What all processes have, and what left their runs: the text of an exception, or "stopped".
struct outcome {
  std::vector<step_values> values;
  std::vector<std::string> thrown;
  std::uint64_t messages = 0, moved = 0, held = 0;
  simulation::passed passed{};
};

/// A random step and how it is run, all by one seed.
struct random_case {
  step_program program;
  std::vector<std::uint64_t> runs;
  std::uint64_t stop_at;  ///< a task of the last place stops the run in this iteration; 0: it does not
  int processes;
  unsigned workers;
  weft::partition_options options;
  simulation::network_options by{.latency = 100, .overhead = 50, .longest_delay = 500};
};

random_case case_of(std::uint64_t seed) {
  weft_test::random dice(seed);
  const auto below = [&dice](unsigned n) { return static_cast<unsigned>(dice.below(n)); };
  static constexpr int sizes[] = {2, 3, 5, 10, 20};
  random_case c;
  c.program = random_step(static_cast<std::uint32_t>(seed), 2 + below(38), seed % 3 == 0 ? 1 + below(4) : 0);
  c.runs = {1 + dice.below(5), 0, 1 + dice.below(16)};
  c.stop_at = seed % 5 == 0 ? 1 + dice.below(16) : 0;
  c.processes = sizes[below(5)];
  c.workers = 1 + below(2);
  const weft::placement::method methods[] = {weft::placement::owner_computes, weft::placement::etf,
                                             weft::placement::dsc, anywhere(seed)};
  c.options.method = methods[below(4)];
  c.options.threshold = dice.one_in(2) ? 0.2 : -1e9;  // the latter: tasks move at each occasion
  c.by.delays = dice.one_in(3) ? 0 : seed;
  constexpr std::size_t limits[] = {1, 100, 1000, 64 << 20};  // of values that nobody needs yet
  c.options.ahead_bytes = limits[below(4)];
  return c;
}

/// What each process must have in the end.
outcome expectation_of(const random_case& c) {
  outcome o{{first_values(c.program)}, {""}};
  std::uint64_t done = 0;
  try {
    for (const std::uint64_t n : c.runs)
      for (std::uint64_t i = 0; i < n; ++i) {
        interpret(c.program, o.values[0]);
        if (++done == c.stop_at) throw weft::cancelled();
      }
  } catch (const step_failure& e) {
    o.thrown[0] = e.what();
  } catch (const weft::cancelled&) {
    o.thrown[0] = "stopped";
  }
  return o;
}

outcome run_case(const random_case& c) {
  const auto size = static_cast<std::size_t>(c.processes);
  outcome o{std::vector<step_values>(size), std::vector<std::string>(size)};
  o.passed = simulation::run_in_virtual_time([&] {
    simulation::cluster all(c.processes, {.runtime = {.workers = c.workers}}, c.by);
    all.each([&](simulation::cluster::process& here) {
      const auto at = static_cast<std::size_t>(here.rank());
      step_objects objects(c.program);
      weft::shared<std::uint64_t> done(0);
      weft::partitioned step(
          here,
          [&] {
            objects.fork();
            if (c.stop_at == 0) return;
            weft::fork(
                [stop_at = c.stop_at](std::uint64_t& n) {
                  if (++n == stop_at) weft::this_task::request_stop();
                },
                weft::update(done));
          },
          c.options);
      try {
        for (const std::uint64_t n : c.runs) step.run(n);
      } catch (const weft::cancelled&) {
        o.thrown[at] = "stopped";
      } catch (const std::exception& e) {
        o.thrown[at] = e.what();
      }
      o.values[at] = objects.values();
      o.messages += step.counters().messages;
      o.held += step.counters().values_held;
      if (at == 0) o.moved += step.counters().redistributions;
    });
  });
  return o;
}

}  // namespace

TEST_CASE("random steps give on a simulated network what the serial program gives") {
  weft::remote::register_exception<step_failure>();
  std::uint64_t compared = 0, threw = 0, stopped = 0, moved = 0, messages = 0, delayed = 0, held = 0;
  const std::uint64_t all = 2'000;
  for (std::uint64_t i = 1; i <= all; ++i) {
    const std::uint64_t seed = i <= all / 2 ? i : weft_test::seed() % 1'000'000 + i;
    const random_case c = case_of(seed);
    const outcome want = expectation_of(c), o = run_case(c);
    INFO("seed " << seed << ", " << c.processes << " processes with " << c.workers << " workers, delays "
                 << c.by.delays);
    // The task that stops depends on no other, so it may overtake one that fails before it.
    const bool overtakes = c.stop_at != 0 && want.thrown[0].starts_with("action") && o.thrown[0] == "stopped";
    for (const std::string& t : o.thrown) CHECK(t == (overtakes ? "stopped" : want.thrown[0]));
    if (want.thrown[0].empty())
      for (const step_values& v : o.values) CHECK(v == want.values[0]);
    ++compared;
    stopped += o.thrown[0] == "stopped";
    threw += o.thrown[0].starts_with("action");
    moved += o.moved;
    messages += o.messages;
    held += o.held;
    delayed += c.by.delays != 0;
  }
  std::printf(
      "steps compared %llu, that threw %llu, stopped %llu; placed anew %llu times, messages %llu, "
      "values held back %llu\n",
      static_cast<unsigned long long>(compared), static_cast<unsigned long long>(threw),
      static_cast<unsigned long long>(stopped), static_cast<unsigned long long>(moved),
      static_cast<unsigned long long>(messages), static_cast<unsigned long long>(held));
  weft_test::figure("simulated_steps", compared);
  CHECK(threw > all / 20);
  CHECK(stopped > all / 20);
  CHECK(moved > all / 4);
  CHECK(delayed > all / 2);
  CHECK(messages > 100 * all);
  CHECK(held > 10 * all);
}

TEST_CASE("a simulated step does the same each time") {
  weft::remote::register_exception<step_failure>();
  std::uint64_t last = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const random_case one = case_of(seed), two = case_of(seed);
    const outcome first = run_case(one), second = run_case(two);
    INFO("seed " << seed);
    CHECK(first.passed.hash == second.passed.hash);
    CHECK(first.messages == second.messages);
    CHECK(first.passed.hash != last);
    last = first.passed.hash;
  }
}
