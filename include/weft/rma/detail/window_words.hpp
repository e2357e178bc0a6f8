// SPDX-License-Identifier: BSL-1.0
// Words of other processes: in memory that the processes of a node share, or through MPI.
#pragma once

#include <weft/mpi/communicator.hpp>
#include <weft/rma/words.hpp>

#include <atomic>
#include <cstddef>
#include <vector>

namespace weft::inline WEFT_ABI::rma::detail {

/// Words at addresses of this process. A store releases, a load acquires, and the others do both.
class shared_words {
 public:
  /// `first[p]`: the first word of process p.
  shared_words(std::vector<std::uint64_t*> first, process self) : first_(std::move(first)), self_(self) {}
  process self() const noexcept { return self_; }
  std::uint64_t load(process p, std::uint32_t i) const noexcept {
    return at_(p, i).load(std::memory_order_acquire);
  }
  void store(process p, std::uint32_t i, std::uint64_t v) const noexcept {
    at_(p, i).store(v, std::memory_order_release);
  }
  std::uint64_t fetch_add(process p, std::uint32_t i, std::uint64_t v) const noexcept {
    return at_(p, i).fetch_add(v, std::memory_order_acq_rel);
  }
  std::uint64_t fetch_or(process p, std::uint32_t i, std::uint64_t v) const noexcept {
    return at_(p, i).fetch_or(v, std::memory_order_acq_rel);
  }
  std::uint64_t exchange(process p, std::uint32_t i, std::uint64_t v) const noexcept {
    return at_(p, i).exchange(v, std::memory_order_acq_rel);
  }
  std::uint64_t compare_exchange(process p, std::uint32_t i, std::uint64_t expected,
                                 std::uint64_t v) const noexcept {
    at_(p, i).compare_exchange_strong(expected, v, std::memory_order_acq_rel, std::memory_order_acquire);
    return expected;
  }

 private:
  std::atomic_ref<std::uint64_t> at_(process p, std::uint32_t i) const noexcept {
    return std::atomic_ref<std::uint64_t>(first_[static_cast<std::size_t>(p)][i]);
  }
  std::vector<std::uint64_t*> first_;
  process self_;
};

/// Words at the beginning of a window of MPI, in an epoch that MPI_Win_lock_all has begun. *Throws*:
/// mpi::error.
class mpi_words {
 public:
  mpi_words(MPI_Win window, process self) noexcept : window_(window), self_(self) {}
  process self() const noexcept { return self_; }
  std::uint64_t load(process p, std::uint32_t i) const { return fetch_and_op_(p, i, 0, MPI_NO_OP); }
  void store(process p, std::uint32_t i, std::uint64_t v) const { fetch_and_op_(p, i, v, MPI_REPLACE); }
  std::uint64_t fetch_add(process p, std::uint32_t i, std::uint64_t v) const {
    return fetch_and_op_(p, i, v, MPI_SUM);
  }
  std::uint64_t fetch_or(process p, std::uint32_t i, std::uint64_t v) const {
    return fetch_and_op_(p, i, v, MPI_BOR);
  }
  std::uint64_t exchange(process p, std::uint32_t i, std::uint64_t v) const {
    return fetch_and_op_(p, i, v, MPI_REPLACE);
  }
  std::uint64_t compare_exchange(process p, std::uint32_t i, std::uint64_t expected, std::uint64_t v) const {
    std::uint64_t was = 0;
    mpi::detail::check(MPI_Compare_and_swap(&v, &expected, &was, MPI_UINT64_T, p, place_(i), window_),
                       "MPI_Compare_and_swap");
    flush_(p);
    return was;
  }

 private:
  static MPI_Aint place_(std::uint32_t i) noexcept {
    return static_cast<MPI_Aint>(i * sizeof(std::uint64_t));
  }
  void flush_(process p) const { mpi::detail::check(MPI_Win_flush(p, window_), "MPI_Win_flush"); }
  std::uint64_t fetch_and_op_(process p, std::uint32_t i, std::uint64_t v, MPI_Op op) const {
    std::uint64_t was = 0;
    mpi::detail::check(MPI_Fetch_and_op(&v, &was, MPI_UINT64_T, p, place_(i), op, window_),
                       "MPI_Fetch_and_op");
    flush_(p);
    return was;
  }
  MPI_Win window_;
  process self_;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
