// SPDX-License-Identifier: BSL-1.0
// The kernel of "Overlapping computations and communications with I/O in wavefront algorithms" (Caron,
// Desprez, Suter 2004) on data larger than the memory it may use: each point becomes the mean of the nine
// points of the square around it, in place; with one pass for each sweep as in the paper, and with all sweeps
// in one pass. Compares every bit with the plain loops.
// usage: mean_filter [edge] [sweeps] [MiB of memory] [directory]
#include <weft/ooc.hpp>
#include <weft/weft.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

namespace ooc = weft::ooc;

namespace {

struct mean {
  static constexpr ooc::reach reach = {.north = 1, .west = 1, .east = 1, .south = 1};
  template <class At, class C>
  double operator()(const At& at, const C&) const {
    return (at(-1, -1) + at(-1, 0) + at(-1, 1) + at(0, -1) + at(0, 0) + at(0, 1) + at(1, -1) + at(1, 0) +
            at(1, 1)) /
           9;
  }
};

/// An image: a chequered pattern.
double pixel(std::size_t row, std::size_t column, int) {
  return (row / 37 + column / 23) % 2 == 0 ? 255.0 : 0.0;
}

/// Whether the image holds what the plain loops give: they run over a window of sweeps + 2 rows.
bool verify(ooc::grid_file<double, 0>& image, std::size_t sweeps) {
  const std::size_t rows = image.rows(), columns = image.columns(), height = sweeps + 2;
  std::vector<std::vector<double>> window(height, std::vector<double>(columns + 2));
  std::vector<double> found(columns + 2);
  for (std::size_t r = 0; r <= rows + sweeps; ++r) {
    if (r <= rows + 1)
      for (std::size_t c = 0; c < columns + 2; ++c) window[r % height][c] = pixel(r, c, 0);
    for (std::size_t k = 0; k < sweeps && k + 1 < r; ++k) {
      const std::size_t row = r - 1 - k;
      if (row > rows) continue;
      double* const here = window[row % height].data();
      const double* const above = window[(row - 1) % height].data();
      const double* const below = window[(row + 1) % height].data();
      for (std::size_t c = 1; c <= columns; ++c) {
        double sum = 0;
        for (const double* const line : {above, static_cast<const double*>(here), below})
          for (std::size_t i = c - 1; i <= c + 1; ++i) sum += line[i];
        here[c] = sum / 9;
      }
    }
    if (r <= sweeps || r - sweeps > rows) continue;
    image.read_row(r - sweeps, found);
    if (std::memcmp(found.data(), window[(r - sweeps) % height].data(), found.size() * sizeof(double)) != 0)
      return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::size_t edge = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000;
  const std::size_t sweeps = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 3;
  const std::size_t memory = (argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 2) << 20;
  const std::string path = std::string(argc > 4 ? argv[4] : "/tmp") + "/mean-filter-grid";

  weft::runtime rt;
  bool same = true;
  for (const ooc::policy policy : {ooc::policy::three_buffers, ooc::policy::chained}) {
    ooc::grid_file<double, 0> image(path, {.rows = edge, .columns = edge, .overwrite = true});
    image.fill(rt, pixel);
    const ooc::report done = ooc::sweep(rt, image, sweeps, mean{}, {.memory = memory, .policy = policy});
    std::fprintf(stderr, "%-13s %zu passes, %.3f s, read %.1f MB, written %.1f MB, memory %.1f MiB\n",
                 ooc::name_of(policy), done.passes, done.elapsed.count(),
                 1e-6 * static_cast<double>(done.bytes_read), 1e-6 * static_cast<double>(done.bytes_written),
                 static_cast<double>(done.peak_memory) / (1 << 20));
    same = verify(image, sweeps) && same;
    image.remove();
  }
  std::printf("%zu sweeps over %zu x %zu points, both ways: every bit as in the plain loops: %s\n", sweeps,
              edge, edge, same ? "yes" : "NO");
  return same ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
