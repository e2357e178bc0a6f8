// SPDX-License-Identifier: BSL-1.0
// The loops with oneTBB's parallel_for and parallel_reduce, and its automatic partitioner.
#include "config.hpp"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_reduce.h>
#include <oneapi/tbb/task_arena.h>

#include <functional>

namespace weft_bench {
namespace {

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::task_arena arena{int(workers)};
  arena.execute([] { return 0; });
  std::vector<unsigned> row = row_of(p);
  unsigned long sum = 0;
  const tbb::blocked_range<long> all(0, p.iterations, std::size_t(grain(p)));
  const stopwatch clock;
  arena.execute([&] {
    if (p.what == shape::sum)
      sum = tbb::parallel_reduce(
          all, 0ul,
          [](const tbb::blocked_range<long>& r, unsigned long s) {
            for (long i = r.begin(); i != r.end(); ++i) s += addend(i);
            return s;
          },
          std::plus<>{});
    else
      tbb::parallel_for(all, [&](const tbb::blocked_range<long>& r) {
        for (long i = r.begin(); i != r.end(); ++i) row[std::size_t(i)] = iteration(p, i);
      });
  });
  const double seconds = clock.seconds();
  return loop_outcome(p, row, sum, seconds);
}

const registration entry("tbb", run, fits_all);

}  // namespace
}  // namespace weft_bench
