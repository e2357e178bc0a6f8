// SPDX-License-Identifier: BSL-1.0
// Sweeps over a grid in place, in which a point is computed from its northern and western neighbours of the
// same sweep and from its southern and eastern ones of the sweep before: many sweeps chained in tiles, in
// vectors.
#pragma once

#include <weft/wavefront/skewed.hpp>
#include <weft/wavefront/tiles.hpp>

namespace weft::inline WEFT_ABI::wavefront {

/// How sweeps are cut into tiles. The first two are the extents of a tile: of the strips and sweeps that pass
/// through memory together, and of the columns.
struct sweep_options {
  /// Diagonals of strips in one tile.
  std::size_t diagonals = 32;
  /// Positions of a strip in one tile.
  std::size_t positions = 64;
  std::size_t chained = 16;  ///< sweeps that are chained; more are done in several passes
};

namespace detail {

template <int... I, class V>
WEFT_ALWAYS_INLINE V shift_down(const V& first, const V& then, std::integer_sequence<int, I...>) noexcept {
  constexpr int lanes = sizeof...(I);
  return __builtin_shufflevector(first, then, (lanes - 1 + I)...);
}
template <int... I, class V>
WEFT_ALWAYS_INLINE V shift_up(const V& first, const V& then, std::integer_sequence<int, I...>) noexcept {
  return __builtin_shufflevector(first, then, (1 + I)...);
}

/// Sweeps number `first` and later ones, in tiles over the coordinates
///     diagonal d = strip + sweep,   time x = position + Lanes * strip + 2 * sweep
/// in which every point needs only points of smaller x whose sweep and diagonal are not larger. So all pairs
/// (sweep, diagonal) are independent at the same x, and tiles may be cut at right angles.
template <class Grid, class Kernel>
class chained_sweeps {
  static constexpr int lanes = Grid::lanes;
  using V = typename Grid::vector_type;
  using indices = std::make_integer_sequence<int, lanes>;
  using mask =
      vector<std::conditional_t<sizeof(typename Grid::value_type) == 8, std::int64_t, std::int32_t>, lanes>;

 public:
  chained_sweeps(Grid& grid, std::size_t sweeps, const Kernel& kernel, const sweep_options& o) noexcept
      : shape_(grid.shape()),
        values_(grid.values()),
        fields_(grid.fields()),
        kernel_(kernel),
        sweeps_(static_cast<long>(sweeps)),
        strips_(static_cast<long>(shape_.strips())),
        last_(static_cast<long>(shape_.last())),
        diagonals_(static_cast<long>(std::max<std::size_t>(o.diagonals, 1))),
        positions_(static_cast<long>(std::max<std::size_t>(o.positions, 1))) {}

  /// Diagonals are 1 to strips + sweeps - 1, times lanes + 1 to the last position of the last strip and
  /// sweep.
  std::size_t rows() const noexcept {
    return static_cast<std::size_t>((strips_ + sweeps_ - 1 + diagonals_ - 1) / diagonals_);
  }
  std::size_t columns() const noexcept {
    return static_cast<std::size_t>((last_ + lanes * (strips_ - 1) + 2 * (sweeps_ - 1) + positions_ - 1) /
                                    positions_);
  }

  void tile(std::size_t row, std::size_t column) const noexcept {
    const long d0 = 1 + static_cast<long>(row) * diagonals_;
    const long d1 = std::min(d0 + diagonals_, strips_ + sweeps_);
    const long x0 = lanes + 1 + static_cast<long>(column) * positions_, x1 = x0 + positions_;
    // Pairs of diagonals and pairs of sweeps: four chains of dependent operations, interleaved.
    for (long d = d0; d < d1; d += 2)
      for (long k = 0; k < sweeps_; k += 2)
        block(d, std::min(d + 2, d1), k, std::min(k + 2, sweeps_), x0, x1);
  }

