// SPDX-License-Identifier: BSL-1.0
// OpenMP: taskwait for a child that another thread runs; built once per compiler, each with its own OpenMP
// runtime.
#include "config.hpp"

extern "C" weft_bench::outcome weft_bench_module_run(int, unsigned workers) {
  using namespace weft_bench;
  resumptions all;
#pragma omp parallel num_threads(workers)
#pragma omp single
  while (!all.enough()) {
    exchange x;
#pragma omp task shared(x)
    x.child();
    const bool taken = x.taken();
#pragma omp taskwait
    all.add(x, taken, now());
  }
  return all.result();
}

extern "C" bool weft_bench_module_fits(int index, unsigned workers) {
  using namespace weft_bench;
  return problems[index].what == resume_waiting && workers > 1;
}
