// SPDX-License-Identifier: BSL-1.0
// The graphs with weft: one body forks all tasks, each with the rights it needs.
#include "cholesky.hpp"
#include "config.hpp"
#include "stencil.hpp"
#include "tiles.hpp"
#include "weft_outcome.hpp"

#include <weft/weft.hpp>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>

namespace weft_bench {
namespace {

using weft::borrow;

/// More tasks than any of the problems has.
constexpr unsigned no_cap = 1u << 21;

// Empty tasks carry no steps.
template <class... Steps>
void fork_independent(const problem& p, field& f, Steps... steps) {
  for (int round = 0; round < p.rounds; ++round) {
    if (round != 0) weft::sync();
    for (int i = 0; i < p.size; ++i)
      weft::fork([steps...](number& own) { touch(own, steps...); }, weft::update(borrow(f[i])));
  }
}

template <class... Steps>
void fork_wavefront(const problem& p, field& f, Steps... steps) {
  for (int i = 1; i <= p.size; ++i)
    for (int j = 1; j <= p.size; ++j)
      weft::fork([steps...](const number& n, const number& w, number& own) { meet(n, w, own, steps...); },
                 weft::read(borrow(f.at(i - 1, j))), weft::read(borrow(f.at(i, j - 1))),
                 weft::update(borrow(f.at(i, j))));
}

void fork_random(field& f) {
  for (int own = random_inputs::ends; own < f.objects(); ++own) {
    const auto& in = f.inputs(own);
    weft::fork([](const number& a, const number& b, const number& c, number& out) { gather(a, b, c, out); },
               weft::read(borrow(f[in[0]])), weft::read(borrow(f[in[1]])), weft::read(borrow(f[in[2]])),
               weft::update(borrow(f[own])));
  }
}

void fork_children(weft::update<number> own) {
  for (int child = 0; child < children; ++child)
    weft::fork([child](number& all) { append(all, child); }, own);
}

void fork_alternating(const problem& p, field& f) {
  for (int i = 0; i < p.size; ++i)
    weft::fork([steps = alternating_steps(i)](number& own) { touch(own, steps); },
               weft::update(borrow(f[i])));
}

void fork_field(const problem& p, field& f) {
  switch (p.shape) {
    case chain:
      for (int i = 0; i < p.size; ++i)
        weft::fork([i](number& all) { append(all, i); }, weft::update(borrow(f[0])));
      break;
    case wavefront:
      return p.steps == 0 ? fork_wavefront(p, f) : fork_wavefront(p, f, p.steps);
    case random_graph:
      return fork_random(f);
    case tiny_frames:
      for (int i = 0; i < p.size; ++i) weft::fork(fork_children, borrow(f[i]));
      break;
    case alternating:
      return fork_alternating(p, f);
    default:
      return p.steps == 0 ? fork_independent(p, f) : fork_independent(p, f, p.steps);
  }
}

void fork_stencil(cells& c, int rows, long steps) {
  for (int t = 1; t <= rows; ++t)
    for (int i = 1; i <= c.width(); ++i)
      weft::fork([steps](const number& left, const number& middle, const number& right,
                         number& out) { blend(left, middle, right, out, steps); },
                 weft::read(borrow(c.at(t - 1, i - 1))), weft::read(borrow(c.at(t - 1, i))),
                 weft::read(borrow(c.at(t - 1, i + 1))), weft::write(borrow(c.at(t, i))));
}

void wait_for(const std::atomic<long>& count, long enough) {
  const stopwatch clock;
  // Acquire: pairs with the release of whoever counts.
  while (count.load(std::memory_order_acquire) < enough)
    if (clock.seconds() > 10) throw std::runtime_error("no thief took a task while the owner was busy");
}

/// Seconds that thieves take for the first `share` of p.size empty tasks, while the body that has forked them
/// is busy. Until all are forked, thieves are held by tasks that wait for that.
double steal_once(const problem& p, long share, unsigned workers, field& f) {
  alignas(64) std::atomic<long> held = 0;
  alignas(64) std::atomic<long> open = 0;
  alignas(64) std::atomic<long> done = 0;
  alignas(64) std::atomic<long> reached = 0;
  double end = 0;
  for (unsigned w = 1; w < workers; ++w)
    weft::fork([&] {
      held.fetch_add(1, std::memory_order_release);  // pairs with wait_for
      // Pairs with the store below. No yield: it may cost a time slice, which would be taken for a steal's.
      while (open.load(std::memory_order_acquire) == 0) {
      }
    });
  double start = 0;
  try {
    wait_for(held, long(workers) - 1);
    for (int i = 0; i < p.size; ++i)
      weft::fork(
          [&done, &end, &reached, share](number& own) {
            touch(own);
            if (done.fetch_add(1, std::memory_order_relaxed) + 1 != share) return;  // a count, no order
            end = now();
            reached.store(1, std::memory_order_release);  // pairs with wait_for
          },
          weft::update(borrow(f[i])));
    start = now();
    open.store(1, std::memory_order_release);  // pairs with the tasks that wait
    wait_for(reached, 1);
  } catch (...) {
    open.store(1, std::memory_order_release);
    weft::sync();
    throw;
  }
  weft::sync();
  return end - start;
}

/// Runs `f` on a runtime once or more, and knows what was counted in the last of these runs.
class counted_runs {
 public:
  explicit counted_runs(const weft::runtime_options& options) : rt_(options) {}

