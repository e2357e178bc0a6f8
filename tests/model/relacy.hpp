// SPDX-License-Identifier: BSL-1.0
// Relacy without its macros, and pools for its objects: those that lie in the library's arenas are never
// destroyed.
#pragma once

// Before Relacy, which gives other meanings to new, delete and some more names.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <queue>
#include <set>
#include <source_location>
#include <sstream>
#include <stack>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>
//
#include <relacy/relacy.hpp>

#undef VAR
#undef VAR_T
#undef TLS_T
#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert
#undef errno
#define errno (*__errno_location())

// Relacy replaces the other forms, so that it knows all memory of an execution. A model is one translation
// unit.
void operator delete(void* p, std::size_t) noexcept { ::operator delete(p); }
void operator delete[](void* p, std::size_t) noexcept { ::operator delete[](p); }

namespace model {

using std::source_location;

inline rl::debug_info info(const source_location& here) noexcept {
  return rl::debug_info(here.function_name(), here.file_name(), here.line());
}

/// Objects that live until the execution ends.
template <class X>
class pool {
 public:
  template <class... A>
  static X* make(A... a) {
    if (count_ == most) std::abort();
    return ::new (places_[count_++].bytes) X(a...);
  }
  /// The execution has ended.
  static void destroy() {
    while (count_ != 0) std::launder(reinterpret_cast<X*>(places_[--count_].bytes))->~X();
  }
  /// The execution was given up, and all that Relacy knew of it is gone.
  static void forget() noexcept { count_ = 0; }

 private:
  static constexpr std::size_t most = 4096;
  struct place {
    alignas(X) std::byte bytes[sizeof(X)];
  };
  static inline place places_[most];
  static inline std::size_t count_ = 0;
};

/// Data that is no atomic: two accesses of which none happens before the other are a fault. Has no value at
/// first.
class data {
 public:
  data() : var_(pool<rl::var<long>>::make()) {}
  explicit data(long v) : var_(pool<rl::var<long>>::make(v)) {}
  data(const data&) = delete;
  data& operator=(const data&) = delete;

  long get(const source_location& here = source_location::current()) const {
    return static_cast<const rl::var<long>&>(*var_)(info(here)).load();
  }
  void set(long v, const source_location& here = source_location::current()) { (*var_)(info(here)).store(v); }

 private:
  rl::var<long>* var_;
};

/// A promise of the model; when it is broken the execution is a fault.
inline void require(bool kept, const char* what, const source_location& here = source_location::current()) {
  if (!kept) rl::ctx().fail_test(what, rl::test_result_user_assert_failed, info(here));
}

}  // namespace model
