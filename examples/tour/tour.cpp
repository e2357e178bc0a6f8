// SPDX-License-Identifier: BSL-1.0
// A tour through weft on four problems, each against its serial program: usage: tour [quick]
#include "tour.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace tour {

namespace {

constexpr int repetitions = 3;

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct timed {
  double seconds = 0;
  std::uint64_t steals = 0;
};

timed median(std::vector<timed> all) {
  std::sort(all.begin(), all.end(), [](const timed& a, const timed& b) { return a.seconds < b.seconds; });
  return all[all.size() / 2];
}

std::string with_commas(std::uint64_t v) {
  std::string digits = std::to_string(v);
  for (std::ptrdiff_t at = std::ptrdiff_t(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(std::size_t(at), 1, ',');
  return digits;
}

}  // namespace

void progress(const std::string& text) {
  std::fprintf(stderr, "tour: %s\n", text.c_str());
  std::fflush(stderr);
}

void visit(const problem& p, report& r) {
  progress(p.name + ", the serial program");
  std::vector<timed> serial;
  for (int i = 0; i < repetitions; ++i) {
    p.prepare();
    serial.push_back({seconds_of(p.serial), 0});
  }
  const unsigned all = weft::runtime().workers();
  std::vector<unsigned> counts{1};
  if (all > 1) counts.push_back(all);
  for (const unsigned workers : counts) {
    progress(p.name + ", " + std::to_string(workers) + (workers == 1 ? " worker" : " workers"));
    weft::runtime rt({.workers = workers});
    bool equal = true;
    std::vector<timed> parallel;
    for (int i = 0; i < repetitions; ++i) {
      p.prepare();
      const std::uint64_t before = rt.counters().steals;
      const double seconds = seconds_of([&] { p.parallel(rt); });
      parallel.push_back({seconds, rt.counters().steals - before});
      equal = p.equal() && equal;
    }
    const timed t = median(std::move(parallel));
    r.add({p.name, rt.workers(), t.seconds, median(serial).seconds, p.tasks, t.steals, equal});
  }
}

void report::note(std::string text, bool holds) { remarks_.push_back({std::move(text), holds}); }

void report::print() const {
  std::printf("%-34s %7s %9s %9s %7s %13s %7s  %s\n", "problem", "workers", "seconds", "serial", "ratio",
              "tasks", "steals", "equals serial");
  for (const row& r : rows_)
    std::printf("%-34s %7u %9.4f %9.4f %7.2f %13s %7s  %s\n", r.problem.c_str(), r.workers, r.seconds,
                r.serial_seconds, r.seconds / r.serial_seconds, with_commas(r.tasks).c_str(),
                with_commas(r.steals).c_str(), r.equal ? "yes" : "NO");
  if (!remarks_.empty()) std::printf("\n");
  for (const remark& m : remarks_) std::printf("%s  %s\n", m.text.c_str(), m.holds ? "yes" : "NO");
  std::printf("\nseconds: median of %d runs. ratio: seconds / seconds of the serial program.\n", repetitions);
}

bool report::all_equal() const {
  return std::all_of(rows_.begin(), rows_.end(), [](const row& r) { return r.equal; }) &&
         std::all_of(remarks_.begin(), remarks_.end(), [](const remark& m) { return m.holds; });
}

}  // namespace tour

int main(int argc, char** argv) {
  if (argc > 2 || (argc == 2 && std::string_view(argv[1]) != "quick")) {
    std::fprintf(stderr, "usage: %s [quick]\n", argv[0]);
    return 2;
  }
  const tour::size size = argc == 2 ? tour::size::quick : tour::size::full;
  tour::report report;
  tour::fibonacci(size, report);
  tour::queens(size, report);
  tour::kernel23(size, report);
  tour::cholesky(size, report);
  report.print();
  if (!report.all_equal()) std::printf("\nA result differs from that of the serial program.\n");
  return report.all_equal() ? 0 : 1;
}
