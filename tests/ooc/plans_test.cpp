// SPDX-License-Identifier: BSL-1.0
// What sweeps plan: turns and chains within the budget, the policy that is predicted to be the fastest, and
// when they have converged.
#include "fault/waiting.hpp"
#include "ooc/sweeps.hpp"
#include "support/environment.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace ooc = weft::ooc;
using weft_test::kernel_23, weft_test::value_at, weft_test::some_disk, weft_test::policies, weft_test::fill,
    weft_test::calibrate;

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