 private:
  /// The times at which a pair computes something.
  struct range {
    long begin, end;
  };
  range whole(long d, long k) const noexcept {
    const long strip = d - k;
    if (strip < 1 || strip > strips_) return {0, 0};
    const long zero = lanes * strip + 2 * k;
    return {zero + 1, zero + last_ + 1};
  }
  /// Those at which all lanes lie in the grid.
  range full(long d, long k) const noexcept {
    const long strip = d - k;
    if (strip < 1 || strip > strips_ || strip * lanes > static_cast<long>(shape_.rows)) return {0, 0};
    const long zero = lanes * strip + 2 * k;
    return {zero + lanes, zero + static_cast<long>(shape_.columns) + 1};
  }

  void block(long d0, long d1, long k0, long k1, long x0, long x1) const noexcept {
    long begin = x1, end = x0, inner_begin = x0, inner_end = x1;
    for (long d = d0; d < d1; ++d)
      for (long k = k0; k < k1; ++k) {
        const range all = whole(d, k), inner = full(d, k);
        if (all.end != 0) begin = std::min(begin, all.begin), end = std::max(end, all.end);
        inner_begin = std::max(inner_begin, inner.begin);
        inner_end = std::min(inner_end, inner.end);
      }
    begin = std::max(begin, x0);
    end = std::min(end, x1);
    if (begin >= end) return;
    if (d1 - d0 != 2 || k1 - k0 != 2 || inner_begin >= inner_end) return slowly(d0, d1, k0, k1, begin, end);
    slowly(d0, d1, k0, k1, begin, inner_begin);
    four(d0, k0, inner_begin, inner_end);
    slowly(d0, d1, k0, k1, inner_end, end);
  }

  /// Any pairs, at the edges of the grid: lanes outside keep what they have.
  void slowly(long d0, long d1, long k0, long k1, long x0, long x1) const noexcept {
    for (long x = x0; x < x1; ++x)
      for (long d = d0; d < d1; ++d)
        for (long k = k0; k < k1; ++k) {
          const range r = whole(d, k);
          if (x < r.begin || x >= r.end) continue;
          const long strip = d - k, position = x - lanes * strip - 2 * k;
          V* const here = &values_[shape_.place(static_cast<std::size_t>(strip), position)];
          const V* const above = here - shape_.length() + (lanes - 1);
          const V* const below = here + shape_.length() - (lanes - 1);
          const V north = shift_down(above[0], here[-1], indices{});
          const V south = shift_up(here[1], below[0], indices{});
          const auto& fields = fields_[here - values_];
          const V fresh = kernel_(north, here[-1], here[0], here[1], south, fields);
          *here = inside(strip, position) ? fresh : *here;
        }
  }
  mask inside(long strip, long position) const noexcept {
    mask m{};
    for (int l = 0; l < lanes; ++l) {
      const long row = (strip - 1) * lanes + 1 + l, column = position - l;
      m[l] =
          row <= static_cast<long>(shape_.rows) && column >= 1 && column <= static_cast<long>(shape_.columns)
              ? -1
              : 0;
    }
    return m;
  }

