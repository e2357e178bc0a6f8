// SPDX-License-Identifier: BSL-1.0
// Sweeps with kernels that see a rectangle: the bits of the plain loops with every layout, and what is
// refused.
#include "fault/waiting.hpp"
#include "ooc/faulty_engine.hpp"
#include "ooc/grids.hpp"
#include "ooc/sweeps.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/scratch.hpp"

#include <array>

namespace ooc = weft::ooc;
using weft_test::value_at;

namespace {

constexpr ooc::disk_speed some_disk = {1e-4, 1e-9, 1e-4, 1e-9};
constexpr std::array layouts = {ooc::layout::row_major, ooc::layout::strips, ooc::layout::blocks,
                                ooc::layout::optimized};
constexpr std::array policies = {ooc::policy::in_core,  ooc::policy::basic,   ooc::policy::three_buffers,
                                 ooc::policy::pool,     ooc::policy::overlay, ooc::policy::chained,
                                 ooc::policy::automatic};

/// Each point of the rectangle has another weight, so that a value that is too old or too new shows.
template <ooc::reach Sees>
struct weighted {
  static constexpr ooc::reach reach = Sees;
  template <class At, class C>
  double operator()(const At& at, const C& k) const {
    double sum = k[1], weight = 0.01;
    for (int r = -static_cast<int>(Sees.north); r <= static_cast<int>(Sees.south); ++r)
      for (int c = -static_cast<int>(Sees.west); c <= static_cast<int>(Sees.east); ++c) {
        sum += weight * at(r, c);
        weight = weight < 0.04 ? weight + 0.007 : 0.013;
      }
    return at(0, 0) + 0.5 * k[0] * (sum - at(0, 0));
  }
};
using grid = ooc::grid_file<double, 2>;

template <class Kernel>
std::vector<double> plain_loops(std::size_t rows, std::size_t columns, std::size_t border, std::size_t sweeps,
                                const Kernel& kernel) {
  const std::size_t stride = columns + 2 * border;
  std::vector<double> z((rows + 2 * border) * stride);
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = value_at(i / stride, i % stride, 0);
  for (std::size_t k = 0; k < sweeps; ++k)
    for (std::size_t r = border; r < rows + border; ++r)
      for (std::size_t c = border; c < columns + border; ++c) {
        const double fields[] = {value_at(r, c, 1), value_at(r, c, 2)};
        double* const here = &z[r * stride + c];
        *here = kernel(
            [&](int south, int east) { return here[south * static_cast<std::ptrdiff_t>(stride) + east]; },
            fields);
      }
  return z;
}

bool holds(grid& g, const std::vector<double>& expected) {
  std::vector<double> row(g.columns() + 2 * g.border());
  for (std::size_t r = 0; r < g.rows() + 2 * g.border(); ++r) {
    g.read_row(r, row);
    if (std::memcmp(row.data(), &expected[r * row.size()], row.size() * sizeof(double)) != 0) return false;
  }
  return true;
}

std::string refusal(const auto& f) {
  try {
    f();
  } catch (const weft::error& e) {
    return e.what();
  }
  return "";
}

/// Random grids, sweeps, borders, workers and budgets.
template <ooc::reach Sees>
void check_kernel(weft_test::random& random) {
  const weft_test::scratch in(weft_test::medium::memory);
  const weighted<Sees> kernel;
  const std::size_t first = random.below(40);
  for (std::size_t round = 0; round < 3; ++round) {
    const std::size_t rows = 1 + random.below(90), columns = 1 + random.below(300);
    const std::size_t border = std::max(Sees.rows(), Sees.columns()) + random.below(2);
    constexpr std::size_t counts[] = {1, 2, 3, 7, 16};
    const std::size_t sweeps = counts[(first + 2 * round) % 5];
    const std::vector<double> expected = plain_loops(rows, columns, border, sweeps, kernel);
    weft::runtime rt({.workers = 1 + static_cast<unsigned>((first + 3 * round) % 8)});
    for (const ooc::layout layout : layouts)
      for (const ooc::policy policy : policies) {
        grid g(in / "grid", {.rows = rows,
                             .columns = columns,
                             .layout = layout,
                             .tile_rows = Sees.rows() + random.below(20),
                             .tile_columns = 1 + random.below(60),
                             .border = border,
                             .overwrite = true});
        g.fill(rt, value_at);
        std::size_t least = 0;
        const std::string refused = refusal(
            [&] { ooc::sweep(rt, g, sweeps, kernel, {.memory = 1, .policy = policy, .disk = some_disk}); });
        if (const std::size_t at = refused.find("at least "); at != std::string::npos)
          least = std::stoul(refused.substr(at + 9));
        REQUIRE(least > 0);
        const std::size_t memory = least + random.below(2 * least);
        INFO("seed " << weft_test::seed() << ": " << rows << " x " << columns << ", border " << border << ", "
                     << sweeps << " sweeps, layout " << static_cast<int>(layout) << ", policy "
                     << ooc::name_of(policy) << ", workers " << rt.workers() << ", memory " << memory);
        const ooc::report done =
            ooc::sweep(rt, g, sweeps, kernel, {.memory = memory, .policy = policy, .disk = some_disk});
        CHECK(holds(g, expected));
        CHECK(done.sweeps == sweeps);
        CHECK(done.peak_memory <= memory);
        CHECK(done.predicted.count() > 0);
        if (policy != ooc::policy::chained && policy != ooc::policy::automatic &&
            policy != ooc::policy::overlay)
          CHECK(done.passes == sweeps);
      }
  }
}

}  // namespace

