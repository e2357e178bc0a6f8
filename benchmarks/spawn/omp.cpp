// SPDX-License-Identifier: BSL-1.0
// Empty OpenMP tasks, with and without depend clauses; built once per compiler, each with its own OpenMP
// runtime.
#include "config.hpp"

namespace weft_bench {
namespace {

void all_rounds(form style, slots& s, int count, unsigned workers) {
#pragma omp parallel num_threads(workers)
#pragma omp single
  for (int round = 0; round < count; ++round) {
    for (int i = 0; i < batch; ++i) {
      long* v = &s.value[i];
      if (style == plain) {
#pragma omp task firstprivate(v)
        *v = *v + 1;
      } else {
#pragma omp task firstprivate(v) depend(inout : *v)
        *v = *v + 1;
      }
    }
#pragma omp taskwait
  }
}

}  // namespace
}  // namespace weft_bench

extern "C" weft_bench::outcome weft_bench_module_run(int index, unsigned workers) {
  using namespace weft_bench;
  slots warm, s;
  all_rounds(problems[index].style, warm, 10, workers);
  const stopwatch clock;
  all_rounds(problems[index].style, s, rounds, workers);
  return slots_outcome(s, clock.seconds());
}

extern "C" bool weft_bench_module_fits(int, unsigned) { return true; }