  /// Two diagonals d and d + 1, two sweeps k and k + 1, from time x0 to x1: what one pair has just computed
  /// is what another one needs next, so most of it never leaves the registers.
  WEFT_NOINLINE void four(long d, long k, long x0, long x1) const noexcept {
    const auto length = static_cast<long>(shape_.length());
    const auto place = [&](long strip, long sweep) {
      return static_cast<long>(shape_.place(static_cast<std::size_t>(strip), x0 - lanes * strip - 2 * sweep));
    };
    const long s = d - k;
    V* a = values_ + place(s, k);          // (k,     d)
    V* b = values_ + place(s - 1, k + 1);  // (k + 1, d)
    V* c = values_ + place(s + 1, k);      // (k,     d + 1)
    V* e = values_ + place(s, k + 1);      // (k + 1, d + 1)
    const auto* fa = fields_ + (a - values_);
    const auto* fb = fields_ + (b - values_);
    const auto* fc = fields_ + (c - values_);
    const auto* fe = fields_ + (e - values_);
    constexpr long skew = lanes - 1;
    V wa = a[-1], wb = b[-1], wc = c[-1], we = e[-1];
    V ca = a[0], cb = b[0], cc = c[0], ce = e[0];
    for (long x = x0; x < x1; ++x, ++a, ++b, ++c, ++e, ++fa, ++fb, ++fc, ++fe) {
      const V ea = a[1], eb = b[1], ec = c[1];
      const V na = shift_down(eb, wa, indices{});  // the east of (k + 1, d) is above (k, d)
      const V nb = shift_down(b[skew - length], wb, indices{});
      const V nc = shift_down(wa, wc, indices{});  // what (k, d) has left one step before
      const V ne = shift_down(wb, we, indices{});
      const V sa = shift_up(ea, ec, indices{});
      const V sb = shift_up(eb, wa, indices{});
      const V sc = shift_up(ec, c[length - skew], indices{});
      const V se = shift_up(wa, wc, indices{});
      const V ra = kernel_(na, wa, ca, ea, sa, *fa);
      const V rb = kernel_(nb, wb, cb, eb, sb, *fb);
      const V rc = kernel_(nc, wc, cc, ec, sc, *fc);
      const V re = kernel_(ne, we, ce, wa, se, *fe);
      *b = rb;
      *c = rc;
      *e = re;
      ce = wa;
      wa = ra, wb = rb, wc = rc, we = re;
      ca = ea, cb = eb, cc = ec;
    }
    a[-2] = ce;  // all before it is older than what (k + 1, d + 1) has left there
    a[-1] = wa;
  }

  skewed_shape<lanes> shape_;
  V* values_;
  const typename Grid::coefficients* fields_;
  const Kernel& kernel_;
  long sweeps_, strips_, last_, diagonals_, positions_;
};

}  // namespace detail

/// Executes `sweeps` in-place sweeps over the grid. `kernel(north, west, centre, east, south, coefficients)`
/// gets vectors, whose lanes are points, and returns the new values; it is also called for lanes outside the
/// grid, whose results are discarded. The results are bit-identical to those of the plain loops over sweeps,
/// rows and columns if the compiler fuses no operations (-ffp-contract=off).
/// *Requires*: the kernel has no side effects and does not throw.
/// *Throws*: as for_each_tile.
/// *Suspends*: as runtime::run.
/// *Source*: time skewing; docs/explanation/wavefronts.md.
template <class Grid, class Kernel>
void sweep(runtime& rt, Grid& grid, std::size_t sweeps, const Kernel& kernel,
           const sweep_options& options = {}) {
  if (grid.shape().rows == 0 || grid.shape().columns == 0) return;
  const std::size_t most = std::max<std::size_t>(options.chained, 1);
  while (sweeps != 0) {
    const std::size_t now = std::min(sweeps, most);
    const detail::chained_sweeps<Grid, Kernel> chain(grid, now, kernel, options);
    for_each_tile(rt, chain.rows(), chain.columns(),
                  [&chain](std::size_t row, std::size_t column) { chain.tile(row, column); });
    sweeps -= now;
  }
}

/// The same on the calling thread alone, without a runtime.
template <class Grid, class Kernel>
void sweep(Grid& grid, std::size_t sweeps, const Kernel& kernel, const sweep_options& options = {}) {
  if (grid.shape().rows == 0 || grid.shape().columns == 0) return;
  const std::size_t most = std::max<std::size_t>(options.chained, 1);
  while (sweeps != 0) {
    const std::size_t now = std::min(sweeps, most);
    const detail::chained_sweeps<Grid, Kernel> chain(grid, now, kernel, options);
    for (std::size_t row = 0; row < chain.rows(); ++row)
      for (std::size_t column = 0; column < chain.columns(); ++column) chain.tile(row, column);
    sweeps -= now;
  }
}

}  // namespace weft::inline WEFT_ABI::wavefront
