// SPDX-License-Identifier: BSL-1.0
// Livermore kernel 23 out of core: each policy beside a twin that issues the same transfers and computes
// nothing, in turns, so that what the disk does meanwhile meets both; and sweeps one by one beside the same
// sweeps chained.
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
#include <stdexcept>
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
using window = ooc::detail::chained_pass<double, 5, kernel_23>::window;

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

struct token {};
struct buffer {
  ooc::aligned_buffer values, fields;
  token own;
};
std::vector<buffer> buffers(ooc::memory_budget& memory, const ooc::grid_geometry& g, std::size_t count,
                            std::size_t tiles) {
  std::vector<buffer> made(count);
  for (buffer& b : made) {
    b.values = ooc::aligned_buffer(memory, tiles * g.values_bytes());
    b.fields = ooc::aligned_buffer(memory, tiles * g.fields_bytes());
  }
  return made;
}

/// The transfers of a pass of the policy chained: units, buffers and the order in which tasks wait for each
/// other are those of its plan; the tasks that would copy and compute are empty.
void chained_transfers(weft::runtime& rt, grid& g, const ooc::detail::chained_plan& plan) {
  ooc::memory_budget memory;
  const ooc::grid_geometry& at = g.geometry();
  const std::size_t together = plan.tile_lines * at.tiles_across();
  std::vector<buffer> in = buffers(memory, at, plan.staged, together),
                      out = buffers(memory, at, plan.staged, together);
  const std::size_t units = (at.tiles_down() + plan.tile_lines - 1) / plan.tile_lines;
  const std::size_t strip = window::strip_rows(at), strips = (at.rows + strip - 1) / strip;
  const std::size_t groups = (strips + plan.sweeps - 1 + plan.unit_strips - 1) / plan.unit_strips;
  std::vector<token> slots(plan.units), done(groups);
  token nothing;
  rt.run([&] {
    const auto for_tiles = [&at, together](std::size_t unit, auto f) {
      for (std::size_t t = unit * together; t < std::min((unit + 1) * together, at.tiles()); ++t)
        f(t, t - unit * together);
    };
    std::size_t stored = 0;
    for (std::size_t step = 0; step <= groups; ++step) {
      if (step < units) {
        buffer& from = in[step % plan.staged];
        weft::fork(
            {.name = "read", .priority = 2, .event = true},
            [&, for_tiles, step](buffer& b) {
              for_tiles(step, [&](std::size_t t, std::size_t i) {
                g.read_values(t, g.version(), b.values.data() + i * at.values_bytes());
                g.read_fields(t, b.fields.data() + i * at.fields_bytes());
              });
            },
            weft::update(weft::borrow(from)));
        weft::fork(
            {.name = "take in", .priority = 1}, [](const buffer&, token&) {}, weft::read(weft::borrow(from)),
            weft::update(weft::borrow(slots[step % plan.units])));
      }
      if (step == 0) continue;
      const std::size_t group = step - 1;
      const auto slot = [&](std::size_t unit) -> token& {
        return unit < units ? slots[unit % plan.units] : nothing;
      };
      weft::fork(
          {.name = "group"}, [](token&, const token&, const token&, const token&) {},
          weft::update(weft::borrow(done[group])), weft::read(weft::borrow(slot(group))),
          weft::read(weft::borrow(slot(group + 1 < units ? group + 1 : units))),
          weft::read(weft::borrow(group == 0 ? nothing : done[group - 1])));
      for (;
           stored < units && std::min(stored + 1 + (plan.sweeps - 1) / plan.unit_strips, groups - 1) <= group;
           ++stored) {
        buffer& to = out[stored % plan.staged];
        weft::fork(
            {.name = "give", .priority = 1}, [](token&, const token&, buffer&) {},
            weft::update(weft::borrow(slots[stored % plan.units])), weft::read(weft::borrow(done[group])),
            weft::update(weft::borrow(to)));
        weft::fork(
            {.name = "write", .priority = 2, .event = true},
            [&, for_tiles, unit = stored](const buffer& b) {
              for_tiles(unit, [&](std::size_t t, std::size_t i) {
                g.write_values(t, 1 - g.version(), b.values.data() + i * at.values_bytes());
              });
            },
            weft::read(weft::borrow(to)));
      }
    }
  });
}

/// The transfers of a pass that goes from tile to tile with so many buffers. `one`: one tile's transfer after
/// the other.
void tile_transfers(weft::runtime& rt, grid& g, std::size_t count, bool one) {
  ooc::memory_budget memory;
  std::vector<buffer> pool = buffers(memory, g.geometry(), count, 1);
  token disk, processor;
  rt.run([&] {
    const auto order = [&](buffer& b) { return weft::update(weft::borrow(one ? disk : b.own)); };
    const std::size_t tiles = g.geometry().tiles();
    for (std::size_t t = 0, ahead = 0; t < tiles; ++t) {
      for (; ahead < std::min(t + count, tiles); ++ahead) {
        buffer& b = pool[ahead % count];
        weft::fork(
            {.name = "read", .priority = 1, .event = true},
            [&g, ahead](buffer& to, token&) {
              g.read_values(ahead, g.version(), to.values.data());
              g.read_fields(ahead, to.fields.data());
            },
            weft::update(weft::borrow(b)), order(b));
      }
      buffer& b = pool[t % count];
      weft::fork(
          {.name = "compute"}, [](buffer&, token&) {}, weft::update(weft::borrow(b)),
          weft::update(weft::borrow(processor)));
      weft::fork(
          {.name = "write", .priority = 1, .event = true},
          [&g, t](const buffer& from, token&) { g.write_values(t, 1 - g.version(), from.values.data()); },
          weft::read(weft::borrow(b)), order(b));
    }
  });
}

