// SPDX-License-Identifier: BSL-1.0
// Livermore kernel 23 on a ring of processes, out of core: each has every P-th strip of rows in a file of its
// own. Strips pass through the memory of their processes once for many sweeps, which follow each other
// closely, and hand their first and last rows to the strips beside them, which are in the neighbours on the
// ring.
// usage: mpiexec -n P lk23_ring_ooc [edge] [sweeps] [MiB of each process] [directory] [new|keep|more]
// Creates the files, or with `more` opens those that an earlier job with `keep` has left; sweeps; compares
// every bit with the plain loops.
#include "lk23.hpp"

#include <weft/cluster.hpp>
#include <weft/cluster/partition.hpp>
#include <weft/ooc.hpp>
#include <weft/placement/list_schedule.hpp>
#include <weft/weft.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace ooc = weft::ooc;

namespace {

using file = ooc::grid_file<double, 5>;
using row = std::vector<double>;
constexpr std::size_t height = 16;  // rows of a strip

/// Which strips a process has: strip s of all is strip s / P of process s mod P.
struct share {
  std::size_t edge, processes, rank;

  std::size_t strips() const { return (edge + height - 1) / height; }
  std::size_t own_strips() const { return (strips() + processes - 1 - rank) / processes; }
  /// The rows in its file: the last strip of all may be shorter.
  std::size_t own_rows() const {
    const std::size_t missing = (strips() - 1) % processes == rank ? strips() * height - edge : 0;
    return own_strips() * height - missing;
  }
  /// The row of the whole grid that is a row of its file; both are counted from the northern boundary on.
  std::size_t whole_row(std::size_t r) const {
    if (r == 0) return 0;
    if (r == own_rows() + 1) return edge + 1;
    return ((r - 1) / height * processes + rank) * height + (r - 1) % height + 1;
  }
  /// The row of its file, if it has that row of the whole grid.
  std::optional<std::size_t> own_row(std::size_t r) const {
    const std::size_t strip = (r - 1) / height;
    if (strip % processes != rank) return std::nullopt;
    return strip / processes * height + (r - 1) % height + 1;
  }
};

/// The file of this process. *Throws*: std::system_error, weft::error; std::runtime_error if it is not the
/// one that belongs to this grid and to so many processes.
std::unique_ptr<file> open_or_create(const std::string& path, const share& mine, bool create,
                                     weft::runtime& rt) {
  if (create) {
    auto made = std::make_unique<file>(
        path, ooc::grid_options{
                  .rows = mine.own_rows(), .columns = mine.edge, .tile_rows = height, .overwrite = true});
    made->fill(rt, [&mine](std::size_t r, std::size_t c, int field) {
      return lk23::value(mine.whole_row(r), c, field);
    });
    return made;
  }
  auto at = std::make_unique<file>(path);
  const file& found = *at;
  if (found.rows() != mine.own_rows() || found.columns() != mine.edge ||
      found.geometry().layout != ooc::layout::strips ||
      found.geometry().tile_rows != std::min(height, mine.own_rows()))
    throw std::runtime_error("'" + path + "' has " + std::to_string(found.rows()) + " x " +
                             std::to_string(found.columns()) + " points; process " +
                             std::to_string(mine.rank) + " of " + std::to_string(mine.processes) + " needs " +
                             std::to_string(mine.own_rows()) + " x " + std::to_string(mine.edge));
  return at;
}

/// Sweeps that follow each other closely, several in one pass over the files. At position f of a pass, strip
/// f is read, strip f - 1 - k gets its sweep k, and strip f - sweeps is written. So a window of strips is in
/// memory, each in the slot that is its number modulo their count.
class ring {
 public:
  ring(weft::cluster& c, const share& mine, file& grid, std::size_t sweeps, std::size_t bytes)
      : mine_(mine), grid_(grid), budget_(bytes) {
    const ooc::grid_geometry& g = grid.geometry();
    const std::size_t slot_bytes =
        g.values_bytes() + g.fields_bytes() + 4 * mine.processes * g.columns * sizeof(double);
    const std::size_t own = bytes / slot_bytes;
    // Besides those that are swept, each process reads one strip ahead, and writes one behind.
    if (own < 4)
      throw std::runtime_error("lk23_ring_ooc: " + std::to_string(4 * slot_bytes) + " bytes are the least");
    const std::size_t needed = (sweeps + 1 + mine.processes - 1) / mine.processes + 2;
    slots_ = mine.processes * std::min(own, needed);
    most_ = std::min(sweeps, slots_ - 2 * mine.processes - 1);
    strip_.resize(slots_);
    first_.assign(slots_, row(g.columns));
    last_ = first_;
    budget_.take(2 * slots_ * g.columns * sizeof(double));
    for (std::size_t i = mine.rank; i < slots_; i += mine.processes)
      buffers_.push_back(
          {ooc::aligned_buffer(budget_, g.values_bytes()), ooc::aligned_buffer(budget_, g.fields_bytes())});
    step_ = std::make_unique<weft::partitioned>(
        c, [this] { fork_positions_(); },
        weft::partition_options{
            .method =
                [this](const weft::placement::task_graph& graph, const weft::placement::machine& m) {
                  return weft::placement::list_schedule(graph, m, owner_);
                },
            .threshold = 1});  // each strip stays where its file is
  }
  ring(const ring&) = delete;
  ring& operator=(const ring&) = delete;

