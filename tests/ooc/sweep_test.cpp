// SPDX-License-Identifier: BSL-1.0
// Sweeps over grid files: every policy and layout gives the bits of the plain loops, within the budget; what
// is refused, what fails, what is cancelled or killed.
#include "fault/waiting.hpp"
#include "ooc/faulty_engine.hpp"
#include "ooc/grids.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/scratch.hpp"
#include "wavefront/official.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <fstream>
#include <functional>
#include <memory>
#include <regex>
#include <set>
#include <sstream>

namespace ooc = weft::ooc;
using weft_test::kernel_23;
using weft_test::value_at;

namespace {

constexpr ooc::disk_speed some_disk = {1e-4, 1e-9, 1e-4, 1e-9};
constexpr std::array layouts = {ooc::layout::row_major, ooc::layout::strips, ooc::layout::blocks,
                                ooc::layout::optimized};
constexpr std::array policies = {ooc::policy::in_core,  ooc::policy::basic,   ooc::policy::three_buffers,
                                 ooc::policy::pool,     ooc::policy::overlay, ooc::policy::chained,
                                 ooc::policy::automatic};

/// The calibration file, so that nothing is measured and kernels are called by passes only. `buffered`:
/// seconds of a buffered transfer.
void calibrate(const weft_test::scratch& in, double buffered = 1e-4) {
  std::ofstream to(in / "weft-calibration");
  to << "weft-calibration-1\n";
  for (const char* kind : {"reads", "writes", "mixed"})
    to << "disk direct " << kind << " 4096 1 1e-4\ndisk buffered " << kind << " 4096 1 " << buffered << '\n';
  to << "kernel k 1e-9 1e-10\n";
}

/// Executes transfers by threads, and calls a function before each one.
class watching_engine final : public ooc::io_engine {
 public:
  explicit watching_engine(std::function<void()> before) : before_(std::move(before)) {}
  const char* name() const noexcept override { return "watching"; }
  bool start(ooc::transfer& t) noexcept override {
    before_();
    return threads_.start(t);
  }

 private:
  std::function<void()> before_;
  ooc::detail::thread_engine threads_{4};
};

/// The least budget that a policy accepts, from its own message.
std::size_t least_memory(weft::runtime& rt, weft_test::grid& g, ooc::policy p) {
  try {
    ooc::sweep(rt, g, 1, kernel_23{}, {.memory = 1, .policy = p, .disk = some_disk});
  } catch (const weft::error& e) {
    const std::string what = e.what();
    const std::size_t at = what.find("at least ");
    if (at != std::string::npos) return std::stoul(what.substr(at + 9));
  }
  return 0;
}

void fill(weft::runtime& rt, weft_test::grid& g) {
  g.fill(rt, [](std::size_t r, std::size_t c, int field) { return value_at(r, c, field); });
}

}  // namespace

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

TEST_CASE("transfers that are short, late, in another order or refused change nothing") {
  const weft_test::scratch in(weft_test::medium::memory);
  constexpr std::size_t rows = 90, columns = 700, sweeps = 3;
  const std::vector<double> expected = weft_test::plain_loops(rows, columns, sweeps);
  weft::runtime rt({.workers = 3});
  for (const ooc::layout layout : {ooc::layout::strips, ooc::layout::optimized})
    for (const ooc::policy policy : {ooc::policy::basic, ooc::policy::three_buffers, ooc::policy::pool,
                                     ooc::policy::overlay, ooc::policy::chained}) {
      weft_test::fault_counters faults;
      weft_test::grid g(in / "grid", {.rows = rows,
                                      .columns = columns,
                                      .layout = layout,
                                      .tile_rows = 16,
                                      .tile_columns = 150,
                                      .overwrite = true});
      fill(rt, g);
      g.use(weft_test::faulty_engine(weft_test::seed(), faults), 6);
      ooc::sweep(rt, g, sweeps, kernel_23{}, {.policy = policy, .disk = some_disk});
      INFO("seed " << weft_test::seed() << ", layout " << static_cast<int>(layout) << ", policy "
                   << ooc::name_of(policy));
      CHECK(weft_test::holds(g, expected));
      CHECK(faults.shortened + faults.interrupted > 0);
      CHECK(faults.refused > 0);
      CHECK(faults.delayed > 0);
      if (policy != ooc::policy::basic) CHECK(faults.reordered > 0);
    }
}

