// SPDX-License-Identifier: BSL-1.0
// Livermore kernel 23 out of core: each policy beside a twin that issues the same transfers and computes
// nothing, in turns, so that what the disk does meanwhile meets both.
// usage: bench_ooc [edge] [MiB of memory] [pairs] [directory]
#include <weft/ooc.hpp>
#include <weft/weft.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <map>
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
using grid = ooc::grid_file<double, 5>;

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

/// Bytes that the device has given to, and taken from, this process.
struct device_bytes {
  double read = 0, written = 0;
  static device_bytes now() {
    std::ifstream from("/proc/self/io");
    std::string key;
    double value;
    device_bytes d;
    while (from >> key >> value) {
      if (key == "read_bytes:") d.read = value;
      if (key == "write_bytes:") d.written = value;
    }
    return d;
  }
};

/// The share of a file that lies in the page cache.
double cached_share(const weft::io::file& f) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t size = f.size();
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, f.descriptor(), 0);
  if (at == MAP_FAILED) weft::io::fail(errno, "map", f.path());
  std::vector<unsigned char> there((size + page - 1) / page);
  const int failed = ::mincore(at, size, there.data());
  ::munmap(at, size);
  if (failed != 0) weft::io::fail(errno, "look at", f.path());
  const auto cached = std::count_if(there.begin(), there.end(), [](unsigned char c) { return c & 1; });
  return static_cast<double>(cached) / static_cast<double>(there.size());
}

