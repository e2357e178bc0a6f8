// SPDX-License-Identifier: BSL-1.0
// The stacks of one runtime: mapped, counted, and measured.
#pragma once

#include <weft/base/contract.hpp>
#include <weft/context/detail/stack_slab.hpp>
#include <weft/context/stack.hpp>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>

namespace weft::inline WEFT_ABI::context {

/// Stacks of one size. So many at a time have guards; each of those takes two mappings, and the kernel allows
/// a process some 65,000. Those beyond lie in slabs without guards: an overflow there is not found. Who may
/// touch what when: live_, mapped_ and deepest_ under lock_ only. A stack of this source is unmapped only
/// under lock_, so that high_water() never measures memory that has become somebody else's. *Thread safety*:
/// every member from any thread, except construction and destruction.
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
    {
      const std::lock_guard hold(lock_);
      if (guarded_ >= most_guarded) {
        stack made = acquire_from_slab_();
        ++live_;
        ++mapped_;
        return made;
      }
      ++guarded_;
    }
    try {
      stack made(stack_bytes_, this);
      const std::lock_guard hold(lock_);
      ++live_;
      ++mapped_;
      return made;
    } catch (...) {
      const std::lock_guard hold(lock_);
      --guarded_;
      throw;
    }
  }

  /// Unmaps a stack of acquire().
  /// *Requires*: nobody executes on it. *Suspends*: no. *Cost*: some system calls under a lock.
  void release(stack&& back) noexcept {
    const std::lock_guard hold(lock_);
    if (back.size() == 0 || live_ == 0)
      base::fail("a stack source was given a stack that is not one of its own");
    --live_;
    deepest_ = std::max(deepest_, back.high_water());
    if (back.slab_ != nullptr) return release_to_slab_(*back.slab_, std::move(back));
    --guarded_;
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

  /// Bytes of the deepest use of any stack of this source so far, in whole pages; guarded stacks in use are
  /// included.
  /// *Cost*: at least one system call per stack; meant for reports.
  std::size_t high_water() const noexcept {
    const std::lock_guard hold(lock_);
    detail::guards.for_each([this](std::uintptr_t, detail::stack_bounds bounds, const void* owner) noexcept {
      if (owner == this) deepest_ = std::max(deepest_, detail::touched_bytes(bounds));
      return true;
    });
    return deepest_;
  }

  /// How many stacks of a source have guards at the same time: a quarter of the mappings of a process.
  static constexpr std::size_t most_guarded = 8192;

 private:
  // The lock is held in the next four.
  stack acquire_from_slab_() {
    if (slabs_ == nullptr) link_(*new detail::stack_slab(stack_bytes_));
    detail::stack_slab& from = *slabs_;
    stack made = from.take();
    if (from.full()) unlink_(from);
    return made;
  }
  void release_to_slab_(detail::stack_slab& to, stack&& back) noexcept {
    if (to.full()) link_(to);
    to.give_back(std::move(back));
    if (!to.unused()) return;
    unlink_(to);
    delete &to;
  }
  void link_(detail::stack_slab& s) noexcept {
    s.next = std::exchange(slabs_, &s);
    s.previous = nullptr;
    if (s.next != nullptr) s.next->previous = &s;
  }
  void unlink_(detail::stack_slab& s) noexcept {
    (s.previous != nullptr ? s.previous->next : slabs_) = s.next;
    if (s.next != nullptr) s.next->previous = s.previous;
  }

  const std::size_t stack_bytes_;
  mutable base::mutex lock_;
  std::size_t live_ = 0;
  std::size_t guarded_ = 0;
  detail::stack_slab* slabs_ = nullptr;  // those that are not full
  std::size_t mapped_ = 0;
  mutable std::size_t deepest_ = 0;
};

}  // namespace weft::inline WEFT_ABI::context