TEST_CASE("after a failed transfer the file holds the last finished pass") {
  const weft_test::scratch in(weft_test::medium::memory);
  constexpr std::size_t rows = 90, columns = 200;
  struct kind {
    ooc::policy policy;
    std::size_t chained;
  };
  for (const auto& [policy, chained] :
       {kind{ooc::policy::basic, 1}, kind{ooc::policy::three_buffers, 1}, kind{ooc::policy::pool, 1},
        kind{ooc::policy::overlay, 1}, kind{ooc::policy::overlay, 0}, kind{ooc::policy::chained, 1},
        kind{ooc::policy::chained, 0}})
    for (const bool writing : {false, true}) {
      INFO(ooc::name_of(policy) << ", " << chained << " chained" << (writing ? ", writing" : ", reading"));
      weft::runtime rt({.workers = 2});
      weft_test::fault_counters faults;
      std::atomic<int> left{1 << 30};
      {
        weft_test::grid g(in / "grid", {.rows = rows, .columns = columns, .overwrite = true});
        fill(rt, g);
        g.use(weft_test::faulty_engine(
                  3, faults,
                  [&](const ooc::transfer& t) { return t.write == writing && --left < 0 ? EIO : 0; }),
              4);
        const ooc::sweep_options options{.policy = policy, .chained = chained, .disk = some_disk};
        ooc::sweep(rt, g, 2, kernel_23{}, options);
        left = 3;
        try {
          ooc::sweep(rt, g, 2, kernel_23{}, options);
          FAIL("no transfer failed");
        } catch (const std::system_error& e) {
          CHECK(e.code().value() == EIO);
          CHECK(std::string(e.what()).find("' at offset ") != std::string::npos);
        }
        CHECK(g.sweeps() == 2);
      }
      CHECK(faults.failed > 0);
      weft_test::grid again(in / "grid");
      CHECK(again.sweeps() == 2);
      CHECK(weft_test::holds(again, weft_test::plain_loops(rows, columns, 2)));
      ooc::sweep(rt, again, 1, kernel_23{}, {.disk = some_disk});
      CHECK(weft_test::holds(again, weft_test::plain_loops(rows, columns, 3)));
    }
}

TEST_CASE("a mapped file that ends too early is a system error with path and offset") {
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 1});
  for (const ooc::layout layout : layouts)
    for (const bool values : {true, false}) {
      INFO("layout " << static_cast<int>(layout) << (values ? ", values" : ", coefficients"));
      weft_test::grid g(in / "grid", {.rows = 60,
                                      .columns = 700,
                                      .layout = layout,
                                      .tile_rows = 16,
                                      .tile_columns = 100,
                                      .overwrite = true});
      fill(rt, g);
      const ooc::grid_geometry& at = g.geometry();
      const std::uint64_t end = values ? at.values(at.tiles() - 1, 0).offset
                                       : at.field_extent(at.tiles() - 1, at.field_extents() - 1).offset;
      g.file().resize(end);
      try {
        ooc::sweep(rt, g, 1, kernel_23{}, {.policy = ooc::policy::in_core, .disk = some_disk});
        FAIL("the file was too short");
      } catch (const std::system_error& e) {
        CHECK(e.code().value() == ENODATA);
        const std::string what = e.what();
        const std::size_t first = values ? at.field_extent(0, 0).offset : end;
        CHECK(what.find('\'' + (in / "grid") + "' at offset " + std::to_string(first)) != std::string::npos);
      }
      CHECK(g.sweeps() == 0);
    }
}