  /// Sweeps over all files. *Throws*: in all processes what a transfer throws in one; then the files have the
  /// values of the last pass that has ended.
  void sweep(std::size_t sweeps) {
    for (std::size_t done = 0; done < sweeps; done += now_, ++passes_) {
      now_ = std::min(most_, sweeps - done);
      grid_.begin_changes();
      for (std::size_t i = 0; i < slots_; ++i) strip_[i] = static_cast<long>(i) - static_cast<long>(slots_);
      step_->run((mine_.strips() + most_ + slots_ - 1) / slots_);
      grid_.commit(now_, 1 - grid_.version());
    }
  }
  std::size_t passes() const { return passes_; }
  std::size_t most_sweeps() const { return most_; }
  std::size_t peak_memory() const { return budget_.peak() + grid_.boundary_bytes(); }
  std::uint64_t messages() const { return step_->counters().messages; }

 private:
  struct buffer {
    ooc::aligned_buffer values, fields;
  };
  /// The slot so many strips before the one at a position.
  std::size_t slot_(std::size_t position, std::size_t before) const {
    return (position + slots_ - before) % slots_;
  }
  buffer& buffer_of_(std::size_t slot) { return buffers_[slot / mine_.processes]; }
  bool outside_(long strip) const { return strip < 0 || strip >= static_cast<long>(mine_.strips()); }
  std::size_t tile_(long strip) const { return static_cast<std::size_t>(strip) / mine_.processes; }

  /// As many positions as there are slots. Each process has all rows between strips, but the strips only of
  /// its own: so those are no objects, and `strip_`, which says what is in a slot, stands for them.
  void fork_positions_() {
    using weft::borrow, weft::read, weft::update;
    for (std::size_t f = 0; f < slots_; ++f) {
      const auto fork = [this](std::size_t slot, auto body, auto... rights) {
        owner_.push_back(static_cast<unsigned>(slot % mine_.processes));
        weft::fork(body, update(borrow(strip_[slot])), rights...);
      };
      fork(f, [this, f](long& strip, row& first) { load_(f, strip, first); }, update(borrow(first_[f])));
      for (std::size_t k = 0; k < most_; ++k) {
        const std::size_t i = slot_(f, 1 + k);
        fork(
            i,
            [this, i, k](long& strip, row& first, row& last, const row& above, const row& below) {
              if (k < now_ && !outside_(strip)) sweep_strip_(i, strip, first, last, above, below);
            },
            update(borrow(first_[i])), update(borrow(last_[i])), read(borrow(last_[slot_(i, 1)])),
            read(borrow(first_[slot_(i + 1, 0)])));
      }
      const std::size_t i = slot_(f, most_);
      fork(i, [this, i](long& strip) { store_(i, strip); });
    }
  }
  void load_(std::size_t slot, long& strip, row& first) {
    strip += static_cast<long>(slots_);
    if (outside_(strip)) return;
    buffer& b = buffer_of_(slot);
    weft::fork({.event = true}, [this, &b, tile = tile_(strip)] {
      grid_.read_values(tile, grid_.version(), b.values.data());
      grid_.read_fields(tile, b.fields.data());
    });
    weft::sync();  // the worker does something else meanwhile
    std::copy_n(ooc::elements<double>(b.values), first.size(), first.begin());
  }
  void store_(std::size_t slot, long strip) {
    if (outside_(strip)) return;
    weft::fork({.event = true}, [this, &b = buffer_of_(slot), tile = tile_(strip)] {
      grid_.write_values(tile, 1 - grid_.version(), b.values.data());
    });
    weft::sync();
  }
  void sweep_strip_(std::size_t slot, long strip, row& first, row& last, const row& above, const row& below) {
    const ooc::tile_shape t = grid_.geometry().tile(tile_(strip));
    const std::size_t columns = t.columns, field = grid_.geometry().field_pitch(t);
    double* const values = ooc::elements<double>(buffer_of_(slot).values);
    const double* const fields = ooc::elements<double>(buffer_of_(slot).fields);
    const bool bottom = strip + 1 == static_cast<long>(mine_.strips());
    for (std::size_t r = 0; r < t.rows; ++r) {
      double* const z = values + r * columns;
      const double* const north = r != 0 ? z - columns : strip == 0 ? grid_.north() + 1 : above.data();
      const double* const south = r + 1 != t.rows ? z + columns : bottom ? grid_.south() + 1 : below.data();
      double west = grid_.west()[t.row + r];
      for (std::size_t c = 0; c < columns; ++c) {
        const double* const k = fields + r * columns + c;
        const double coefficients[] = {k[0], k[field], k[2 * field], k[3 * field], k[4 * field]};
        const double east = c + 1 != columns ? z[c + 1] : grid_.east()[t.row + r];
        west = z[c] = lk23::kernel{}(north[c], west, z[c], east, south[c], coefficients);
      }
    }
    std::copy_n(values, columns, first.begin());
    std::copy_n(values + (t.rows - 1) * columns, columns, last.begin());
  }