/// The transfers of a pass of the policy chained, without computing. *Returns*: seconds.
double twin(weft::runtime& rt, grid& g) {
  struct buffer {
    ooc::aligned_buffer values, fields;
  };
  ooc::memory_budget memory;
  const ooc::grid_geometry& at = g.geometry();
  static constexpr std::size_t together = 4;  // tiles, as in a unit of a pass
  std::vector<buffer> in(2), out(2);
  for (std::vector<buffer>* of : {&in, &out})
    for (buffer& b : *of) {
      b.values = ooc::aligned_buffer(memory, together * at.values_bytes());
      b.fields = ooc::aligned_buffer(memory, together * at.fields_bytes());
    }
  const auto start = std::chrono::steady_clock::now();
  rt.run([&] {
    for (std::size_t u = 0; u * together < at.tiles(); ++u) {
      const auto for_tiles = [&at, u](auto f) {
        for (std::size_t t = u * together; t < std::min((u + 1) * together, at.tiles()); ++t)
          f(t, t - u * together);
      };
      weft::fork(
          {.name = "read", .event = true},
          [&, for_tiles](buffer& b) {
            for_tiles([&](std::size_t t, std::size_t i) {
              g.read_values(t, g.version(), b.values.data() + i * at.values_bytes());
              g.read_fields(t, b.fields.data() + i * at.fields_bytes());
            });
          },
          weft::update(weft::borrow(in[u % 2])));
      weft::fork(
          {.name = "write", .event = true},
          [&, for_tiles](const buffer&, const buffer& b) {
            for_tiles([&](std::size_t t, std::size_t i) {
              g.write_values(t, 1 - g.version(), b.values.data() + i * at.values_bytes());
            });
          },
          weft::read(weft::borrow(in[u % 2])), weft::update(weft::borrow(out[u % 2])));
    }
  });
  g.file().sync_data();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double value(std::size_t r, std::size_t c, int field) {
  return 0.01 + 0.0001 * static_cast<double>((r * 31 + c * 17 + static_cast<std::size_t>(field)) % 997);
}

/// Whether a policy gives the bits of the plain loops on a small grid.
bool correct(weft::runtime& rt, const std::string& directory, ooc::policy policy) {
  constexpr std::size_t edge = 300, stride = edge + 2, sweeps = 3;
  std::vector<double> z(stride * stride), row(stride);
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = value(i / stride, i % stride, 0);
  for (std::size_t k = 0; k < sweeps; ++k)
    for (std::size_t r = 1; r <= edge; ++r)
      for (std::size_t c = 1; c <= edge; ++c) {
        double fields[5];
        for (int i = 0; i < 5; ++i) fields[i] = value(r, c, 1 + i);
        double* const p = &z[r * stride + c];
        *p = kernel_23{}(*(p - stride), p[-1], p[0], p[1], p[stride], fields);
      }
  grid g(directory + "/bench-ooc-check", {.rows = edge, .columns = edge, .overwrite = true});
  g.fill(rt, value);
  ooc::sweep(rt, g, sweeps, kernel_23{}, {.policy = policy});
  bool same = true;
  for (std::size_t r = 1; r <= edge; ++r) {
    g.read_row(r, row);
    same = same && std::equal(row.begin(), row.end(), z.begin() + static_cast<std::ptrdiff_t>(r * stride));
  }
  g.remove();
  return same;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::size_t edge = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 4096;
  const std::size_t memory = (argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 128) << 20;
  const int pairs = argc > 3 ? std::atoi(argv[3]) : 5;
  const std::string directory = argc > 4 ? argv[4] : "/tmp";
  weft::runtime rt;
  grid rows(directory + "/bench-ooc-strips", {.rows = edge, .columns = edge, .overwrite = true});
  rows.fill(rt, value);
  grid blocks(directory + "/bench-ooc-blocks", {.rows = edge,
                                                .columns = edge,
                                                .layout = ooc::layout::optimized,
                                                .tile_rows = 512,
                                                .tile_columns = 512,
                                                .overwrite = true});
  ooc::convert(rt, rows, blocks);
  const double points = static_cast<double>(edge) * static_cast<double>(edge);
  std::printf("grid of %zu x %zu points, %.0f MB, memory %zu MiB, %u workers, engine %s\n", edge, edge,
              56e-6 * points, memory >> 20, rt.workers(), rows.queue().engine_name());

  struct form {
    const char* name;
    grid& on;
    ooc::policy policy;
    std::size_t sweeps;
  };
  const form forms[] = {{"chained, 1 sweep", rows, ooc::policy::chained, 1},
                        {"chained, 4 sweeps", rows, ooc::policy::chained, 4},
                        {"chained, 8 sweeps", rows, ooc::policy::chained, 8},
                        {"chained, 16 sweeps", rows, ooc::policy::chained, 16},
                        {"basic, 1 sweep", rows, ooc::policy::basic, 1},
                        {"three_buffers, 1 sweep", rows, ooc::policy::three_buffers, 1},
                        {"three_buffers, 4 sweeps", rows, ooc::policy::three_buffers, 4},
                        {"three_buffers, 8 sweeps", rows, ooc::policy::three_buffers, 8},
                        {"three_buffers, 16 sweeps", rows, ooc::policy::three_buffers, 16},
                        {"pool, 1 sweep", rows, ooc::policy::pool, 1},
                        {"overlay, 4 sweeps", blocks, ooc::policy::overlay, 4},
                        {"in_core, 1 sweep", rows, ooc::policy::in_core, 1}};
  std::printf("%-24s %9s %9s %10s %10s %9s %9s %9s\n", "form", "seconds", "/ twin", "predicted", "/ 48 n^2",
              "/ 8 n^2", "cached", "memory");
  for (const form& f : forms) {
    if (!correct(rt, directory, f.policy)) {
      std::printf("%-24s WRONG\n", f.name);
      return 1;
    }
    std::vector<double> seconds, ratios, predicted, read, written;
    double peak = 0, cached = 0;
    for (int i = 0; i < pairs; ++i) {
      const double beside = twin(rt, rows);
      // Just before, since the disk changes; as large as the grid, since a disk may have a cache of its own.
      ooc::calibrate(directory, rows.geometry().file_bytes(), 1.5);
      ::posix_fadvise(f.on.file().descriptor(), 0, 0, POSIX_FADV_DONTNEED);
      const device_bytes before = device_bytes::now();
      const ooc::report done =
          ooc::sweep(rt, f.on, f.sweeps, kernel_23{}, {.memory = memory, .policy = f.policy});
      const device_bytes after = device_bytes::now();
      seconds.push_back(done.elapsed.count());
      ratios.push_back(done.elapsed.count() / beside);
      predicted.push_back(done.predicted.count() / done.elapsed.count());
      read.push_back((after.read - before.read) / (48 * points));
      written.push_back((after.written - before.written) / (8 * points));
      cached = std::max(cached, cached_share(f.on.file()));
      peak = std::max(peak, static_cast<double>(done.peak_memory));
    }
    std::printf("%-24s %9.3f %9.2f %10.2f %10.3f %9.3f %9.4f %5.1f MiB\n", f.name, median(seconds),
                median(ratios), median(predicted), median(read), median(written), cached, peak / (1 << 20));
    std::fflush(stdout);
  }
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  std::printf("largest resident memory of the process: %.0f MiB\n",
              static_cast<double>(used.ru_maxrss) / 1024);
  std::printf("seconds, and ratios to the twin and of prediction to measurement: medians of %d pairs\n",
              pairs);
  rows.remove();
  blocks.remove();
  ::unlink((directory + "/weft-calibration").c_str());
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
