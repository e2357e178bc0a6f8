// SPDX-License-Identifier: BSL-1.0
// In-place sweeps over a grid file that is larger than the memory they may use.
#pragma once

#include <weft/ooc/calibration.hpp>
#include <weft/ooc/detail/chained_pass.hpp>
#include <weft/ooc/detail/mapped_pass.hpp>
#include <weft/ooc/detail/overlay_lines.hpp>
#include <weft/ooc/detail/overlay_pass.hpp>
#include <weft/ooc/detail/prediction.hpp>
#include <weft/ooc/detail/progress.hpp>
#include <weft/ooc/detail/tile_pass.hpp>
#include <weft/ooc/sweep_options.hpp>

#include <map>
#include <mutex>

namespace weft::inline WEFT_ABI::ooc {

namespace detail {

/// The directory of a file.
inline std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// What was measured on the disk that the grid lies on, alone and with several transfers at once.
struct measured_disk {
  std::vector<disk_sample> alone, together;
};
/// Measures it, direct or buffered, once for each device in a process, with buffers of at most so much memory
/// in all (but at least a page for each transfer).
template <class T, std::size_t Fields>
measured_disk measured_disk_of(grid_file<T, Fields>& grid, bool direct, std::size_t memory) {
  constexpr unsigned depth = 4;
  static std::mutex mutex;
  static std::map<std::pair<dev_t, bool>, measured_disk> known;
  const std::lock_guard hold(mutex);
  const std::pair key{grid.file().about().st_dev, direct};
  if (const auto at = known.find(key); at != known.end()) return at->second;
  const grid_geometry& g = grid.geometry();
  const std::uint64_t first = g.values(0, 0).offset, other = g.values(0, 1).offset;
  // The values of one version are read; the other one is not valid. A transfer is at most 1/16 of that, and
  // at most a MiB.
  const bool zero = grid.version() == 0;
  std::uint64_t bytes = other - first;
  if (memory / depth < std::size_t{1} << 20)
    bytes = std::min(bytes, std::max<std::uint64_t>(memory / depth, file_alignment) * 16);
  std::optional<io::file> another;
  if (direct != grid.direct()) another = io::file::open_write(grid.file().path());
  const measured_file in{another ? *another : grid.file(), direct, zero ? first : other, zero ? other : first,
                         bytes};
  return known[key] = {measure_disk(in, 1, 0.02), measure_disk(in, depth, 0.02)};
}

/// How many buffers a policy that does one sweep in a pass has within the budget.
/// *Throws*: weft::error with the least budget that suffices.
template <class T, std::size_t Fields, class Kernel>
std::size_t buffers_within(const grid_geometry& g, std::size_t boundary_bytes, policy p, std::size_t budget) {
  using pass = tile_pass<T, Fields, Kernel>;
  std::size_t buffers = p == policy::basic ? 2 : 3;
  check_budget(p, pass::bytes(g, boundary_bytes, buffers), budget);
  while (p == policy::pool && buffers < enough_buffers &&
         pass::bytes(g, boundary_bytes, buffers + 1) <= budget)
    ++buffers;
  return buffers;
}

/// *Throws*: weft::error if such a kernel cannot sweep over such a grid.
inline void check_reach(const reach& sees, const grid_geometry& g) {
  const std::size_t wanted = std::max(sees.rows(), sees.columns());
  if (wanted > g.border)
    throw error("weft: the kernel sees " + std::to_string(wanted) +
                " rows or columns on one side; the boundary of this grid has " + std::to_string(g.border));
  if (g.tiles_down() > 1 && sees.rows() > g.tile_rows)
    throw error("weft: the kernel sees " + std::to_string(sees.rows()) +
                " rows on one side; the tiles of this grid have " + std::to_string(g.tile_rows));
}

/// A policy, and how it uses memory.
struct choice {
  ooc::policy policy;
  std::size_t buffers = 0;  // of basic, three_buffers and pool
  chained_plan chain = {};  // of chained; for kernels that see a rectangle, of basic to pool
  overlay_plan turns = {};  // of overlay
};

}  // namespace detail

/// Executes `sweeps` in-place sweeps over the grid: each point, row by row, gets `kernel(north, west, centre,
/// east, south, coefficients)`, where north and west are new values, and the others old ones. The kernel is
/// called with values of type T, or with vectors of them, whose lanes are points; `coefficients[i]` is of the
/// same type. A kernel with a constant `reach` (window_kernel) sees a rectangle instead: it gets
/// `kernel(at, coefficients)` with a neighbourhood `at` of values of type T; points before its own in the
/// order of rows have new values, the others old ones. The results are bit-identical to those of the plain
/// loops if the compiler fuses no operations (-ffp-contract=off), whatever the policy.
/// *Requires*: the kernel has no side effects and does not throw.
/// *Effects*: after each pass the new values are on the device, and the file is valid; whoever ends the
/// process before leaves the values of the last finished pass (grid.sweeps() says how many sweeps they have
/// seen). A stop ends the sweeps when the tiles in work have been computed and the transfers at the device
/// have ended; those that wait are dropped. A pass that is complete counts. *Returns*: what was done and
/// used, and what the model had predicted. *Throws*: weft::error if the budget is too small, with the least
/// one that suffices; std::system_error with path and offset; weft::cancelled if a stop was requested before
/// all sweeps were done; std::bad_alloc. The file then holds the last finished pass. *Suspends*: as
/// runtime::run; at the end of a pass the thread waits for the device. *Source*: three_buffers, basic and
/// in_core: Caron, Desprez, Suter 2004; chained: docs/explanation/out-of-core.md.
template <class T, std::size_t Fields, class Kernel>
report sweep(runtime& rt, grid_file<T, Fields>& grid, std::size_t sweeps, const Kernel& kernel,
             const sweep_options& options = {}) {
  using overlaid = detail::overlay_pass<T, Fields, Kernel>;
  using chain = detail::chained_pass<T, Fields, Kernel>;
  using mapped = detail::mapped_pass<T, Fields, Kernel>;
  const grid_geometry& g = grid.geometry();
  const std::size_t edge = grid.boundary_bytes();
  report done;
  done.policy = options.policy;
  done.engine = grid.queue().engine_name();
  grid.begin_changes();
  if (sweeps == 0) return done;
  const std::size_t most = options.chained == 0 ? sweeps : std::min(options.chained, sweeps);

  const auto plan_of = [&](policy p) {
    detail::choice c{p};
    if (p == policy::overlay)
      c.turns = overlaid::plan(g, edge, options.residual ? 1 : most, options.memory);
    else if (p == policy::in_core)
      detail::check_budget(p, mapped::bytes(g, edge), options.memory);
    else if (p == policy::chained || window_kernel<Kernel>)
      c.chain = detail::plan_chained_within<typename chain::window>(
          g, edge, rt.workers(), p, sweeps, p == policy::chained ? most : 1, options.memory);
    else
      c.buffers = detail::buffers_within<T, Fields, Kernel>(g, edge, p, options.memory);
    return c;
  };
  std::vector<detail::choice> choices;
  if constexpr (window_kernel<Kernel>) {
    detail::check_reach(Kernel::reach, g);
    if (done.policy == policy::automatic) done.policy = policy::chained;  // no other one is faster
  }
  if (done.policy == policy::automatic) {
    for (const policy p :
         {policy::chained, policy::pool, policy::three_buffers, policy::overlay, policy::basic}) {
      try {
        choices.push_back(plan_of(p));
      } catch (const error&) {  // the budget, or the tiles, do not allow it
      }
    }
    if (choices.empty()) done.policy = policy::basic;  // it needs least
  }
  if (choices.empty()) choices.push_back(plan_of(done.policy));

  memory_budget memory(options.memory);
  memory.take(std::min(edge, options.memory));
  const std::size_t left = options.memory - std::min(edge, options.memory);
  const std::optional<calibration> kept = calibrated(detail::directory_of(grid.file().path()));
  const auto disk = [&](policy p, unsigned depth, double bytes) {
    if (options.disk) return options.disk->at_once(depth, bytes);
    const bool direct = p != policy::in_core && grid.direct();
    if (kept) return kept->speed(direct, depth, bytes);
    const detail::measured_disk measured = detail::measured_disk_of(grid, direct, left);
    return detail::speed_of(depth < 4 ? measured.alone : measured.together, bytes);
  };
  kernel_speed speed;
  if (kept && kept->kernels.contains(options.kernel)) {
    speed = kept->kernels.at(options.kernel);
  } else {
    const auto on = detail::measured_within<T, Fields, Kernel>(left);
    const std::size_t bytes = std::min(on.bytes, left);
    memory.take(bytes);
    speed = detail::measure_kernel<T, Fields>(kernel, on);
    memory.give_back(bytes);
  }
  const auto predicted = [&](const detail::choice& c) {
    return detail::predict(
        c.policy, g, sweeps, c.chain, c.turns, rt.workers(), grid.queue().in_flight(),
        [&](unsigned depth, double bytes) { return disk(c.policy, depth, bytes); }, speed);
  };
  detail::choice chosen = choices.front();
  double least = predicted(chosen);
  for (const detail::choice& c : choices)
    if (const double seconds = predicted(c); seconds < least) {
      chosen = c;
      least = seconds;
    }
  done.policy = chosen.policy;
  done.predicted = std::chrono::duration<double>(least);

  const io_statistics before = grid.queue().statistics();
  const auto start = std::chrono::steady_clock::now();
  const double enough = options.residual.value_or(0);
  // Executes a pass of `now` sweeps by `pass(sweeps, changes)`, and makes its values the valid ones. If an
  // earlier sweep of it has converged, the pass is repeated up to that one: the old values are still there.
  const auto next_pass = [&](std::size_t now, const auto& pass) {
    const auto run = [&](std::size_t count, const detail::largest_changes* changes) {
      done.passes += 1;
      bool complete = false;
      try {
        rt.run({.stop = options.stop}, [&] {
          pass(count, changes);
          complete = true;
        });
      } catch (const cancelled&) {
        if (!complete) throw;  // otherwise the stop came when there was nothing left to do
      }
    };
    std::optional<detail::largest_changes> changes;
    if (options.residual) changes.emplace(now);
    run(now, changes ? &*changes : nullptr);
    if (changes) {
      std::size_t last = 0;
      while (last + 1 < now && !((*changes)[last] <= enough)) ++last;
      done.residual = (*changes)[last];
      done.converged = done.residual <= enough;
      if (last + 1 < now) {
        now = last + 1;
        run(now, nullptr);
      }
    }
    grid.commit(now, 1 - grid.version());
    done.sweeps += now;
  };
  const auto until_done = [&](std::size_t together, const auto& pass) {
    // Sweeps that may be repeated do not reach farther ahead than those that are done: so all together
    // compute less than twice what is needed, unless that is less than the first ones.
    constexpr std::size_t first = 8;
    while (done.sweeps < sweeps && !done.converged) {
      if (options.stop.stop_requested()) throw cancelled();
      const std::size_t ahead = options.residual ? std::max(first, done.sweeps) : sweeps;
      next_pass(std::min({together, ahead, sweeps - done.sweeps}), pass);
    }
  };
  using changes = const detail::largest_changes*;
  const std::size_t together = std::max<std::size_t>(chosen.chain.sweeps, 1);
  const std::size_t passes = (sweeps - 1) / together + 1;
  const detail::progress_line line(done.policy == policy::in_core ? nullptr : options.progress,
                                   options.progress_every, grid.queue(),
                                   static_cast<double>(passes) * static_cast<double>(g.tiles()) *
                                       static_cast<double>(g.values(0, 0).size));
  if (chosen.chain.sweeps != 0) {
    chain pass(memory, grid, chosen.chain, kernel);
    until_done(together, [&](std::size_t now, changes c) { pass.run(now, done.policy, c, options.stop); });
  } else if (done.policy == policy::overlay) {
    overlaid pass(memory, grid, chosen.turns, kernel);
    until_done(chosen.turns.sweeps, [&](std::size_t now, changes c) {
      pass.run(rt, done.sweeps, now, options.stop, c, options.times);
    });
  } else if (done.policy == policy::in_core) {
    mapped pass(memory, grid, kernel);
    until_done(1, [&](std::size_t, changes c) { pass.run(options.stop, c); });
  } else if constexpr (!window_kernel<Kernel>) {
    detail::tile_pass<T, Fields, Kernel> pass(memory, grid, chosen.buffers, kernel);
    until_done(1, [&](std::size_t, changes c) {
      pass.run(done.policy != policy::pool, done.policy == policy::basic, c);
    });
  }
  done.elapsed = std::chrono::steady_clock::now() - start;
  const io_statistics after = grid.queue().statistics();
  done.bytes_read = after.bytes_read - before.bytes_read;
  done.bytes_written = after.bytes_written - before.bytes_written;
  done.peak_memory = memory.peak();
  return done;
}

}  // namespace weft::inline WEFT_ABI::ooc
