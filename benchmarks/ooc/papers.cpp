// SPDX-License-Identifier: BSL-1.0
// Single measurements for the page that `benchmarks/papers` makes of papers 000 and 001. Each prints one line
// of comma-separated values, in seconds and bytes. usage: bench_papers disk directory MiB
//        bench_papers overlay directory edge block layout sweeps MiB [file for the turns]
//        bench_papers filter directory edge rows policy sweeps MiB
//        bench_papers copy directory edge rows
// overlay: Livermore kernel 23, blocks of block x block. filter: the mean of four neighbours, tiles of so
// many whole rows. copy: reads and writes the values of the filter's grid and computes nothing.
#include <weft/ooc.hpp>
#include <weft/weft.hpp>

#include <fcntl.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
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

void print(const ooc::report& r) {
  std::printf("%.6f,%.6f,%llu,%llu,%zu\n", r.elapsed.count(), r.predicted.count(),
              static_cast<unsigned long long>(r.bytes_read), static_cast<unsigned long long>(r.bytes_written),
              r.peak_memory);
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
  print(done);
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
  const ooc::report done =
      ooc::sweep(rt, g, sweeps, mean{}, {.memory = mebibytes << 20, .policy = policy_named(policy)});
  g.remove();
  print(done);
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
  else
    throw std::runtime_error("usage: see the first lines of benchmarks/ooc/papers.cpp");
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
