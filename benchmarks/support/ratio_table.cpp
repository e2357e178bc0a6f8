// SPDX-License-Identifier: BSL-1.0
// Collects Google Benchmark's runs and prints, per problem, medians and ratios.
#include "ratio_table.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <utility>

namespace weft_bench {

namespace {

double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  const std::size_t half = v.size() / 2;
  return v.size() % 2 == 1 ? v[half] : 0.5 * (v[half - 1] + v[half]);
}

/// "kernel/problem/rival/2w/..." -> problem, rival, workers
struct name_parts {
  std::string problem;
  std::string rival;
  unsigned workers = 0;
};

name_parts split(const std::string& kernel, const std::string& name) {
  std::vector<std::string> part;
  std::size_t from = kernel.size() + 1;
  while (part.size() < 3 && from <= name.size()) {
    const std::size_t to = std::min(name.find('/', from), name.size());
    part.push_back(name.substr(from, to - from));
    from = to + 1;
  }
  part.resize(3);
  return {part[0], part[1], unsigned(std::atoi(part[2].c_str()))};
}

/// Google Benchmark renamed the two members in version 1.8.
template <class run>
bool has_failed(const run& r) {
  if constexpr (requires { r.error_occurred; })
    return r.error_occurred;
  else
    return r.skipped != decltype(r.skipped){};
}

template <class run>
const std::string& message_of(const run& r) {
  if constexpr (requires { r.error_message; })
    return r.error_message;
  else
    return r.skip_message;
}

std::string count(double v) {
  if (v < 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", v);
  return text;
}

std::string ratio(double over, double under) {
  if (under <= 0 || over <= 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", over / under);
  return text;
}

}  // namespace

ratio_table::ratio_table(std::string kernel, std::string task_name, std::string reference)
    : kernel_(std::move(kernel)), task_name_(std::move(task_name)), reference_(std::move(reference)) {}

ratio_table::row& ratio_table::find(const std::string& problem, const std::string& rival, unsigned workers) {
  auto b = std::find_if(blocks_.begin(), blocks_.end(), [&](const block& x) { return x.problem == problem; });
  if (b == blocks_.end()) b = blocks_.insert(blocks_.end(), {problem, {}});
  auto r = std::find_if(b->rows.begin(), b->rows.end(),
                        [&](const row& x) { return x.rival == rival && x.workers == workers; });
  if (r == b->rows.end()) {
    row fresh;
    fresh.rival = rival;
    fresh.workers = workers;
    r = b->rows.insert(b->rows.end(), std::move(fresh));
  }
  return *r;
}

void ratio_table::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.run_type == Run::RT_Aggregate) continue;
    const name_parts n = split(kernel_, run.run_name.function_name);
    row& r = find(n.problem, n.rival, n.workers);
    if (has_failed(run)) {
      r.error = message_of(run);
      failed_ = true;
      continue;
    }
    r.seconds.push_back(run.real_accumulated_time);
    for (const auto& [name, counter] : run.counters) r.counters[name].push_back(counter.value);
    std::fprintf(stderr, "%s: %s, %s, %u worker%s: %.4f s\n", kernel_.c_str(), n.problem.c_str(),
                 n.rival.c_str(), n.workers, n.workers == 1 ? "" : "s", run.real_accumulated_time);
  }
}

void ratio_table::print() const {
  for (const block& b : blocks_) print(b);
}

void ratio_table::print(const block& b) const {
  auto seconds_of = [&](const std::string& rival, unsigned workers) {
    for (const row& r : b.rows)
      if (r.rival == rival && r.workers == workers) return median(r.seconds);
    return 0.0;
  };
  auto counter_of = [](const row& r, const char* name) {
    const auto at = r.counters.find(name);
    return at == r.counters.end() ? -1.0 : median(at->second);
  };
  const double reference = seconds_of(reference_, 1);
  std::size_t runs = 0;
  for (const row& r : b.rows) runs = std::max(runs, r.seconds.size());
  std::printf("\n%s: %s (medians of %zu)\n", kernel_.c_str(), b.problem.c_str(), runs);
  std::printf("%-20s %7s %11s %11s %10s %9s %9s %8s %8s %8s %7s\n", "rival", "workers", "seconds", "min",
              ("ns/" + task_name_).c_str(), ("/" + reference_).c_str(), "speed-up", "steals", "sleeps",
              "peak MB", "noise %");
  std::vector<const row*> ordered;
  for (const row& r : b.rows) ordered.push_back(&r);
  std::sort(ordered.begin(), ordered.end(), [](const row* x, const row* y) {
    return std::make_tuple(x->workers, median(x->seconds), x->rival) <
           std::make_tuple(y->workers, median(y->seconds), y->rival);
  });
  for (const row* r : ordered) {
    if (!r->error.empty()) {
      std::printf("%-20s %7u FAILED: %s\n", r->rival.c_str(), r->workers, r->error.c_str());
      continue;
    }
    const double seconds = median(r->seconds);
    const double least = *std::min_element(r->seconds.begin(), r->seconds.end());
    std::printf("%-20s %7u %11.6f %11.6f %10.2f %9s %9s %8s %8s %8.1f %7.1f\n", r->rival.c_str(), r->workers,
                seconds, least, counter_of(*r, "ns_per_task"), ratio(seconds, reference).c_str(),
                r->workers == 1 ? "-" : ratio(seconds_of(r->rival, 1), seconds).c_str(),
                count(counter_of(*r, "steals")).c_str(), count(counter_of(*r, "sleeps")).c_str(),
                counter_of(*r, "peak_MB"), counter_of(*r, "noise_percent"));
  }
  for (const row* r : ordered)
    if (const double paired = counter_of(*r, "paired_ratio"); paired > 0)
      std::printf("%s, %u worker%s: %.4f times the other form, in turns in one process\n", r->rival.c_str(),
                  r->workers, r->workers == 1 ? "" : "s", paired);
}

}  // namespace weft_bench
