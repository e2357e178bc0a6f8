// SPDX-License-Identifier: BSL-1.0
// The graphs with XKaapi: the main task spawns all tasks, which xkaapi.cpp has.
#include "config.hpp"
#include "stencil.hpp"
#include "tiles.hpp"
#include "xkaapi_tasks.hpp"

#include <cstdlib>

namespace weft_bench {

static_assert(sizeof(number) == sizeof(cell_number));

cell_number do_work(cell_number x, long steps) { return steps == 0 ? x : work(x, steps); }
void do_factor(tile* a) { factor(*a); }
void do_solve(const tile* l, tile* b) { solve(*l, *b); }
void do_multiply(const tile* a, const tile* b, tile* c) { multiply(*a, *b, *c); }

namespace {

unsigned workers_of_run = 1;

void spawn_field(const problem& p, field& f) {
  const long steps = p.shape == wavefront_busy ? microsecond : p.shape == pending ? 5 * microsecond : 0;
  for (int round = 0; round < p.rounds; ++round) {
    if (p.shape == chain)
      for (int i = 0; i < p.size; ++i) spawn_append(&f[0], i);
    else if (field::is_square(p))
      for (int i = 1; i <= p.size; ++i)
        for (int j = 1; j <= p.size; ++j) spawn_meet(&f.at(i - 1, j), &f.at(i, j - 1), &f.at(i, j), steps);
    else
      for (int i = 0; i < p.size; ++i) spawn_touch(&f[i], steps);
    wait_for_spawned();
  }
}

void spawn_stencil(cells& c, int rows, long steps) {
  for (int t = 1; t <= rows; ++t)
    for (int i = 1; i <= c.width(); ++i)
      spawn_blend(&c.at(t - 1, i - 1), &c.at(t - 1, i), &c.at(t - 1, i + 1), &c.at(t, i), steps);
  wait_for_spawned();
}

void spawn_cholesky(matrix& m) {
  for (int k = 0; k < m.tiles(); ++k) {
    spawn_factor(&m.at(k, k));
    for (int i = k + 1; i < m.tiles(); ++i) spawn_solve(&m.at(k, k), &m.at(i, k));
    for (int i = k + 1; i < m.tiles(); ++i)
      for (int j = k + 1; j <= i; ++j) spawn_multiply(&m.at(i, k), &m.at(j, k), &m.at(i, j));
  }
  wait_for_spawned();
}

outcome run(int index, unsigned workers) {
  workers_of_run = workers;
  setenv("KAAPI_STACKSIZE", "1073741824", 0);  // bytes: for all tasks of a frame
  return run_main_task(index, workers);
}

/// Two workers take minutes for a million tasks in one frame.
bool fits(int index, unsigned workers) {
  return fits_graph(index, workers) && (workers == 1 || field::tasks(problems[index]) < 1'000'000);
}

const registration entry("xkaapi", run, fits);

}  // namespace

outcome graph_body(int index) {
  const problem& p = problems[index];
  if (p.shape == stencil) return smallest_task(p, workers_of_run, spawn_stencil);
  if (p.shape == cholesky) return cholesky_outcome(p, spawn_cholesky);
  return field_outcome(p, spawn_field);
}

}  // namespace weft_bench
