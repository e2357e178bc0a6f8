// SPDX-License-Identifier: BSL-1.0
// Grids in a skewed layout, in which a sweep that uses its own new values fills whole vectors.
#pragma once

#include <weft/base/config.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace weft::inline WEFT_ABI::wavefront {

/// A vector of `Lanes` values, with arithmetic element by element. What a processor does not have is made of
/// smaller ones, with the same bits.
template <class T, int Lanes>
using vector [[gnu::vector_size(sizeof(T) * Lanes)]] = T;

/// How many values of type T the vectors of the target processor hold.
#if defined(__AVX512F__)
template <class T>
inline constexpr int native_lanes = 64 / sizeof(T);
#elif defined(__AVX__)
template <class T>
inline constexpr int native_lanes = 32 / sizeof(T);
#else
template <class T>
inline constexpr int native_lanes = 16 / sizeof(T);
#endif

/// Where the points of `rows` x `columns` inner points, and a border of one all around, lie in the skewed
/// layout: a strip holds `Lanes` rows, and the vector at its position p holds, of its row l, the column p -
/// l. So all points of a vector can be computed at once although each needs its western and its northern
/// neighbour.
template <int Lanes>
struct skewed_shape {
  /// Rows of the grid, without its border.
  std::size_t rows;
  /// Columns of the grid, without its border.
  std::size_t columns;

  /// Strips of inner rows; the border rows lie in strips before and behind.
  std::size_t strips() const noexcept { return (rows + Lanes - 1) / Lanes; }
  /// Positions of a strip that compute something are 1 to this, inclusive.
  std::size_t last() const noexcept { return columns + Lanes - 1; }
  /// Vectors of one strip in memory: also those that neighbours look at, before and behind.
  std::size_t length() const noexcept { return columns + 4 * Lanes + 2; }
  /// How many vectors the grid takes.
  std::size_t vectors() const noexcept { return length() * (strips() + 2); }
  /// The place of a position of a strip; strip 0 holds the northern border row in its last lane.
  std::size_t place(std::size_t strip, std::ptrdiff_t position) const noexcept {
    return strip * length() + static_cast<std::size_t>(position + Lanes);
  }
  /// The vector and the lane of a point. Row and column 0 are border.
  std::pair<std::size_t, int> at(std::size_t row, std::size_t column) const noexcept {
    const std::size_t line = row + Lanes - 1;
    const auto lane = static_cast<int>(line % Lanes);
    return {place(line / Lanes, static_cast<std::ptrdiff_t>(column) + lane), lane};
  }
};

namespace detail {

struct free_aligned {
  void operator()(void* p) const noexcept { ::operator delete(p, std::align_val_t{64}); }
};

/// Zeroed memory for vectors.
/// *Throws*: std::bad_alloc.
using aligned_memory = std::unique_ptr<void, free_aligned>;
inline aligned_memory zeroed(std::size_t bytes) {
  aligned_memory m(::operator new(bytes, std::align_val_t{64}));
  std::memset(m.get(), 0, bytes);
  return m;
}

}  // namespace detail

/// A grid of values in the skewed layout, with `Fields` constant coefficients per point beside it.
/// *Throws*: std::bad_alloc from the constructor.
/// *Thread safety*: as a plain array.
template <class T, std::size_t Fields, int Lanes = native_lanes<T>>
class skewed_grid {
 public:
  /// The type of the value.
  using value_type = T;
  /// The type of a vector of values.
  using vector_type = vector<T, Lanes>;
  /// The coefficients of the points of a vector.
  struct coefficients {
    /// One vector for each field.
    vector_type of[Fields == 0 ? 1 : Fields];
    /// One element.
    /// *Requires*: `i` is less than their number.
    const vector_type& operator[](std::size_t i) const noexcept { return of[i]; }
  };
  /// How many values a vector has.
  static constexpr int lanes = Lanes;

  /// A grid of zeros.
  /// *Throws*: std::bad_alloc.
  skewed_grid(std::size_t rows, std::size_t columns)
      : shape_{rows, columns},
        values_(detail::zeroed(shape_.vectors() * sizeof(vector_type))),
        fields_(detail::zeroed(shape_.vectors() * sizeof(coefficients))) {}

  /// Its shape.
  const skewed_shape<Lanes>& shape() const noexcept { return shape_; }
  /// All values, in the skewed layout.
  vector_type* values() noexcept { return static_cast<vector_type*>(values_.get()); }
  /// All values, in the skewed layout.
  const vector_type* values() const noexcept { return static_cast<const vector_type*>(values_.get()); }
  /// The coefficients, in the same layout.
  const coefficients* fields() const noexcept { return static_cast<const coefficients*>(fields_.get()); }

  /// The values of a strip, at its position 0.
  vector_type* strip(long s) noexcept { return values() + shape_.place(static_cast<std::size_t>(s), 0); }
  /// The coefficients of a strip, at its position 0.
  const coefficients* strip_fields(long s) const noexcept {
    return fields() + shape_.place(static_cast<std::size_t>(s), 0);
  }

  /// The value, or a coefficient, of a point; row 0 and rows() + 1 are border, as are the columns.
  T get(std::size_t row, std::size_t column) const noexcept {
    const auto [v, lane] = shape_.at(row, column);
    return values()[v][lane];
  }
  /// Sets one value.
  void set(std::size_t row, std::size_t column, T value) noexcept {
    const auto [v, lane] = shape_.at(row, column);
    values()[v][lane] = value;
  }
  /// Sets one coefficient.
  void set_field(std::size_t field, std::size_t row, std::size_t column, T value) noexcept {
    const auto [v, lane] = shape_.at(row, column);
    static_cast<coefficients*>(fields_.get())[v].of[field][lane] = value;
  }

 private:
  skewed_shape<Lanes> shape_;
  detail::aligned_memory values_;
  detail::aligned_memory fields_;
};

}  // namespace weft::inline WEFT_ABI::wavefront
