// SPDX-License-Identifier: BSL-1.0
// The policy in_core: the file is mapped, and the operating system reads and writes its pages.
#pragma once

#include <weft/ooc/detail/tile_pass.hpp>

#include <sys/mman.h>

namespace weft::inline WEFT_ABI::ooc::detail {

/// A pass of one sweep over mapped memory; the baseline of the paper. The pages of a tile are brought into
/// memory before it is computed, so that one that cannot be read is an error and not a SIGBUS. It is one
/// still where the kernel does not know that (before Linux 5.14), or has taken the page away meanwhile.
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
  /// *Throws*: std::system_error, with path and offset; cancelled if it ends early, without waiting for the
  /// device.
  template <class Stopped>
  void run(Stopped stopped, const largest_changes* changes) {
    frontier_.changes = changes;
    const grid_geometry& g = grid_.geometry();
    const unsigned version = grid_.version();
    std::copy_n(grid_.north(), g.columns + 2, elements<T>(frontier_.north));
    const auto values = [&](std::size_t tile, unsigned v) {
      return reinterpret_cast<T*>(at_ + g.values(tile, v).offset);
    };
    need_(g.values(0, version), need::read);
    for (std::size_t i = 0; i < g.tiles(); ++i) {
      if (stopped()) throw cancelled();
      need_around_(i);
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
  enum class need { read, write };
  /// What a tile needs besides its old values, which the one before it has needed.
  void need_around_(std::size_t tile) const {
    const grid_geometry& g = grid_.geometry();
    const std::size_t below = tile + g.tiles_across();
    if (tile + 1 < g.tiles()) need_(g.values(tile + 1, grid_.version()), need::read);
    if (below < g.tiles()) need_(g.first_row(below, grid_.version()), need::read);
    for (std::size_t i = 0; i < g.field_extents(); ++i) need_(g.field_extent(tile, i), need::read);
    need_(g.values(tile, 1 - grid_.version()), need::write);
  }
  /// Brings a part of the file into memory. *Throws*: std::system_error with the offset of the first page for
  /// which that fails.
  void need_(const file_extent& e, need how) const {
    if (advised_(e.offset, e.size, how) == 0) return;
    for (std::uint64_t at = e.offset; at < e.offset + e.size; at += file_alignment)
      if (const int why = advised_(at, file_alignment, how)) {
        const io::file& f = grid_.file();
        // The kernel says EFAULT where an access would be a SIGBUS: the file ends before, or the device
        // failed.
        const int code = why != EFAULT ? why : at >= f.size() ? ENODATA : EIO;
        io::fail(code, how == need::write ? "write" : "read", f.path(), at);
      }
  }
  /// *Returns*: 0, or the errno value with which pages cannot be had.
  int advised_(std::uint64_t offset, std::size_t size, need how) const noexcept {
    constexpr int populate_read = 22, populate_write = 23;  // MADV_POPULATE_*, which glibc has since 2.35
    for (;;) {
      if (::madvise(at_ + offset, size, how == need::write ? populate_write : populate_read) == 0) return 0;
      if (errno == EINVAL || errno == EAGAIN) return 0;  // not known there; not now
      if (errno != EINTR) return errno;
    }
  }
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
