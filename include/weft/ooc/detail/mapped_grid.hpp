// SPDX-License-Identifier: BSL-1.0
// A grid file in mapped memory.
#pragma once

#include <weft/ooc/grid_file.hpp>

#include <fcntl.h>
#include <sys/mman.h>

namespace weft::inline WEFT_ABI::ooc::detail {

/// A mapped grid file. Pages are brought into memory before they are used, so that one that cannot be read is
/// an error and not a SIGBUS. It is one still where the kernel does not know that (before Linux 5.14), or has
/// taken the page away meanwhile.
template <class T, std::size_t Fields>
class mapped_grid {
 public:
  /// *Throws*: std::system_error if the file cannot be mapped.
  explicit mapped_grid(grid_file<T, Fields>& grid) : grid_(grid), size_(grid.geometry().file_bytes()) {
    void* const at = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, grid.file().descriptor(), 0);
    if (at == MAP_FAILED) io::fail(errno, "map", grid.file().path());
    at_ = static_cast<std::byte*>(at);
  }
  mapped_grid(const mapped_grid&) = delete;
  mapped_grid& operator=(const mapped_grid&) = delete;
  ~mapped_grid() { ::munmap(at_, size_); }

  /// The values of a tile.
  T* values(std::size_t tile, unsigned version) const noexcept {
    return reinterpret_cast<T*>(at_ + grid_.geometry().values(tile, version).offset);
  }
  /// The first coefficients of a tile.
  const T* fields(std::size_t tile) const noexcept { return field_(tile, 0); }
  /// Elements from one coefficient to the next one of the same point, in the file.
  std::size_t field_pitch(std::size_t tile) const noexcept {
    const grid_geometry& g = grid_.geometry();
    return g.field_extents() > 1 ? static_cast<std::size_t>(field_(tile, 1) - field_(tile, 0))
                                 : g.field_pitch(g.tile(tile));
  }

  /// Brings a part of the file into memory. *Throws*: std::system_error with the offset of the first page for
  /// which that fails; as the next one.
  void read(const file_extent& e) const { need_(e, populate_read); }
  /// Brings the coefficients of a tile into memory, and makes its values of the version `after` writable.
  void read_fields_and_write(std::size_t tile, unsigned after) const {
    const grid_geometry& g = grid_.geometry();
    for (std::size_t i = 0; i < g.field_extents(); ++i) read(g.field_extent(tile, i));
    need_(g.values(tile, after), populate_write);
  }
  /// Waits until everything is on the device. *Throws*: std::system_error.
  void sync() const {
    while (::msync(at_, size_, MS_SYNC) != 0)
      if (errno != EINTR) io::fail(errno, "bring to the device", grid_.file().path());
  }

 private:
  static constexpr int populate_read = 22, populate_write = 23;  // MADV_POPULATE_*, in glibc since 2.35

  void need_(const file_extent& e, int how) const {
    if (advised_(e.offset, e.size, how) == 0) return;
    for (std::uint64_t at = e.offset; at < e.offset + e.size; at += file_alignment)
      if (const int why = advised_(at, file_alignment, how)) {
        const io::file& f = grid_.file();
        // EFAULT where an access would be a SIGBUS: the file ends before, or the device has failed.
        int code = why != EFAULT ? why : at >= f.size() ? ENODATA : EIO;
        // Or there was no room for it.
        if (code == EIO && how == populate_write &&
            ::fallocate(f.descriptor(), 0, static_cast<off_t>(at), file_alignment) != 0 &&
            (errno == ENOSPC || errno == EDQUOT))
          code = errno;
        io::fail(code, how == populate_write ? "write" : "read", f.path(), at);
      }
  }
  /// *Returns*: 0, or the errno value with which pages cannot be had.
  int advised_(std::uint64_t offset, std::size_t size, int how) const noexcept {
    for (;;) {
      if (::madvise(at_ + offset, size, how) == 0) return 0;
      if (errno == EINVAL || errno == EAGAIN) return 0;  // not known there; not now
      if (errno != EINTR) return errno;
    }
  }
  const T* field_(std::size_t tile, std::size_t which) const noexcept {
    return reinterpret_cast<const T*>(at_ + grid_.geometry().field_extent(tile, which).offset);
  }

  grid_file<T, Fields>& grid_;
  std::size_t size_;
  std::byte* at_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
