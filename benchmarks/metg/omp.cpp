// SPDX-License-Identifier: BSL-1.0
// The stencil as OpenMP tasks with depend clauses.
// usage: bench_metg_libgomp 3|5 COLUMNS WORKERS [check|wrong-stamp|wrong-value]
#include "search.hpp"

namespace weft_bench {
namespace {

/// Creates task (t, i).
void create_task(const graph_shape& s, buffers& b, int t, int i, long steps) {
  const graph_shape* const shape = &s;
  buffers* const all = &b;
  [[maybe_unused]] const buffers::line* const in = b.row(t - 1) + s.first(i);
  [[maybe_unused]] buffers::line* const out = b.row(t) + i;
  switch (s.last(i) - s.first(i) + 1) {
    case 1:
#pragma omp task firstprivate(shape, all, t, i, steps) depend(in : in[0]) depend(out : *out)
      compute_in_place(*shape, *all, t, i, steps);
      break;
    case 2:
#pragma omp task firstprivate(shape, all, t, i, steps) depend(in : in[0], in[1]) depend(out : *out)
      compute_in_place(*shape, *all, t, i, steps);
      break;
    case 3:
#pragma omp task firstprivate(shape, all, t, i, steps) depend(in : in[0], in[1], in[2]) depend(out : *out)
      compute_in_place(*shape, *all, t, i, steps);
      break;
    case 4:
#pragma omp task firstprivate(shape, all, t, i, steps) depend(in : in[0], in[1], in[2], in[3]) \
    depend(out : *out)
      compute_in_place(*shape, *all, t, i, steps);
      break;
    default:
#pragma omp task firstprivate(shape, all, t, i, steps) depend(in : in[0], in[1], in[2], in[3], in[4]) \
    depend(out : *out)
      compute_in_place(*shape, *all, t, i, steps);
  }
}

class openmp_rival : public threads_rival {
 public:
  using threads_rival::threads_rival;

  timed_sum run(long steps, fault f) {
    const graph_shape& s = shape();
    buffers b(s, f);
    const stopwatch clock;
#pragma omp parallel num_threads(s.workers)
#pragma omp single
    for (int t = 1; t <= s.rows(); ++t)
      for (int i = 0; i < s.columns; ++i) create_task(s, b, t, i, steps);
    return {clock.seconds(), b.sum()};
  }
};

}  // namespace
}  // namespace weft_bench

int main(int argc, char** argv) {
  using namespace weft_bench;
  openmp_rival r(shape_of(argc, argv, 1));
  return measure(r, argc > 4 ? argv[4] : nullptr);
}