TEST_CASE("who is killed leaves the values of the last finished pass") {
  const weft_test::scratch in(weft_test::medium::memory);
  calibrate(in);
  constexpr std::size_t rows = 120, columns = 90, sweeps = 12;
  std::vector<std::vector<double>> expected;
  for (std::size_t k = 0; k <= sweeps; ++k) expected.push_back(weft_test::plain_loops(rows, columns, k));
  struct kind {
    ooc::policy policy;
    std::size_t chained;
    std::uint64_t transfers;  // of all sweeps
    long microseconds;
  };
  kind kinds[] = {{ooc::policy::pool, 1, 0, 0},
                  {ooc::policy::chained, 2, 0, 0},
                  {ooc::policy::overlay, 1, 0, 0},
                  {ooc::policy::basic, 1, 0, 0},
                  {ooc::policy::three_buffers, 1, 0, 0}};
  const auto options = [](const kind& k) {
    return ooc::sweep_options{.policy = k.policy, .chained = k.chained, .kernel = "k"};
  };
  const auto create = [&] {
    weft::runtime rt({.workers = 1});
    weft_test::grid g(in / "grid", {.rows = rows, .columns = columns, .overwrite = true});
    fill(rt, g);
  };
  for (kind& k : kinds) {
    create();
    weft::runtime rt({.workers = 2});
    weft_test::grid g(in / "grid");
    const ooc::report done = ooc::sweep(rt, g, sweeps, kernel_23{}, options(k));
    k.transfers = g.queue().statistics().transfers;
    k.microseconds = static_cast<long>(1e6 * done.elapsed.count()) + 1;
  }
  weft_test::random random(weft_test::seed());
  std::size_t in_the_middle = 0;
  for (std::size_t round = 0; round < 50; ++round) {
    create();
    const kind& k = kinds[round % std::size(kinds)];
    // Every other time when a transfer starts, else at any moment.
    const std::uint64_t at = round % 2 == 0 ? 1 + random.below(k.transfers) : 0;
    const auto after = static_cast<useconds_t>(random.below(2 * static_cast<std::uint64_t>(k.microseconds)));
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      weft::runtime rt({.workers = 2});
      weft_test::grid g(in / "grid");
      std::atomic<std::uint64_t> started{0};
      g.use(std::make_unique<watching_engine>([&] {
              if (++started == at) ::kill(::getpid(), SIGKILL);
            }),
            8);
      ooc::sweep(rt, g, sweeps, kernel_23{}, options(k));
      ::_exit(0);
    }
    if (at == 0) {
      ::usleep(after);
      ::kill(child, SIGKILL);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    weft::runtime rt({.workers = 2});
    weft_test::grid g(in / "grid");
    INFO("seed " << weft_test::seed() << ", round " << round << ", policy " << ooc::name_of(k.policy)
                 << ", sweeps " << g.sweeps());
    if (at != 0) CHECK(WIFSIGNALED(status));
    REQUIRE(g.sweeps() <= sweeps);
    CHECK(g.sweeps() % k.chained == 0);
    if (g.sweeps() > 0 && g.sweeps() < sweeps) in_the_middle += 1;
    CHECK(weft_test::holds(g, expected[g.sweeps()]));
    ooc::sweep(rt, g, sweeps - g.sweeps(), kernel_23{}, options(k));
    CHECK(weft_test::holds(g, expected[sweeps]));
  }
  CHECK(in_the_middle >= 10);
}

TEST_CASE("a stop ends the sweeps within the blocks in work, after the pass that is valid") {
  const weft_test::scratch in(weft_test::medium::memory);
  calibrate(in);
  constexpr long workers = 2, block = 16 * 300;  // calls for a tile
  weft::runtime rt({.workers = workers});
  for (const ooc::policy policy : policies) {
    if (policy == ooc::policy::automatic) continue;  // one of the others
    weft_test::grid g(in / "grid", {.rows = 64, .columns = 300, .overwrite = true});
    fill(rt, g);
    INFO(ooc::name_of(policy));
    ooc::sweep_options options{.policy = policy, .chained = 2, .kernel = "k"};
    weft_test::kernel_23::count();
    const std::size_t one =
        ooc::sweep(rt, g, 2, kernel_23{}, options).passes == 1 ? 2 : 1;  // sweeps of a pass
    const long of_pass = weft_test::kernel_23::counted() * static_cast<long>(one) / 2;
    REQUIRE(of_pass > block / 8);
    // In the second pass from here.
    std::stop_source stop;
    options.stop = stop.get_token();
    const long at = of_pass * 3 / 2;
    weft_test::kernel_23::stop_after(at, stop);
    CHECK_THROWS_AS(ooc::sweep(rt, g, 1000, kernel_23{}, options), weft::cancelled);
    const long calls = weft_test::kernel_23::counted();
    CHECK(g.sweeps() == 2 + one);
    CHECK(calls >= at);
    CHECK(calls - at <= (policy == ooc::policy::overlay ? workers : 1) * block);
    CHECK(weft_test::holds(g, weft_test::plain_loops(64, 300, g.sweeps())));
  }
}

