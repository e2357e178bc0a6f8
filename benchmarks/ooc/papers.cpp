// SPDX-License-Identifier: BSL-1.0
// Single measurements for the page that `benchmarks/papers` makes of papers 000 and 001. Each prints one line
// of comma-separated values, in seconds and bytes. usage: bench_papers disk directory MiB
//        bench_papers overlay directory edge block layout sweeps MiB [file for the turns]
//        bench_papers filter directory edge rows policy sweeps MiB
//        bench_papers copy directory edge rows
//        bench_papers model directory edge processors sweeps operations width
//        bench_papers pipeline directory edge processors operations width first scale
// overlay: Livermore kernel 23, blocks of block x block. filter: the mean of four neighbours, tiles of so
// many whole rows. copy: reads and writes the values of the filter's grid and computes nothing. model: the
// equations of paper 001 for its platform. pipeline: the schedule of paper 001 on that platform, executed as
// tasks, with disks, processors and a network that take `scale` times as long as theirs; the first block has
// `first` columns, the others `width`.
#include <weft/ooc.hpp>
#include <weft/weft.hpp>

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
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
struct mean {
  template <class V, class C>
  V operator()(V n, V w, V, V e, V s, const C&) const {
    return 0.25 * (n + w + e + s);
  }
};

double value(std::size_t r, std::size_t c, int field) {
  return 0.01 + 0.0001 * static_cast<double>((r * 31 + c * 17 + static_cast<std::size_t>(field)) % 997);
}
std::size_t number(const char* word) { return std::strtoul(word, nullptr, 10); }
double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Sequential transfers of 1 MiB over a file of so many MiB: seconds of writing and reading it.
void disk(const std::string& directory, std::size_t mebibytes) {
  const std::string path = directory + "/bench-papers-disk";
  ooc::memory_budget memory;
  const std::size_t block = std::size_t{1} << 20;
  const ooc::aligned_buffer buffer(memory, block);
  double written = 0, read = 0;
  {
    weft::io::file f = weft::io::file::create(path, true);
    ::fcntl(f.descriptor(), F_SETFL,
            ::fcntl(f.descriptor(), F_GETFL) | O_DIRECT);  // buffered where it cannot be
    auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < mebibytes; ++i) f.write_at(buffer.data(), block, i * block);
    f.sync_data();
    written = since(start);
    start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < mebibytes; ++i) f.read_at(buffer.data(), block, i * block);
    read = since(start);
  }
  std::remove(path.c_str());
  std::printf("%.6f,%.6f\n", read, written);
}

void print(const ooc::report& r, double more) {
  std::printf("%.6f,%.6f,%llu,%llu,%zu,%.6f\n", r.elapsed.count(), r.predicted.count(),
              static_cast<unsigned long long>(r.bytes_read), static_cast<unsigned long long>(r.bytes_written),
              r.peak_memory, more);
}

void overlay(const std::string& directory, std::size_t edge, std::size_t block, const std::string& layout,
             std::size_t sweeps, std::size_t mebibytes, const char* turns) {
  weft::runtime rt;
  ooc::grid_file<double, 5> g(directory + "/bench-papers-grid",
                              {.rows = edge,
                               .columns = edge,
                               .layout = layout == "optimized" ? ooc::layout::optimized : ooc::layout::blocks,
                               .tile_rows = block,
                               .tile_columns = block,
                               .overwrite = true});
  g.fill(rt, value);
  std::ofstream to;
  if (turns != nullptr) to.open(turns);
  ooc::sweep_options options{.memory = mebibytes << 20, .policy = ooc::policy::overlay};
  if (turns != nullptr) options.times = &to;
  const ooc::report done = ooc::sweep(rt, g, sweeps, kernel_23{}, options);
  g.remove();
  using pass = ooc::detail::overlay_pass<double, 5, kernel_23>;
  const auto plan = pass::plan(g.geometry(), g.boundary_bytes(), sweeps, options.memory);
  print(done, static_cast<double>(plan.buffers));  // turns that have memory at once
}

ooc::policy policy_named(const std::string& name) {
  for (int p = 0; p <= static_cast<int>(ooc::policy::chained); ++p)
    if (name == ooc::name_of(static_cast<ooc::policy>(p))) return static_cast<ooc::policy>(p);
  throw std::runtime_error("there is no policy '" + name + "'");
}

