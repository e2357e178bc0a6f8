// SPDX-License-Identifier: BSL-1.0
// What tests of sweeps share: layouts, policies, a disk, grids of Livermore kernel 23.
#pragma once

#include "ooc/grids.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <array>
#include <fstream>

// Instantiated once, in sweep_test.cpp.
extern template weft::ooc::report weft::ooc::sweep<double, 5, weft_test::kernel_23>(
    weft::runtime&, weft_test::grid&, std::size_t, const weft_test::kernel_23&,
    const weft::ooc::sweep_options&);

namespace weft_test {

namespace ooc = weft::ooc;

inline constexpr ooc::disk_speed some_disk = {1e-4, 1e-9, 1e-4, 1e-9};
inline constexpr std::array layouts = {ooc::layout::row_major, ooc::layout::strips, ooc::layout::blocks,
                                       ooc::layout::optimized};
inline constexpr std::array policies = {
    ooc::policy::in_core, ooc::policy::basic,   ooc::policy::three_buffers, ooc::policy::pool,
    ooc::policy::overlay, ooc::policy::chained, ooc::policy::automatic};

/// The calibration file, so that nothing is measured and kernels are called by passes only. `buffered`:
/// seconds of a buffered transfer.
inline void calibrate(const scratch& in, double buffered = 1e-4) {
  std::ofstream to(in / "weft-calibration");
  to << "weft-calibration-1\n";
  for (const char* kind : {"reads", "writes", "mixed"})
    to << "disk direct " << kind << " 4096 1 1e-4\ndisk buffered " << kind << " 4096 1 " << buffered << '\n';
  to << "kernel k 1e-9 1e-10\n";
}

/// The least budget that a policy accepts, from its own message.
inline std::size_t least_memory(weft::runtime& rt, grid& g, ooc::policy p) {
  try {
    ooc::sweep(rt, g, 1, kernel_23{}, {.memory = 1, .policy = p, .disk = some_disk});
  } catch (const weft::error& e) {
    const std::string what = e.what();
    const std::size_t at = what.find("at least ");
    if (at != std::string::npos) return std::stoul(what.substr(at + 9));
  }
  return 0;
}

inline void fill(weft::runtime& rt, grid& g) {
  g.fill(rt, [](std::size_t r, std::size_t c, int field) { return value_at(r, c, field); });
}

}  // namespace weft_test
