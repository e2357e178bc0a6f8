// SPDX-License-Identifier: BSL-1.0
// What a kernel of sweeps sees of the grid.
#pragma once

#include <weft/base/config.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>

namespace weft::inline WEFT_ABI::ooc {

/// How far a kernel looks from its point. In a wavefront over blocks, `south` is the thickness of the top
/// frontier, `north` that of the bottom frontier, and `west` that of the right frontier.
/// *Source*: Caron, Desprez, Suter 2004, section 2.
struct reach {
  std::size_t north = 1;  ///< rows
  std::size_t west = 1;   ///< columns
  std::size_t east = 1;   ///< columns
  std::size_t south = 1;  ///< rows

  /// The larger one of north and south.
  constexpr std::size_t rows() const noexcept { return std::max(north, south); }
  /// The larger one of west and east.
  constexpr std::size_t columns() const noexcept { return std::max(west, east); }
};

/// A kernel that sees all points of a rectangle around its own: it has a constant `reach`, and is called with
/// a neighbourhood and the coefficients. Other kernels are called with the four neighbours.
template <class Kernel>
concept window_kernel = requires {
  { Kernel::reach } -> std::convertible_to<reach>;
};

/// The points around one.
template <class T>
class neighbourhood {
 public:
  /// `rows[i]`: the row `i` rows to the south; `column`: of the point.
  neighbourhood(const T* const* rows, std::size_t column) noexcept : rows_(rows), column_(column) {}
  /// The value so many rows to the south and columns to the east; negative: to the north, to the west.
  /// *Requires*: within the reach of the kernel.
  T operator()(std::ptrdiff_t south, std::ptrdiff_t east) const noexcept {
    return rows_[south][static_cast<std::ptrdiff_t>(column_) + east];
  }

 private:
  const T* const* rows_;
  std::size_t column_;
};

}  // namespace weft::inline WEFT_ABI::ooc
