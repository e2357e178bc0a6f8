// SPDX-License-Identifier: BSL-1.0
// The stacks on which workers run and bodies wait: made when needed, kept for reuse.
#pragma once

#include <weft/base/lock.hpp>
#include <weft/context/fiber.hpp>
#include <weft/context/stack_source.hpp>

#include <mutex>
#include <new>
#include <optional>
#include <utility>

namespace weft::inline WEFT_ABI::sched {

/// A stack with a suspended flow on it: a waiting body, or a scheduler loop that nobody needs at the moment.
/// It lies at the top of that stack, in a page that is in memory anyway.
struct context_slot {
  std::optional<context::fiber> fiber;
  std::uintptr_t inline_limit = 0;                 ///< below this stack address fork defers
  context_slot* next = nullptr;                    ///< in the pool
  context::stack_source* of_other_size = nullptr;  ///< whose stack it has; null: one of the usual size
};

/// All contexts of an engine; each new one enters the given loop.
/// *Thread safety*: any thread, any member but constructor and destructor.
class context_pool {
 public:
  using entry = void (*)(void*) noexcept;

  context_pool(std::size_t stack_size, entry loop) : stacks_(stack_size), loop_(loop) {}
  context_pool(const context_pool&) = delete;
  context_pool& operator=(const context_pool&) = delete;
  /// *Requires*: every context came back.
  ~context_pool() {
    while (context_slot* c = pop()) destroy(c);
    while (other_sizes_ != nullptr) delete std::exchange(other_sizes_, other_sizes_->next);
  }

  /// *Returns*: a context that continues its scheduler loop when switched to. *Throws*: std::bad_alloc,
  /// std::system_error when memory or mappings are exhausted.
  context_slot& take() {
    if (context_slot* c = pop()) return *c;
    return make(stacks_);
  }
  /// The same with a stack of this size. *Throws*: weft::option_error if it is too small; as take.
  context_slot& take(std::size_t stack_size) {
    context::stack_source& from = source_of(stack_size);
    context_slot& c = make(from);
    c.of_other_size = &from;
    return c;
  }
  /// Gives back a context that stands in its scheduler loop; beyond `keep` idle ones it is unmapped.
  void put(context_slot& c) noexcept {
    {
      const std::lock_guard hold(mutex_);
      if (idle_ < keep && c.of_other_size == nullptr) {
        ++idle_;
        c.next = free_;
        free_ = &c;
        return;
      }
    }
    destroy(&c);
  }
  /// How many have been made.
  std::size_t count() const noexcept { return made_.load(base::memory_order_relaxed); }
  /// Most bytes of stack that a context of the ordinary size has used, in whole pages.
  std::size_t high_water() const { return stacks_.high_water(); }

 private:
  static constexpr std::size_t keep = 64;

  struct size {
    context::stack_source source;
    size* next;
  };

  context_slot& make(context::stack_source& from) {
    constexpr std::size_t room = (sizeof(context_slot) + 63) / 64 * 64;  // whole cache lines
    context::stack memory = from.acquire();
    auto& fresh = *::new (static_cast<std::byte*>(memory.top()) - room) context_slot;
    // Half of the stack is for the task that runs deepest; nesting by fork uses the other half.
    fresh.inline_limit = reinterpret_cast<std::uintptr_t>(memory.lowest()) + memory.size() / 2;
    fresh.fiber.emplace(std::move(memory), loop_, nullptr, room);
    made_.fetch_add(1, base::memory_order_relaxed);  // a statistic
    return fresh;
  }
  context::stack_source& source_of(std::size_t stack_size) {
    const std::lock_guard hold(sizes_mutex_);
    for (size* s = other_sizes_; s != nullptr; s = s->next)
      if (s->source.stack_bytes() == stack_size) return s->source;
    other_sizes_ = new size{context::stack_source(stack_size), other_sizes_};
    return other_sizes_->source;
  }
  context_slot* pop() noexcept {
    const std::lock_guard hold(mutex_);
    context_slot* c = free_;
    if (c != nullptr) {
      free_ = c->next;
      --idle_;
    }
    return c;
  }
  void destroy(context_slot* c) noexcept {
    context::stack_source& source = c->of_other_size != nullptr ? *c->of_other_size : stacks_;
    context::stack memory = c->fiber->release_stack();
    c->~context_slot();
    source.release(std::move(memory));
  }

  base::spin_lock mutex_;
  context_slot* free_ = nullptr;
  std::size_t idle_ = 0;
  base::atomic<std::size_t> made_{0};
  context::stack_source stacks_;
  base::mutex sizes_mutex_;
  size* other_sizes_ = nullptr;
  entry loop_;
};

}  // namespace weft::inline WEFT_ABI::sched
