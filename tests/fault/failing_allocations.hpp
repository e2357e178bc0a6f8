// SPDX-License-Identifier: BSL-1.0
// Replaces the global allocation functions, so that the n-th call fails. For one file of an executable.
#pragma once

#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/tracked.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>

namespace {

/// Which allocations fail. All relaxed: the main thread sets them while no worker is busy, and the order in
/// which threads take numbers does not matter.
std::atomic<bool> armed{false}, persistent{false};
std::atomic<long> until_failure{0}, fired{0}, blocks{0};

bool fails_now() {
  if (!armed.load(std::memory_order_relaxed)) return false;
  const long left = until_failure.fetch_sub(1, std::memory_order_relaxed);
  if (left > 0 || (left < 0 && !persistent.load(std::memory_order_relaxed))) return false;
  fired.fetch_add(1, std::memory_order_relaxed);
  return true;
}

[[maybe_unused]] void* allocate(std::size_t size, std::size_t alignment) {
  if (fails_now()) throw std::bad_alloc();
  void* const p = std::aligned_alloc(alignment, (size + alignment) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  blocks.fetch_add(1, std::memory_order_relaxed);
  return p;
}

[[maybe_unused]] void release(void* p) {
  if (p != nullptr) blocks.fetch_sub(1, std::memory_order_relaxed);
  std::free(p);
}

}  // namespace

#ifdef WEFT_TEST_THREAD_SANITIZER  // it has replacements of its own
constexpr bool replaced = false;
#else
constexpr bool replaced = true;

void* operator new(std::size_t n) { return allocate(n, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t n, std::align_val_t a) { return allocate(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  try {
    return operator new(n);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }
#endif

namespace {

/// Runs f with the first, the second, ... allocation failing until a run has no failure; `check` follows each
/// and is told how many more blocks there are than before. Returns how many allocations were made to fail.
template <class F, class C>
long fail_each(bool from_then_on, F&& f, C&& check) {
  for (long n = 0;; ++n) {
    INFO("allocation " << n << (from_then_on ? " and all after it" : ""));
    fired = 0;
    until_failure = n;
    persistent = from_then_on;
    bool right = false, reported = false;
    const long before = blocks;
    armed = true;
    try {
      right = f();
    } catch (const std::bad_alloc&) {
      reported = true;
    } catch (const std::exception&) {  // the library's own error, or the system's
      reported = true;
    }
    armed = false;
    const long left = blocks - before;
    CHECK((right || reported));
    CHECK((right || fired > 0));
    CHECK(weft_test::tracked::alive == 0);
    check(left);
    if (fired == 0) return n;
  }
}

}  // namespace
