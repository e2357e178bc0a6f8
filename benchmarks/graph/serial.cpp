// SPDX-License-Identifier: BSL-1.0
// The graphs as plain loops, in the order in which their tasks are forked.
#include "config.hpp"
#include "stencil.hpp"
#include "tiles.hpp"

namespace weft_bench {
namespace {

[[gnu::noinline]] void touch_empty(number& own) { touch(own); }
[[gnu::noinline]] void append_one(number& all, int i) { append(all, i); }
[[gnu::noinline]] void meet_empty(const number& n, const number& w, number& own) { meet(n, w, own); }
[[gnu::noinline]] void gather_empty(const number& a, const number& b, const number& c, number& own) {
  gather(a, b, c, own);
}
[[gnu::noinline]] void append_all(number& own) {
  for (int child = 0; child < children; ++child) append_one(own, child);
}

void execute_wavefront(const problem& p, field& f) {
  for (int i = 1; i <= p.size; ++i)
    for (int j = 1; j <= p.size; ++j)
      if (p.steps == 0)
        meet_empty(f.at(i - 1, j), f.at(i, j - 1), f.at(i, j));
      else
        meet(f.at(i - 1, j), f.at(i, j - 1), f.at(i, j), p.steps);
}

void execute(const problem& p, field& f) {
  switch (p.shape) {
    case chain:
      for (int i = 0; i < p.size; ++i) append_one(f[0], i);
      break;
    case wavefront:
      return execute_wavefront(p, f);
    case random_graph:
      for (int own = random_inputs::ends; own < f.objects(); ++own) {
        const auto& in = f.inputs(own);
        gather_empty(f[in[0]], f[in[1]], f[in[2]], f[own]);
      }
      break;
    case tiny_frames:
      for (int i = 0; i < p.size; ++i) append_all(f[i]);
      break;
    case alternating:
      for (int i = 0; i < p.size; ++i) touch(f[i], alternating_steps(i));
      break;
    default:
      for (int round = 0; round < p.rounds; ++round)
        for (int i = 0; i < p.size; ++i)
          if (p.steps == 0)
            touch_empty(f[i]);
          else
            touch(f[i], p.steps);
  }
}

template <int edge>
void factor_all(matrix<edge>& m) {
  for (int k = 0; k < m.tiles(); ++k) {
    factor(m.at(k, k));
    for (int i = k + 1; i < m.tiles(); ++i) solve(m.at(k, k), m.at(i, k));
    for (int i = k + 1; i < m.tiles(); ++i)
      for (int j = k + 1; j <= i; ++j) multiply(m.at(i, k), m.at(j, k), m.at(i, j));
  }
}

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  if (p.shape == stencil) return smallest_task(p, workers, serial_stencil);
  if (p.shape == repeated)
    return repeated_outcome(p, [&p](cells& c) {
      for (int round = 0; round < p.rounds; ++round) serial_stencil(c, p.size, 0);
    });
  if (p.shape == cholesky) return cholesky_outcome(p, [](auto& m) { factor_all(m); });
  if (p.shape != stealing) return field_outcome(p, execute);
  // Without a runtime nothing is stolen: the value is the number of tasks, the time that of the calls.
  problem all = p;
  all.shape = independent;
  outcome o = field_outcome(all, execute);
  o.value = o.tasks;
  return o;
}

const registration entry("serial", run, fits_one_worker);

}  // namespace
}  // namespace weft_bench
