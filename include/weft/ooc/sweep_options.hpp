// SPDX-License-Identifier: BSL-1.0
// How sweeps over a grid file are executed, and what they report.
#pragma once

#include <weft/ooc/disk_speed.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <stop_token>
#include <string>

namespace weft::inline WEFT_ABI::ooc {

/// How the sweeps pass over the file.
enum class policy {
  /// The one that the model predicts to be the fastest within the budget; not in_core, whose pages no budget
  /// bounds. For kernels that see a rectangle: chained.
  automatic,
  in_core,        ///< the file is mapped; the operating system reads and writes pages
  basic,          ///< reads, computes and writes one tile after the other; a pass for each sweep
  three_buffers,  ///< reads tile i + 2 and writes tile i while tile i + 1 is computed; a pass for each sweep
  pool,           ///< reads ahead and writes behind with as many buffers as the budget allows; the same
  overlay,        ///< one recurrent task with ordered locks for each tile; sweeps follow each other closely
  chained         ///< as many sweeps in one pass as the budget allows
};

/// The name of a policy.
constexpr const char* name_of(policy p) noexcept {
  constexpr const char* names[] = {"automatic", "in_core", "basic",  "three_buffers",
                                   "pool",      "overlay", "chained"};
  return names[static_cast<int>(p)];
}

namespace detail {

/// More buffers do not make any disk faster.
inline constexpr std::size_t enough_buffers = 32;

/// *Throws*: weft::error that names the least budget if the policy needs more than there is.
inline void check_budget(policy p, std::size_t least, std::size_t budget) {
  if (least > budget)
    throw error(std::string("weft: the policy ") + name_of(p) + " needs at least " + std::to_string(least) +
                " bytes of memory for this grid; the budget is " + std::to_string(budget));
}

}  // namespace detail

/// Options of ooc::sweep.
struct sweep_options {
  std::size_t memory = std::size_t{256} << 20;  ///< bytes that the sweeps may use, with everything
  ooc::policy policy = policy::automatic;       ///< how they pass over the file
  /// The most sweeps of one pass (policies chained and overlay); 0: as many as possible. A pass that does not
  /// end is lost with all its sweeps.
  std::size_t chained = 0;
  /// For the prediction; nothing: what calibrate() has kept beside the grid, or else measured, once for each
  /// device.
  std::optional<disk_speed> disk = {};
  std::string kernel = {};  ///< its name in the calibration; empty, or not known there: it is measured
  /// Stop after the first sweep that changes no value by more than this; nothing: all sweeps are done. The
  /// policy overlay then does one sweep in a pass.
  std::optional<double> residual = {};
  /// Where the turns of the policy overlay are written, as overlay::write_times does; iterations count all
  /// sweeps.
  std::ostream* times = nullptr;
  /// Where a line about the state is written from time to time (not for in_core), by another thread; null:
  /// nowhere.
  std::ostream* progress = nullptr;
  std::chrono::milliseconds progress_every{1000};  ///< the time between two such lines
  std::stop_token stop = {};                       ///< stops the sweeps; the last finished pass counts
};

/// What the sweeps have done.
struct report {
  ooc::policy policy = policy::automatic;     ///< the policy that was used
  const char* engine = "";                    ///< who executed the transfers
  std::size_t sweeps = 0;                     ///< sweeps that were done
  std::size_t passes = 0;                     ///< how often the grid was read and written
  bool converged = false;                     ///< a sweep changed no value by more than the residual
  double residual = 0;                        ///< the largest change in the last sweep, if that was asked for
  std::uint64_t bytes_read = 0;               ///< from the file; 0 where it was mapped
  std::uint64_t bytes_written = 0;            ///< to the file; 0 where it was mapped
  std::size_t peak_memory = 0;                ///< bytes of buffers and all else that the sweeps used
  std::chrono::duration<double> elapsed{};    ///< seconds
  std::chrono::duration<double> predicted{};  ///< seconds, by the model
};

}  // namespace weft::inline WEFT_ABI::ooc
