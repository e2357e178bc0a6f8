// SPDX-License-Identifier: BSL-1.0
// The tiles of chained in-place sweeps over a grid in strips, executed in vectors.
#pragma once

#include <weft/wavefront/skewed.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

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

}  // namespace detail

/// What chained sweeps tell of the changes of values: nothing. A class in its place has, for a number of a
/// sweep, an object that sees old and new vectors; it is made and destroyed by the thread that executes a
/// tile.
struct ignored_changes {
  /// Sees the vectors of one sweep in a part of a tile.
  template <class V>
  struct of_sweep {
    /// Sees those of sweep number `sweep`, from 0.
    of_sweep(const ignored_changes*, long) noexcept {}
    /// Sees a vector before and after the sweep.
    void see(const V&, const V&) noexcept {}
  };
};

/// Several sweeps over a grid in strips, in tiles over the coordinates
///     diagonal d = strip + sweep,   time x = position + Lanes * strip + 2 * sweep
/// in which every point needs only points of smaller x whose sweep and diagonal are not larger. So all pairs
/// (sweep, diagonal) are independent at the same x, and tiles may be cut at right angles. `Grid` has shape(),
/// and strip(s) and strip_fields(s), the values and coefficients of a strip at its position 0; a tile touches
/// those strips s for which s + k is one of its diagonals, or next to one, for one of the sweeps k.
/// *Thread safety*: tiles that do not depend on each other, from any threads.
/// *Source*: time skewing; docs/explanation/wavefronts.md.
template <class Grid, class Kernel, class Changes = ignored_changes>
class chained_sweeps {
  static constexpr int lanes = Grid::lanes;
  using V = typename Grid::vector_type;
  using indices = std::make_integer_sequence<int, lanes>;
  using seen = typename Changes::template of_sweep<V>;
  using mask =
      vector<std::conditional_t<sizeof(typename Grid::value_type) == 8, std::int64_t, std::int32_t>, lanes>;

 public:
  /// *Requires*: grid, kernel and changes outlive it.
  chained_sweeps(Grid& grid, std::size_t sweeps, const Kernel& kernel, const sweep_options& o,
                 const Changes* changes = nullptr) noexcept
      : grid_(grid),
        shape_(grid.shape()),
        kernel_(kernel),
        changes_(changes),
        sweeps_(static_cast<long>(sweeps)),
        strips_(static_cast<long>(shape_.strips())),
        last_(static_cast<long>(shape_.last())),
        diagonals_(static_cast<long>(std::max<std::size_t>(o.diagonals, 1))),
        positions_(static_cast<long>(std::max<std::size_t>(o.positions, 1))) {}

  /// Rows of tiles: diagonals are 1 to strips + sweeps - 1.
  std::size_t rows() const noexcept {
    return static_cast<std::size_t>((strips_ + sweeps_ - 1 + diagonals_ - 1) / diagonals_);
  }
  /// Columns of tiles: times are lanes + 1 to the last position of the last strip and sweep.
  std::size_t columns() const noexcept {
    return static_cast<std::size_t>((last_ + lanes * (strips_ - 1) + 2 * (sweeps_ - 1) + positions_ - 1) /
                                    positions_);
  }

  /// The columns of tiles, from the first one to before the second one, in which a row has something to do.
  std::pair<std::size_t, std::size_t> columns_of(std::size_t row) const noexcept {
    const long d0 = 1 + static_cast<long>(row) * diagonals_, d1 = d0 + diagonals_;
    const long first = std::max(1L, d0 - sweeps_ + 1), last = std::min(strips_, d1 - 1);
    const long end = lanes * last + 2 * (sweeps_ - 1) + last_;  // the last time
    return {static_cast<std::size_t>(lanes * (first - 1) / positions_),
            static_cast<std::size_t>((end - lanes - 1) / positions_ + 1)};
  }

