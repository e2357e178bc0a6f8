// SPDX-License-Identifier: BSL-1.0
// A function with SITES fork sites, each of a task with a type of its own: what one of them costs in code.
#include <weft/weft.hpp>

#include <utility>

#ifndef SITES
#define SITES 1
#endif

void sites(weft::shared<long>& a, weft::shared<long>& r) {
  [&]<int... number>(std::integer_sequence<int, number...>) {
    (weft::fork([](weft::read<long> from, weft::write<long> to) { to = *from + number; }, a, r), ...);
  }(std::make_integer_sequence<int, SITES>());
}
