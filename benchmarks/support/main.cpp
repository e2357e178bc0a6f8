// SPDX-License-Identifier: BSL-1.0
// The main program of every kernel: registers each rival on each problem with Google Benchmark, verifies,
// prints ratios.
#include "config.hpp"  // the kernel's: kernel_name, task_name, reference_name, problems
#include "isolate.hpp"
#include "machine.hpp"
#include "ratio_table.hpp"
#include "registry.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace weft_bench {
namespace {

constexpr double noise_limit = 0.04;  // share of the machine that others may take while a run is timed
constexpr int attempts = 2;           // the calmest of so many is taken, and its noise reported

/// Seconds to wait for an idle machine before each run; 0: measure whatever else is going on.
double patience() {
  const char* set = std::getenv("BENCH_PATIENCE");
  return set != nullptr ? std::atof(set) : 5;
}

/// Runs per rival: the kernel's own number, or BENCH_REPETITIONS.
int repetitions(const problem& p) {
  const char* set = std::getenv("BENCH_REPETITIONS");
  return set != nullptr && std::atoi(set) > 0 ? std::atoi(set) : p.repetitions;
}

struct measured {
  isolated run;
  double noise = 0;
};

measured measure(const rival& r, int problem, unsigned workers) {
  measured best;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    if (patience() > 0) wait_until_idle(patience());
    const stopwatch wall;
    const machine_load load;
    measured m;
    m.run = isolate([&] { return r.run(problem, workers); });
    const double others = load.busy_seconds() - m.run.cpu_seconds;
    m.noise = std::clamp(others / (wall.seconds() * usable_processors()), 0.0, 1.0);
    if (attempt == 0 || m.noise < best.noise) best = m;
    // Ticks of 10 ms say nothing about a run of a few hundredths of a second.
    if (patience() == 0 || !m.run.error.empty() || m.noise <= noise_limit || wall.seconds() < 0.2) break;
  }
  return best;
}

/// The value of the reference program, computed once per problem, untimed.
const isolated& expected(int problem) {
  static std::map<int, isolated> known;
  const auto at = known.find(problem);
  if (at != known.end()) return at->second;
  isolated reference;
  reference.error = "no reference program";
  for (const rival& r : rivals())
    if (r.name == reference_name) reference = isolate([&] { return r.run(problem, 1); });
  return known[problem] = reference;
}

void run_benchmark(benchmark::State& state, const rival& r, int problem, unsigned workers) {
  for ([[maybe_unused]] auto _ : state) {
    const measured m = measure(r, problem, workers);
    const isolated& reference = expected(problem);
    if (!m.run.error.empty() || !reference.error.empty()) {
      state.SkipWithError((m.run.error.empty() ? reference.error : m.run.error).c_str());
      break;
    }
    const outcome& o = m.run.result;
    if (o.value != reference.result.value) {
      state.SkipWithError(("wrong result " + std::to_string(o.value) + ", the serial program gives " +
                           std::to_string(reference.result.value))
                              .c_str());
      break;
    }
    state.SetIterationTime(o.seconds);
    state.counters["tasks"] = double(o.tasks);
    state.counters["ns_per_task"] = o.seconds / double(o.tasks) * 1e9;
    state.counters["steals"] = double(o.steals);
    state.counters["sleeps"] = double(o.sleeps);
    state.counters["peak_MB"] = o.peak_mb;
    state.counters["noise_percent"] = 100 * m.noise;
    if (o.paired > 0) state.counters["paired_ratio"] = o.paired;
  }
}

std::vector<unsigned> worker_counts() { return {1, std::max(2u, usable_processors())}; }

void register_all() {
  int index = 0;
  for (const problem& p : problems) {
    for (const rival& r : rivals())
      for (const unsigned workers : worker_counts()) {
        if (!r.fits(index, workers)) continue;
        const std::string name =
            std::string(kernel_name) + '/' + p.name + '/' + r.name + '/' + std::to_string(workers) + "w";
        benchmark::RegisterBenchmark(
            name.c_str(), [&r, index, workers](benchmark::State& s) { run_benchmark(s, r, index, workers); })
            ->UseManualTime()
            ->Iterations(1)
            ->Unit(benchmark::kMillisecond)
            ->Repetitions(repetitions(p));
      }
    ++index;
  }
}

int run(int argc, char** argv) {
  add_modules({"libgomp", "libomp"});
  std::vector<char*> arguments(argv, argv + argc);
  // First, so that the command line can override it. Interleaving puts slow drift of the machine on all
  // rivals alike.
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  arguments.insert(arguments.begin() + 1, interleave.data());
  int count = int(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  const std::string machine = machine_line();
  benchmark::AddCustomContext("machine", machine);
  register_all();
  ratio_table table(kernel_name, task_name, reference_name);
  benchmark::RunSpecifiedBenchmarks(&table);
  std::printf("machine: %s\n", machine.c_str());
  table.print();
  return table.failed() ? 1 : 0;
}

}  // namespace
}  // namespace weft_bench

int main(int argc, char** argv) { return weft_bench::run(argc, argv); }
