// SPDX-License-Identifier: BSL-1.0
// Memory beside a range, for elements that are rearranged.
#pragma once

#include <weft/base/config.hpp>

#include <cstddef>
#include <memory>
#include <ranges>
#include <vector>

namespace weft::inline WEFT_ABI::algorithms {

/// Memory for n elements, and those that were moved there.
///
/// Who may touch it when: each of `moved` belongs to the task that works on this part.
template <class T>
class workspace {
 public:
  /// For a range that is worked on in so many parts. *Throws*: std::bad_alloc.
  workspace(std::size_t n, std::size_t parts)
      : moved(parts), n_(n), first_(std::allocator<T>().allocate(n)) {}
  workspace(const workspace&) = delete;
  workspace& operator=(const workspace&) = delete;
  ~workspace() {
    for (const auto& p : moved) std::destroy(p.begin(), p.end());
    std::allocator<T>().deallocate(first_, n_);
  }
  T* data() const noexcept { return first_; }

  std::vector<std::ranges::subrange<T*>> moved;  ///< by part; empty: nothing was moved there

 private:
  std::size_t n_;
  T* first_;
};

}  // namespace weft::inline WEFT_ABI::algorithms
