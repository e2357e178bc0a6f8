// SPDX-License-Identifier: BSL-1.0
// A window of strips of a grid, in the skewed layout, that moves over a file.
#pragma once

#include <weft/ooc/grid_file.hpp>
#include <weft/wavefront/chained_sweeps.hpp>

namespace weft::inline WEFT_ABI::ooc::detail {

/// Strips are loaded and stored in units of `unit_strips`; unit u lies where unit u + units will. It is the
/// Grid of wavefront::chained_sweeps.
/// *Thread safety*: the caller orders those who load, compute and store.
template <class T, std::size_t Fields, int Lanes>
class skewed_window {
 public:
  using value_type = T;
  using vector_type = wavefront::vector<T, Lanes>;
  using coefficients = typename wavefront::skewed_grid<T, Fields, Lanes>::coefficients;
  static constexpr int lanes = Lanes;

  /// Rows of a strip.
  static std::size_t strip_rows(const grid_geometry&) noexcept { return Lanes; }
  /// Bytes of memory for a window.
  static std::size_t bytes(const grid_geometry& g, std::size_t unit_strips, std::size_t units) {
    const std::size_t length = wavefront::skewed_shape<Lanes>{g.rows, g.columns}.length();
    return 2 * aligned(length * sizeof(vector_type)) +
           units * (aligned(unit_strips * length * sizeof(vector_type)) +
                    aligned(unit_strips * length * sizeof(coefficients)));
  }

  skewed_window(memory_budget& budget, const grid_file<T, Fields>& grid, std::size_t unit_strips,
                std::size_t units)
      : geometry_(grid.geometry()),
        west_(grid.west()),
        east_(grid.east()),
        south_row_(grid.south()),
        shape_{geometry_.rows, geometry_.columns},
        length_(shape_.length()),
        unit_strips_(unit_strips),
        north_(budget, length_ * sizeof(vector_type)),
        south_(budget, length_ * sizeof(vector_type)) {
    for (std::size_t i = 0; i < units; ++i) {
      values_.emplace_back(budget, unit_strips * length_ * sizeof(vector_type));
      fields_.emplace_back(budget, unit_strips * length_ * sizeof(coefficients));
    }
    for (std::size_t c = 0; c < shape_.columns + 2; ++c)
      elements<vector_type>(north_)[2 * Lanes - 1 + c][Lanes - 1] = grid.north()[c];
    set_south_(shape_.strips() + 1);
  }

  const wavefront::skewed_shape<Lanes>& shape() const noexcept { return shape_; }
  vector_type* strip(long s) const noexcept { return strip_(static_cast<std::size_t>(s)) + Lanes; }
  const coefficients* strip_fields(long s) const noexcept {
    return strip_fields_(static_cast<std::size_t>(s)) + Lanes;
  }

  /// Takes in the values and coefficients of a tile.
  void load(std::size_t tile, const std::byte* values, const std::byte* fields) {
    const tile_shape t = geometry_.tile(tile);
    const T* const v = reinterpret_cast<const T*>(values);
    const T* const f = reinterpret_cast<const T*>(fields);
    const std::size_t pitch = geometry_.pitch(t), field = geometry_.field_pitch(t);
    for (std::size_t s = strip_of_(t.row); s <= strip_of_(t.row + t.rows - 1); ++s) {
      if (geometry_.layout != layout::optimized)
        rows_in_(t, s, v, pitch, [to = strip_(s)](std::size_t p) -> vector_type& { return to[p]; });
      else
        points_in_(t, s, v);
      for (std::size_t i = 0; i < Fields; ++i)
        rows_in_(t, s, f + i * field, pitch,
                 [to = strip_fields_(s), i](std::size_t p) -> vector_type& { return to[p].of[i]; });
      if (t.column == 0) edge_(t, s, west_, 0);
      if (t.column + t.columns == shape_.columns) edge_(t, s, east_, shape_.columns + 1);
    }
    if (t.row + t.rows == shape_.rows && shape_.rows % Lanes != 0) set_south_(shape_.strips());
  }
  /// Gives the values of a tile.
  void store(std::size_t tile, std::byte* values) const {
    const tile_shape t = geometry_.tile(tile);
    T* const v = reinterpret_cast<T*>(values);
    for (std::size_t r = 0; r < t.rows; ++r) {
      const auto [place, lane] = shape_.at(t.row + r + 1, t.column + 1);
      const vector_type* const from = strip_(strip_of_(t.row + r)) + place % length_;
      if (geometry_.layout != layout::optimized)
        for (std::size_t c = 0; c < t.columns; ++c) v[r * geometry_.pitch(t) + c] = from[c][lane];
      else
        for (std::size_t c = 0; c < t.columns; ++c) v[geometry_.place(t, r, c)] = from[c][lane];
    }
  }

