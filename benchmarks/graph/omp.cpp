// SPDX-License-Identifier: BSL-1.0
// The graphs as OpenMP tasks with depend clauses; built once per compiler, each with its own OpenMP runtime.
#include "config.hpp"
#include "stencil.hpp"
#include "tiles.hpp"

namespace weft_bench {
namespace {

template <bool empty>
void create_independent(const problem& p, field& f) {
  const long steps = p.steps;
  for (int round = 0; round < p.rounds; ++round) {
    for (int i = 0; i < p.size; ++i) {
      number* own = &f[i];
      if constexpr (empty) {
#pragma omp task firstprivate(own) depend(inout : *own)
        touch(*own);
      } else {
#pragma omp task firstprivate(own, steps) depend(inout : *own)
        touch(*own, steps);
      }
    }
#pragma omp taskwait
  }
}

void create_alternating(const problem& p, field& f) {
  for (int i = 0; i < p.size; ++i) {
    number* own = &f[i];
    const long steps = alternating_steps(i);
#pragma omp task firstprivate(own, steps) depend(inout : *own)
    touch(*own, steps);
  }
}

void create_chain(const problem& p, field& f) {
  number* all = &f[0];
  for (int i = 0; i < p.size; ++i) {
#pragma omp task firstprivate(all, i) depend(inout : *all)
    append(*all, i);
  }
}

template <bool empty>
void create_wavefront(const problem& p, field& f) {
  const long steps = p.steps;
  for (int i = 1; i <= p.size; ++i)
    for (int j = 1; j <= p.size; ++j) {
      const number* north = &f.at(i - 1, j);
      const number* west = &f.at(i, j - 1);
      number* own = &f.at(i, j);
      if constexpr (empty) {
#pragma omp task firstprivate(north, west, own) depend(in : *north, *west) depend(inout : *own)
        meet(*north, *west, *own);
      } else {
#pragma omp task firstprivate(north, west, own, steps) depend(in : *north, *west) depend(inout : *own)
        meet(*north, *west, *own, steps);
      }
    }
}

void create_random(field& f) {
  for (int i = random_inputs::ends; i < f.objects(); ++i) {
    const auto& in = f.inputs(i);
    const number* a = &f[in[0]];
    const number* b = &f[in[1]];
    const number* c = &f[in[2]];
    number* own = &f[i];
#pragma omp task firstprivate(a, b, c, own) depend(in : *a, *b, *c) depend(inout : *own)
    gather(*a, *b, *c, *own);
  }
}

/// Nobody waits for a task's children but the end of the team.
void create_tiny_frames(const problem& p, field& f) {
  for (int i = 0; i < p.size; ++i) {
    number* own = &f[i];
#pragma omp task firstprivate(own) depend(inout : *own)
    for (int child = 0; child < children; ++child) {
#pragma omp task firstprivate(own, child) depend(inout : *own)
      append(*own, child);
    }
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

template <int edge>
void create_cholesky(matrix<edge>& m) {
  for (int k = 0; k < m.tiles(); ++k) {
    tile<edge>* diagonal = &m.at(k, k);
#pragma omp task firstprivate(diagonal) depend(inout : *diagonal) priority(3)
    factor(*diagonal);
    for (int i = k + 1; i < m.tiles(); ++i) {
      tile<edge>* below = &m.at(i, k);
#pragma omp task firstprivate(diagonal, below) depend(in : *diagonal) depend(inout : *below) priority(2)
      solve(*diagonal, *below);
    }
    for (int i = k + 1; i < m.tiles(); ++i)
      for (int j = k + 1; j <= i; ++j) {
        const tile<edge>* a = &m.at(i, k);
        const tile<edge>* b = &m.at(j, k);
        tile<edge>* c = &m.at(i, j);
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
      return p.steps == 0 ? create_wavefront<true>(p, f) : create_wavefront<false>(p, f);
    case random_graph:
      return create_random(f);
    case tiny_frames:
      return create_tiny_frames(p, f);
    case alternating:
      return create_alternating(p, f);
    default:
      return p.steps == 0 ? create_independent<true>(p, f) : create_independent<false>(p, f);
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
    return cholesky_outcome(p, [&](auto& m) { in_team(workers, [&] { create_cholesky(m); }); });
  return field_outcome(p, [&](const problem& q, field& f) { in_team(workers, [&] { create_field(q, f); }); });
}

extern "C" bool weft_bench_module_fits(int index, unsigned workers) {
  return weft_bench::fits_graph(index, workers);
}
