// SPDX-License-Identifier: BSL-1.0
// The tiles of chained in-place sweeps with a kernel that sees a rectangle.
#pragma once

#include <weft/base/error.hpp>
#include <weft/ooc/detail/changes.hpp>
#include <weft/ooc/detail/tile_kernel.hpp>
#include <weft/ooc/kernel.hpp>
#include <weft/wavefront/chained_sweeps.hpp>

#include <array>
#include <stop_token>

namespace weft::inline WEFT_ABI::ooc::detail {

/// One sweep over the columns from `first` to before `end` of a row: `rows[i]` is the row `i` rows to the
/// south, and `here` is row 0; coefficients `field` elements apart. *Returns*: the largest change of a value,
/// if `Watched`.
template <bool Watched, class T, class Kernel>
double sweep_columns(const T* const* rows, T* here, std::size_t first, std::size_t end, const T* fields,
                     std::size_t field, const Kernel& kernel) {
  double largest = 0;
  for (std::size_t c = first; c < end; ++c) {
    const T fresh = kernel(neighbourhood<T>(rows, c), point_coefficients<T>{fields + c, field});
    if constexpr (Watched) largest = larger_change(largest, double{fresh - here[c]});
    here[c] = fresh;
  }
  return largest;
}

/// Several sweeps over a window, as wavefront::chained_sweeps, in tiles over the coordinates
///     diagonal d = strip + sweep,   time x = column + A * row + B * sweep
/// With a reach of R rows and E columns, A = E + 1 and B = A * R + E + 1: then every point needs only points
/// of smaller x whose diagonal is not larger, and so do those that would overwrite what it reads. In a tile,
/// diagonals, sweeps, rows and columns follow each other in this order, which respects the same.
/// *Requires*: strips of at least R rows.
/// *Thread safety*: tiles that do not depend on each other, from any threads.
template <class Window, class Kernel, class Changes>
class row_sweeps {
  using T = typename Window::value_type;
  static constexpr reach sees = Kernel::reach;
  static constexpr std::size_t slope = sees.columns() + 1;                      // A
  static constexpr std::size_t lag = slope * sees.rows() + sees.columns() + 1;  // B
  static constexpr bool watched = !std::is_same_v<Changes, wavefront::ignored_changes>;

 public:
  /// *Requires*: window, kernel and changes outlive it.
  row_sweeps(Window& window, std::size_t sweeps, const Kernel& kernel, const wavefront::sweep_options& o,
             const Changes* changes) noexcept
      : window_(window),
        geometry_(window.geometry()),
        kernel_(kernel),
        changes_(changes),
        sweeps_(sweeps),
        strips_(geometry_.tiles_down()),
        height_(Window::strip_rows(geometry_)),
        diagonals_(std::max<std::size_t>(o.diagonals, 1)),
        positions_(std::max<std::size_t>(o.positions, 1)) {}

  /// Rows of tiles: diagonals are 0 to strips + sweeps - 2.
  std::size_t rows() const noexcept { return (strips_ + sweeps_ - 1 + diagonals_ - 1) / diagonals_; }
  /// Columns of tiles: times are 0 to that of the last point in the last sweep.
  std::size_t columns() const noexcept { return end_of_(strips_ - 1, sweeps_ - 1) / positions_ + 1; }
  /// The columns of tiles, from the first one to before the second one, in which a row has something to do.
  std::pair<std::size_t, std::size_t> columns_of(std::size_t row) const noexcept {
    // Times grow with the strip and with the sweep, so on a diagonal its two ends have the least and the
    // largest one.
    const auto ends = [this](std::size_t d) {
      const std::size_t low = d < sweeps_ ? 0 : d - sweeps_ + 1, high = std::min(strips_ - 1, d);
      return std::pair{low, high};
    };
    const std::size_t d0 = row * diagonals_, d1 = std::min(d0 + diagonals_, strips_ + sweeps_ - 1) - 1;
    const auto [low0, high0] = ends(d0);
    const auto [low1, high1] = ends(d1);
    return {std::min(begin_of_(low0, d0 - low0), begin_of_(high0, d0 - high0)) / positions_,
            std::max(end_of_(low1, d1 - low1), end_of_(high1, d1 - high1)) / positions_ + 1};
  }

  /// Executes one tile. `stop`: ends it, with cancelled, before its next row.
  void tile(std::size_t row, std::size_t column, const std::stop_token& stop) const {
    const std::size_t d0 = row * diagonals_, d1 = std::min(d0 + diagonals_, strips_ + sweeps_ - 1);
    const std::size_t x0 = column * positions_;
    for (std::size_t d = d0; d < d1; ++d)
      for (std::size_t k = d < strips_ ? 0 : d - strips_ + 1; k < std::min(sweeps_, d + 1); ++k) {
        const std::size_t first = (d - k) * height_;
        for (std::size_t r = first; r < std::min(first + height_, geometry_.rows); ++r) {
          const std::size_t zero = slope * r + lag * k;  // the time of column 0
          if (zero >= x0 + positions_) break;
          if (stop.stop_requested()) throw cancelled();
          part_of_row_(k, r, x0 > zero ? x0 - zero : 0, std::min(x0 + positions_ - zero, geometry_.columns));
        }
      }
  }

 private:
  /// The time of the first point of a strip in a sweep.
  std::size_t begin_of_(std::size_t strip, std::size_t sweep) const noexcept {
    return slope * strip * height_ + lag * sweep;
  }
  /// That of its last point; not smaller than that if the strip is not complete.
  std::size_t end_of_(std::size_t strip, std::size_t sweep) const noexcept {
    return begin_of_(strip, sweep) + slope * (height_ - 1) + geometry_.columns - 1;
  }
  void part_of_row_(std::size_t k, std::size_t r, std::size_t first, std::size_t end) const noexcept {
    if (first >= end) return;
    std::array<const T*, sees.north + 1 + sees.south> rows;
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i] = window_.row(r, static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(sees.north));
    const double change = sweep_columns<watched>(rows.data() + sees.north, window_.inner_row(r), first, end,
                                                 window_.row_fields(r), window_.field_pitch(), kernel_);
    if constexpr (watched) changes_->see(k, change);
  }

  Window& window_;
  const grid_geometry& geometry_;
  const Kernel& kernel_;
  const Changes* changes_;
  std::size_t sweeps_, strips_, height_, diagonals_, positions_;
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
