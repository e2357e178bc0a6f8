// SPDX-License-Identifier: BSL-1.0
// Grid files: what is written is read again in every layout; files that are refused, and why; the disk.
#include "ooc/grids.hpp"
#include "ooc/switched.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <set>

namespace ooc = weft::ooc;
using weft_test::value_at;

namespace {

enum class header_write { works, lost, unknown };  // unknown: it is done, and the device says that it failed
std::atomic<header_write> header_writes{header_write::works};
std::atomic<bool> header_written{false}, cannot_reserve{false}, refuses_direct_writes{false}, coarse{false};
std::atomic<int> faults{0};

}  // namespace

// Instead of those of the C library, with its failures.
extern "C" {
ssize_t pwrite(int f, const void* from, size_t size, off_t offset) {
  if (refuses_direct_writes && (::fcntl(f, F_GETFL) & O_DIRECT) != 0) {
    faults += 1;
    errno = EINVAL;
    return -1;
  }
  if (offset < 8192 && size == 4096 && header_writes != header_write::works) {
    header_written = true;
    if (header_writes == header_write::lost) {
      faults += 1;
      errno = EIO;
      return -1;
    }
  }
  return ::syscall(SYS_pwrite64, f, from, size, offset);
}
int fdatasync(int f) {
  if (header_written.exchange(false) && header_writes == header_write::unknown) {
    faults += 1;
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fdatasync, f));
}
int fallocate(int f, int mode, off_t offset, off_t size) {
  if (cannot_reserve) {
    faults += 1;
    errno = EOPNOTSUPP;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fallocate, f, mode, offset, size));
}
int statx(int f, const char* path, int flags, unsigned mask, struct statx* found) noexcept {
  const auto failed = static_cast<int>(::syscall(SYS_statx, f, path, flags, mask, found));
#ifdef STATX_DIOALIGN
  if (coarse && failed == 0 && (mask & STATX_DIOALIGN) != 0) {
    faults += 1;
    found->stx_mask |= STATX_DIOALIGN;
    found->stx_dio_mem_align = 512;
    found->stx_dio_offset_align = 8192;
  }
#endif
  return failed;
}
}

