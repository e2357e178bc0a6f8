// SPDX-License-Identifier: BSL-1.0
// Memory of other processes, reached through the one-sided operations of MPI.
#pragma once

#include <weft/mpi/communicator.hpp>
#include <weft/rma/detail/remote_memory.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::rma::detail {

/// A window of MPI, whose epoch is open as long as the object lives. The bytes of process p begin `begins[p]`
/// bytes after its part of the window.
class mpi_memory final : public remote_memory {
 public:
  mpi_memory(MPI_Win window, std::vector<MPI_Aint> begins) : window_(window), begins_(std::move(begins)) {
    mpi::detail::check(MPI_Win_lock_all(0, window_), "MPI_Win_lock_all");
  }
  ~mpi_memory() override { MPI_Win_unlock_all(window_); }

  void start_get(process target, std::size_t offset, void* to, std::size_t bytes) override {
    pieces_(bytes, [&](std::size_t at, int n) {
      mpi::detail::check(MPI_Get(static_cast<char*>(to) + at, n, MPI_BYTE, target,
                                 place_(target, offset + at), n, MPI_BYTE, window_),
                         "MPI_Get");
    });
  }
  void start_put(process target, std::size_t offset, const void* from, std::size_t bytes) override {
    pieces_(bytes, [&](std::size_t at, int n) {
      mpi::detail::check(MPI_Put(static_cast<const char*>(from) + at, n, MPI_BYTE, target,
                                 place_(target, offset + at), n, MPI_BYTE, window_),
                         "MPI_Put");
    });
  }
  void start_accumulate(process target, std::size_t offset, const void* from, std::size_t count,
                        number_type type, combine how) override {
    const MPI_Datatype t = datatype_(type);
    pieces_(count, [&](std::size_t at, int n) {
      int size = 0;
      MPI_Type_size(t, &size);
      const std::size_t bytes = at * static_cast<std::size_t>(size);
      mpi::detail::check(MPI_Accumulate(static_cast<const char*>(from) + bytes, n, t, target,
                                        place_(target, offset + bytes), n, t, operation_(how), window_),
                         "MPI_Accumulate");
    });
  }
  void finish(process target) override {
    mpi::detail::check(MPI_Win_flush(target, window_), "MPI_Win_flush");
  }
  std::uint64_t load(process target, std::size_t offset, number_type type) override {
    return fetch_(target, offset, type, MPI_NO_OP, 0);
  }
  std::uint64_t fetch(process target, std::size_t offset, number_type type, combine how,
                      std::uint64_t value) override {
    return fetch_(target, offset, type, operation_(how), value);
  }
  std::uint64_t compare_exchange(process target, std::size_t offset, number_type type, std::uint64_t expected,
                                 std::uint64_t wanted) override {
    std::uint64_t was = 0;
    mpi::detail::check(MPI_Compare_and_swap(&wanted, &expected, &was, datatype_(type), target,
                                            place_(target, offset), window_),
                       "MPI_Compare_and_swap");
    finish(target);
    return was;
  }

 private:
  MPI_Aint place_(process target, std::size_t offset) const noexcept {
    return begins_[static_cast<std::size_t>(target)] + static_cast<MPI_Aint>(offset);
  }
  static MPI_Datatype datatype_(number_type t) {
    return with_number(t, []<class T>(T) { return mpi::datatype<T>(); });
  }
  static MPI_Op operation_(combine how) noexcept {
    const MPI_Op all[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_REPLACE};
    return all[static_cast<int>(how)];
  }
  /// MPI counts with `int`.
  template <class F>
  static void pieces_(std::size_t all, F&& f) {
    constexpr std::size_t most = std::size_t{1} << 30;
    for (std::size_t at = 0; at < all; at += most) f(at, static_cast<int>(std::min(most, all - at)));
  }
  std::uint64_t fetch_(process target, std::size_t offset, number_type type, MPI_Op op, std::uint64_t value) {
    std::uint64_t was = 0;  // little-endian, as the value: a shorter element lies at the beginning
    mpi::detail::check(
        MPI_Fetch_and_op(&value, &was, datatype_(type), target, place_(target, offset), op, window_),
        "MPI_Fetch_and_op");
    finish(target);
    return was;
  }
  MPI_Win window_;
  std::vector<MPI_Aint> begins_;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
