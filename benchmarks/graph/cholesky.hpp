// SPDX-License-Identifier: BSL-1.0
// The tasks of a Cholesky factorisation with weft.
#pragma once

#include "tiles.hpp"

#include <weft/weft.hpp>

namespace weft_bench {

/// One task for each kernel on a tile.
template <int edge>
void fork_cholesky(matrix<edge>& m) {
  for (int k = 0; k < m.tiles(); ++k) {
    weft::fork({.name = "factor", .priority = 3}, factor<edge>, weft::update(weft::borrow(m.at(k, k))));
    for (int i = k + 1; i < m.tiles(); ++i)
      weft::fork({.name = "solve", .priority = 2}, solve<edge>, weft::read(weft::borrow(m.at(k, k))),
                 weft::update(weft::borrow(m.at(i, k))));
    for (int i = k + 1; i < m.tiles(); ++i)
      for (int j = k + 1; j <= i; ++j)
        weft::fork({.name = "multiply"}, multiply<edge>, weft::read(weft::borrow(m.at(i, k))),
                   weft::read(weft::borrow(m.at(j, k))), weft::update(weft::borrow(m.at(i, j))));
  }
}

}  // namespace weft_bench