void filter(const std::string& directory, std::size_t edge, std::size_t rows, const std::string& policy,
            std::size_t sweeps, std::size_t mebibytes) {
  weft::runtime rt;
  ooc::grid_file<double, 0> g(directory + "/bench-papers-grid",
                              {.rows = edge, .columns = edge, .tile_rows = rows, .overwrite = true});
  g.fill(rt, value);
  ::posix_fadvise(g.file().descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  const ooc::sweep_options options{.memory = mebibytes << 20, .policy = policy_named(policy)};
  const ooc::report done = ooc::sweep(rt, g, sweeps, mean{}, options);
  // Equations 12 and 14 with the speed of this disk and kernel: one processor, whose blocks are tiles.
  const ooc::disk_speed disk =
      ooc::detail::speed_of(ooc::detail::measured_disk_of(g, g.direct(), options.memory).alone,
                            static_cast<double>(g.geometry().values(0, 0).size));
  const double points = ooc::detail::measure_kernel<double, 0>(mean{}).plain;
  const ooc::model::machine here{
      .io_latency = (disk.read_latency + disk.write_latency) / 2,
      .io_transfer = sizeof(double) * (disk.read_per_byte + disk.write_per_byte) / 2,
      .receive_latency = 0,
      .send_latency = 0,
      .transfer = 0,
      .speed = 5 / points};
  const auto n = static_cast<double>(edge);
  const ooc::model::wavefront w{.rows = n, .columns = n, .sweeps = static_cast<double>(sweeps)};
  g.remove();
  print(done, w.total(here, static_cast<double>(rows)));
}

void copy(const std::string& directory, std::size_t edge, std::size_t rows) {
  weft::runtime rt;
  ooc::grid_file<double, 0> g(directory + "/bench-papers-grid",
                              {.rows = edge, .columns = edge, .tile_rows = rows, .overwrite = true});
  g.fill(rt, value);
  ooc::memory_budget memory;
  std::vector<ooc::aligned_buffer> buffers;
  for (int i = 0; i < 3; ++i) buffers.emplace_back(memory, g.geometry().values_bytes());
  const auto start = std::chrono::steady_clock::now();
  rt.run([&] {
    for (std::size_t t = 0; t < g.geometry().tiles(); ++t) {
      ooc::aligned_buffer& b = buffers[t % buffers.size()];
      weft::fork(
          {.name = "read", .event = true},
          [&g, t](ooc::aligned_buffer& to) { g.read_values(t, 0, to.data()); },
          weft::update(weft::borrow(b)));
      weft::fork(
          {.name = "write", .event = true},
          [&g, t](const ooc::aligned_buffer& from) { g.write_values(t, 1, from.data()); },
          weft::read(weft::borrow(b)));
    }
  });
  g.file().sync_data();
  std::printf("%.6f\n", since(start));
  g.remove();
}

/// The platform of paper 001: disks of 37 MB/s (its Table 1), 8 ms for each transfer, Fast Ethernet, 10^9
/// operations in a second. (Latencies and speed are not in the paper.)
constexpr ooc::model::machine paper_001{.io_latency = 8e-3,
                                        .io_transfer = 8 / 37e6,
                                        .receive_latency = 5e-5,
                                        .send_latency = 5e-5,
                                        .transfer = 8 / 11e6,
                                        .speed = 1e9};

void model(double edge, double processors, double sweeps, double operations, double width) {
  const ooc::model::wavefront w{
      .rows = edge, .columns = edge, .processors = processors, .sweeps = sweeps, .operations = operations};
  std::printf("%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f\n", w.synchronisation(paper_001, width),
              w.load(paper_001, width), w.total(paper_001, width), w.best_width(paper_001),
              w.printed_best_width(paper_001), w.block_io(paper_001, width), w.computation(paper_001, width));
}

/// Completes events after so many seconds.
/// *Thread safety*: any thread.
class timer {
 public:
  using clock = std::chrono::steady_clock;
  void after(double seconds, weft::completion done) {
    const std::lock_guard hold(mutex_);
    waiting_.emplace(
        clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds)),
        std::move(done));
    changed_.notify_one();
  }

 private:
  void run_(const std::stop_token& stop) {
    std::unique_lock hold(mutex_);
    while (!stop.stop_requested()) {
      if (waiting_.empty()) {
        changed_.wait(hold, stop, [this] { return !waiting_.empty(); });
      } else if (const auto next = waiting_.begin()->first; next <= clock::now()) {
        const auto first = waiting_.extract(waiting_.begin());
        hold.unlock();
        first.mapped().complete();
        hold.lock();
      } else {
        changed_.wait_until(hold, stop, next, [this, next] { return waiting_.begin()->first < next; });
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::multimap<clock::time_point, weft::completion> waiting_;
  std::jthread thread_{[this](const std::stop_token& stop) { run_(stop); }};
};

/// Figures 4, 7 and 9 of paper 001 as tasks: each processor has a disk, three buffers and a link to its
/// neighbour. Disks read block i + 3 after they have written block i.
void pipeline(double edge, std::size_t processors, double operations, double width, double first,
              double scale) {
  struct token {};
  struct processor {
    token disk, itself, link, top;
    std::array<token, 3> buffers;
    std::vector<token> received;
  };
  const ooc::model::machine& m = paper_001;
  const double rows = edge / static_cast<double>(processors);
  std::vector<double> widths{std::min(first, edge)};
  for (double left = edge - widths[0]; left > 0.5; left -= width) widths.push_back(std::min(width, left));
  const std::size_t blocks = widths.size();
  std::vector<processor> all(processors);
  for (processor& p : all) p.received.resize(blocks);
  timer clock;
  std::mutex mutex;
  double synchronised = 0, loaded = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto takes = [&](double seconds) { clock.after(scale * seconds, weft::this_task::hold()); };
  const auto load = [&](std::size_t p, std::size_t i) {
    if (i < blocks)
      weft::fork(
          {.name = "read", .event = true}, [&, i](token&, token&) { takes(m.io(rows * widths[i])); },
          weft::update(weft::borrow(all[p].buffers[i % 3])), weft::update(weft::borrow(all[p].disk)));
  };
  const auto note = [&](double& latest) {
    const std::lock_guard hold(mutex);
    latest = std::max(latest, since(start));
  };
  weft::runtime rt;
  rt.run([&] {
    for (std::size_t p = 0; p < processors; ++p) {
      load(p, 0);
      if (p == 0) continue;
      weft::fork(
          {.name = "read top frontier", .event = true}, [&](token&, token&) { takes(m.io(edge)); },
          weft::update(weft::borrow(all[p].disk)), weft::update(weft::borrow(all[p].link)));
      weft::fork(
          {.name = "send top frontier", .event = true}, [&](token&, token&) { takes(m.communication(edge)); },
          weft::update(weft::borrow(all[p].link)), weft::update(weft::borrow(all[p - 1].top)));
    }
    for (std::size_t p = 0; p < processors; ++p) {
      weft::fork(
          {.name = "synchronised"}, [&](const token&, const token&) { note(synchronised); },
          weft::read(weft::borrow(all[p].buffers[0])), weft::read(weft::borrow(all[p].top)));
      load(p, 1);
      load(p, 2);
    }
    for (std::size_t i = 0; i < blocks; ++i)
      for (std::size_t p = 0; p < processors; ++p) {
        token& buffer = all[p].buffers[i % 3];
        weft::fork(
            {.name = "compute", .event = true},
            [&, i](token&, token&, const token&, const token&) {
              takes(operations * rows * widths[i] / m.speed);
            },
            weft::update(weft::borrow(buffer)), weft::update(weft::borrow(all[p].itself)),
            weft::read(weft::borrow(all[p].top)), weft::read(weft::borrow(all[p].received[i])));
        if (p + 1 < processors)
          weft::fork(
              {.name = "send", .event = true},
              [&, i](const token&, token&, token&) { takes(m.communication(widths[i])); },
              weft::read(weft::borrow(buffer)), weft::update(weft::borrow(all[p].link)),
              weft::update(weft::borrow(all[p + 1].received[i])));
        weft::fork(
            {.name = "write", .event = true}, [&, i](const token&, token&) { takes(m.io(rows * widths[i])); },
            weft::read(weft::borrow(buffer)), weft::update(weft::borrow(all[p].disk)));
        if (i == 0 && p + 1 == processors)
          weft::fork(
              {.name = "loaded"}, [&](token&) { note(loaded); }, weft::update(weft::borrow(all[p].disk)));
        load(p, i + 3);
      }
  });
  const double took = since(start);
  std::printf("%.6f,%.6f,%.6f\n", synchronised / scale, (loaded - synchronised) / scale, took / scale);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string what = argc > 2 ? argv[1] : "";
  if (what == "disk" && argc == 4)
    disk(argv[2], number(argv[3]));
  else if (what == "overlay" && (argc == 8 || argc == 9))
    overlay(argv[2], number(argv[3]), number(argv[4]), argv[5], number(argv[6]), number(argv[7]),
            argc == 9 ? argv[8] : nullptr);
  else if (what == "filter" && argc == 8)
    filter(argv[2], number(argv[3]), number(argv[4]), argv[5], number(argv[6]), number(argv[7]));
  else if (what == "copy" && argc == 5)
    copy(argv[2], number(argv[3]), number(argv[4]));
  else if (what == "model" && argc == 8)
    model(std::atof(argv[3]), std::atof(argv[4]), std::atof(argv[5]), std::atof(argv[6]), std::atof(argv[7]));
  else if (what == "pipeline" && argc == 9)
    pipeline(std::atof(argv[3]), number(argv[4]), std::atof(argv[5]), std::atof(argv[6]), std::atof(argv[7]),
             std::atof(argv[8]));
  else
    throw std::runtime_error("usage: see the first lines of benchmarks/ooc/papers.cpp");
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
