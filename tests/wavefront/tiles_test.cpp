// SPDX-License-Identifier: BSL-1.0
// Tiles in wavefront order: every tile once, behind its neighbours; failures and stops; grids without points.
#include "flow/runtimes.hpp"

#include <weft/wavefront.hpp>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

TEST_CASE("every tile is done once, after those above and to the left of it") {
  for (const unsigned workers : {1u, 2u, 5u}) {
    weft::runtime rt({.workers = workers});
    for (const std::size_t rows : {1u, 2u, 7u, 40u})
      for (const std::size_t columns : {1u, 3u, 25u}) {
        INFO("workers " << workers << ", " << rows << " x " << columns);
        std::vector<std::atomic<int>> done(rows * columns);
        std::atomic<bool> right{true};
        weft::wavefront::for_each_tile(rt, rows, columns, [&](std::size_t r, std::size_t c) {
          if ((r != 0 && done[(r - 1) * columns + c] != 1) || (c != 0 && done[r * columns + c - 1] != 1))
            right = false;
          if (++done[r * columns + c] != 1) right = false;
        });
        for (const auto& d : done) CHECK(d == 1);
        CHECK(right);
      }
    weft::wavefront::for_each_tile(rt, 0, 5, [](std::size_t, std::size_t) { FAIL("there is no tile"); });
    weft::wavefront::for_each_tile(rt, 5, 0, [](std::size_t, std::size_t) { FAIL("there is no tile"); });
  }
}

TEST_CASE("one worker goes through the tiles as two loops do") {
  weft::runtime rt({.workers = 1});
  std::vector<std::pair<std::size_t, std::size_t>> order;
  weft::wavefront::for_each_tile(rt, 4, 6, [&](std::size_t r, std::size_t c) { order.emplace_back(r, c); });
  REQUIRE(order.size() == 24);
  for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i] == std::pair{i / 6, i % 6});
}

TEST_CASE("tiles fork, throw, and are stopped") {
  for (const unsigned workers : {1u, 3u}) {
    weft::runtime rt({.workers = workers});
    std::atomic<int> children{0};
    weft::wavefront::for_each_tile(rt, 6, 6, [&](std::size_t, std::size_t) {
      for (int i = 0; i < 3; ++i) weft::fork([&] { ++children; });
    });
    CHECK(children == 108);
    std::atomic<int> done{0};
    CHECK_THROWS_WITH(weft::wavefront::for_each_tile(rt, 9, 9,
                                                     [&](std::size_t r, std::size_t c) {
                                                       if (r == 4 && c == 2)
                                                         throw std::runtime_error("tile 4, 2");
                                                       ++done;
                                                     }),
                      "tile 4, 2");
    CHECK(done < 81 - 5);
    std::stop_source source;
    done = 0;
    CHECK_THROWS_AS(weft::wavefront::for_each_tile(rt, 50, 50,
                                                   [&](std::size_t, std::size_t) {
                                                     if (++done == 20) source.request_stop();
                                                   },
                                                   {.stop = source.get_token()}),
                    weft::cancelled);
    CHECK(done < 2500);
  }
}

TEST_CASE("a grid without points is swept in no time") {
  weft::runtime rt({.workers = 2});
  using grid = weft::wavefront::skewed_grid<double, 1>;
  std::atomic<int> calls{0};
  const auto kernel = [&calls](auto, auto, auto centre, auto, auto, const auto&) {
    ++calls;
    return centre + 1.0;
  };
  for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>{0, 3}, {3, 0}, {0, 0}}) {
    grid empty(rows, columns);
    weft::wavefront::sweep(rt, empty, 5, kernel);
    weft::wavefront::sweep(empty, 5, kernel);
    CHECK(calls == 0);
  }
  grid one(1, 1);
  weft::wavefront::sweep(rt, one, 5, kernel);
  weft::wavefront::sweep(one, 2, kernel);
  CHECK(one.get(1, 1) == 7.0);
  CHECK(calls > 0);
}

TEST_CASE("the skewed layout keeps every point apart from the others") {
  for (const std::size_t rows : {1u, 3u, 4u, 5u, 17u})
    for (const std::size_t columns : {1u, 2u, 9u}) {
      weft::wavefront::skewed_grid<double, 2, 4> g(rows, columns);
      const auto value = [&](std::size_t r, std::size_t c) { return static_cast<double>(100 * r + c + 1); };
      const auto corner = [&](std::size_t r, std::size_t c) {
        return (r == 0 || r == rows + 1) && (c == 0 || c == columns + 1);
      };
      for (std::size_t r = 0; r <= rows + 1; ++r)
        for (std::size_t c = 0; c <= columns + 1; ++c)
          if (!corner(r, c)) g.set(r, c, value(r, c));
      for (std::size_t r = 0; r <= rows + 1; ++r)
        for (std::size_t c = 0; c <= columns + 1; ++c)
          if (!corner(r, c)) CHECK(g.get(r, c) == value(r, c));
    }
  weft::runtime rt({.workers = 1});
  weft::wavefront::skewed_grid<double, 1, 2> none(0, 4);
  weft::wavefront::sweep(rt, none, 3, [](auto n, auto, auto, auto, auto, const auto&) { return n; });
}
