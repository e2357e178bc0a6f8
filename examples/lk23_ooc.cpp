// SPDX-License-Identifier: BSL-1.0
// Livermore kernel 23 on a grid that is larger than the memory the sweeps may use.
// usage: lk23_ooc [edge] [sweeps] [MiB of memory] [policy] [directory]
// Creates the grid file, sweeps over it, compares every bit with the plain loops, and reports what was read
// and written, and what the model had predicted.
#include <weft/ooc.hpp>
#include <weft/weft.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace ooc = weft::ooc;

namespace {

struct kernel_23 {
  template <class V, class C>
  V operator()(V n, V w, V c, V e, V s, const C& k) const {
    const V qa = s * k[3] + n * k[0] + e * k[2] + w * k[1] + k[4];
    return c + 0.175 * (qa - c);
  }
};

/// The data: a hash of the place and field (0: the value), so that nothing needs to be kept for the check.
double value(std::size_t row, std::size_t column, int field) {
  std::uint64_t z =
      ((std::uint64_t{row} << 32 | column) * 6 + static_cast<unsigned>(field)) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return 0.01 + 0.2 * (static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53);
}

/// Whether the grid holds what the plain loops give: they run over a window of sweeps + 2 rows.
bool verify(ooc::grid_file<double, 5>& grid, std::size_t sweeps) {
  const std::size_t rows = grid.rows(), columns = grid.columns(), height = sweeps + 2;
  std::vector<std::vector<double>> window(height, std::vector<double>(columns + 2));
  std::vector<std::vector<double>> fields(height, std::vector<double>(5 * columns));
  std::vector<double> found(columns + 2);
  for (std::size_t r = 0; r <= rows + sweeps; ++r) {
    if (r <= rows + 1) {
      for (std::size_t c = 0; c < columns + 2; ++c) window[r % height][c] = value(r, c, 0);
      for (std::size_t c = 0; c < columns && r >= 1 && r <= rows; ++c)
        for (int i = 0; i < 5; ++i)
          fields[r % height][5 * c + static_cast<std::size_t>(i)] = value(r, c + 1, 1 + i);
    }
    for (std::size_t k = 0; k < sweeps && k + 1 < r; ++k) {
      const std::size_t row = r - 1 - k;
      if (row > rows) continue;
      double* const z = window[row % height].data();
      const double* const north = window[(row - 1) % height].data();
      const double* const south = window[(row + 1) % height].data();
      for (std::size_t c = 1; c <= columns; ++c)
        z[c] = kernel_23{}(north[c], z[c - 1], z[c], z[c + 1], south[c], &fields[row % height][5 * (c - 1)]);
    }
    if (r <= sweeps || r - sweeps > rows) continue;
    grid.read_row(r - sweeps, found);
    if (std::memcmp(found.data(), window[(r - sweeps) % height].data(), found.size() * sizeof(double)) != 0)
      return false;
  }
  return true;
}

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
  grid.fill(rt, value);
  const double megabytes = 48e-6 * static_cast<double>(edge) * static_cast<double>(edge);
  std::printf("grid of %zu x %zu points, %.0f MB, memory %zu MiB\n", edge, edge, megabytes, memory >> 20);
  const ooc::report done =
      ooc::sweep(rt, grid, sweeps, kernel_23{}, {.memory = memory, .policy = policy, .progress = &std::cerr});
  const double seconds = done.elapsed.count();
  std::printf("policy %s, engine %s, %zu sweeps in %zu passes, peak memory %.1f MiB\n",
              ooc::name_of(done.policy), done.engine, done.sweeps, done.passes,
              static_cast<double>(done.peak_memory) / (1 << 20));
  std::printf("%.3f s (predicted %.3f s), read %.1f MB, written %.1f MB, %.0f MB/s\n", seconds,
              done.predicted.count(), 1e-6 * static_cast<double>(done.bytes_read),
              1e-6 * static_cast<double>(done.bytes_written),
              1e-6 * static_cast<double>(done.bytes_read + done.bytes_written) / seconds);
  const bool same = sweeps == 0 || verify(grid, sweeps);
  grid.remove();
  std::printf("every bit as in the plain loops: %s\n", same ? "yes" : "NO");
  return same ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
