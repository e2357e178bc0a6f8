// SPDX-License-Identifier: BSL-1.0
// Words in memory that this process has mapped.
#pragma once

#include <weft/rma/words.hpp>

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::rma::detail {

/// Words at addresses of this process. Locks decide by operations on several words who comes first: hence the
/// sequentially consistent order of all operations but stores, which costs nothing on x86. A store releases
/// what its process has done before, and needs no more (see remote_words); there, a stronger one would cost
/// each lock three locked instructions. Partners are the operations of other processes on the same word.
class shared_words {
 public:
  /// `first[p]`: the first word of process p.
  shared_words(std::vector<std::uint64_t*> first, process self) : first_(std::move(first)), self_(self) {}
  process self() const noexcept { return self_; }
  std::uint64_t load(process p, std::uint32_t i) const noexcept {
    return at_(p, i).load(std::memory_order_seq_cst);
  }
  void store(process p, std::uint32_t i, std::uint64_t v) const noexcept {
    at_(p, i).store(v, std::memory_order_release);
  }
  std::uint64_t fetch_add(process p, std::uint32_t i, std::uint64_t v) const noexcept {
    return at_(p, i).fetch_add(v, std::memory_order_seq_cst);
  }
  std::uint64_t fetch_or(process p, std::uint32_t i, std::uint64_t v) const noexcept {
    return at_(p, i).fetch_or(v, std::memory_order_seq_cst);
  }
  std::uint64_t exchange(process p, std::uint32_t i, std::uint64_t v) const noexcept {
    return at_(p, i).exchange(v, std::memory_order_seq_cst);
  }
  std::uint64_t compare_exchange(process p, std::uint32_t i, std::uint64_t expected,
                                 std::uint64_t v) const noexcept {
    at_(p, i).compare_exchange_strong(expected, v, std::memory_order_seq_cst);
    return expected;
  }

 private:
  std::atomic_ref<std::uint64_t> at_(process p, std::uint32_t i) const noexcept {
    return std::atomic_ref<std::uint64_t>(first_[static_cast<std::size_t>(p)][i]);
  }
  std::vector<std::uint64_t*> first_;
  process self_;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