 private:
  /// The strip of an inner row, counted from 0.
  static std::size_t strip_of_(std::size_t row) noexcept { return row / Lanes + 1; }
  vector_type* strip_(std::size_t s) const noexcept {
    if (s == 0) return elements<vector_type>(north_);
    if (s > shape_.strips()) return elements<vector_type>(south_);
    const std::size_t unit = (s - 1) / unit_strips_;
    return elements<vector_type>(values_[unit % values_.size()]) + (s - 1) % unit_strips_ * length_;
  }
  coefficients* strip_fields_(std::size_t s) const noexcept {
    if (s == 0 || s > shape_.strips()) return nullptr;
    const std::size_t unit = (s - 1) / unit_strips_;
    return elements<coefficients>(fields_[unit % fields_.size()]) + (s - 1) % unit_strips_ * length_;
  }

  /// Rows of a tile, beginning at `from`, into their lanes of the strip; `to(p)` is the vector at place p.
  template <class To>
  static void rows_in_(const tile_shape& t, std::size_t s, const T* from, std::size_t pitch, To to) {
    const std::size_t row0 = (s - 1) * Lanes;
    const T* row[Lanes];
    std::size_t first = 0, end = Lanes;  // lanes that the tile has
    while (row0 + first < t.row) ++first;
    while (row0 + end > t.row + t.rows) --end;
    for (std::size_t l = first; l < end; ++l) row[l] = from + (row0 + l - t.row) * pitch;
    const std::size_t zero = Lanes + 1 + t.column;  // where column 0 of the tile lies in lane 0
    const auto some = [&](std::size_t p0, std::size_t p1) {
      for (std::size_t p = p0; p < p1; ++p) {
        vector_type& v = to(p);
        for (std::size_t l = first; l < end; ++l) {
          const std::size_t c = p - zero - l;
          if (p >= zero + l && c < t.columns) v[l] = row[l][c];
        }
      }
    };
    if (first != 0 || end != Lanes || t.columns < Lanes) return some(zero, zero + t.columns + Lanes - 1);
    some(zero, zero + Lanes - 1);
    for (std::size_t p = zero + Lanes - 1; p < zero + t.columns; ++p) {
      vector_type v;
      for (std::size_t l = 0; l < Lanes; ++l) v[l] = row[l][p - zero - l];
      to(p) = v;
    }
    some(zero + t.columns, zero + t.columns + Lanes - 1);
  }
  /// Points that are not in rows.
  void points_in_(const tile_shape& t, std::size_t s, const T* from) {
    for (std::size_t l = 0; l < Lanes; ++l) {
      const std::size_t row = (s - 1) * Lanes + l;
      if (row < t.row || row >= t.row + t.rows) continue;
      vector_type* const to = strip_(s) + Lanes + l + 1 + t.column;
      for (std::size_t c = 0; c < t.columns; ++c) to[c][l] = from[geometry_.place(t, row - t.row, c)];
    }
  }
  /// The boundary column `column` of the rows of a tile that lie in a strip.
  void edge_(const tile_shape& t, std::size_t s, const T* from, std::size_t column) {
    for (std::size_t l = 0; l < Lanes; ++l) {
      const std::size_t row = (s - 1) * Lanes + l;
      if (row >= t.row && row < t.row + t.rows) strip_(s)[Lanes + column + l][l] = from[row];
    }
  }
  /// The southern boundary row, if it lies in this strip.
  void set_south_(std::size_t s) {
    const auto [place, lane] = shape_.at(shape_.rows + 1, 0);
    if (place / length_ != s) return;
    for (std::size_t c = 0; c < shape_.columns + 2; ++c) strip_(s)[place % length_ + c][lane] = south_row_[c];
  }

  const grid_geometry& geometry_;
  const T* west_;
  const T* east_;
  const T* south_row_;
  wavefront::skewed_shape<Lanes> shape_;
  std::size_t length_, unit_strips_;
  aligned_buffer north_, south_;
  std::vector<aligned_buffer> values_, fields_;
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
