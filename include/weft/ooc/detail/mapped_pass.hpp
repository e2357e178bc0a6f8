// SPDX-License-Identifier: BSL-1.0
// The policy in_core: the file is mapped, and the operating system reads and writes its pages.
#pragma once

#include <weft/ooc/detail/tile_pass.hpp>

#include <sys/mman.h>

namespace weft::inline WEFT_ABI::ooc::detail {

/// A pass of one sweep over mapped memory; the baseline of the paper. A file that somebody cuts meanwhile is
/// a SIGBUS.
/// *Source*: Caron, Desprez, Suter 2004, section 5.
template <class T, std::size_t Fields, class Kernel>
class mapped_pass {
 public:
  /// Bytes of memory besides the mapped pages.
  static std::size_t bytes(const grid_geometry& g, std::size_t boundary_bytes) {
    return boundary_bytes + frontier<T>::bytes(g);
  }
  /// *Throws*: std::system_error if the file cannot be mapped; std::bad_alloc.
  mapped_pass(memory_budget& budget, grid_file<T, Fields>& grid, const Kernel& kernel)
      : grid_(grid),
        kernel_(kernel),
        size_(grid.geometry().file_bytes()),
        frontier_(budget, grid.geometry()) {
    void* const at = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, grid.file().descriptor(), 0);
    if (at == MAP_FAILED) io::fail(errno, "map", grid.file().path());
    at_ = static_cast<std::byte*>(at);
  }
  mapped_pass(const mapped_pass&) = delete;
  mapped_pass& operator=(const mapped_pass&) = delete;
  ~mapped_pass() { ::munmap(at_, size_); }

  /// Does one sweep. `stopped()`: whether to end before the next tile; `changes`: as tile_pass::run.
  /// *Throws*: std::system_error; cancelled if it ends early, without waiting for the device.
  template <class Stopped>
  void run(Stopped stopped, const largest_changes* changes) {
    frontier_.changes = changes;
    const grid_geometry& g = grid_.geometry();
    const unsigned version = grid_.version();
    std::copy_n(grid_.north(), g.columns + 2, elements<T>(frontier_.north));
    const auto values = [&](std::size_t tile, unsigned v) {
      return reinterpret_cast<T*>(at_ + g.values(tile, v).offset);
    };
    for (std::size_t i = 0; i < g.tiles(); ++i) {
      if (stopped()) throw cancelled();
      const tile_shape t = g.tile(i);
      if (t.column == 0) std::copy_n(grid_.west() + t.row, t.rows, elements<T>(frontier_.west));
      const std::size_t below = i + g.tiles_across();
      const T* const south = below < g.tiles() ? values(below, version) : grid_.south() + 1 + t.column;
      const bool right = t.column + t.columns == g.columns;
      const tile_shape beside = right ? t : g.tile(i + 1);
      const auto east = [&](std::size_t r) {
        return right ? grid_.east()[t.row + r] : values(i + 1, version)[g.place(beside, r, 0)];
      };
      sweep_behind(g, t, values(i, version), values(i, 1 - version), field_(i, 0), pitch_(i), south, east,
                   frontier_, kernel_);
    }
    while (::msync(at_, size_, MS_SYNC) != 0)
      if (errno != EINTR) io::fail(errno, "bring to the device", grid_.file().path());
  }

 private:
  const T* field_(std::size_t tile, std::size_t which) const {
    return reinterpret_cast<const T*>(at_ + grid_.geometry().field_extent(tile, which).offset);
  }
  /// Elements from one coefficient to the next one of the same point, in the file.
  std::size_t pitch_(std::size_t tile) const {
    const grid_geometry& g = grid_.geometry();
    return g.field_extents() > 1 ? static_cast<std::size_t>(field_(tile, 1) - field_(tile, 0))
                                 : g.field_pitch(g.tile(tile));
  }

  grid_file<T, Fields>& grid_;
  const Kernel& kernel_;
  std::size_t size_;
  std::byte* at_ = nullptr;
  frontier<T> frontier_;
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
