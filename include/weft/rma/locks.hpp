// SPDX-License-Identifier: BSL-1.0
// Locks of a window, held as long as an object exists.
#pragma once

#include <weft/rma/window.hpp>

#include <chrono>
#include <mutex>

namespace weft::inline WEFT_ABI::rma {

/// Locks a target exclusively: no other process has a lock of it.
/// *Throws*: from the constructor, what window::lock_exclusive throws.
template <class T>
class exclusive_lock {
 public:
  /// Waits for the lock.
  exclusive_lock(window<T>& w, process target) : window_(w), target_(target), owns_(true) {
    w.lock_exclusive(target);
  }
  /// Takes the lock if nobody else has it.
  exclusive_lock(window<T>& w, process target, std::try_to_lock_t)
      : window_(w), target_(target), owns_(w.try_lock_exclusive(target)) {}
  /// Tries to take the lock, for so long at most.
  exclusive_lock(window<T>& w, process target, std::chrono::nanoseconds limit)
      : window_(w), target_(target), owns_(w.try_lock_exclusive_for(target, limit)) {}
  exclusive_lock(const exclusive_lock&) = delete;
  exclusive_lock& operator=(const exclusive_lock&) = delete;
  ~exclusive_lock() {
    if (owns_) window_.unlock_exclusive(target_);
  }
  /// Whether it has the lock.
  bool owns_lock() const noexcept { return owns_; }
  /// The same.
  explicit operator bool() const noexcept { return owns_; }

 private:
  window<T>& window_;
  process target_;
  bool owns_;
};

/// Locks a target for reading: other processes may have shared locks of it.
/// *Throws*: from the constructor, what window::lock_shared throws.
template <class T>
class shared_lock {
 public:
  /// Waits for the lock.
  shared_lock(window<T>& w, process target) : window_(w), target_(target), owns_(true) {
    w.lock_shared(target);
  }
  /// Takes the lock if no writer has it or waits for it.
  shared_lock(window<T>& w, process target, std::try_to_lock_t)
      : window_(w), target_(target), owns_(w.try_lock_shared(target)) {}
  /// Tries to take the lock, for so long at most.
  shared_lock(window<T>& w, process target, std::chrono::nanoseconds limit)
      : window_(w), target_(target), owns_(w.try_lock_shared_for(target, limit)) {}
  shared_lock(const shared_lock&) = delete;
  shared_lock& operator=(const shared_lock&) = delete;
  ~shared_lock() {
    if (owns_) window_.unlock_shared(target_);
  }
  /// Whether it has the lock.
  bool owns_lock() const noexcept { return owns_; }
  /// The same.
  explicit operator bool() const noexcept { return owns_; }

 private:
  window<T>& window_;
  process target_;
  bool owns_;
};

/// Locks all targets for reading.
/// *Throws*: from the constructor, what window::lock_shared_all throws.
template <class T>
class shared_lock_all {
 public:
  /// Waits for the lock.
  explicit shared_lock_all(window<T>& w) : window_(w) { w.lock_shared_all(); }
  shared_lock_all(const shared_lock_all&) = delete;
  shared_lock_all& operator=(const shared_lock_all&) = delete;
  ~shared_lock_all() { window_.unlock_shared_all(); }

 private:
  window<T>& window_;
};

}  // namespace weft::inline WEFT_ABI::rma
