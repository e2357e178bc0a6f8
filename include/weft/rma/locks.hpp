// SPDX-License-Identifier: BSL-1.0
// Locks of a window, held as long as an object exists.
#pragma once

#include <weft/rma/window.hpp>

#include <chrono>
#include <mutex>

namespace weft::inline WEFT_ABI::rma {

/// Locks a target exclusively: no other process has a lock of it. `number`: which of the locks of the target,
/// if window_options::locks gives it several; as below. *Throws*: from the constructor, what
/// window::lock_exclusive throws.
template <class T, class Group = mpi::communicator>
class exclusive_lock {
 public:
  /// Waits for the lock.
  exclusive_lock(window<T, Group>& w, process target, unsigned number = 0)
      : window_(w), target_(target), number_(number), owns_(true) {
    w.lock_exclusive(target, number);
  }
  /// Takes the lock if nobody else has it.
  exclusive_lock(window<T, Group>& w, process target, std::try_to_lock_t, unsigned number = 0)
      : window_(w), target_(target), number_(number), owns_(w.try_lock_exclusive(target, number)) {}
  /// Tries to take the lock, for so long at most.
  exclusive_lock(window<T, Group>& w, process target, std::chrono::nanoseconds limit, unsigned number = 0)
      : window_(w),
        target_(target),
        number_(number),
        owns_(w.try_lock_exclusive_for(target, limit, number)) {}
  exclusive_lock(const exclusive_lock&) = delete;
  exclusive_lock& operator=(const exclusive_lock&) = delete;
  ~exclusive_lock() {
    if (owns_) window_.unlock_exclusive(target_, number_);
  }
  /// Whether it has the lock.
  bool owns_lock() const noexcept { return owns_; }
  /// The same.
  explicit operator bool() const noexcept { return owns_; }

 private:
  window<T, Group>& window_;
  process target_;
  unsigned number_;
  bool owns_;
};

/// Locks a target for reading: other processes may have shared locks of it.
/// *Throws*: from the constructor, what window::lock_shared throws.
template <class T, class Group = mpi::communicator>
class shared_lock {
 public:
  /// Waits for the lock.
  shared_lock(window<T, Group>& w, process target, unsigned number = 0)
      : window_(w), target_(target), number_(number), owns_(true) {
    w.lock_shared(target, number);
  }
  /// Takes the lock if no writer has it or waits for it.
  shared_lock(window<T, Group>& w, process target, std::try_to_lock_t, unsigned number = 0)
      : window_(w), target_(target), number_(number), owns_(w.try_lock_shared(target, number)) {}
  /// Tries to take the lock, for so long at most.
  shared_lock(window<T, Group>& w, process target, std::chrono::nanoseconds limit, unsigned number = 0)
      : window_(w), target_(target), number_(number), owns_(w.try_lock_shared_for(target, limit, number)) {}
  shared_lock(const shared_lock&) = delete;
  shared_lock& operator=(const shared_lock&) = delete;
  ~shared_lock() {
    if (owns_) window_.unlock_shared(target_, number_);
  }
  /// Whether it has the lock.
  bool owns_lock() const noexcept { return owns_; }
  /// The same.
  explicit operator bool() const noexcept { return owns_; }

 private:
  window<T, Group>& window_;
  process target_;
  unsigned number_;
  bool owns_;
};

/// Locks all targets for reading.
/// *Throws*: from the constructor, what window::lock_shared_all throws.
template <class T, class Group = mpi::communicator>
class shared_lock_all {
 public:
  /// Waits for the lock.
  explicit shared_lock_all(window<T, Group>& w, unsigned number = 0)
      : window_(w), number_(number), owns_(true) {
    w.lock_shared_all(number);
  }
  /// Takes the lock if no writer has a target or waits for one.
  shared_lock_all(window<T, Group>& w, std::try_to_lock_t, unsigned number = 0)
      : window_(w), number_(number), owns_(w.try_lock_shared_all(number)) {}
  /// Tries to take the lock, for so long at most.
  shared_lock_all(window<T, Group>& w, std::chrono::nanoseconds limit, unsigned number = 0)
      : window_(w), number_(number), owns_(w.try_lock_shared_all_for(limit, number)) {}
  shared_lock_all(const shared_lock_all&) = delete;
  shared_lock_all& operator=(const shared_lock_all&) = delete;
  ~shared_lock_all() {
    if (owns_) window_.unlock_shared_all(number_);
  }
  /// Whether it has the lock.
  bool owns_lock() const noexcept { return owns_; }
  /// The same.
  explicit operator bool() const noexcept { return owns_; }

 private:
  window<T, Group>& window_;
  unsigned number_;
  bool owns_;
};

}  // namespace weft::inline WEFT_ABI::rma