TEST_CASE("transfers that wait when the sweeps end early are not carried out") {
  const weft_test::scratch in(weft_test::medium::memory);
  calibrate(in);
  weft::runtime rt({.workers = 2});
  for (const ooc::policy policy : {ooc::policy::basic, ooc::policy::three_buffers, ooc::policy::pool,
                                   ooc::policy::overlay, ooc::policy::chained})
    for (const bool stopped : {true, false}) {
      INFO(ooc::name_of(policy) << (stopped ? ", stopped" : ", failed"));
      weft_test::grid g(in / "grid",
                        {.rows = 160, .columns = 60, .layout = ooc::layout::row_major, .overwrite = true});
      fill(rt, g);
      std::stop_source stop;
      std::atomic<int> begun{0};
      constexpr int last = 9;
      g.use(weft_test::scripted({.result = [&](const ooc::transfer& t) -> long {
              if (++begun == last) {
                std::this_thread::sleep_for(std::chrono::milliseconds(20));  // others come to wait
                if (!stopped) return -EIO;
                stop.request_stop();
              }
              return weft_test::transfer_now(t);
            }}),
            1);
      const ooc::sweep_options options{
          .policy = policy, .chained = 1, .kernel = "k", .stop = stop.get_token()};
      const auto sweep = [&] { ooc::sweep(rt, g, 3, kernel_23{}, options); };
      if (stopped)
        CHECK_THROWS_AS(sweep(), weft::cancelled);
      else
        CHECK_THROWS_AS(sweep(), std::system_error);
      CHECK(g.queue().statistics().dropped > 0);
      // What stands before a failed one is carried out, too.
      CHECK(begun <= last + (stopped ? 0 : 12));
      CHECK(g.sweeps() == 0);
      ooc::sweep(rt, g, 2, kernel_23{}, {.policy = policy, .kernel = "k"});
      CHECK(weft_test::holds(g, weft_test::plain_loops(160, 60, 2)));
    }
}

TEST_CASE("a stop that comes when a pass is complete loses nothing") {
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 2});
  // The turns are written when all of them have ended.
  struct stopping : std::stringbuf {
    std::stop_source stop;
    std::streamsize xsputn(const char* text, std::streamsize length) override {
      stop.request_stop();
      return std::stringbuf::xsputn(text, length);
    }
  };
  for (const std::size_t sweeps : {std::size_t{4}, std::size_t{10}}) {
    weft_test::grid g(in / "grid", {.rows = 64, .columns = 50, .overwrite = true});
    fill(rt, g);
    stopping buffer;
    std::ostream times(&buffer);
    const auto sweep = [&] {
      return ooc::sweep(rt, g, sweeps, kernel_23{},
                        {.policy = ooc::policy::overlay,
                         .chained = 4,
                         .disk = some_disk,
                         .times = &times,
                         .stop = buffer.stop.get_token()});
    };
    if (sweeps == 4)
      CHECK(sweep().sweeps == 4);
    else
      CHECK_THROWS_AS(sweep(), weft::cancelled);
    CHECK(buffer.stop.stop_requested());
    CHECK(g.sweeps() == 4);
    weft_test::grid again(in / "grid");
    CHECK(weft_test::holds(again, weft_test::plain_loops(64, 50, 4)));
  }
}

TEST_CASE("an overlay of several sweeps that does not end leaves the values from before it") {
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 2});
  weft_test::fault_counters faults;
  std::atomic<int> left{1 << 30};
  weft_test::grid g(
      in / "grid",
      {.rows = 64, .columns = 64, .layout = ooc::layout::blocks, .tile_rows = 16, .tile_columns = 16});
  fill(rt, g);
  g.use(weft_test::faulty_engine(5, faults,
                                 [&](const ooc::transfer& t) { return t.write && --left < 0 ? ENOSPC : 0; }),
        4);
  const ooc::sweep_options options{.policy = ooc::policy::overlay, .disk = some_disk};
  ooc::sweep(rt, g, 3, kernel_23{}, options);
  const std::vector<double> three = weft_test::plain_loops(64, 64, 3);
  CHECK(weft_test::holds(g, three));
  left = 40;  // of 64 writes: in the third sweep some tiles have been written, others have not
  CHECK_THROWS_AS(ooc::sweep(rt, g, 4, kernel_23{}, options), std::system_error);
  CHECK(g.sweeps() == 3);
  CHECK(weft_test::holds(g, three));
  {
    weft_test::grid again(in / "grid");
    CHECK(again.sweeps() == 3);
    CHECK(weft_test::holds(again, three));
  }
  left = 1 << 30;
  ooc::sweep(rt, g, 4, kernel_23{}, options);
  CHECK(weft_test::holds(g, weft_test::plain_loops(64, 64, 7)));
}

