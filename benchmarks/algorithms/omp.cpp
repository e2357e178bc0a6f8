// SPDX-License-Identifier: BSL-1.0
// The algorithms with the parallel mode of GNU's library; built once per compiler, each with its own OpenMP
// runtime.
#include "config.hpp"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // in its own headers
#include <omp.h>
#include <parallel/algorithm>
#include <parallel/numeric>

#include <functional>

namespace {

using namespace weft_bench;

struct gnu_parallel {
  void sort(std::vector<number>& v) { __gnu_parallel::sort(v.begin(), v.end()); }
  template <class T>
  void stable_sort(std::vector<T>& v) {
    __gnu_parallel::stable_sort(v.begin(), v.end());
  }
  void scan(const std::vector<number>& v, std::vector<number>& out) {
    __gnu_parallel::partial_sum(v.begin(), v.end(), out.begin());
  }
  number reduce(const std::vector<number>& v) {  // the library has no transform_reduce
    number sum = 0;
    const number* const e = v.data();
    const std::size_t n = v.size();
#pragma omp parallel for reduction(+ : sum)
    for (std::size_t i = 0; i < n; ++i) sum += mapped(e[i]);
    return sum;
  }
  number pipe(std::size_t) { return 0; }  // nor a pipeline
};

}  // namespace

extern "C" weft_bench::outcome weft_bench_module_run(int index, unsigned workers) {
  omp_set_num_threads(int(workers));
#pragma omp parallel num_threads(workers)
  {
  }
  gnu_parallel r;
  return weft_bench::measure(weft_bench::problems[index], r);
}

extern "C" bool weft_bench_module_fits(int index, unsigned) {
  return weft_bench::problems[index].algorithm != weft_bench::what::pipe;
}
