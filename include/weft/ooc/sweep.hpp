// SPDX-License-Identifier: BSL-1.0
// In-place sweeps over a grid file that is larger than the memory they may use.
#pragma once

#include <weft/ooc/detail/chained_pass.hpp>
#include <weft/ooc/detail/mapped_pass.hpp>
#include <weft/ooc/detail/overlay_pass.hpp>
#include <weft/ooc/detail/prediction.hpp>
#include <weft/ooc/detail/tile_pass.hpp>
#include <weft/ooc/sweep_options.hpp>

#include <map>
#include <mutex>

namespace weft::inline WEFT_ABI::ooc {

namespace detail {

/// The speed of the disk that the grid lies on: that of calibrate() in its directory, or else measured, once
/// for each device in a process.
template <class T, std::size_t Fields>
disk_speed speed_of_disk(grid_file<T, Fields>& grid) {
  const std::string& path = grid.file().path();
  const std::size_t slash = path.rfind('/');
  if (const std::optional<disk_speed> kept =
          calibrated(slash == std::string::npos ? "." : path.substr(0, slash + 1)))
    return *kept;
  static std::mutex mutex;
  static std::map<std::pair<dev_t, bool>, disk_speed> known;
  const std::lock_guard hold(mutex);
  const auto [at, fresh] = known.try_emplace({grid.file().about().st_dev, grid.direct()});
  if (fresh) {
    const grid_geometry& g = grid.geometry();
    const file_extent first = g.values(0, 0), other = g.values(0, 1);
    const std::uint64_t all =
        other.offset - first.offset;  // the values of one version; the other is not valid
    const std::uint64_t valid = grid.version() == 0 ? first.offset : other.offset;
    const std::uint64_t invalid = grid.version() == 0 ? other.offset : first.offset;
    try {
      at->second = measure_disk(grid.file(), valid, valid + all, invalid, 0.02);
    } catch (...) {
      known.erase(at);
      throw;
    }
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

}  // namespace detail

/// Executes `sweeps` in-place sweeps over the grid: each point, row by row, gets `kernel(north, west, centre,
/// east, south, coefficients)`, where north and west are new values, and the others old ones. The kernel is
/// called with values of type T, or with vectors of them, whose lanes are points; `coefficients[i]` is of the
/// same type. The results are bit-identical to those of the plain loops if the compiler fuses no operations
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
  constexpr int lanes = wavefront::native_lanes<T>;
  const grid_geometry& g = grid.geometry();
  const std::size_t edge = grid.boundary_bytes();
  report done;
  done.policy = options.policy;
  done.engine = grid.queue().engine_name();
  grid.check_valid();
  if (sweeps == 0) return done;

  const disk_speed disk = options.disk ? *options.disk : detail::speed_of_disk(grid);
  const detail::kernel_speed speed = detail::measure_kernel<T, Fields>(kernel);
  const auto plan_chain = [&] {
    return detail::plan_chained_within<T, Fields, lanes>(g, edge, rt.workers(), sweeps, options.chained,
                                                         options.memory);
  };
  using overlaid = detail::overlay_pass<T, Fields, Kernel>;
  std::size_t turns = 1;  // at once, policy overlay
  if (done.policy == policy::overlay) {
    detail::check_budget(done.policy, overlaid::bytes(g, edge, turns), options.memory);
    while (turns < overlaid::wave(g) && overlaid::bytes(g, edge, turns + 1) <= options.memory) ++turns;
  }
  const auto predict = [&](policy p, const detail::chained_plan& plan) {
    return detail::predict(p, g, sweeps, plan, turns, rt.workers(), disk, speed);
  };
  detail::chained_plan plan;
  if (done.policy == policy::chained) plan = plan_chain();
  if (done.policy == policy::automatic) {
    done.policy = policy::basic;
    if (detail::tile_pass<T, Fields, Kernel>::bytes(g, edge, 3) <= options.memory) done.policy = policy::pool;
    try {
      plan = plan_chain();
      if (predict(policy::chained, plan) <= predict(done.policy, plan)) done.policy = policy::chained;
    } catch (const error&) {  // the budget, or the tiles, do not allow it
    }
  }
  done.predicted = std::chrono::duration<double>(predict(done.policy, plan));

  memory_budget memory(options.memory);
  memory.take(std::min(edge, options.memory));
  const io_statistics before = grid.queue().statistics();
  const auto start = std::chrono::steady_clock::now();
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
      while (last + 1 < now && !((*changes)[last] <= *options.residual)) ++last;
      done.residual = (*changes)[last];
      done.converged = done.residual <= *options.residual;
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
  switch (done.policy) {
    case policy::chained: {
      detail::chained_pass<T, Fields, Kernel> pass(memory, grid, plan, kernel);
      until_done(plan.sweeps,
                 [&](std::size_t now, changes c) { c != nullptr ? pass.run(now, *c) : pass.run(now); });
      break;
    }
    case policy::overlay: {
      overlaid pass(memory, grid, turns, kernel);
      const std::size_t most = options.chained == 0 ? sweeps : options.chained;
      until_done(options.residual ? 1 : most,
                 [&](std::size_t now, changes c) { pass.run(rt, now, options.stop, c, options.times); });
      break;
    }
    case policy::in_core: {
      using mapped = detail::mapped_pass<T, Fields, Kernel>;
      detail::check_budget(done.policy, mapped::bytes(g, edge), options.memory);
      mapped pass(memory, grid, kernel);
      until_done(1,
                 [&](std::size_t, changes c) { pass.run([&] { return options.stop.stop_requested(); }, c); });
      break;
    }
    default: {
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