TEST_CASE("as many turns of an overlay as there can be at once are foreseen, and no more") {
  using pass = ooc::detail::overlay_pass<double, 5, kernel_23>;
  weft_test::random random(weft_test::seed());
  const auto geometry = [](std::size_t down, std::size_t across) {
    return ooc::grid_geometry{down, across, 5, 8, ooc::layout::blocks, 1, 1};
  };
  CHECK(pass::wave(geometry(8, 8), 1) == 8);
  CHECK(pass::wave(geometry(8, 8), 20) == 32);
  CHECK(pass::wave(geometry(3, 3), 1) == 3);
  CHECK(pass::wave(geometry(10, 1), 1) == 1);
  CHECK(pass::wave(geometry(10, 1), 3) == 3);
  CHECK(pass::wave(geometry(10, 1), SIZE_MAX) == 5);
  std::size_t reached = 0;
  for (int round = 0; round < 200; ++round) {
    const std::size_t down = 1 + random.below(8), across = 1 + random.below(8), sweeps = 1 + random.below(9);
    const std::size_t most = pass::wave(geometry(down, across), sweeps);
    // Turns end in any order, or, every other time, all that can, at once.
    std::vector<std::size_t> turns(down * across);
    for (;;) {
      std::vector<std::size_t> ready;
      for (std::size_t i = 0; i < turns.size(); ++i) {
        const std::size_t k = turns[i];
        const bool north = i < across || turns[i - across] > k, west = i % across == 0 || turns[i - 1] > k;
        const bool south = i + across >= turns.size() || turns[i + across] >= k;
        const bool east = (i + 1) % across == 0 || turns[i + 1] >= k;
        if (k < sweeps && north && west && south && east) ready.push_back(i);
      }
      if (ready.empty()) break;
      REQUIRE(ready.size() <= most);
      if (ready.size() == most) reached += 1;
      if (round % 2 == 0)
        for (const std::size_t i : ready) turns[i] += 1;
      else
        turns[ready[random.below(ready.size())]] += 1;
    }
    REQUIRE(std::all_of(turns.begin(), turns.end(), [&](std::size_t k) { return k == sweeps; }));
  }
  CHECK(reached > 0);
}

TEST_CASE("an overlay of several sweeps over whole rows computes several tiles at once") {
  const weft_test::scratch in(weft_test::medium::memory);
  calibrate(in);
  weft::runtime rt({.workers = 2});
  weft_test::grid g(in / "grid", {.rows = 12 * 16, .columns = 40});
  fill(rt, g);
  // When the first two tiles have been computed once, the third one and the first one again may be. Whichever
  // begins waits for the other.
  std::atomic<long> calls{0};
  std::atomic<int> waiting{0};
  std::atomic<bool> together{false}, alone{false};
  const auto kernel = [&](auto n, auto w, auto c, auto e, auto s, const auto& k) {
    if (calls.fetch_add(1) >= 2 * 16 * 40 && !together && !alone) {
      if (waiting.fetch_add(1) != 0)
        together = true;
      else if (!weft_test::wait_until([&] { return together.load(); }))
        alone = true;
    }
    return kernel_23{}(n, w, c, e, s, k);
  };
  ooc::sweep(rt, g, 4, kernel, {.policy = ooc::policy::overlay, .kernel = "k"});
  CHECK(together);
  CHECK(weft_test::holds(g, weft_test::plain_loops(12 * 16, 40, 4)));
}

