// SPDX-License-Identifier: BSL-1.0
// Figure 7 on the processes of this machine, one worker each: which share of the time is spent in searches.
// usage: mpiexec -n P queens N...
// For each N, process 0 prints: N, solutions, seconds, and for each hundredth of the run the share of the
// workers' time that was spent in tasks.
#include "../nqueens/config.hpp"

#include <weft/cluster.hpp>
#include <weft/weft.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace {

using namespace weft_bench;
using counts = weft::reduce<long, std::plus<>>;

/// When this process has searched, in seconds of a clock that all processes of the machine share.
struct span_of_time {
  double begin, end;
};
std::mutex searched_lock;
std::vector<span_of_time> searched;

void place(board b, int levels, counts c) {
  if (levels == 0 || b.complete()) {
    const double begin = now();
    c += search(b);
    const std::lock_guard hold(searched_lock);
    searched.push_back({begin, now()});
    return;
  }
  c += one_node;
  for (unsigned free = b.free(); free != 0; free &= free - 1)
    weft::fork(place, b.with(lowest(free)), levels - 1, c);
}

using shares = std::array<double, 100>;

/// Adds the parts of each hundredth of [begin, end) in which this process has searched.
shares searched_within(double begin, double end) {
  shares part{};
  const double width = (end - begin) / static_cast<double>(part.size());
  for (const span_of_time& s : searched)
    for (std::size_t i = 0; i < part.size(); ++i) {
      const double from = begin + width * static_cast<double>(i);
      part[i] += std::max(0.0, std::min(s.end, from + width) - std::max(s.begin, from)) / width;
    }
  return part;
}

}  // namespace

int main(int argc, char** argv) {
  weft::cluster all(argc, argv, {.runtime = {.workers = 1}});
  for (int i = 1; i < argc; ++i) {
    const int n = std::atoi(argv[i]);
    if (n < 1 || n > 17) throw std::runtime_error("N must be 1 to 17");
    searched.clear();
    all.run([] {});  // where all come together
    double begin = now();
    long found = all.run([n] {
      weft::shared<long> c(0L);
      weft::fork(place, empty_board(n), 5, weft::reduce(c, std::plus<>()));
      weft::sync();
      return c.get();
    });
    double end = now();
    // The clock is the machine's, so the interval of process 0 holds for all.
    std::array<double, 2> interval{begin, end};
    MPI_Bcast(interval.data(), 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    const shares here = searched_within(interval[0], interval[1]);
    shares sum{};
    MPI_Reduce(here.data(), sum.data(), static_cast<int>(sum.size()), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (all.rank() != 0) continue;
    std::printf("%d,%ld,%.6f", n, solutions_of(found), interval[1] - interval[0]);
    for (const double s : sum) std::printf(",%.4f", s / all.size());
    std::printf("\n");
  }
}