/// What a run without computing has taken.
struct transfers {
  double seconds = 0, bytes = 0;
  std::uint64_t count = 0;
};

/// The transfers of a policy for so many sweeps, without computing: of the overlay, those of the tiles, not
/// of the sides. (The mapped file has none of its own: beside it go those of the pool.)
transfers twin(weft::runtime& rt, grid& g, ooc::policy p, std::size_t sweeps, std::size_t memory) {
  using overlaid = ooc::detail::overlay_pass<double, 5, kernel_23>;
  const ooc::grid_geometry& at = g.geometry();
  const std::size_t edge = g.boundary_bytes();
  const ooc::io_statistics before = g.queue().statistics();
  const auto start = std::chrono::steady_clock::now();
  if (p == ooc::policy::chained) {
    const auto plan = ooc::detail::plan_chained_within<window>(at, edge, rt.workers(), p, sweeps, 0, memory);
    for (std::size_t k = 0; k < sweeps; k += plan.sweeps) {
      chained_transfers(rt, g, plan);
      g.file().sync_data();
    }
  } else {
    const std::size_t count = p == ooc::policy::overlay
                                  ? overlaid::plan(at, edge, sweeps, memory).buffers
                                  : ooc::detail::buffers_within<double, 5, kernel_23>(
                                        at, edge, p == ooc::policy::in_core ? ooc::policy::pool : p, memory);
    const bool one = p == ooc::policy::basic || p == ooc::policy::three_buffers;
    for (std::size_t k = 0; k < sweeps; ++k) {
      tile_transfers(rt, g, count, one);
      if (p != ooc::policy::overlay) g.file().sync_data();
    }
    if (p == ooc::policy::overlay) g.file().sync_data();
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const ooc::io_statistics after = g.queue().statistics();
  return {
      seconds,
      static_cast<double>(after.bytes_read - before.bytes_read + after.bytes_written - before.bytes_written),
      after.transfers - before.transfers};
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
  std::printf("%-24s %9s %9s %9s %9s %10s %10s %9s %9s %9s\n", "form", "seconds", "/ twin", "busy",
              "/ chained", "predicted", "/ 48 n^2", "/ 8 n^2", "cached", "memory");
  for (const form& f : forms) {
    if (!correct(rt, directory, f.policy)) {
      std::printf("%-24s WRONG\n", f.name);
      return 1;
    }
    const bool against = f.policy == ooc::policy::three_buffers && f.sweeps > 1;
    std::vector<double> seconds, ratios, busy, chained, predicted, read, written;
    double peak = 0, cached = 0;
    for (int i = 0; i < pairs; ++i) {
      // Just before, since the disk changes; as large as the grid, since a disk may have a cache of its own.
      ooc::calibrate(directory, rows.geometry().file_bytes(), 1.5);
      transfers beside;
      double in_one_pass = 0;
      const auto others = [&] {
        beside = twin(rt, f.on, f.policy, f.sweeps, memory);
        if (against)
          in_one_pass =
              ooc::sweep(rt, f.on, f.sweeps, kernel_23{}, {.memory = memory, .policy = ooc::policy::chained})
                  .elapsed.count();
      };
      if (i % 2 == 0) others();
      ::posix_fadvise(f.on.file().descriptor(), 0, 0, POSIX_FADV_DONTNEED);
      const device_bytes before = device_bytes::now();
      const std::uint64_t transfers_before = f.on.queue().statistics().transfers;
      const ooc::report done =
          ooc::sweep(rt, f.on, f.sweeps, kernel_23{}, {.memory = memory, .policy = f.policy});
      const device_bytes after = device_bytes::now();
      const std::uint64_t count = f.on.queue().statistics().transfers - transfers_before;
      cached = std::max(cached, cached_share(f.on.file()));
      if (i % 2 != 0) others();
      if (f.policy != ooc::policy::overlay && f.policy != ooc::policy::in_core && count != beside.count)
        throw std::runtime_error(std::string(f.name) + ": its twin issues other transfers");
      const double wall = done.elapsed.count();
      seconds.push_back(wall);
      ratios.push_back(wall / beside.seconds);
      busy.push_back(static_cast<double>(done.bytes_read + done.bytes_written) /
                     (beside.bytes / beside.seconds) / wall);
      if (against) chained.push_back(wall / in_one_pass);
      predicted.push_back(done.predicted.count() / wall);
      read.push_back((after.read - before.read) / (48 * points));
      written.push_back((after.written - before.written) / (8 * points));
      peak = std::max(peak, static_cast<double>(done.peak_memory));
    }
    const auto or_dash = [](bool there, const std::vector<double>& of) {
      char text[16] = "-";
      if (there) std::snprintf(text, sizeof text, "%.2f", median(of));
      return std::string(text);
    };
    std::printf("%-24s %9.3f %9.2f %9s %9s %10.2f %10.3f %9.3f %9.4f %5.1f MiB\n", f.name, median(seconds),
                median(ratios), or_dash(f.policy != ooc::policy::in_core, busy).c_str(),
                or_dash(against, chained).c_str(), median(predicted), median(read), median(written), cached,
                peak / (1 << 20));
    std::fflush(stdout);
  }
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  std::printf("largest resident memory of the process: %.0f MiB\n",
              static_cast<double>(used.ru_maxrss) / 1024);
  std::printf(
      "medians of %d turns. twin: the same transfers, no computing. busy: bytes / bandwidth of the "
      "twin / seconds. / chained: by the same sweeps in one pass, in the same turn\n",
      pairs);
  rows.remove();
  blocks.remove();
  ::unlink((directory + "/weft-calibration").c_str());
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