TEST_CASE("a chain has as many sweeps as the budget allows, whatever number is wanted") {
  using window = ooc::detail::chained_pass<double, 5, kernel_23>::window;
  weft_test::random random(weft_test::seed());
  for (int round = 0; round < 100; ++round) {
    const ooc::grid_geometry g{
        1 + random.below(3000), 1 + random.below(300), 5, 8, ooc::layout::strips, 16, 300};
    const auto bytes = [&](std::size_t k) {
      return ooc::detail::plan_chained<window>(g, 4096, 2, k, 1).bytes;
    };
    const std::size_t budget = bytes(1 + random.below(200));
    const auto plan = [&](std::size_t sweeps, std::size_t most) {
      return ooc::detail::plan_chained_within<window>(g, 4096, 2, ooc::policy::chained, sweeps, most, budget);
    };
    std::size_t fits = 1;
    while (bytes(fits + 1) <= budget) ++fits;
    INFO("seed " << weft_test::seed() << ", round " << round << ", fits " << fits);
    for (const std::size_t sweeps :
         {fits, fits + 1, 3 * fits + 1, std::size_t{1'000'000'000}, SIZE_MAX - 1, SIZE_MAX}) {
      const ooc::detail::chained_plan p = plan(sweeps, 0);
      CHECK(p.bytes <= budget);
      // As few passes as possible, equally long ones.
      CHECK(p.sweeps <= fits);
      CHECK((sweeps - 1) / p.sweeps == (sweeps - 1) / fits);
    }
    CHECK(plan(SIZE_MAX, 1).sweeps == 1);
    CHECK(plan(1000, SIZE_MAX).sweeps == plan(1000, 0).sweeps);
  }
}

TEST_CASE("sweeps until they converge compute little more than what is needed, whatever their bound") {
  const weft_test::scratch in(weft_test::medium::memory);
  calibrate(in);
  constexpr std::size_t rows = 40, columns = 33;
  weft::runtime rt({.workers = 2});
  for (const std::size_t needed : {std::size_t{1}, std::size_t{20}, std::size_t{45}}) {
    const std::vector<double> before = weft_test::plain_loops(rows, columns, needed - 1);
    const std::vector<double> expected = weft_test::plain_loops(rows, columns, needed);
    double residual = 0;
    for (std::size_t i = 0; i < before.size(); ++i)
      residual = std::max(residual, std::abs(expected[i] - before[i]));
    for (const ooc::policy policy :
         {ooc::policy::chained, ooc::policy::overlay, ooc::policy::pool, ooc::policy::automatic})
      for (const std::size_t most : {std::size_t{10'000}, std::size_t{SIZE_MAX}}) {
        INFO(ooc::name_of(policy) << ", " << needed << " of " << most);
        weft_test::grid g(in / "grid", {.rows = rows, .columns = columns, .overwrite = true});
        fill(rt, g);
        ooc::sweep_options options{.policy = policy, .chained = 1, .kernel = "k"};
        weft_test::kernel_23::count();
        ooc::sweep(rt, g, 1, kernel_23{}, options);
        const long of_sweep = weft_test::kernel_23::counted();
        fill(rt, g);
        options.chained = 0;
        options.residual = residual;
        weft_test::kernel_23::count();
        const ooc::report done = ooc::sweep(rt, g, most, kernel_23{}, options);
        const long calls = weft_test::kernel_23::counted();
        CHECK(done.converged);
        CHECK(done.sweeps == needed);
        CHECK(weft_test::holds(g, expected));
        CHECK(calls >= of_sweep * static_cast<long>(needed) / 2);
        CHECK(calls <= of_sweep * static_cast<long>(2 * needed + 8));
      }
  }
}

TEST_CASE("floats stop at the same sweep with every policy") {
  const weft_test::scratch in(weft_test::medium::memory);
  constexpr std::size_t rows = 21, columns = 30, stride = columns + 2;
  const auto mean = [](auto n, auto w, auto c, auto e, auto s, const auto&) {
    return (n + w + c + e + s) * 0.2f;
  };
  // Changes are as large as values, so that their differences are rounded.
  const auto start = [](std::size_t r, std::size_t c) {
    return static_cast<float>(value_at(r, c, 0)) * ((r + c) % 2 ? 1000.1f : -3.3f);
  };
  std::vector<float> z((rows + 2) * stride);
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = start(i / stride, i % stride);
  std::vector<double> largest;  // change of each sweep
  int rounded = 0;
  for (int k = 0; k < 12; ++k) {
    float change = 0;
    double exact = 0;
    for (std::size_t r = 1; r <= rows; ++r)
      for (std::size_t c = 1; c <= columns; ++c) {
        float* const p = &z[r * stride + c];
        const float fresh = mean(p[-static_cast<long>(stride)], p[-1], p[0], p[1], p[stride], 0);
        change = std::max(change, std::abs(fresh - *p));
        exact = std::max(exact, std::abs(double{fresh} - double{*p}));
        *p = fresh;
      }
    largest.push_back(change);
    if (exact != double{change}) rounded += 1;
  }
  CHECK(rounded > 0);
  weft::runtime rt({.workers = 2});
  for (const double residual : largest) {
    std::size_t expected = 1;
    while (largest[expected - 1] > residual) ++expected;
    for (const ooc::policy policy : policies) {
      ooc::grid_file<float, 0> g(in / "grid", {.rows = rows, .columns = columns, .overwrite = true});
      g.fill(rt, [&](std::size_t r, std::size_t c, int) { return start(r, c); });
      const ooc::report done =
          ooc::sweep(rt, g, 12, mean, {.policy = policy, .disk = some_disk, .residual = residual});
      INFO(ooc::name_of(policy) << ", sweep " << expected);
      CHECK(done.sweeps == expected);
      CHECK(done.residual == largest[expected - 1]);
    }
  }
}

TEST_CASE("the automatic policy is the one that the model predicts to be the fastest") {
  const weft_test::scratch in(weft_test::medium::memory);
  calibrate(in);
  weft::runtime rt({.workers = 2});
  std::set<ooc::policy> chosen;
  for (const std::size_t tile_rows : {16u, 17u})  // the latter are not whole strips
    for (const double per_byte : {1e-12, 1e-9})
      for (const std::size_t sweeps : {std::size_t{1}, std::size_t{5}})
        for (const std::size_t memory : {std::size_t{1} << 18, std::size_t{1} << 20, std::size_t{1} << 24}) {
          const auto sweep = [&](ooc::policy policy) {
            weft_test::grid g(in / "grid", {.rows = 100,
                                            .columns = 100,
                                            .layout = ooc::layout::optimized,
                                            .tile_rows = tile_rows,
                                            .tile_columns = 25,
                                            .overwrite = true});
            fill(rt, g);
            const ooc::disk_speed disk = {1e-7, per_byte, 1e-7, per_byte};
            return ooc::sweep(rt, g, sweeps, kernel_23{},
                              {.memory = memory, .policy = policy, .disk = disk, .kernel = "k"});
          };
          const ooc::report done = sweep(ooc::policy::automatic);
          INFO(tile_rows << ' ' << per_byte << ' ' << sweeps << ' ' << memory << ' '
                         << ooc::name_of(done.policy));
          chosen.insert(done.policy);
          for (const ooc::policy policy : {ooc::policy::basic, ooc::policy::three_buffers, ooc::policy::pool,
                                           ooc::policy::overlay, ooc::policy::chained}) {
            std::optional<ooc::report> other;
            try {
              other = sweep(policy);
            } catch (const weft::error&) {  // not within this budget
            }
            INFO(ooc::name_of(policy));
            if (other) CHECK(done.predicted <= other->predicted);
          }
        }
  CHECK(chosen.contains(ooc::policy::chained));
  CHECK(chosen.size() >= 2);
}

TEST_CASE("what goes through the page cache is predicted from buffered transfers") {
  const weft_test::scratch in;
  calibrate(in, 1.0);  // a second for each
  weft::runtime rt({.workers = 2});
  weft_test::grid g(in / "grid", {.rows = 64, .columns = 50});
  fill(rt, g);
  const auto predicted = [&](ooc::policy policy) {
    return ooc::sweep(rt, g, 1, kernel_23{}, {.policy = policy, .kernel = "k"}).predicted.count();
  };
  CHECK(predicted(ooc::policy::in_core) > 1);
  if (g.direct()) CHECK(predicted(ooc::policy::basic) < 0.1);
}

TEST_CASE("transfers are predicted from measured ones of their size") {
  const weft_test::scratch in(weft_test::medium::memory);
  {
    std::ofstream to(in / "weft-calibration");
    to << "weft-calibration-1\n";
    for (const char* kind : {"reads", "writes", "mixed"})
      to << "disk direct " << kind << " 4096 1 1e-4\ndisk direct " << kind << " 65536 1 1e-4\ndisk direct "
         << kind << " 327680 1 1e-4\ndisk direct " << kind << " 4194304 1 1e-1\n";
    to << "kernel k 1e-12 1e-12\n";
  }
  weft::runtime rt({.workers = 2});
  weft_test::grid g(in / "grid", {.rows = 160, .columns = 512});  // 10 tiles of 64 KiB and five times that
  fill(rt, g);
  for (const ooc::policy policy :
       {ooc::policy::basic, ooc::policy::three_buffers, ooc::policy::pool, ooc::policy::chained}) {
    INFO(ooc::name_of(policy));
    const double predicted =
        ooc::sweep(rt, g, 1, kernel_23{}, {.policy = policy, .kernel = "k"}).predicted.count();
    CHECK(predicted > 30e-4);
    CHECK(predicted < 80e-4);  // by the line through the ends: 60 ms for each five fields
  }
}

TEST_CASE("kernels are measured within the budget") {
  constexpr std::size_t least = std::size_t{128} << 10, all = std::size_t{64} << 20;
  std::size_t before = 0;
  for (std::size_t memory = least; memory <= all; memory *= 2) {
    const auto on = ooc::detail::measured_within<double, 5, kernel_23>(memory);
    CHECK(on.bytes <= memory);
    CHECK(on.rows * on.columns >= before);
    before = on.rows * on.columns;
  }
  CHECK(before == 64 * 512);
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 1});
  weft_test::grid g(in / "grid", {.rows = 16, .columns = 16});
  fill(rt, g);
  const ooc::report done =
      ooc::sweep(rt, g, 1, kernel_23{}, {.memory = all, .policy = ooc::policy::basic, .disk = some_disk});
  CHECK(done.peak_memory >= ooc::detail::measured_within<double, 5, kernel_23>(all).bytes);
}

TEST_CASE("sweeps end with the first one that changes no value by more than the residual") {
  const weft_test::scratch in(weft_test::medium::memory);
  constexpr std::size_t rows = 40, columns = 33, most = 20;
  std::vector<double> largest;  // change of each sweep, by plain loops
  for (std::size_t k = 0; k < most; ++k) {
    const std::vector<double> before = weft_test::plain_loops(rows, columns, k);
    const std::vector<double> after = weft_test::plain_loops(rows, columns, k + 1);
    double change = 0;
    for (std::size_t i = 0; i < after.size(); ++i) change = std::max(change, std::abs(after[i] - before[i]));
    largest.push_back(change);
  }
  weft::runtime rt({.workers = 3});
  const auto start = [&](weft_test::grid& g) { fill(rt, g); };
  for (const ooc::policy policy : policies)
    for (const std::size_t chained : {std::size_t{0}, std::size_t{3}})
      for (const std::size_t wanted : {std::size_t{1}, std::size_t{6}, std::size_t{11}}) {
        weft_test::grid g(in / "grid", {.rows = rows, .columns = columns, .overwrite = true});
        start(g);
        const double residual = largest[wanted - 1];
        std::size_t expected = 1;  // changes need not shrink from each sweep to the next
        while (largest[expected - 1] > residual) ++expected;
        const ooc::report done =
            ooc::sweep(rt, g, most, kernel_23{},
                       {.policy = policy, .chained = chained, .disk = some_disk, .residual = residual});
        INFO(ooc::name_of(policy) << ", " << chained << " chained, after sweep " << wanted);
        CHECK(done.converged);
        CHECK(done.sweeps == expected);
        CHECK(done.residual == largest[expected - 1]);
        CHECK(g.sweeps() == expected);
        CHECK(weft_test::holds(g, weft_test::plain_loops(rows, columns, expected)));
      }
  weft_test::grid g(in / "grid", {.rows = rows, .columns = columns, .overwrite = true});
  start(g);
  const ooc::report all = ooc::sweep(rt, g, 3, kernel_23{}, {.disk = some_disk, .residual = 0.0});
  CHECK_FALSE(all.converged);
  CHECK(all.sweeps == 3);
  CHECK(all.residual == largest[2]);
  // What is not a number has not converged.
  g.fill(rt, [](std::size_t r, std::size_t c, int) { return r == 7 && c == 9 ? 0.0 / 0.0 : 0.0; });
  for (const ooc::policy policy : {ooc::policy::pool, ooc::policy::chained})
    CHECK_FALSE(
        ooc::sweep(rt, g, 2, kernel_23{}, {.policy = policy, .disk = some_disk, .residual = 1e9}).converged);
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
