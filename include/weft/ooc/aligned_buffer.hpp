// SPDX-License-Identifier: BSL-1.0
// Memory for direct transfers, and a budget that counts it.
#pragma once

#include <weft/base/atomic.hpp>
#include <weft/base/error.hpp>
#include <weft/ooc/grid_layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace weft::inline WEFT_ABI::ooc {

/// Counts the memory that an operation uses.
/// *Thread safety*: any thread.
class memory_budget {
 public:
  /// No more than `limit` bytes shall be used at once.
  explicit memory_budget(std::size_t limit = SIZE_MAX) noexcept : limit_(limit) {}
  /// Counts `bytes` more. *Throws*: std::bad_alloc if they go beyond the limit.
  void take(std::size_t bytes) {
    // Relaxed: a count; the memory itself is handed over by other means.
    const std::size_t now = used_.fetch_add(bytes, base::memory_order_relaxed) + bytes;
    if (now > limit_) {
      used_.fetch_sub(bytes, base::memory_order_relaxed);
      throw std::bad_alloc();
    }
    for (std::size_t most = peak_.load(base::memory_order_relaxed);
         most < now && !peak_.compare_exchange_weak(most, now, base::memory_order_relaxed);) {
    }
  }
  /// Counts `bytes` less.
  void give_back(std::size_t bytes) noexcept { used_.fetch_sub(bytes, base::memory_order_relaxed); }
  /// Bytes that may be used at once.
  std::size_t limit() const noexcept { return limit_; }
  /// The most bytes that were used at once.
  std::size_t peak() const noexcept { return peak_.load(base::memory_order_relaxed); }

 private:
  std::size_t limit_;
  base::atomic<std::size_t> used_{0}, peak_{0};
};

/// Memory at an address that direct transfers accept, zeroed, counted in a budget. Move-only.
class aligned_buffer {
 public:
  aligned_buffer() noexcept = default;
  /// *Throws*: std::bad_alloc, also if the budget does not suffice.
  aligned_buffer(memory_budget& budget, std::size_t bytes) : budget_(&budget), size_(aligned(bytes)) {
    budget.take(size_);
    try {
      data_ = static_cast<std::byte*>(::operator new(size_, std::align_val_t{file_alignment}));
    } catch (...) {
      budget.give_back(size_);
      throw;
    }
    std::fill_n(data_, size_, std::byte{0});
  }
  /// Takes over the memory of `other`.
  aligned_buffer(aligned_buffer&& other) noexcept
      : budget_(other.budget_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  /// Exchanges the memory.
  aligned_buffer& operator=(aligned_buffer&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~aligned_buffer() {
    if (data_ == nullptr) return;
    ::operator delete(data_, std::align_val_t{file_alignment});
    budget_->give_back(size_);
  }

  /// The first byte.
  std::byte* data() const noexcept { return data_; }
  /// Its bytes.
  std::size_t size() const noexcept { return size_; }

 private:
  memory_budget* budget_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The memory as elements of an arithmetic type.
template <class T>
T* elements(const aligned_buffer& b) noexcept {
  return reinterpret_cast<T*>(b.data());
}

}  // namespace weft::inline WEFT_ABI::ooc
