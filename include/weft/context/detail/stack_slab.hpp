// SPDX-License-Identifier: BSL-1.0
// Many stacks side by side in one mapping, without guards between them.
#pragma once

#include <weft/context/stack.hpp>

#include <bit>

namespace weft::inline WEFT_ABI::context::detail {

/// As many stacks as a word has bits. *Thread safety*: one thread at a time; its stacks are values of their
/// own.
class stack_slab {
 public:
  static constexpr unsigned most = 64;

  /// For stacks of `bytes`, rounded up to whole pages. *Throws*: std::system_error.
  explicit stack_slab(std::size_t bytes)
      : bytes_((bytes + page_size() - 1) / page_size() * page_size()),
        memory_(map_pages(size_(bytes_), bytes)) {}
  stack_slab(const stack_slab&) = delete;
  stack_slab& operator=(const stack_slab&) = delete;
  /// *Requires*: all stacks came back.
  ~stack_slab() { munmap(memory_, size_(bytes_)); }

  bool full() const noexcept { return free_ == 0; }
  bool unused() const noexcept { return ~free_ == 0; }
  /// *Requires*: it is not full.
  stack take() noexcept {
    const auto i = static_cast<std::size_t>(std::countr_zero(free_));
    free_ &= free_ - 1;
    return stack(memory_ + i * bytes_, bytes_, *this);
  }
  void give_back(stack&& s) noexcept {
    const stack gone(std::move(s));
    const auto i = static_cast<std::size_t>(static_cast<std::byte*>(gone.lowest()) - memory_) / bytes_;
    free_ |= std::uint64_t{1} << i;
  }

  stack_slab* next = nullptr;  ///< among those that are not full
  stack_slab* previous = nullptr;

 private:
  static std::size_t size_(std::size_t bytes) {
    if (bytes > std::numeric_limits<std::size_t>::max() / most) refuse_stack(bytes, ENOMEM);
    return bytes * most;
  }

  std::size_t bytes_;
  std::byte* memory_;
  std::uint64_t free_ = ~std::uint64_t{0};
};

}  // namespace weft::inline WEFT_ABI::context::detail
