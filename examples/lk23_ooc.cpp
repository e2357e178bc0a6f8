// SPDX-License-Identifier: BSL-1.0
// Livermore kernel 23 on a grid that is larger than the memory the sweeps may use.
// usage: lk23_ooc [edge] [sweeps] [MiB of memory] [policy] [directory]
// Creates the grid file, sweeps over it, compares every bit with the plain loops, and reports what was read
// and written, and what the model had predicted.
#include "lk23.hpp"

#include <weft/ooc.hpp>
#include <weft/weft.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace ooc = weft::ooc;

namespace {

ooc::policy policy_named(const std::string& name) {
  for (int p = 0; p <= static_cast<int>(ooc::policy::chained); ++p)
    if (name == ooc::name_of(static_cast<ooc::policy>(p))) return static_cast<ooc::policy>(p);
  throw std::runtime_error("there is no policy '" + name + "'");
}

}  // namespace

int main(int argc, char** argv) try {
  const std::size_t edge = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000;
  const std::size_t sweeps = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 8;
  const std::size_t memory = (argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 12) << 20;
  const ooc::policy policy = policy_named(argc > 4 ? argv[4] : "automatic");
  const std::string directory = argc > 5 ? argv[5] : "/tmp";

  weft::runtime rt;
  ooc::grid_file<double, 5> grid(directory + "/lk23-grid",
                                 {.rows = edge, .columns = edge, .overwrite = true});
  grid.fill(rt, lk23::value);
  const double megabytes = 48e-6 * static_cast<double>(edge) * static_cast<double>(edge);
  std::printf("grid of %zu x %zu points, %.0f MB, memory %zu MiB\n", edge, edge, megabytes, memory >> 20);
  const ooc::report done = ooc::sweep(rt, grid, sweeps, lk23::kernel{},
                                      {.memory = memory, .policy = policy, .progress = &std::cerr});
  const double seconds = done.elapsed.count();
  std::printf("policy %s, engine %s, %zu sweeps in %zu passes, peak memory %.1f MiB\n",
              ooc::name_of(done.policy), done.engine, done.sweeps, done.passes,
              static_cast<double>(done.peak_memory) / (1 << 20));
  std::printf("%.3f s (predicted %.3f s), read %.1f MB, written %.1f MB, %.0f MB/s\n", seconds,
              done.predicted.count(), 1e-6 * static_cast<double>(done.bytes_read),
              1e-6 * static_cast<double>(done.bytes_written),
              1e-6 * static_cast<double>(done.bytes_read + done.bytes_written) / seconds);
  const bool same =
      sweeps == 0 || lk23::verify(edge, edge, sweeps, [&](std::size_t row, std::vector<double>& to) {
        grid.read_row(row, to);
        return true;
      });
  grid.remove();
  std::printf("every bit as in the plain loops: %s\n", same ? "yes" : "NO");
  return same ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
