// SPDX-License-Identifier: BSL-1.0
// In-place sweeps over a grid file that is larger than the memory they may use.
#pragma once

#include <weft/ooc/calibration.hpp>
#include <weft/ooc/detail/chained_pass.hpp>
#include <weft/ooc/detail/mapped_pass.hpp>
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

/// The speed of the disk that the grid lies on, alone and with several transfers at once, measured once for
/// each device in a process.
struct measured_speed {
  disk_speed alone, together;
};
template <class T, std::size_t Fields>
measured_speed speed_of_disk(grid_file<T, Fields>& grid) {
  static std::mutex mutex;
  static std::map<std::pair<dev_t, bool>, measured_speed> known;
  const std::lock_guard hold(mutex);
  const auto [at, fresh] = known.try_emplace({grid.file().about().st_dev, grid.direct()});
  if (!fresh) return at->second;
  const grid_geometry& g = grid.geometry();
  const std::uint64_t first = g.values(0, 0).offset, other = g.values(0, 1).offset;
  // The values of one version are read; the other one is not valid.
  const bool zero = grid.version() == 0;
  const measured_file in{grid.file(), grid.direct(), zero ? first : other, zero ? other : first,
                         other - first};
  try {
    at->second = {measure_disk(in, 1, 0.02), measure_disk(in, 4, 0.02)};
  } catch (...) {
    known.erase(at);
    throw;
  }
  return at->second;
}

/// How many buffers a policy that does one sweep in a pass has within the budget.
/// *Throws*: weft::error with the least budget that suffices.
template <class T, std::size_t Fields, class Kernel>
std::size_t buffers_within(const grid_geometry& g, std::size_t boundary_bytes, policy p, std::size_t budget) {
  using pass = tile_pass<T, Fields, Kernel>;
  std::size_t buffers = p == policy::basic ? 2 : 3;
  check_budget(p, pass::bytes(g, boundary_bytes, buffers), budget);
  constexpr std::size_t enough = 32;  // more do not make any disk faster
  while (p == policy::pool && buffers < enough && pass::bytes(g, boundary_bytes, buffers + 1) <= budget)
    ++buffers;
  return buffers;
}

/// *Throws*: weft::error if such a kernel cannot sweep over such a grid with such a policy.
inline void check_reach(const reach& sees, const grid_geometry& g, policy p) {
  if (p == policy::in_core || p == policy::overlay)
    throw error(std::string("weft: the policy ") + name_of(p) + " is for kernels that see four neighbours");
  const std::size_t wanted = std::max(sees.rows(), sees.columns());
  if (wanted > g.border)
    throw error("weft: the kernel sees " + std::to_string(wanted) +
                " rows or columns on one side; the boundary of this grid has " + std::to_string(g.border));
  if (g.tiles_down() > 1 && sees.rows() > g.tile_rows)
    throw error("weft: the kernel sees " + std::to_string(sees.rows()) +
                " rows on one side; the tiles of this grid have " + std::to_string(g.tile_rows));
}

}  // namespace detail

