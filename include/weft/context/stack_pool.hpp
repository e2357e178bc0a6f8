// SPDX-License-Identifier: BSL-1.0
// The stacks of one runtime: kept for reuse, counted, and measured.
#pragma once

#include <weft/base/contract.hpp>
#include <weft/context/stack.hpp>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::context {

/// Stacks of one size. The most recently released one is handed out first, since its pages are likely in the
/// cache. Who may touch what when: idle_, live_, mapped_ and deepest_ under lock_ only. A stack of this pool
/// is unmapped only under lock_, so that high_water() never measures memory that has become somebody else's.
/// *Thread safety*: every member from any thread, except construction and destruction.
class stack_pool {
 public:
  /// A pool for stacks of `stack_bytes` usable bytes that keeps at most `keep` idle ones. Maps none yet.
  /// *Throws*: weft::option_error if `stack_bytes < stack::minimum`; std::bad_alloc.
  stack_pool(std::size_t stack_bytes, std::size_t keep) : stack_bytes_(stack_bytes), keep_(keep) {
    stack::check_size(stack_bytes);
    idle_.reserve(keep);
  }

  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;

  /// *Requires*: every stack of acquire() came back; anything else ends the program.
  ~stack_pool() {
    if (live_ != 0) base::fail("a stack pool is destroyed while %zu of its stacks are in use", live_);
  }

  /// A stack, reused if one is idle. It must come back through release().
  /// *Throws*: as stack's constructor, and then nothing has changed. *Suspends*: no.
  /// *Cost*: a short lock; some system calls if no stack is idle.
  [[nodiscard]] stack acquire() {
    {
      const std::lock_guard hold(lock_);
      if (!idle_.empty()) {
        stack last = std::move(idle_.back());
        idle_.pop_back();
        ++live_;
        return last;
      }
    }
    stack made(stack_bytes_, this);
    const std::lock_guard hold(lock_);
    ++live_;
    ++mapped_;
    return made;
  }

  /// Takes a stack of acquire() back, for reuse or, beyond the bound, for the kernel.
  /// *Requires*: nobody executes on it. *Suspends*: no. *Cost*: a short lock.
  void release(stack&& back) noexcept {
    const std::lock_guard hold(lock_);
    if (back.size() == 0 || live_ == 0)
      base::fail("a stack pool was given a stack that is not one of its own");
    --live_;
    if (idle_.size() < keep_) {
      idle_.push_back(std::move(back));
      return;
    }
    deepest_ = std::max(deepest_, back.high_water());
    const stack gone(std::move(back));
  }

  /// Usable bytes of each stack as requested.
  std::size_t stack_bytes() const noexcept { return stack_bytes_; }
  /// Stacks handed out and not yet back.
  std::size_t live() const noexcept {
    const std::lock_guard hold(lock_);
    return live_;
  }
  /// Stacks kept for reuse.
  std::size_t idle() const noexcept {
    const std::lock_guard hold(lock_);
    return idle_.size();
  }
  /// Stacks mapped since the pool exists.
  std::size_t mapped() const noexcept {
    const std::lock_guard hold(lock_);
    return mapped_;
  }

  /// Bytes of the deepest use of any stack of this pool so far, stacks in use included, in whole pages.
  /// *Cost*: at least one system call per stack; meant for reports.
  std::size_t high_water() const noexcept {
    const std::lock_guard hold(lock_);
    detail::guards.for_each([this](std::uintptr_t, detail::stack_bounds bounds, const void* owner) noexcept {
      if (owner == this) deepest_ = std::max(deepest_, detail::touched_bytes(bounds));
      return true;
    });
    return deepest_;
  }

 private:
  const std::size_t stack_bytes_;
  const std::size_t keep_;
  mutable base::mutex lock_;
  std::vector<stack> idle_;
  std::size_t live_ = 0;
  std::size_t mapped_ = 0;
  mutable std::size_t deepest_ = 0;
};

}  // namespace weft::inline WEFT_ABI::context
