// SPDX-License-Identifier: BSL-1.0
// The kernel of "Overlapping computations and communications with I/O in wavefront algorithms" (Caron,
// Desprez, Suter 2004) on data larger than the memory it may use: each point becomes the mean of the nine
// points of the square around it, in place; with one pass for each sweep as in the paper, and with all sweeps
// in one pass. usage: mean_filter [edge] [sweeps] [MiB of memory] [directory]
#include <weft/ooc.hpp>
#include <weft/weft.hpp>

#include <cstdio>
#include <cstdlib>
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

}  // namespace

int main(int argc, char** argv) try {
  const std::size_t edge = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000;
  const std::size_t sweeps = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 3;
  const std::size_t memory = (argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 2) << 20;
  const std::string path = std::string(argc > 4 ? argv[4] : "/tmp") + "/mean-filter-grid";

  weft::runtime rt;
  std::vector<double> first, row(edge + 2);
  bool same = true;
  for (const ooc::policy policy : {ooc::policy::three_buffers, ooc::policy::chained}) {
    ooc::grid_file<double, 0> image(path, {.rows = edge, .columns = edge, .overwrite = true});
    image.fill(rt, pixel);
    const ooc::report done = ooc::sweep(rt, image, sweeps, mean{}, {.memory = memory, .policy = policy});
    std::fprintf(stderr, "%-13s %zu passes, %.3f s, read %.1f MB, written %.1f MB, memory %.1f MiB\n",
                 ooc::name_of(policy), done.passes, done.elapsed.count(),
                 1e-6 * static_cast<double>(done.bytes_read), 1e-6 * static_cast<double>(done.bytes_written),
                 static_cast<double>(done.peak_memory) / (1 << 20));
    image.read_row(edge / 2 + 1, row);
    if (policy == ooc::policy::three_buffers)
      first = row;
    else
      same = first == row;
    image.remove();
  }
  std::printf("%zu sweeps over %zu x %zu points: both ways the same: %s\n", sweeps, edge, edge,
              same ? "yes" : "NO");
  return same ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