  template <class function>
  void run(const function& f) {
    before_ = rt_.counters();
    rt_.run(f);
  }
  outcome complete(outcome o) const {
    const weft::counters after = rt_.counters();
    o.steals = static_cast<long long>(after.steals - before_.steals);
    o.sleeps = static_cast<long long>(after.sleeps - before_.sleeps);
    return o;
  }

 private:
  weft::runtime rt_;
  weft::counters before_;
};

outcome run_stealing(const problem& p, unsigned workers) {
  constexpr long share = 500;
  counted_runs runs({.workers = workers, .inlining = false, .cap = no_cap});
  field f(p);
  std::vector<double> seconds;
  for (int trial = 0; trial <= p.rounds; ++trial)  // the first one is the warm-up
    runs.run([&] { seconds.push_back(steal_once(p, share, workers, f)); });
  for (int i = 0; i < p.size; ++i) {
    number expected = number(i);
    for (int trial = 0; trial <= p.rounds; ++trial) touch(expected);
    if (f[i] != expected) throw std::runtime_error("a task was lost");
  }
  // The fastest: most trials contain a time slice of somebody else's, if there is anybody else.
  const double least = *std::min_element(seconds.begin() + 1, seconds.end());
  return runs.complete(plain_outcome(field::tasks(p), share, least));
}

enum class repetition { ordinary, recording, replaying };

/// Forks a stencil again and again, all tasks of a time in one frame. *Returns*: the time of that with each
/// iteration recorded (then there is a sync behind each), or all but the first replayed.
outcome run_repeated(const problem& p, unsigned workers, repetition how) {
  counted_runs runs({.workers = workers, .inlining = false, .cap = no_cap});
  return runs.complete(repeated_outcome(p, [&](cells& c) {
    const auto iteration = [&] { fork_stencil(c, p.size, 0); };
    double seconds = 0;
    runs.run([&] {
      stopwatch clock;
      weft::recorded step;
      for (int round = 0; round < p.rounds; ++round) {
        if (how == repetition::ordinary) {
          iteration();
        } else if (how == repetition::replaying) {
          step(iteration);
          if (round == 0) {
            weft::sync();
            clock = stopwatch();
          }
        } else {
          weft::recorded fresh;
          fresh(iteration);
          weft::sync();
        }
      }
      weft::sync();
      seconds = clock.seconds();
      if (how == repetition::replaying) seconds *= double(p.rounds) / (p.rounds - 1);
    });
    return seconds;
  }));
}

outcome run_with(const weft::runtime_options& options, const problem& p) {
  counted_runs runs(options);
  if (p.shape == stencil)
    return runs.complete(smallest_task(p, options.workers, [&](cells& c, int rows, long steps) {
      runs.run([&] { fork_stencil(c, rows, steps); });
    }));
  if (p.shape == cholesky)
    return runs.complete(cholesky_outcome(p, [&](auto& m) { runs.run([&] { fork_cholesky(m); }); }));
  return runs.complete(
      field_outcome(p, [&](const problem& q, field& f) { runs.run([&] { fork_field(q, f); }); }));
}

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  if (p.shape == stealing) return run_stealing(p, workers);
  if (p.shape == repeated) return run_repeated(p, workers, repetition::ordinary);
  weft::runtime_options options{.workers = workers};
  if (p.shape == pending) options.cap = no_cap;
  return run_with(options, p);
}

outcome run_deferred(int index, unsigned workers) {
  return run_with({.workers = workers, .inlining = false}, problems[index]);
}

/// All tasks pending at once take tens of megabytes. The first runs fetch them from the system, a page at a
/// time, which takes four times as long as the tasks; a strand keeps what it has got, and any worker's may be
/// the first one of a run. So they come before what is measured.
outcome run_uncapped(int index, unsigned workers) {
  const problem& p = problems[index];
  counted_runs runs({.workers = workers, .inlining = false, .cap = no_cap});
  for (unsigned i = 0; i < 2 * workers; ++i) {
    field warm(p);
    runs.run([&] { fork_field(p, warm); });
  }
  return runs.complete(
      field_outcome(p, [&](const problem& q, field& f) { runs.run([&] { fork_field(q, f); }); }));
}

outcome run_recording(int index, unsigned workers) {
  return run_repeated(problems[index], workers, repetition::recording);
}

outcome run_replaying(int index, unsigned workers) {
  return run_repeated(problems[index], workers, repetition::replaying);
}

bool fits(int index, unsigned workers) {
  const form shape = problems[index].shape;
  return fits_graph(index, workers) || ((shape == stealing || shape == repeated) && workers > 1);
}
bool fits_repeated(int index, unsigned workers) { return problems[index].shape == repeated && workers > 1; }
bool fits_empty(int index, unsigned) {
  return problems[index].shape <= tiny_frames && problems[index].steps == 0;
}

const registration entry("weft", run, fits);
const registration deferred("weft-deferred", run_deferred, fits_empty);
const registration recording("weft-recording", run_recording, fits_repeated);
const registration replaying("weft-replaying", run_replaying, fits_repeated);
const registration uncapped("weft-uncapped", run_uncapped, fits_empty);

}  // namespace
}  // namespace weft_bench