  /// Executes one tile.
  void tile(std::size_t row, std::size_t column) const noexcept {
    const long d0 = 1 + static_cast<long>(row) * diagonals_;
    const long d1 = std::min(d0 + diagonals_, strips_ + sweeps_);
    const long x0 = lanes + 1 + static_cast<long>(column) * positions_, x1 = x0 + positions_;
    // Pairs of diagonals and pairs of sweeps: four chains of dependent operations, interleaved.
    for (long d = d0; d < d1; d += 2)
      for (long k = std::max(0L, d - strips_) & ~1L; k < std::min(sweeps_, d + 1); k += 2)
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
    seen changes[] = {{changes_, k0}, {changes_, k0 + 1}};  // there are at most two
    for (long x = x0; x < x1; ++x)
      for (long d = d0; d < d1; ++d)
        for (long k = k0; k < k1; ++k) {
          const range r = whole(d, k);
          if (x < r.begin || x >= r.end) continue;
          const long strip = d - k, position = x - lanes * strip - 2 * k;
          V* const here = grid_.strip(strip) + position;
          const V* const above = grid_.strip(strip - 1) + position + (lanes - 1);
          const V* const below = grid_.strip(strip + 1) + position - (lanes - 1);
          const V north = detail::shift_down(above[0], here[-1], indices{});
          const V south = detail::shift_up(here[1], below[0], indices{});
          const V fresh =
              kernel_(north, here[-1], here[0], here[1], south, grid_.strip_fields(strip)[position]);
          const V now = inside(strip, position) ? fresh : *here;
          changes[k - k0].see(*here, now);
          *here = now;
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
    const auto position = [x0](long strip, long sweep) { return x0 - lanes * strip - 2 * sweep; };
    constexpr long skew = lanes - 1;
    const long s = d - k;
    V* a = grid_.strip(s) + position(s, k);                               // (k,     d)
    V* b = grid_.strip(s - 1) + position(s - 1, k + 1);                   // (k + 1, d)
    V* c = grid_.strip(s + 1) + position(s + 1, k);                       // (k,     d + 1)
    V* e = grid_.strip(s) + position(s, k + 1);                           // (k + 1, d + 1)
    const V* above = grid_.strip(s - 2) + position(s - 1, k + 1) + skew;  // of b
    const V* below = grid_.strip(s + 2) + position(s + 1, k) - skew;      // of c
    const auto* fa = grid_.strip_fields(s) + position(s, k);
    const auto* fb = grid_.strip_fields(s - 1) + position(s - 1, k + 1);
    const auto* fc = grid_.strip_fields(s + 1) + position(s + 1, k);
    const auto* fe = grid_.strip_fields(s) + position(s, k + 1);
    seen first(changes_, k), second(changes_, k + 1);
    V wa = a[-1], wb = b[-1], wc = c[-1], we = e[-1];
    V ca = a[0], cb = b[0], cc = c[0], ce = e[0];
    for (long x = x0; x < x1; ++x, ++a, ++b, ++c, ++e, ++above, ++below, ++fa, ++fb, ++fc, ++fe) {
      const V ea = a[1], eb = b[1], ec = c[1];
      const V na = detail::shift_down(eb, wa, indices{});  // the east of (k + 1, d) is above (k, d)
      const V nb = detail::shift_down(*above, wb, indices{});
      const V nc = detail::shift_down(wa, wc, indices{});  // what (k, d) has left one step before
      const V ne = detail::shift_down(wb, we, indices{});
      const V sa = detail::shift_up(ea, ec, indices{});
      const V sb = detail::shift_up(eb, wa, indices{});
      const V sc = detail::shift_up(ec, *below, indices{});
      const V se = detail::shift_up(wa, wc, indices{});
      const V ra = kernel_(na, wa, ca, ea, sa, *fa);
      const V rb = kernel_(nb, wb, cb, eb, sb, *fb);
      const V rc = kernel_(nc, wc, cc, ec, sc, *fc);
      const V re = kernel_(ne, we, ce, wa, se, *fe);
      first.see(ca, ra), second.see(cb, rb), first.see(cc, rc), second.see(ce, re);
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

  Grid& grid_;
  skewed_shape<lanes> shape_;
  const Kernel& kernel_;
  const Changes* changes_;
  long sweeps_, strips_, last_, diagonals_, positions_;
};

}  // namespace weft::inline WEFT_ABI::wavefront