  const share mine_;
  file& grid_;
  ooc::memory_budget budget_;
  std::size_t slots_ = 0, most_ = 0, now_ = 0, passes_ = 0;  // most_: sweeps of a pass; now_: of this one
  std::vector<long> strip_;                                  // the strip in each slot, or what was there
  std::vector<row> first_, last_;                            // its first and its last row
  std::vector<buffer> buffers_;                              // of the slots of this process
  std::vector<unsigned> owner_;                              // the process of each task
  std::unique_ptr<weft::partitioned> step_;
};

}  // namespace

int main(int argc, char** argv) {
  weft::cluster c(argc, argv);
  const std::size_t edge = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000;
  const std::size_t sweeps = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 8;
  const std::size_t memory = (argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 12) << 20;
  const std::string directory = argc > 4 ? argv[4] : "/tmp", mode = argc > 5 ? argv[5] : "new";
  const share mine{edge, static_cast<std::size_t>(c.size()), static_cast<std::size_t>(c.rank())};
  if (mine.strips() < mine.processes)
    throw std::runtime_error("lk23_ring_ooc: there are more processes than strips");

  const std::string path = directory + "/lk23-ring-" + std::to_string(mine.rank);
  const auto owned = open_or_create(path, mine, mode != "more", c.runtime());
  file& grid = *owned;
  // Each file has its own end of a pass: a job that is killed between two of them leaves unequal ones.
  const std::uint64_t before = c.run([&grid] { return grid.sweeps(); });
  if (grid.sweeps() != before)
    throw std::runtime_error("'" + path + "' has seen " + std::to_string(grid.sweeps()) +
                             " sweeps, the file of process 0 " + std::to_string(before));
  ring all(c, mine, grid, sweeps, memory);
  const auto begin = std::chrono::steady_clock::now();
  all.sweep(sweeps);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const ooc::io_statistics moved = grid.queue().statistics();
  const auto of_points = [&](std::uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(mine.own_rows() * edge);
  };
  std::printf(
      "process %d: %.3f s, %zu passes of at most %zu sweeps, peak memory %.1f of %zu MiB, read %.0f and "
      "written %.0f bytes a point\n",
      c.rank(), seconds, all.passes(), all.most_sweeps(), static_cast<double>(all.peak_memory()) / (1 << 20),
      memory >> 20, of_points(moved.bytes_read), of_points(moved.bytes_written));
  const bool same = lk23::verify(edge, edge, grid.sweeps(), [&](std::size_t r, row& to) {
    const auto own = mine.own_row(r);
    if (own) grid.read_row(*own, to);
    return own.has_value();
  });
  std::printf("process %d: every bit as in the plain loops: %s\n", c.rank(), same ? "yes" : "NO");
  if (mode == "new") grid.remove();
  return same ? 0 : 1;
}
