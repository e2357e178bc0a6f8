// SPDX-License-Identifier: BSL-1.0
// Sweeps over grid files: every policy and layout gives the bits of the plain loops, within the budget.
#include "fault/waiting.hpp"
#include "ooc/sweeps.hpp"
#include "support/environment.hpp"
#include "wavefront/official.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <regex>
#include <set>
#include <sstream>

namespace ooc = weft::ooc;
using weft_test::kernel_23, weft_test::value_at, weft_test::some_disk, weft_test::layouts,
    weft_test::policies, weft_test::fill, weft_test::least_memory;

// For all tests of this program.
template weft::ooc::report weft::ooc::sweep<double, 5, weft_test::kernel_23>(weft::runtime&, weft_test::grid&,
                                                                             std::size_t,
                                                                             const weft_test::kernel_23&,
                                                                             const weft::ooc::sweep_options&);

TEST_CASE("every policy and layout gives the bits of the plain loops, within its budget") {
  const weft_test::scratch in(weft_test::medium::memory);
  weft_test::random random(weft_test::seed());
  const std::size_t first = random.below(40);
  std::set<std::size_t> seen_sweeps, seen_workers;
  for (std::size_t round = 0; round < 8; ++round) {
    const std::size_t rows = 1 + random.below(150), columns = 1 + random.below(120);
    constexpr std::size_t counts[] = {1, 2, 3, 7, 16};
    const std::size_t sweeps = counts[(first + round) % 5];
    const std::vector<double> expected = weft_test::plain_loops(rows, columns, sweeps);
    weft::runtime rt({.workers = 1 + static_cast<unsigned>((first / 5 + round) % 8)});
    seen_sweeps.insert(sweeps);
    seen_workers.insert(rt.workers());
    for (const ooc::layout layout : layouts)
      for (const ooc::policy policy : policies) {
        // Chained sweeps need whole strips.
        const std::size_t tile_rows =
            policy == ooc::policy::chained ? 8 * (1 + random.below(8)) : 5 + random.below(60);
        weft_test::grid g(in / "grid", {.rows = rows,
                                        .columns = columns,
                                        .layout = layout,
                                        .tile_rows = tile_rows,
                                        .tile_columns = 1 + random.below(60),
                                        .overwrite = true,
                                        .io = {.in_flight = 1 + static_cast<unsigned>(random.below(6))}});
        fill(rt, g);
        const std::size_t least = policy == ooc::policy::automatic
                                      ? least_memory(rt, g, ooc::policy::three_buffers)
                                      : least_memory(rt, g, policy);
        const std::size_t memory = least + random.below(least);
        INFO("seed " << weft_test::seed() << ": " << rows << " x " << columns << ", " << sweeps
                     << " sweeps, layout " << static_cast<int>(layout) << ", tiles of " << tile_rows
                     << " rows, policy " << ooc::name_of(policy) << ", workers " << rt.workers()
                     << ", memory " << memory);
        ooc::report done;
        REQUIRE_NOTHROW(done = ooc::sweep(rt, g, sweeps, kernel_23{},
                                          {.memory = memory, .policy = policy, .disk = some_disk}));
        CHECK(weft_test::holds(g, expected));
        CHECK(done.sweeps == sweeps);
        CHECK(g.sweeps() == sweeps);
        CHECK(done.peak_memory <= memory);
        CHECK(done.peak_memory > 0);
        CHECK(done.predicted.count() > 0);
        if (policy != ooc::policy::in_core) {
          CHECK(done.bytes_written >= done.passes * rows * columns * 8);
          CHECK(done.bytes_read >= done.passes * rows * columns * 48);
        }
      }
  }
  CHECK(seen_sweeps == std::set<std::size_t>{1, 2, 3, 7, 16});
  CHECK(seen_workers.size() == 8);
}

