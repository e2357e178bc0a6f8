// SPDX-License-Identifier: BSL-1.0
// The stacks of one runtime: mapped, counted, and measured.
#pragma once

#include <weft/base/contract.hpp>
#include <weft/context/stack.hpp>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>

namespace weft::inline WEFT_ABI::context {

/// Stacks of one size. Who may touch what when: live_, mapped_ and deepest_ under lock_ only. A stack of this
/// source is unmapped only under lock_, so that high_water() never measures memory that has become somebody
/// else's.
/// *Thread safety*: every member from any thread, except construction and destruction.
class stack_source {
 public:
  /// Stacks of `stack_bytes` usable bytes. Maps none yet.
  /// *Throws*: weft::option_error if `stack_bytes < stack::minimum`; std::bad_alloc.
  explicit stack_source(std::size_t stack_bytes) : stack_bytes_(stack_bytes) {
    stack::check_size(stack_bytes);
  }

  stack_source(const stack_source&) = delete;
  stack_source& operator=(const stack_source&) = delete;

  /// *Requires*: every stack of acquire() came back; anything else ends the program.
  ~stack_source() {
    if (live_ != 0) base::fail("a stack source is destroyed while %zu of its stacks are in use", live_);
  }

  /// Maps a stack. It must come back through release().
  /// *Throws*: as stack's constructor, and then nothing has changed. *Suspends*: no.
  /// *Cost*: some system calls and a short lock.
  [[nodiscard]] stack acquire() {
    stack made(stack_bytes_, this);
    const std::lock_guard hold(lock_);
    ++live_;
    ++mapped_;
    return made;
  }

  /// Unmaps a stack of acquire().
  /// *Requires*: nobody executes on it. *Suspends*: no. *Cost*: some system calls under a lock.
  void release(stack&& back) noexcept {
    const std::lock_guard hold(lock_);
    if (back.size() == 0 || live_ == 0)
      base::fail("a stack source was given a stack that is not one of its own");
    --live_;
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
  /// Stacks mapped since the pool exists.
  std::size_t mapped() const noexcept {
    const std::lock_guard hold(lock_);
    return mapped_;
  }

  /// Bytes of the deepest use of any stack of this source so far, stacks in use included, in whole pages.
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
  mutable base::mutex lock_;
  std::size_t live_ = 0;
  std::size_t mapped_ = 0;
  mutable std::size_t deepest_ = 0;
};

}  // namespace weft::inline WEFT_ABI::context
