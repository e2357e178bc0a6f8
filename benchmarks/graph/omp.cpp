// SPDX-License-Identifier: BSL-1.0
// The graphs as OpenMP tasks with depend clauses; built once per compiler, each with its own OpenMP runtime.
#include "config.hpp"
#include "stencil.hpp"
#include "tiles.hpp"

namespace weft_bench {
namespace {

template <long steps>
void create_independent(const problem& p, field& f) {
  for (int round = 0; round < p.rounds; ++round) {
    for (int i = 0; i < p.size; ++i) {
      number* own = &f[i];
#pragma omp task firstprivate(own) depend(inout : *own)
      touch<steps>(*own);
    }
#pragma omp taskwait
  }
}

void create_chain(const problem& p, field& f) {
  number* all = &f[0];
  for (int i = 0; i < p.size; ++i) {
#pragma omp task firstprivate(all, i) depend(inout : *all)
    append(*all, i);
  }
}

template <long steps>
void create_wavefront(const problem& p, field& f) {
  for (int i = 1; i <= p.size; ++i)
    for (int j = 1; j <= p.size; ++j) {
      const number* north = &f.at(i - 1, j);
      const number* west = &f.at(i, j - 1);
      number* own = &f.at(i, j);
#pragma omp task firstprivate(north, west, own) depend(in : *north, *west) depend(inout : *own)
      meet<steps>(*north, *west, *own);
    }
}

void create_stencil(cells& c, int rows, long steps) {
  for (int t = 1; t <= rows; ++t)
    for (int i = 1; i <= c.width(); ++i) {
      const number* left = &c.at(t - 1, i - 1);
      const number* middle = &c.at(t - 1, i);
      const number* right = &c.at(t - 1, i + 1);
      number* out = &c.at(t, i);
#pragma omp task firstprivate(left, middle, right, out, steps) depend(in : *left, *middle, *right) \
    depend(out : *out)
      blend(*left, *middle, *right, *out, steps);
    }
}

void create_cholesky(matrix& m) {
  for (int k = 0; k < m.tiles(); ++k) {
    tile* diagonal = &m.at(k, k);
#pragma omp task firstprivate(diagonal) depend(inout : *diagonal) priority(3)
    factor(*diagonal);
    for (int i = k + 1; i < m.tiles(); ++i) {
      tile* below = &m.at(i, k);
#pragma omp task firstprivate(diagonal, below) depend(in : *diagonal) depend(inout : *below) priority(2)
      solve(*diagonal, *below);
    }
    for (int i = k + 1; i < m.tiles(); ++i)
      for (int j = k + 1; j <= i; ++j) {
        const tile* a = &m.at(i, k);
        const tile* b = &m.at(j, k);
        tile* c = &m.at(i, j);
#pragma omp task firstprivate(a, b, c) depend(in : *a, *b) depend(inout : *c)
        multiply(*a, *b, *c);
      }
  }
}

void create_field(const problem& p, field& f) {
  switch (p.shape) {
    case chain:
      return create_chain(p, f);
    case wavefront:
      return create_wavefront<0>(p, f);
    case wavefront_busy:
      return create_wavefront<microsecond>(p, f);
    case pending:
      return create_independent<5 * microsecond>(p, f);
    default:
      return create_independent<0>(p, f);
  }
}

/// Calls `create` in a team; returns when all tasks have ended.
template <class function>
void in_team(unsigned workers, const function& create) {
#pragma omp parallel num_threads(workers)
#pragma omp single
  create();
}

}  // namespace
}  // namespace weft_bench

extern "C" weft_bench::outcome weft_bench_module_run(int index, unsigned workers) {
  using namespace weft_bench;
  const problem& p = problems[index];
  if (p.shape == stencil)
    return smallest_task(p, workers, [&](cells& c, int rows, long steps) {
      in_team(workers, [&] { create_stencil(c, rows, steps); });
    });
  if (p.shape == cholesky)
    return cholesky_outcome(p, [&](matrix& m) { in_team(workers, [&] { create_cholesky(m); }); });
  return field_outcome(p, [&](const problem& q, field& f) { in_team(workers, [&] { create_field(q, f); }); });
}

extern "C" bool weft_bench_module_fits(int index, unsigned workers) {
  return weft_bench::fits_graph(index, workers);
}
