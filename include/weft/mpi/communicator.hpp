// SPDX-License-Identifier: BSL-1.0
// A group of processes, and what they do together.
#pragma once

#include <weft/mpi/ending.hpp>
#include <weft/mpi/error.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::mpi {

/// Numbers that MPI can combine: integers, float and double. Not bool, whose sum is none, nor long double.
template <class T>
concept number = std::is_arithmetic_v<T> && !std::same_as<T, bool> && sizeof(T) <= 8;

/// The MPI datatype of a type of numbers.
template <number T>
MPI_Datatype datatype() noexcept {
  if constexpr (std::is_same_v<T, double>) {
    return MPI_DOUBLE;
  } else if constexpr (std::is_same_v<T, float>) {
    return MPI_FLOAT;
  } else {
    const MPI_Datatype is_signed[] = {MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T};
    const MPI_Datatype is_unsigned[] = {MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T};
    constexpr int log = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? is_signed[log] : is_unsigned[log];
  }
}

/// A group of processes, numbered from 0. All functions but rank() and size() are collective: every process
/// of the group calls them, in the same order.
/// *Throws*: mpi::error.
/// *Thread safety*: one thread at a time.
class communicator {
 public:
  /// Takes part in the group of `from`, apart from what else is sent there.
  explicit communicator(MPI_Comm from) {
    detail::check(MPI_Comm_dup(from, &handle_), "MPI_Comm_dup");
    adopt_();
  }
  /// Takes over the part of `other`.
  communicator(communicator&& other) noexcept
      : handle_(std::exchange(other.handle_, MPI_COMM_NULL)), rank_(other.rank_), size_(other.size_) {}
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;
  ~communicator() {
    int over = 0;
    if (handle_ != MPI_COMM_NULL && MPI_Finalized(&over) == MPI_SUCCESS && over == 0) MPI_Comm_free(&handle_);
  }

  /// The number of this process.
  int rank() const noexcept { return rank_; }
  /// How many processes there are.
  int size() const noexcept { return size_; }
  /// For calls of MPI.
  MPI_Comm handle() const noexcept { return handle_; }

  /// Returns when all processes have called it.
  void barrier() const { detail::check(MPI_Barrier(handle_), "MPI_Barrier"); }
  /// The sum of the values of all processes.
  template <number T>
  T sum(T value) const {
    return reduce_(value, MPI_SUM);
  }
  /// The largest of the values of all processes.
  template <number T>
  T max(T value) const {
    return reduce_(value, MPI_MAX);
  }
  /// The smallest of the values of all processes.
  template <number T>
  T min(T value) const {
    return reduce_(value, MPI_MIN);
  }
  /// The value of process `root`.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  T broadcast(T value, int root = 0) const {
    detail::check(MPI_Bcast(&value, sizeof value, MPI_BYTE, root, handle_), "MPI_Bcast");
    return value;
  }
  /// The values of all processes, by their numbers.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  std::vector<T> gather(const T& value) const {
    std::vector<T> all(static_cast<std::size_t>(size_));
    detail::check(MPI_Allgather(&value, sizeof value, MPI_BYTE, all.data(), sizeof value, MPI_BYTE, handle_),
                  "MPI_Allgather");
    return all;
  }
  /// The processes of the group that can share memory with this one.
  communicator node() const {
    MPI_Comm made = MPI_COMM_NULL;
    detail::check(MPI_Comm_split_type(handle_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made),
                  "MPI_Comm_split_type");
    return communicator(made, 0);
  }

  /// This process leaves a window by an exception, so others would wait for it for ever: ends the job when
  /// the process ends, or after a second. Who catches the exception can print its text until then.
  void abandon() noexcept {
    handle_ = MPI_COMM_NULL;  // to free it is collective
    end_job_soon("leaves the scope of a window by an exception");
  }
  /// Ends the job; prints who ends it, and why.
  [[noreturn]] void end_job(const std::string& why) const noexcept { mpi::end_job(why); }

 private:
  communicator(MPI_Comm own, int) : handle_(own) { adopt_(); }
  void adopt_() {
    MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(handle_, &rank_);
    MPI_Comm_size(handle_, &size_);
  }
  template <class T>
  T reduce_(T value, MPI_Op how) const {
    T all{};
    detail::check(MPI_Allreduce(&value, &all, 1, datatype<T>(), how, handle_), "MPI_Allreduce");
    return all;
  }

  MPI_Comm handle_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
};

}  // namespace weft::inline WEFT_ABI::mpi