namespace {

constexpr std::array layouts = {ooc::layout::row_major, ooc::layout::strips, ooc::layout::blocks,
                                ooc::layout::optimized};

std::string refusal(const std::string& path) {
  try {
    weft_test::grid g(path);
  } catch (const weft::error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("where the page cache cannot be bypassed it is used, and that is said once") {
  // No file of /proc takes O_DIRECT. This test comes first, since it is said once in a process.
  const weft_test::scratch in(weft_test::medium::memory);
  const int standard = ::dup(STDERR_FILENO);
  const int caught = ::open((in / "caught").c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(standard >= 0);
  REQUIRE(caught >= 0);
  REQUIRE(::dup2(caught, STDERR_FILENO) >= 0);
  bool direct = false;
  for (int i = 0; i < 2; ++i)
    direct |= ooc::detail::direct_file(weft::io::file::open_write("/proc/self/comm"), true).direct();
  REQUIRE(::dup2(standard, STDERR_FILENO) >= 0);
  ::close(standard);
  ::close(caught);
  CHECK_FALSE(direct);
  CHECK(weft_test::slurp(in / "caught") ==
        "weft: '/proc/self/comm' cannot be read and written directly; the page cache is used\n");
}

TEST_CASE("a file that the file system does not take is a system error, and no grid") {
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 2});
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{64 << 10, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  int code = 0;
  try {
    weft_test::grid g(in / "grid", {.rows = 300, .columns = 300});
    g.fill(rt, value_at);
  } catch (const std::system_error& e) {
    code = e.code().value();
  }
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(code == EFBIG);
  CHECK_FALSE(std::filesystem::exists(in / "grid"));
}

TEST_CASE("a full device is a system error when a grid is created, and nothing is left behind") {
  const weft_test::scratch in(weft_test::medium::memory);
  if (::mount("weft", in.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
    WARN("a small file system cannot be mounted here: " << std::strerror(errno));
    return;
  }
  int code = 0;
  try {
    const weft_test::grid g(in / "grid", {.rows = 300, .columns = 300});
  } catch (const std::system_error& e) {
    code = e.code().value();
  }
  const bool left = std::filesystem::exists(in / "grid");
  CHECK(::umount(in.path().c_str()) == 0);
  CHECK(code == ENOSPC);
  CHECK_FALSE(left);
}

TEST_CASE("where room cannot be reserved, a grid is created all the same") {
  const weft_test::scratch in;
  weft::runtime rt({.workers = 2});
  faults = 0;
  const weft_test::switched fault(cannot_reserve, true);
  weft_test::grid g(in / "grid", {.rows = 20, .columns = 30});
  CHECK(faults > 0);
  g.fill(rt, value_at);
  CHECK(weft_test::holds(g, weft_test::plain_loops(20, 30, 0)));
}

TEST_CASE("files that cannot be written directly, or need a larger alignment, are buffered") {
  const weft_test::scratch in;
  weft::runtime rt({.workers = 2});
  const weft_test::grid usual(in / "usual", {.rows = 20, .columns = 30});
  for (std::atomic<bool>* const fault : {&refuses_direct_writes, &coarse}) {
#ifndef STATX_DIOALIGN
    if (fault == &coarse) continue;
#endif
    faults = 0;
    const weft_test::switched on(*fault, true);
    weft_test::grid g(in / "grid", {.rows = 20, .columns = 30, .overwrite = true});
    CHECK_FALSE(g.direct());
    g.fill(rt, value_at);
    CHECK(weft_test::holds(g, weft_test::plain_loops(20, 30, 0)));
    CHECK((faults > 0 || !usual.direct()));
  }
}

TEST_CASE("after a failed write of the header, no values that may count are overwritten") {
  const weft_test::scratch in;
  weft::runtime rt({.workers = 2});
  for (const header_write failure : {header_write::lost, header_write::unknown}) {
    INFO("kind of failure " << static_cast<int>(failure));
    weft_test::grid g(in / "grid", {.rows = 16, .columns = 30, .overwrite = true});
    g.fill(rt, value_at);
    const std::string counts = weft_test::slurp(in / "grid").substr(4096, 4096);
    ooc::memory_budget memory;
    ooc::aligned_buffer tile(memory, g.geometry().values_bytes());
    const auto pass = [&] {
      g.begin_changes();
      rt.run([&] { weft::fork({.event = true}, [&] { g.write_values(0, 1 - g.version(), tile.data()); }); });
    };
    rt.run([&] { weft::fork({.event = true}, [&] { g.read_values(0, 0, tile.data()); }); });
    pass();
    faults = 0;
    {
      const weft_test::switched fails(header_writes, failure);
      CHECK_THROWS_AS(g.commit(1, 1), std::system_error);
      CHECK(g.version() == 0);
      CHECK(g.sweeps() == 0);
      CHECK_THROWS_AS(g.begin_changes(), std::system_error);  // the device still fails
    }
    CHECK(faults == 2);
    CHECK(weft_test::slurp(in / "grid").substr(4096, 4096) == counts);
    std::fill_n(tile.data(), tile.size(), std::byte{77});
    pass();  // and here the process is killed
    weft_test::grid again(in / "grid");
    CHECK(weft_test::holds(again, weft_test::plain_loops(16, 30, 0)));
    CHECK(again.sweeps() == 0);
    g.commit(2, 1);
    CHECK(weft_test::grid(in / "grid").sweeps() == 2);
    // The same when it is filled again: it is not valid before that has ended.
    {
      const weft_test::switched fails(header_writes, failure);
      CHECK_THROWS_AS(g.fill(rt, value_at), std::system_error);
    }
    std::vector<double> row(static_cast<std::size_t>(g.geometry().columns) + 2);
    for (const std::size_t i : {5, 6}) {  // of one row of tiles
      g.read_row(i, row);
      CHECK(row[0] == value_at(i, 0, 0));  // of the boundary
      const weft_test::switched fails(header_writes, failure);
      CHECK_THROWS_AS(g.fill(rt, value_at), std::system_error);
    }
    g.begin_fill(value_at);
    CHECK(refusal(in / "grid").find("not filled to its end") != std::string::npos);
    g.fill_tiles(rt, 0, 1, value_at);
    {
      const weft_test::switched fails(header_writes, failure);
      CHECK_THROWS_AS(g.end_fill(0), std::system_error);
    }
    g.begin_fill(value_at);
    CHECK(refusal(in / "grid").find("not filled to its end") != std::string::npos);
  }
}

TEST_CASE("an existing grid survives the refusal of its successor") {
  const weft_test::scratch in;
  weft::runtime rt({.workers = 2});
  {
    weft_test::grid g(in / "grid", {.rows = 20, .columns = 30});
    g.fill(rt, value_at);
  }
  const std::string before = weft_test::slurp(in / "grid");
  {
    const weft_test::switched none(ooc::uring_factory, decltype(ooc::uring_factory){});
    CHECK_THROWS_AS(
        weft_test::grid(
            in / "grid",
            {.rows = 2, .columns = 3, .overwrite = true, .io = {.engine = ooc::engine::io_uring}}),
        weft::error);
  }
  const std::size_t many = std::size_t{1} << 40;
  CHECK_THROWS_AS(weft_test::grid(in / "grid", {.rows = many, .columns = many, .overwrite = true}),
                  weft::error);
  CHECK(weft_test::slurp(in / "grid") == before);
}

TEST_CASE("both engines fill, convert and read grids") {
  const weft_test::scratch in;
  weft::runtime rt({.workers = 2});
  for (const ooc::engine engine : {ooc::engine::threads, ooc::engine::io_uring}) {
    if (engine == ooc::engine::io_uring &&
        (ooc::uring_factory == nullptr || ooc::uring_factory(2) == nullptr)) {
      WARN("io_uring is not available here: only the engine on threads is tested");
      continue;
    }
    weft_test::grid from(in / "from", {.rows = 67,
                                       .columns = 45,
                                       .layout = ooc::layout::row_major,
                                       .tile_rows = 16,
                                       .overwrite = true,
                                       .io = {.engine = engine}});
    from.fill(rt, value_at);
    weft_test::grid to(in / "to", {.rows = 67,
                                   .columns = 45,
                                   .layout = ooc::layout::optimized,
                                   .tile_rows = 20,
                                   .tile_columns = 7,
                                   .overwrite = true,
                                   .io = {.engine = engine}});
    ooc::convert(rt, from, to);
    CHECK(to.queue().engine_name() == std::string(engine == ooc::engine::threads ? "threads" : "io_uring"));
    CHECK(weft_test::holds(to, weft_test::plain_loops(67, 45, 0)));
    CHECK(to.queue().statistics().bytes_written > 0);
  }
}

TEST_CASE("what was filled in is read again, in every layout, also through the page cache") {
  const weft_test::scratch in;
  weft::runtime rt({.workers = 2});
  for (const ooc::layout layout : layouts)
    for (const bool direct : {true, false})
      for (const auto& [rows, columns] :
           {std::pair<std::size_t, std::size_t>{1, 1}, {1, 40}, {50, 1}, {2, 2}, {67, 45}}) {
        INFO("layout " << static_cast<int>(layout) << ", " << rows << " x " << columns);
        {
          weft_test::grid g(in / "grid", {.rows = rows,
                                          .columns = columns,
                                          .layout = layout,
                                          .tile_rows = 16,
                                          .tile_columns = 7,
                                          .overwrite = true,
                                          .direct = direct});
          g.fill(rt, [](std::size_t r, std::size_t c, int field) { return value_at(r, c, field); });
          CHECK(weft_test::holds(g, weft_test::plain_loops(rows, columns, 0)));
        }
        weft_test::grid again(in / "grid", direct);
        CHECK(again.rows() == rows);
        CHECK(again.columns() == columns);
        CHECK(weft_test::holds(again, weft_test::plain_loops(rows, columns, 0)));
      }
}

TEST_CASE("the places of a layout do not overlap, and fill the file") {
  for (const ooc::layout layout : layouts)
    for (const std::size_t columns : {1u, 2u, 3u, 512u, 700u}) {
      const bool whole = layout == ooc::layout::row_major || layout == ooc::layout::strips;
      const ooc::grid_geometry g{
          35, columns, 5, 8, layout, 16, whole ? columns : std::min<std::size_t>(columns, 300)};
      std::vector<std::pair<std::uint64_t, std::uint64_t>> all = {
          {0, 2 * ooc::file_alignment}, {g.boundary().offset, g.boundary().offset + g.boundary().size}};
      for (std::size_t t = 0; t < g.tiles(); ++t) {
        for (const unsigned version : {0u, 1u}) {
          const ooc::file_extent e = g.values(t, version);
          CHECK(e.size <= g.values_bytes());
          all.emplace_back(e.offset, e.offset + e.size);
        }
        for (std::size_t i = 0; i < g.field_extents(); ++i) {
          const ooc::file_extent e = g.field_extent(t, i);
          CHECK(e.at + e.size <= g.fields_bytes());
          all.emplace_back(e.offset, e.offset + e.size);
        }
        const ooc::tile_shape shape = g.tile(t);
        std::set<std::size_t> places;
        for (std::size_t r = 0; r < shape.rows; ++r)
          for (std::size_t c = 0; c < shape.columns; ++c) places.insert(g.place(shape, r, c));
        CHECK(places.size() == shape.rows * shape.columns);
        CHECK(*places.rbegin() < g.values(t, 0).size / 8);
      }
      std::sort(all.begin(), all.end());
      for (std::size_t i = 1; i < all.size(); ++i) CHECK(all[i - 1].second <= all[i].first);
      CHECK(all.back().second <= g.file_bytes());
      for (const auto& [begin, end] : all)
        CHECK((begin % ooc::file_alignment == 0 && end % ooc::file_alignment == 0));
    }
}

TEST_CASE("files that are no grid, or another one, are refused with the reason") {
  const weft_test::scratch in;
  weft::runtime rt({.workers = 2});
  const std::string path = in / "grid";
  const auto make = [&] {
    weft_test::grid g(path, {.rows = 20, .columns = 30, .overwrite = true});
    g.fill(rt, [](std::size_t r, std::size_t c, int field) { return value_at(r, c, field); });
  };
  make();
  const std::string good = weft_test::slurp(path);
  CHECK(refusal(path).empty());
  CHECK_THROWS_AS(weft_test::grid(in / "missing"), std::system_error);
  CHECK_THROWS_AS(weft_test::grid(path, {.rows = 20, .columns = 30}), std::system_error);  // it exists
  CHECK_THROWS_AS(weft_test::grid(in / "other", {.rows = 0, .columns = 30}), weft::error);

  weft_test::spill(path, "short");
  CHECK(refusal(path).find("too short") != std::string::npos);
  weft_test::spill(path, std::string(20'000, 'x'));
  CHECK(refusal(path).find("does not begin with a header") != std::string::npos);
  weft_test::spill(path, good.substr(0, good.size() - 4096));
  CHECK(refusal(path).find("too short") != std::string::npos);
  std::string bad = good;
  bad[20] ^= 1;
  bad[4096 + 20] ^= 1;
  weft_test::spill(path, bad);
  CHECK(refusal(path).find("checksums") != std::string::npos);
  bad = good;
  bad[4096 + 20] ^= 1;  // the newer header; the older one says that the file was not filled
  weft_test::spill(path, bad);
  CHECK(refusal(path).find("not filled to its end") != std::string::npos);
  const auto with = [&good](std::size_t at, char value) {
    std::string other = good;
    ooc::grid_header h;
    other[4096 + at] = value;
    std::memcpy(&h, &other[4096], sizeof h);
    h.checksum = ooc::detail::checksum(h);
    std::memcpy(&other[4096], &h, sizeof h);
    return other;
  };
  weft_test::spill(path, with(offsetof(ooc::grid_header, format), 9));
  CHECK(refusal(path).find("format 9") != std::string::npos);
  weft_test::spill(path, with(offsetof(ooc::grid_header, element), 4));
  CHECK(refusal(path).find("bytes per element 4, expected 8") != std::string::npos);
  weft_test::spill(path, with(offsetof(ooc::grid_header, fields), 2));
  CHECK(refusal(path).find("coefficients per point 2, expected 5") != std::string::npos);
  weft_test::spill(path, with(offsetof(ooc::grid_header, layout), 77));
  CHECK(refusal(path).find("contradicts") != std::string::npos);
  weft_test::spill(path, with(offsetof(ooc::grid_header, rows) + 7, 0x7f));  // its size overflows
  CHECK(refusal(path).find("contradicts") != std::string::npos);
  weft_test::spill(path, with(offsetof(ooc::grid_header, tile_rows) + 7, 0x7f));
  CHECK(refusal(path).find("contradicts") != std::string::npos);
  weft_test::spill(path, with(offsetof(ooc::grid_header, state), 2));
  CHECK(refusal(path).find("contradicts") != std::string::npos);
  weft_test::spill(path, good);
  CHECK(refusal(path).empty());
  CHECK_THROWS_AS((ooc::grid_file<double, 5>(path).read_row(22, {})), std::out_of_range);
}

TEST_CASE("the speed of the disk is that of transfers of the wanted size") {
  // Reads become faster for each byte up to 256 KiB; both mixed take twice as long from there on.
  ooc::calibration c;
  const auto add = [&c](ooc::traffic kind, std::size_t size, double seconds) {
    c.disk.push_back({true, kind, size, 4, seconds});
  };
  for (const ooc::traffic kind : {ooc::traffic::reads, ooc::traffic::writes, ooc::traffic::mixed}) {
    const double slower = kind == ooc::traffic::mixed ? 2 : 1;
    add(kind, 4 << 20, 4.1e-3 * slower);
    add(kind, 4096, 1e-4);
    add(kind, 256 << 10, 2e-4 * slower);
  }
  const auto reading = [&c](double bytes) { return c.speed(true, 4, bytes).reading(bytes); };
  CHECK(reading(4096) == Approx(1e-4));
  CHECK(reading(256 << 10) == Approx(4e-4));
  CHECK(reading(4 << 20) == Approx(8.2e-3));
  CHECK(reading(8 << 20) == Approx(2 * (4.1e-3 + 3.9e-3 * 4096 / 3840)));
  CHECK(reading(4096 + 126 * 1024) == Approx(1.5e-4 * 1.5));
  CHECK(reading(2176 << 10) == Approx(2 * (2e-4 + 3.9e-3 / 2)));
  CHECK(c.speed(true, 4, 2176 << 10).writing(2176 << 10) == Approx(reading(2176 << 10)));
  for (double bytes = 4096, before = 0; bytes < 1e7; bytes *= 1.1) {
    CHECK(reading(bytes) > before);
    before = reading(bytes);
    const ooc::disk_speed s = c.speed(true, 4, bytes);
    for (const double part : {s.read_latency, s.write_latency}) CHECK(part >= 0);
    for (const double part : {s.read_per_byte, s.write_per_byte}) CHECK(part > 0);
  }
  // Of a latency given as such, as much remains as the other transfers do not hide.
  const ooc::disk_speed given{1e-3, 1e-9, 2e-3, 1e-9};
  CHECK(given.at_once(1, 1e5).reading(1e5) == Approx(1.1e-3));
  CHECK(given.at_once(4, 1e5).reading(1e5) == Approx(1.1e-3 / 4));
  CHECK(given.at_once(4, 1e6).reading(1e6) == Approx(1e-3));
  CHECK(given.at_once(2, 1e6).writing(1e6) == Approx(3e-3 / 2));
}

TEST_CASE("calibration measures the disk and keeps what it has found") {
  const weft_test::scratch in;
  CHECK_FALSE(ooc::calibrated(in.path().string()).has_value());
  const auto mean = [](auto n, auto w, auto c, auto e, auto s, const auto&) {
    return 0.2 * (n + w + c + e + s);
  };
  const std::string directory = in.path().string();
  CHECK_THROWS_AS((ooc::calibrate_kernel<double, 0>(directory, "mean", mean)), weft::error);
  const ooc::calibration c = ooc::calibrate(directory, 4 << 20, 0.01);
  const ooc::kernel_speed k = ooc::calibrate_kernel<double, 0>(directory, "mean", mean);
  CHECK(k.plain > 0);
  CHECK(k.chained > 0);
  for (const unsigned depth : {1u, 3u, 100u}) {
    const ooc::disk_speed s = c.speed(true, depth, 1 << 20);
    CHECK(s.read_per_byte > 0);
    CHECK(s.write_per_byte > 0);
    CHECK(s.reading(1 << 20) > s.reading(4096));
  }
  for (const ooc::disk_sample& s : c.disk) CHECK(s.seconds > 0);
  CHECK(std::ranges::any_of(c.disk, [](const auto& s) { return !s.direct; }));
  CHECK(ooc::calibrate(directory, 4 << 20, 0.01).kernels.contains("mean"));
  const auto kept = ooc::calibrated(directory);
  REQUIRE(kept.has_value());
  CHECK(kept->disk.size() == c.disk.size());
  CHECK(std::abs(kept->kernels.at("mean").chained / k.chained - 1) < 1e-4);
  for (const bool direct : {true, false})
    for (const unsigned depth : {1u, 2u, 4u, 8u})
      for (const std::size_t size : {4096u, 65536u * 4})
        for (const ooc::traffic kind : {ooc::traffic::reads, ooc::traffic::writes, ooc::traffic::mixed})
          if (std::ranges::any_of(c.disk, [=](const auto& s) { return s.direct == direct; }))
            CHECK(std::ranges::any_of(c.disk, [=](const auto& s) {
              return s.direct == direct && s.depth == depth && s.size == size && s.kind == kind;
            }));
  for (const char* const name : {"", "two words", "two\nlines"})
    CHECK_THROWS_AS((ooc::calibrate_kernel<double, 0>(directory, name, mean)), weft::error);
  CHECK(ooc::calibrated(directory).has_value());
  for (const char* const other :
       {"something else",
        "weft-calibration-1\ndisk direct reads 4096 1 .1\n"
        "disk buffered writes 4096 1 .1\ndisk buffered mixed 4096 1 .1\n",
        "weft-calibration-1\ndisk direct reads 4096 1 .1\n"
        "disk direct writes 4096 2 .1\ndisk direct mixed 4096 1 .1\n",
        "weft-calibration-1\ndisk direct reads 4096 1 0.1\n", "weft-calibration-1\nkernel k 1\n"}) {
    weft_test::spill(in / "weft-calibration", other);
    CHECK_FALSE(ooc::calibrated(directory).has_value());
  }
  CHECK_THROWS_AS(ooc::calibrate(in / "missing", 1 << 20), std::system_error);
}