/// Executes `sweeps` in-place sweeps over the grid: each point, row by row, gets `kernel(north, west, centre,
/// east, south, coefficients)`, where north and west are new values, and the others old ones. The kernel is
/// called with values of type T, or with vectors of them, whose lanes are points; `coefficients[i]` is of the
/// same type. A kernel with a constant `reach` (window_kernel) sees a rectangle instead: it gets
/// `kernel(at, coefficients)` with a neighbourhood `at` of values of type T; points before its own in the
/// order of rows have new values, the others old ones. The policies in_core and overlay are not for it. The
/// results are bit-identical to those of the plain loops if the compiler fuses no operations
/// (-ffp-contract=off), whatever the policy.
/// *Requires*: the kernel has no side effects and does not throw.
/// *Effects*: after each pass the new values are on the device, and the file is valid; whoever ends the
/// process before leaves the values of the last finished pass (grid.sweeps() says how many sweeps they have
/// seen). Only the policy overlay with several sweeps in a pass writes over both versions: if such a pass
/// does not end, the file is not valid any more.
/// *Returns*: what was done and used, and what the model had predicted.
/// *Throws*: weft::error if the budget is too small, with the least one that suffices; std::system_error with
/// path and offset; weft::cancelled; std::bad_alloc. The file then holds the last finished pass.
/// *Suspends*: as runtime::run; at the end of a pass the thread waits for the device.
/// *Source*: three_buffers, basic and in_core: Caron, Desprez, Suter 2004; chained:
/// docs/explanation/out-of-core.md.
template <class T, std::size_t Fields, class Kernel>
report sweep(runtime& rt, grid_file<T, Fields>& grid, std::size_t sweeps, const Kernel& kernel,
             const sweep_options& options = {}) {
  using overlaid = detail::overlay_pass<T, Fields, Kernel>;
  using chain = detail::chained_pass<T, Fields, Kernel>;
  const grid_geometry& g = grid.geometry();
  const std::size_t edge = grid.boundary_bytes();
  report done;
  done.policy = options.policy;
  done.engine = grid.queue().engine_name();
  grid.begin_changes();
  if (sweeps == 0) return done;

  const std::optional<calibration> kept = calibrated(detail::directory_of(grid.file().path()));
  detail::measured_speed measured{};
  if (!options.disk && !kept) measured = detail::speed_of_disk(grid);
  const auto disk = [&](unsigned depth) {
    if (options.disk) return *options.disk;
    if (kept) return kept->speed(grid.direct(), depth);
    return depth < 4 ? measured.alone : measured.together;
  };
  const bool known = kept && kept->kernels.contains(options.kernel);
  const kernel_speed speed =
      known ? kept->kernels.at(options.kernel) : detail::measure_kernel<T, Fields>(kernel);
  const auto plan_chain = [&](std::size_t most) {
    return detail::plan_chained_within<typename chain::window>(g, edge, rt.workers(), done.policy, sweeps,
                                                               most, options.memory);
  };
  std::size_t turns = 1;  // at once, policy overlay
  if (done.policy == policy::overlay) {
    detail::check_budget(done.policy, overlaid::bytes(g, edge, turns), options.memory);
    while (turns < overlaid::wave(g) && overlaid::bytes(g, edge, turns + 1) <= options.memory) ++turns;
  }
  const auto predict = [&](policy p, const detail::chained_plan& plan) {
    return detail::predict(p, g, sweeps, plan, turns, rt.workers(), grid.queue().in_flight(), disk, speed);
  };
  detail::chained_plan plan;  // without sweeps: the chain is not used
  if constexpr (window_kernel<Kernel>) {
    detail::check_reach(Kernel::reach, g, done.policy);
    if (done.policy == policy::automatic) done.policy = policy::chained;
    if (done.policy != policy::chained) plan = plan_chain(1);
  }
  if (done.policy == policy::chained) plan = plan_chain(options.chained);
  if (done.policy == policy::automatic) {
    done.policy = policy::basic;
    if (detail::tile_pass<T, Fields, Kernel>::bytes(g, edge, 3) <= options.memory) done.policy = policy::pool;
    try {
      const detail::chained_plan chained = plan_chain(options.chained);
      if (predict(policy::chained, chained) <= predict(done.policy, chained)) {
        done.policy = policy::chained;
        plan = chained;
      }
    } catch (const error&) {  // the budget, or the tiles, do not allow it
    }
  }
  done.predicted = std::chrono::duration<double>(predict(done.policy, plan));

  memory_budget memory(options.memory);
  memory.take(std::min(edge, options.memory));
  const io_statistics before = grid.queue().statistics();
  const auto start = std::chrono::steady_clock::now();
  const double enough = options.residual.value_or(0);
  // Executes a pass of `now` sweeps by `pass(sweeps, changes)`, and makes its values the valid ones. If an
  // earlier sweep of it has converged, the pass is repeated up to that one: the old values are still there.
  const auto next_pass = [&](std::size_t now, const auto& pass) {
    const bool in_place = done.policy == policy::overlay && now > 1;
    if (in_place) grid.invalidate();
    std::optional<detail::largest_changes> changes;
    if (options.residual) changes.emplace(now);
    rt.run({.stop = options.stop}, [&] { pass(now, changes ? &*changes : nullptr); });
    if (options.stop.stop_requested()) throw cancelled();
    if (changes) {
      std::size_t last = 0;
      while (last + 1 < now && !((*changes)[last] <= enough)) ++last;
      done.residual = (*changes)[last];
      done.converged = done.residual <= enough;
      if (last + 1 < now) {
        now = last + 1;
        done.passes += 1;
        rt.run({.stop = options.stop}, [&] { pass(now, nullptr); });
      }
    }
    grid.commit(now, in_place && now % 2 == 0 ? grid.version() : 1 - grid.version());
    done.sweeps += now;
    done.passes += 1;
  };
  const auto until_done = [&](std::size_t together, const auto& pass) {
    while (done.sweeps < sweeps && !done.converged) next_pass(std::min(together, sweeps - done.sweeps), pass);
  };
  using changes = const detail::largest_changes*;
  const std::size_t together = plan.sweeps != 0 ? plan.sweeps : 1;
  const std::size_t passes = (sweeps + together - 1) / together;
  const detail::progress_line line(done.policy == policy::in_core ? nullptr : options.progress,
                                   options.progress_every, grid.queue(),
                                   static_cast<double>(passes) * static_cast<double>(g.tiles()) *
                                       static_cast<double>(g.values(0, 0).size));
  if (plan.sweeps != 0) {
    chain pass(memory, grid, plan, kernel);
    until_done(plan.sweeps, [&](std::size_t now, changes c) { pass.run(now, done.policy, c); });
  } else if constexpr (!window_kernel<Kernel>) {
    if (done.policy == policy::overlay) {
      overlaid pass(memory, grid, turns, kernel);
      const std::size_t most = options.chained == 0 ? sweeps : options.chained;
      until_done(options.residual ? 1 : most,
                 [&](std::size_t now, changes c) { pass.run(rt, now, options.stop, c, options.times); });
    } else if (done.policy == policy::in_core) {
      using mapped = detail::mapped_pass<T, Fields, Kernel>;
      detail::check_budget(done.policy, mapped::bytes(g, edge), options.memory);
      mapped pass(memory, grid, kernel);
      until_done(1,
                 [&](std::size_t, changes c) { pass.run([&] { return options.stop.stop_requested(); }, c); });
    } else {
      const std::size_t buffers =
          detail::buffers_within<T, Fields, Kernel>(g, edge, done.policy, options.memory);
      detail::tile_pass<T, Fields, Kernel> pass(memory, grid, buffers, kernel);
      until_done(1, [&](std::size_t, changes c) {
        pass.run(done.policy != policy::pool, done.policy == policy::basic, c);
      });
    }
  }
  done.elapsed = std::chrono::steady_clock::now() - start;
  const io_statistics after = grid.queue().statistics();
  done.bytes_read = after.bytes_read - before.bytes_read;
  done.bytes_written = after.bytes_written - before.bytes_written;
  done.peak_memory = memory.peak();
  return done;
}

}  // namespace weft::inline WEFT_ABI::ooc
