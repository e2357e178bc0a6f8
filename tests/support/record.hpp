// SPDX-License-Identifier: BSL-1.0
// A list that tasks append to and the main thread reads, because Catch2's assertions are not thread safe.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

namespace weft_test {

/// Collects entries from any thread, in the order in which they came.
template <class T>
class record {
 public:
  void add(T entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  /// What came until now.
  std::vector<T> entries() const {
    const std::lock_guard lock(mutex_);
    return entries_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<T> entries_;
};

}  // namespace weft_test
