// SPDX-License-Identifier: BSL-1.0
// Livermore kernel 23: the sums of the official data, and all forms against the plain loops, byte for byte.
#include "flow/runtimes.hpp"
#include "lk23/forms.hpp"
#include "support/environment.hpp"
#include "support/random.hpp"
#include "wavefront/official.hpp"

#include <cstring>
#include <string>
#include <vector>

using lk23::grid;
using weft_test::checksum;
using weft_test::official;

namespace {

bool same(const grid& a, const grid& b) {
  return std::memcmp(a.za.data(), b.za.data(), a.za.size() * sizeof(double)) == 0;
}

/// All forms, with their names.
template <class F>
void with_each_form(F f) {
  f("tasks",
    [](weft::runtime& rt, grid& g, long sweeps, long block) { lk23::by_data_flow(rt, g, sweeps, block); });
  f("blocks", [](weft::runtime& rt, grid& g, long sweeps, long block) {
    lk23::block_overlay o(g, block);
    o.run(rt, sweeps);
    o.store(g);
  });
  f("frontiers", [](weft::runtime& rt, grid& g, long sweeps, long block) {
    lk23::frontier_overlay o(g, block);
    o.run(rt, sweeps);
    o.store(g);
  });
  const auto chained = [](auto lanes) {
    return [](weft::runtime& rt, grid& g, long sweeps, long block) {
      lk23::chained<decltype(lanes)::value> c(g);
      const auto b = static_cast<std::size_t>(block);
      c.run(rt, sweeps, {.diagonals = b, .positions = b % 7 + 3, .chained = b % 5 + 1});
      c.store(g);
    };
  };
  f("vectors of 2", chained(std::integral_constant<int, 2>()));
  f("vectors of 4", chained(std::integral_constant<int, 4>()));
  f("vectors of 8", chained(std::integral_constant<int, 8>()));
  f("vectors, alone", [](weft::runtime&, grid& g, long sweeps, long) {
    lk23::chained<> c(g);
    c.run_alone(sweeps);
    c.store(g);
  });
}

/// What other orders of the points compute: all from the old values, or the red points before the black ones.
void jacobi(grid& g, long sweeps) {
  for (long s = 0; s < sweeps; ++s) {
    const grid old = g;
    for (long j = 1; j <= g.rows; ++j)
      for (long k = 1; k <= g.columns; ++k) {
        grid one = old;
        lk23::plain_block(one, j, j + 1, k, k + 1);
        g.za[g.at(j, k)] = one.za[one.at(j, k)];
      }
  }
}
void red_black(grid& g, long sweeps) {
  for (long s = 0; s < sweeps; ++s)
    for (const long colour : {0L, 1L})
      for (long j = 1; j <= g.rows; ++j)
        for (long k = 1; k <= g.columns; ++k)
          if ((j + k) % 2 == colour) lk23::plain_block(g, j, j + 1, k, k + 1);
}

}  // namespace

TEST_CASE("the official sums, in every form") {
  weft::runtime rt({.workers = 2});
  for (const weft_test::official_sum& r : weft_test::official_sums) {
    INFO("n " << r.n << ", sweeps " << r.sweeps);
    grid plain = official(r.n);
    lk23::plain(plain, r.sweeps);
    CHECK(checksum(plain, r.n) == Approx(r.sum).epsilon(2e-16));
    if (r.sweeps > 100 && weft_test::sanitized) continue;
    with_each_form([&](const char* name, auto form) {
      INFO(name);
      grid g = official(r.n);
      form(rt, g, r.sweeps, 3);
      CHECK(same(g, plain));
    });
  }
}

TEST_CASE("other orders are told apart") {
  grid right = official(100), by_jacobi = right, by_colours = right;
  lk23::plain(right, 1);
  jacobi(by_jacobi, 1);
  red_black(by_colours, 1);
  CHECK_FALSE(same(right, by_jacobi));
  CHECK_FALSE(same(right, by_colours));
  CHECK(checksum(by_jacobi, 100) == Approx(2.575791138001047e+04).epsilon(2e-16));
  CHECK(checksum(by_colours, 100) == Approx(2.579631626354677e+04).epsilon(2e-16));
}

TEST_CASE("random grids, sweeps, blocks and workers: every byte as in the plain loops") {
  weft_test::random dice(weft_test::seed());
  const int games = weft_test::long_run() ? 3'000 : 60 / static_cast<int>(weft_test::scale()) + 1;
  std::deque<weft::runtime> runtimes;
  for (const unsigned w : {1u, 2u, 3u, 8u}) runtimes.emplace_back(weft::runtime_options{.workers = w});
  for (int game = 0; game < games; ++game) {
    grid start(static_cast<long>(1 + dice.below(41)), static_cast<long>(1 + dice.below(67)));
    start.fill(dice());
    constexpr long counts[] = {1, 2, 3, 7, 16};
    const long sweeps = counts[dice.below(5)], block = static_cast<long>(1 + dice.below(20));
    weft::runtime& rt = runtimes[dice.below(runtimes.size())];
    INFO("rows " << start.rows << ", columns " << start.columns << ", sweeps " << sweeps << ", block "
                 << block << ", workers " << rt.workers());
    grid plain = start;
    lk23::plain(plain, sweeps);
    with_each_form([&](const char* name, auto form) {
      INFO(name);
      grid g = start;
      form(rt, g, sweeps, block);
      CHECK(same(g, plain));
    });
  }
}
