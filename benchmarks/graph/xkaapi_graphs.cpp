// SPDX-License-Identifier: BSL-1.0
// The graphs with XKaapi: the main task spawns all tasks, which xkaapi.cpp has.
#include "config.hpp"
#include "stencil.hpp"
#include "tiles.hpp"
#include "xkaapi_tasks.hpp"

#include <cstdlib>

namespace weft_bench {

static_assert(sizeof(number) == sizeof(cell_number));

cell_number do_work(cell_number x, long steps) { return busy(x, steps); }

namespace {

template <int edge>
tile<edge>& tile_at(double* first) {
  return *reinterpret_cast<tile<edge>*>(first);
}
template <int edge>
const tile<edge>& tile_at(const double* first) {
  return *reinterpret_cast<const tile<edge>*>(first);
}

}  // namespace

void do_factor(double* a, long edge) { edge == 64 ? factor(tile_at<64>(a)) : factor(tile_at<128>(a)); }
void do_solve(const double* l, double* b, long edge) {
  edge == 64 ? solve(tile_at<64>(l), tile_at<64>(b)) : solve(tile_at<128>(l), tile_at<128>(b));
}
void do_multiply(const double* a, const double* b, double* c, long edge) {
  edge == 64 ? multiply(tile_at<64>(a), tile_at<64>(b), tile_at<64>(c))
             : multiply(tile_at<128>(a), tile_at<128>(b), tile_at<128>(c));
}

namespace {

unsigned workers_of_run = 1;

void spawn_field(const problem& p, field& f) {
  for (int round = 0; round < p.rounds; ++round) {
    if (p.shape == chain)
      for (int i = 0; i < p.size; ++i) spawn_append(&f[0], i);
    else if (field::is_square(p))
      for (int i = 1; i <= p.size; ++i)
        for (int j = 1; j <= p.size; ++j) spawn_meet(&f.at(i - 1, j), &f.at(i, j - 1), &f.at(i, j), p.steps);
    else
      for (int i = 0; i < p.size; ++i)
        spawn_touch(&f[i], p.shape == alternating ? alternating_steps(i) : p.steps);
    wait_for_spawned();
  }
}

void spawn_stencil(cells& c, int rows, long steps) {
  for (int t = 1; t <= rows; ++t)
    for (int i = 1; i <= c.width(); ++i)
      spawn_blend(&c.at(t - 1, i - 1), &c.at(t - 1, i), &c.at(t - 1, i + 1), &c.at(t, i), steps);
  wait_for_spawned();
}

template <int edge>
void spawn_cholesky(matrix<edge>& m) {
  const auto at = [&m](int i, int j) { return m.at(i, j).value; };
  for (int k = 0; k < m.tiles(); ++k) {
    spawn_factor(at(k, k), edge);
    for (int i = k + 1; i < m.tiles(); ++i) spawn_solve(at(k, k), at(i, k), edge);
    for (int i = k + 1; i < m.tiles(); ++i)
      for (int j = k + 1; j <= i; ++j) spawn_multiply(at(i, k), at(j, k), at(i, j), edge);
  }
  wait_for_spawned();
}

outcome run(int index, unsigned workers) {
  workers_of_run = workers;
  setenv("KAAPI_STACKSIZE", "1073741824", 0);  // bytes: for all tasks of a frame
  return run_main_task(index, workers);
}

/// Two workers take minutes for half a million tasks in one frame.
bool fits(int index, unsigned workers) {
  const form shape = problems[index].shape;
  return fits_flat_graph(index, workers) && shape != random_graph &&
         (workers == 1 || field::tasks(problems[index]) < 300'000);
}

const registration entry("xkaapi", run, fits);

}  // namespace

outcome graph_body(int index) {
  const problem& p = problems[index];
  if (p.shape == stencil) return smallest_task(p, workers_of_run, spawn_stencil);
  if (p.shape == cholesky) return cholesky_outcome(p, [](auto& m) { spawn_cholesky(m); });
  return field_outcome(p, spawn_field);
}

}  // namespace weft_bench