TEST_CASE("both engines give the bits of the plain loops") {
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 3});
  const std::vector<double> expected = weft_test::plain_loops(100, 130, 3);
  for (const ooc::engine engine : {ooc::engine::threads, ooc::engine::io_uring}) {
    const ooc::grid_options options{.rows = 100,
                                    .columns = 130,
                                    .layout = ooc::layout::blocks,
                                    .tile_rows = 16,
                                    .tile_columns = 50,
                                    .overwrite = true,
                                    .io = {.engine = engine}};
    try {
      ooc::io_queue(options.io);
    } catch (const weft::error&) {
      CHECK(engine == ooc::engine::io_uring);  // not everywhere
      continue;
    }
    for (const ooc::policy policy : policies) {
      weft_test::grid g(in / "grid", options);
      fill(rt, g);
      INFO(ooc::name_of(policy));
      const ooc::report done = ooc::sweep(rt, g, 3, kernel_23{}, {.policy = policy, .disk = some_disk});
      CHECK(done.engine == std::string(engine == ooc::engine::threads ? "threads" : "io_uring"));
      CHECK(weft_test::holds(g, expected));
    }
  }
}

TEST_CASE("chained sweeps read and write the grid once") {
  const weft_test::scratch in;
  constexpr std::size_t rows = 333, columns = 1001, sweeps = 16;
  weft::runtime rt({.workers = 2});
  weft_test::grid g(in / "grid", {.rows = rows, .columns = columns});
  fill(rt, g);
  const ooc::report done =
      ooc::sweep(rt, g, sweeps, kernel_23{}, {.memory = 10 << 20, .policy = ooc::policy::chained});
  CHECK(done.passes == 1);
  CHECK(100 * done.bytes_read <= 105 * 48 * rows * columns);
  CHECK(100 * done.bytes_written <= 105 * 8 * rows * columns);
  if (g.direct()) CHECK(weft_test::cached_pages(g.file()) <= 16);  // of thousands: nothing came from there
  CHECK(weft_test::holds(g, weft_test::plain_loops(rows, columns, sweeps)));
  // Controls: another order, and another coefficient, give other bits.
  CHECK_FALSE(weft_test::holds(g, weft_test::plain_loops(rows, columns, sweeps, weft_test::order::jacobi)));
  const ooc::file_extent fields = g.geometry().field_extent(3, 0);
  weft_test::grid other(in / "other", {.rows = rows, .columns = columns});
  fill(rt, other);
  char byte = 0;
  const int descriptor = ::open((in / "other").c_str(), O_RDWR);
  REQUIRE(::pread(descriptor, &byte, 1, static_cast<off_t>(fields.offset + 8006)) == 1);
  byte = static_cast<char>(byte ^ 1);
  REQUIRE(::pwrite(descriptor, &byte, 1, static_cast<off_t>(fields.offset + 8006)) == 1);
  ::fsync(descriptor);
  ::close(descriptor);
  ooc::sweep(rt, other, sweeps, kernel_23{}, {.memory = 10 << 20, .policy = ooc::policy::chained});
  CHECK_FALSE(weft_test::holds(other, weft_test::plain_loops(rows, columns, sweeps)));
}

TEST_CASE("what the budget does not allow in one pass takes several, equally long ones") {
  const weft_test::scratch in(weft_test::medium::memory);
  constexpr std::size_t rows = 300, columns = 70, sweeps = 16;
  const std::vector<double> expected = weft_test::plain_loops(rows, columns, sweeps);
  weft::runtime rt({.workers = 2});
  std::vector<std::size_t> passes;
  for (const std::size_t parts : {0u, 1u, 3u, 100u}) {
    weft_test::grid g(in / "grid", {.rows = rows, .columns = columns, .overwrite = true});
    fill(rt, g);
    const std::size_t least = least_memory(rt, g, ooc::policy::chained);
    const ooc::report done =
        ooc::sweep(rt, g, sweeps, kernel_23{},
                   {.memory = least + parts * least / 4, .policy = ooc::policy::chained, .disk = some_disk});
    CHECK(weft_test::holds(g, expected));
    CHECK(done.sweeps == sweeps);
    passes.push_back(done.passes);
  }
  CHECK(passes.front() > 1);
  CHECK(passes.back() == 1);
  CHECK(std::is_sorted(passes.rbegin(), passes.rend()));
}