TEST_CASE("kernels that see a rectangle give the bits of the plain loops") {
  weft_test::random random(weft_test::seed());
  SECTION("three rows and three columns") { check_kernel<ooc::reach{}>(random); }
  SECTION("another thickness on each side") {
    check_kernel<ooc::reach{.north = 3, .west = 1, .east = 4, .south = 2}>(random);
  }
  SECTION("only what comes first") {
    check_kernel<ooc::reach{.north = 2, .west = 2, .east = 0, .south = 0}>(random);
  }
  SECTION("only what comes last") {
    check_kernel<ooc::reach{.north = 0, .west = 0, .east = 3, .south = 1}>(random);
  }
}

/// Requests a stop in one of its calls, and counts those that follow.
struct stopping : weighted<ooc::reach{}> {
  stopping(std::atomic<long>& calls_until_then, std::stop_source& stopped)
      : left(&calls_until_then), stop(&stopped) {}
  template <class At, class C>
  double operator()(const At& at, const C& k) const {
    if (left->fetch_sub(1) == 1) stop->request_stop();
    return weighted::operator()(at, k);
  }

  std::atomic<long>* left;  // negative after it
  std::stop_source* stop;
};

TEST_CASE("a stop ends sweeps with a rectangle within the blocks in work") {
  const weft_test::scratch in(weft_test::medium::memory);
  weft_test::calibrate(in);  // so that only passes call the kernel
  constexpr std::size_t rows = 64, columns = 300;
  constexpr long workers = 2, block = 16 * 30;  // points of a tile
  weft::runtime rt({.workers = workers});
  for (const ooc::policy policy : policies) {
    if (policy == ooc::policy::automatic) continue;  // one of the others
    INFO(ooc::name_of(policy));
    grid g(in / "grid",
           {.rows = rows, .columns = columns, .tile_rows = 16, .tile_columns = 30, .overwrite = true});
    g.fill(rt, value_at);
    const ooc::sweep_options options{.policy = policy, .chained = 1, .kernel = "k"};
    ooc::sweep(rt, g, 1, weighted<ooc::reach{}>(), options);
    std::stop_source stop;
    std::atomic<long> left{static_cast<long>(rows * columns) + 5000};  // in the second sweep from here
    ooc::sweep_options stopped = options;
    stopped.stop = stop.get_token();
    CHECK_THROWS_AS(ooc::sweep(rt, g, 1000, stopping(left, stop), stopped), weft::cancelled);
    CHECK(stop.stop_requested());
    CHECK(-left <= workers * block);
    REQUIRE(g.sweeps() == 2);
    CHECK(holds(g, plain_loops(rows, columns, 1, 2, weighted<ooc::reach{}>())));
  }
}

TEST_CASE("sweeps with a rectangle end at the one that converges") {
  const weft_test::scratch in(weft_test::medium::memory);
  const weighted<ooc::reach{}> kernel;
  constexpr std::size_t rows = 70, columns = 130;
  weft::runtime rt({.workers = 3});
  const auto before = plain_loops(rows, columns, 1, 4, kernel),
             after = plain_loops(rows, columns, 1, 5, kernel);
  double change = 0;
  for (std::size_t i = 0; i < after.size(); ++i) change = std::max(change, std::abs(after[i] - before[i]));
  for (const ooc::policy policy :
       {ooc::policy::chained, ooc::policy::overlay, ooc::policy::pool, ooc::policy::in_core}) {
    INFO(ooc::name_of(policy));
    grid g(in / "grid", {.rows = rows, .columns = columns, .overwrite = true});
    g.fill(rt, value_at);
    const ooc::report done =
        ooc::sweep(rt, g, 16, kernel, {.policy = policy, .disk = some_disk, .residual = change});
    CHECK(done.converged);
    CHECK(done.sweeps == 5);
    CHECK(done.residual == change);
    CHECK(holds(g, after));
  }
}

