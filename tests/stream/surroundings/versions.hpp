// SPDX-License-Identifier: BSL-1.0
// The bytes of a stream that say which version of it they are.
#pragma once

#include "support/random.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace surroundings {

/// One writer's stream: a line with number and size, and bytes that follow from the number.
struct version {
  std::uint32_t number = 0;
  std::uint32_t size = 0;
  bool complete = false;  ///< no writer of it stops before its end: it is never a beginning only

  std::string text() const {
    char line[32];
    std::snprintf(line, sizeof line, "version %08x of %08x\n", number, size);
    std::string all = line;
    weft_test::random draw(number * 0x1000193u);
    const std::size_t begin = all.size();
    all.resize(std::max<std::size_t>(begin, size));
    for (std::size_t at = begin; at < all.size(); at += 8) {
      const std::uint64_t eight = draw();
      std::memcpy(&all[at], &eight, std::min<std::size_t>(8, all.size() - at));
    }
    all.resize(size);
    return all;
  }
};

/// Sizes at which formats have borders, and others.
inline std::uint32_t draw_size(weft_test::random& draw) {
  switch (draw.below(6)) {
    case 0:
      return static_cast<std::uint32_t>(draw.below(9));
    case 1:
      return static_cast<std::uint32_t>(32 * draw.below(100));
    case 2:
      return static_cast<std::uint32_t>(4096 * draw.below(5) + draw.below(3));
    case 3:
      return static_cast<std::uint32_t>(draw.below(150'000));
    default:
      return static_cast<std::uint32_t>(draw.below(12'000));
  }
}

}  // namespace surroundings