TEST_CASE("the published sums of Livermore kernel 23, with every policy") {
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 2});
  for (const weft_test::official_sum& o : weft_test::official_sums) {
    const lk23::grid data = weft_test::official(o.n);
    for (const ooc::policy policy : policies) {
      const bool one_pass = policy == ooc::policy::chained || policy == ooc::policy::overlay;
      if (o.sweeps > 100 && (!one_pass || weft_test::sanitized)) continue;
      weft_test::grid g(in / "grid",
                        {.rows = 5, .columns = static_cast<std::size_t>(o.n - 1), .overwrite = true});
      g.fill(rt, [&data](std::size_t r, std::size_t c, int field) {
        const std::vector<double>* const of[] = {&data.za, &data.zb, &data.zv, &data.zu, &data.zr, &data.zz};
        return (*of[field])[data.at(static_cast<long>(r), static_cast<long>(c))];
      });
      ooc::sweep(rt, g, static_cast<std::size_t>(o.sweeps), kernel_23{},
                 {.policy = policy, .disk = some_disk});
      lk23::grid result = data;
      std::vector<double> row(g.columns() + 2);
      for (std::size_t r = 0; r < 7; ++r) {
        g.read_row(r, row);
        std::copy(row.begin(), row.end(), result.za.begin() + static_cast<std::ptrdiff_t>(r * row.size()));
      }
      INFO(ooc::name_of(policy) << ", n " << o.n << ", sweeps " << o.sweeps);
      CHECK(weft_test::checksum(result, o.n) == Approx(o.sum).epsilon(2e-16));
    }
  }
}

TEST_CASE("the turns of all passes of an overlay are one table") {
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 2});
  for (const ooc::layout layout : {ooc::layout::row_major, ooc::layout::blocks}) {
    weft_test::grid g(in / "grid", {.rows = 64,
                                    .columns = 32,
                                    .layout = layout,
                                    .tile_rows = 16,
                                    .tile_columns = 32,
                                    .overwrite = true});
    fill(rt, g);
    std::stringstream table;
    ooc::sweep(rt, g, 5, kernel_23{},
               {.policy = ooc::policy::overlay, .chained = 2, .disk = some_disk, .times = &table});
    std::string line;
    REQUIRE(std::getline(table, line));
    CHECK(line.rfind("task,name,iteration,", 0) == 0);
    std::array<int, 4> iterations{};  // of each tile
    while (std::getline(table, line)) {
      std::size_t tile = iterations.size();
      int iteration = -1;
      std::sscanf(line.c_str(), "%zu,%*[^,],%d", &tile, &iteration);
      REQUIRE(tile < iterations.size());
      CHECK(iteration == iterations[tile]++);
    }
    CHECK(iterations == std::array{5, 5, 5, 5});
  }
}

TEST_CASE("long sweeps write a line about their state") {
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 2});
  weft_test::grid g(in / "grid", {.rows = 400, .columns = 400});
  fill(rt, g);
  std::ostringstream lines;
  ooc::sweep(rt, g, 30, kernel_23{},
             {.policy = ooc::policy::three_buffers,
              .disk = some_disk,
              .progress = &lines,
              .progress_every = std::chrono::milliseconds(1)});
  INFO(lines.str());
  CHECK(std::regex_search(lines.str(),
                          std::regex("weft: sweeps: [0-9]+ % done, [0-9]+ s, [0-9]+ MB/s, [0-9]+ s left\n")));
  CHECK(lines.str().find("weft: sweeps: 101") == std::string::npos);
  std::ostringstream none;
  ooc::sweep(rt, g, 1, kernel_23{}, {.disk = some_disk, .progress = &none});
  CHECK(none.str().empty());
  std::ofstream full("/dev/full");
  full.exceptions(std::ios::badbit);
  ooc::sweep(rt, g, 30, kernel_23{},
             {.policy = ooc::policy::three_buffers,
              .disk = some_disk,
              .progress = &full,
              .progress_every = std::chrono::milliseconds(1)});
  CHECK_FALSE(full.good());
}

