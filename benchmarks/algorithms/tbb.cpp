// SPDX-License-Identifier: BSL-1.0
// The algorithms with oneTBB's own: parallel_sort, parallel_scan, parallel_reduce, parallel_pipeline; and
// with the standard library's parallel algorithms, which use oneTBB.
#include "config.hpp"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/parallel_reduce.h>
#include <oneapi/tbb/parallel_scan.h>
#include <oneapi/tbb/parallel_sort.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <execution>
#include <functional>
#include <numeric>

namespace weft_bench {
namespace {

using range = tbb::blocked_range<std::size_t>;

struct with_tbb {
  void sort(std::vector<number>& v) { tbb::parallel_sort(v.begin(), v.end()); }
  template <class T>
  void stable_sort(std::vector<T>&) {}  // it has none
  void scan(const std::vector<number>& v, std::vector<number>& out) {
    tbb::parallel_scan(
        range(0, v.size()), number(0),
        [&](const range& r, number sum, bool last) {
          for (std::size_t i = r.begin(); i != r.end(); ++i) {
            sum += v[i];
            if (last) out[i] = sum;
          }
          return sum;
        },
        std::plus<>());
  }
  number reduce(const std::vector<number>& v) {
    return tbb::parallel_reduce(
        range(0, v.size()), number(0),
        [&](const range& r, number sum) {
          for (std::size_t i = r.begin(); i != r.end(); ++i) sum += mapped(v[i]);
          return sum;
        },
        std::plus<>());
  }
  number pipe(std::size_t n) {
    number i = 0, all = 0;
    const auto in_order = tbb::filter_mode::serial_in_order, parallel = tbb::filter_mode::parallel;
    tbb::parallel_pipeline(
        16, tbb::make_filter<void, number>(in_order,
                                           [&](tbb::flow_control& c) {
                                             if (i == n) c.stop();
                                             return i == n ? 0 : i++;
                                           }) &
                tbb::make_filter<number, number>(in_order, stage_work) &
                tbb::make_filter<number, number>(parallel, stage_work) &
                tbb::make_filter<number, number>(parallel, stage_work) &
                tbb::make_filter<number, void>(in_order, [&](number x) { all = all * 31 + stage_work(x); }));
    return all;
  }
};

struct with_standard {
  void sort(std::vector<number>& v) { std::sort(std::execution::par, v.begin(), v.end()); }
  template <class T>
  void stable_sort(std::vector<T>& v) {
    std::stable_sort(std::execution::par, v.begin(), v.end());
  }
  void scan(const std::vector<number>& v, std::vector<number>& out) {
    std::inclusive_scan(std::execution::par, v.begin(), v.end(), out.begin());
  }
  number reduce(const std::vector<number>& v) {
    return std::transform_reduce(std::execution::par, v.begin(), v.end(), number(0), std::plus<>(), mapped);
  }
  number pipe(std::size_t) { return 0; }  // it has none
};

template <class Rival>
outcome run_in_arena(int index, unsigned workers) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::task_arena arena{int(workers)};
  return arena.execute([&] {
    tbb::parallel_reduce(range(0, 1000, 1), 0, [](const range&, int x) { return x; }, std::plus<>());
    Rival r;
    return measure(problems[index], r);
  });
}

bool tbb_fits(int index, unsigned) {
  return problems[index].algorithm != what::stable_sort &&
         problems[index].algorithm != what::stable_sort_pairs;
}
bool standard_fits(int index, unsigned) { return problems[index].algorithm != what::pipe; }

const registration own("tbb", run_in_arena<with_tbb>, tbb_fits);
const registration standard("std-par", run_in_arena<with_standard>, standard_fits);

}  // namespace
}  // namespace weft_bench
