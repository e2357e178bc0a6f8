// SPDX-License-Identifier: BSL-1.0
// An iterative simulation with steps of some 30 milliseconds: partitioned among the processes, against work
// stealing and against the serial program (Figure 9 of the KAAPI paper).
// usage: mpiexec -n P bench_cluster_steps [turns] [steps] [milliseconds of a step] [file]
// With a file: also partitioned with a checkpoint of that name every second.
#include "turns.hpp"

#include <weft/cluster.hpp>
#include <weft/cluster/partition.hpp>
#include <weft/weft.hpp>

#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace {

constexpr std::size_t strips = 16, cells = 2048;
using strip = std::vector<double>;
using grid = std::vector<strip>;

/// A strip of a ring is smoothed again and again between the ends of its neighbours.
void smooth(const strip& left, const strip& here, const strip& right, strip& to, int sweeps) {
  to = here;
  for (int k = 0; k < sweeps; ++k) {
    double before = left.back();
    for (std::size_t i = 0; i < cells; ++i) {
      const double now = to[i];
      to[i] = 0.25 * before + 0.5 * now + 0.25 * (i + 1 < cells ? to[i + 1] : right.front());
      before = now;
    }
  }
}
grid first_values() {
  grid g(strips, strip(cells));
  for (std::size_t s = 0; s < strips; ++s)
    for (std::size_t i = 0; i < cells; ++i) g[s][i] = static_cast<double>((s * cells + i) * 7919 % 1000);
  return g;
}
/// Half a step, in which each strip is one task.
void fork_half(const grid& from, grid& to, int sweeps) {
  for (std::size_t s = 0; s < strips; ++s)
    weft::fork(
        [sweeps](const strip& l, const strip& h, const strip& r, strip& t) { smooth(l, h, r, t, sweeps); },
        weft::read(weft::borrow(from[(s + strips - 1) % strips])), weft::read(weft::borrow(from[s])),
        weft::read(weft::borrow(from[(s + 1) % strips])), weft::update(weft::borrow(to[s])));
}
/// The same for tasks that can be stolen by other processes: captures are arguments.
void steal_half(const grid& from, grid& to, int sweeps) {
  for (std::size_t s = 0; s < strips; ++s)
    weft::fork([](int k, const strip& l, const strip& h, const strip& r, strip& t) { smooth(l, h, r, t, k); },
               sweeps, weft::read(weft::borrow(from[(s + strips - 1) % strips])),
               weft::read(weft::borrow(from[s])), weft::read(weft::borrow(from[(s + 1) % strips])),
               weft::update(weft::borrow(to[s])));
}

int run(int argc, char** argv) {
  weft::cluster c(argc, argv, {.runtime = {.workers = 1}});
  const int turns = argc > 1 ? std::atoi(argv[1]) : 9, steps = argc > 2 ? std::atoi(argv[2]) : 20;
  const double milliseconds = argc > 3 ? std::atof(argv[3]) : 30;
  grid a = first_values(), b = a;
  // How many sweeps make a step that long: what process 0 finds.
  const int sweeps = c.run([&] {
    const double one = weft_bench::seconds_of([&] {
                         for (int k = 0; k < 20; ++k) smooth(a[0], a[1], a[2], b[1], 10);
                       }) /
                       200;
    return std::max(1, static_cast<int>(milliseconds * 1e-3 / one / (2 * strips)));
  });
  std::vector<double> serial, partitioned, checkpointed, stolen;
  std::uint64_t moved = 0, checkpoints = 0;
  for (int turn = 0; turn < turns; ++turn) {
    // By process 0, while the others wait for it.
    const grid expected = c.run([&] {
      grid from = first_values(), to = from;
      serial.push_back(weft_bench::seconds_of([&] {
        for (int k = 0; k < 2 * steps; ++k) {
          for (std::size_t s = 0; s < strips; ++s)
            smooth(from[(s + strips - 1) % strips], from[s], from[(s + 1) % strips], to[s], sweeps);
          std::swap(from, to);
        }
      }));
      return from;
    });
    a = first_values(), b = a;
    weft::partitioned step(c, [&] { fork_half(a, b, sweeps), fork_half(b, a, sweeps); },
                           {.method = weft::placement::owner_computes});
    c.run([] {});  // all begin together
    partitioned.push_back(weft_bench::seconds_of([&] { step.run(static_cast<std::uint64_t>(steps)); }));
    if (a != expected) throw std::runtime_error("the results differ");
    moved += step.counters().bytes;
    if (argc > 4) {
      a = first_values(), b = a;
      weft::partitioned saved(c, [&] { fork_half(a, b, sweeps), fork_half(b, a, sweeps); },
                              {.method = weft::placement::owner_computes, .checkpoint = argv[4]});
      c.run([] {});
      checkpointed.push_back(weft_bench::seconds_of([&] { saved.run(static_cast<std::uint64_t>(steps)); }));
      if (a != expected) throw std::runtime_error("the results differ");
      checkpoints += saved.counters().checkpoints;
    }
    a = first_values(), b = a;
    stolen.push_back(weft_bench::seconds_of([&] {
      c.run([&] {
        for (int k = 0; k < steps; ++k) {
          steal_half(a, b, sweeps);
          steal_half(b, a, sweeps);
        }
      });
    }));
    if (c.rank() == 0 && a != expected) throw std::runtime_error("the results differ");
  }
  if (c.rank() != 0) return 0;
  std::printf("%d processes, %d steps of %.1f ms; sent by process 0, partitioned: %.0f bytes a step\n",
              c.size(), steps, 1e3 * weft_bench::median_of(serial) / steps, double(moved) / turns / steps);
  weft_bench::print_turns("steps", "serial", serial, "partitioned", partitioned);
  weft_bench::print_turns("steps", "serial", serial, "stealing", stolen);
  weft_bench::print_turns("steps", "stealing", stolen, "partitioned", partitioned);
  if (argc > 4) {
    weft_bench::print_turns("steps", "with checkpoints", checkpointed, "partitioned", partitioned);
    std::printf("%.1f checkpoints a run, of %.1f MB\n", double(checkpoints) / turns,
                double(2 * strips * cells * sizeof(double)) * 1e-6);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv); }