TEST_CASE("a pool for a rectangle reads ahead as far as the budget allows") {
  const weft_test::scratch in(weft_test::medium::memory);
  const weighted<ooc::reach{}> kernel;
  weft::runtime rt({.workers = 2});
  grid g(in / "grid", {.rows = 320, .columns = 100});  // 20 rows of tiles, of two transfers each
  g.fill(rt, value_at);
  std::atomic<int> submitted{0};
  std::atomic<bool> ahead{false}, late{false};
  g.use(weft_test::scripted({.result =
                                 [&](const ooc::transfer& t) {
                                   if (!ahead && !late)
                                     (weft_test::wait_until([&] { return submitted >= 24; }) ? ahead : late) =
                                         true;
                                   return weft_test::transfer_now(t);
                                 },
                             .takes =
                                 [&] {
                                   submitted += 1;
                                   return true;
                                 }}),
        64);
  ooc::sweep(rt, g, 1, kernel,
             {.memory = 8 << 20, .policy = ooc::policy::pool, .disk = some_disk, .kernel = {}});
  CHECK(ahead);
  CHECK(holds(g, plain_loops(320, 100, 1, 1, kernel)));
}

TEST_CASE("kernels that see four neighbours take the innermost rows of a thicker boundary") {
  const weft_test::scratch in(weft_test::medium::memory);
  constexpr std::size_t rows = 45, columns = 67, border = 3;
  weft::runtime rt({.workers = 2});
  const auto five = [](auto n, auto w, auto c, auto e, auto s, const auto& k) {
    return c + 0.5 * k[0] * (0.1 * n + 0.2 * w + 0.3 * e + 0.4 * s + k[1] - c);
  };
  const auto expected = plain_loops(rows, columns, border, 3, [&](const auto& at, const auto& k) {
    return five(at(-1, 0), at(0, -1), at(0, 0), at(0, 1), at(1, 0), k);
  });
  for (const ooc::layout layout : layouts)
    for (const ooc::policy policy :
         {ooc::policy::in_core, ooc::policy::pool, ooc::policy::overlay, ooc::policy::chained}) {
      grid g(in / "grid", {.rows = rows,
                           .columns = columns,
                           .layout = layout,
                           .tile_rows = 16,
                           .tile_columns = 20,
                           .border = border,
                           .overwrite = true});
      g.fill(rt, value_at);
      grid other(in / "other", {.rows = rows, .columns = columns, .border = border, .overwrite = true});
      ooc::convert(rt, g, other);
      CHECK(holds(other, plain_loops(rows, columns, border, 0, weighted<ooc::reach{}>{})));
      ooc::sweep(rt, g, 3, five, {.policy = policy, .disk = some_disk});
      INFO("layout " << static_cast<int>(layout) << ", policy " << ooc::name_of(policy));
      CHECK(holds(g, expected));
    }
}

TEST_CASE("what a kernel that sees a rectangle cannot have is refused") {
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 2});
  grid g(in / "grid", {.rows = 40, .columns = 40, .tile_rows = 2, .border = 3});
  g.fill(rt, value_at);
  const auto sweep = [&](const auto& kernel, ooc::policy p) {
    return refusal([&] { ooc::sweep(rt, g, 1, kernel, {.policy = p, .disk = some_disk}); });
  };
  constexpr ooc::reach wide = {.east = 4}, high = {.south = 3};
  CHECK(sweep(weighted<wide>{}, ooc::policy::chained) ==
        "weft: the kernel sees 4 rows or columns on one side; the boundary of this grid has 3");
  CHECK(sweep(weighted<high>{}, ooc::policy::pool) ==
        "weft: the kernel sees 3 rows on one side; the tiles of this grid have 2");
  CHECK(sweep(weighted<high>{}, ooc::policy::overlay) ==
        "weft: the kernel sees 3 rows on one side; the tiles of this grid have 2");
  CHECK(refusal([&] { grid(in / "other", {.rows = 4, .columns = 4, .border = 0}); }) ==
        "weft: the boundary of a grid file is at least one row and column on each side");
  grid thin(in / "thin", {.rows = 40, .columns = 40});
  CHECK(refusal([&] { ooc::convert(rt, g, thin); }) ==
        "weft: a grid of 40 x 40 points and a border of 3 is converted to one of 40 x 40 points and a border "
        "of 1");
}