TEST_CASE("a grid of floats without coefficients") {
  const weft_test::scratch in;
  constexpr std::size_t rows = 37, columns = 53;
  const auto mean = [](auto n, auto w, auto c, auto e, auto s, const auto&) {
    return (n + w + c + e + s) * 0.2f;
  };
  const auto start = [](std::size_t r, std::size_t c) { return static_cast<float>(value_at(r, c, 0)); };
  std::vector<float> z((rows + 2) * (columns + 2)), row(columns + 2);
  for (std::size_t r = 0; r < rows + 2; ++r)
    for (std::size_t c = 0; c < columns + 2; ++c) z[r * (columns + 2) + c] = start(r, c);
  for (int k = 0; k < 3; ++k)
    for (std::size_t r = 1; r <= rows; ++r)
      for (std::size_t c = 1; c <= columns; ++c) {
        float* const p = &z[r * (columns + 2) + c];
        *p = mean(p[-static_cast<long>(columns) - 2], p[-1], p[0], p[1], p[columns + 2], 0);
      }
  weft::runtime rt({.workers = 2});
  for (const ooc::policy policy : policies) {
    ooc::grid_file<float, 0> g(in / "grid", {.rows = rows, .columns = columns, .overwrite = true});
    g.fill(rt, [&](std::size_t r, std::size_t c, int) { return start(r, c); });
    ooc::sweep(rt, g, 3, mean, {.policy = policy, .disk = some_disk});
    bool same = true;
    for (std::size_t r = 1; r <= rows; ++r) {
      g.read_row(r, row);
      same &= std::memcmp(row.data(), &z[r * (columns + 2)], (columns + 2) * sizeof(float)) == 0;
    }
    INFO(ooc::name_of(policy));
    CHECK(same);
  }
}

TEST_CASE("a grid is converted from every layout to every other one, with its sweeps") {
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 2});
  constexpr std::size_t rows = 75, columns = 61;
  const std::vector<double> expected = weft_test::plain_loops(rows, columns, 2);
  const ooc::sweep_options options{.policy = ooc::policy::basic, .disk = some_disk};
  for (const ooc::layout layout : layouts) {
    weft_test::grid from(in / "from", {.rows = rows,
                                       .columns = columns,
                                       .layout = layout,
                                       .tile_rows = 20,
                                       .tile_columns = 9,
                                       .overwrite = true});
    fill(rt, from);
    ooc::sweep(rt, from, 1, kernel_23{}, options);
    for (const ooc::layout wanted : layouts) {
      INFO(static_cast<int>(layout) << " to " << static_cast<int>(wanted));
      weft_test::grid to(in / "to", {.rows = rows,
                                     .columns = columns,
                                     .layout = wanted,
                                     .tile_rows = 32,
                                     .tile_columns = 25,
                                     .overwrite = true});
      ooc::convert(rt, from, to);
      CHECK(to.sweeps() == 1);
      // The coefficients have come, too: another sweep needs them.
      ooc::sweep(rt, to, 1, kernel_23{}, options);
      CHECK(weft_test::holds(to, expected));
    }
  }
  weft_test::grid from(in / "from"), other(in / "other", {.rows = rows, .columns = columns + 1});
  CHECK_THROWS_AS(ooc::convert(rt, from, other), weft::error);
}

TEST_CASE("budgets that are too small are refused with the least one that suffices") {
  const weft_test::scratch in;
  weft::runtime rt({.workers = 2});
  weft_test::grid g(in / "grid", {.rows = 200, .columns = 100});
  fill(rt, g);
  for (const ooc::policy policy : {ooc::policy::basic, ooc::policy::three_buffers, ooc::policy::pool,
                                   ooc::policy::overlay, ooc::policy::chained}) {
    INFO(ooc::name_of(policy));
    const std::size_t least = least_memory(rt, g, policy);
    REQUIRE(least > 0);
    CHECK_THROWS_AS(
        ooc::sweep(rt, g, 1, kernel_23{}, {.memory = least - 1, .policy = policy, .disk = some_disk}),
        weft::error);
    CHECK_NOTHROW(ooc::sweep(rt, g, 1, kernel_23{}, {.memory = least, .policy = policy, .disk = some_disk}));
  }
  CHECK(g.sweeps() == 5);
}
