// SPDX-License-Identifier: BSL-1.0
// Checked builds: whether the task that was given a right has ended.
#pragma once

#include <weft/base/lock.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace weft::inline WEFT_ABI::sched {

struct frame;

/// The lives of one task after the other.
struct task_life {
  /// Of the task that has it now; changed when that ends, by the owner of its strand. Relaxed: whoever uses a
  /// right lawfully is ordered behind its beginning and before its end.
  base::atomic<std::uint64_t> number{0};
  task_life* next = nullptr;        ///< in a pool, or of a body further out
  const frame* children = nullptr;  ///< with which the task ends
};

/// All lives. Their memory is never anything else, so that rights may ask when even the runtime has ended; so
/// there is a bound to it, and tasks beyond that are not checked. *Thread safety*: any thread, any member.
class life_pool {
 public:
  /// *Returns*: maybe null.
  static task_life* take() noexcept {
    if (!base::lock_within(mutex_, patience)) return nullptr;  // after a POSIX fork its holder may not exist
    task_life* found = free_;
    if (found != nullptr)
      free_ = found->next;
    else if (used_ < most)
      found = &all_[used_++];
    mutex_.unlock();
    return found;
  }
  static void give_back(task_life& l) noexcept {
    if (!base::lock_within(mutex_, patience)) return;
    l.next = std::exchange(free_, &l);
    mutex_.unlock();
  }

 private:
  static constexpr std::size_t most = 8192;
  static constexpr unsigned patience = 10'000;
  WEFT_PER_PROCESS static inline constinit base::spin_lock mutex_;
  WEFT_PER_PROCESS static inline constinit task_life* free_ = nullptr;
  WEFT_PER_PROCESS static inline constinit std::size_t used_ = 0;
  WEFT_PER_PROCESS static inline constinit task_life all_[most];
};

/// What a right remembers of the task to which it was given: that it was this one; or nothing.
struct life_of_task {
  const task_life* life = nullptr;
  std::uint64_t number = 0;
  const char* name = nullptr;

  bool over() const noexcept {
    return life != nullptr && life->number.load(base::memory_order_relaxed) != number;  // see there
  }
};

/// The lives of the tasks of a strand. A task ends with its body, or with the frame in which that has left
/// children. A task for which no life is left is not checked. *Thread safety*: belongs to the owner
/// of the strand.
class task_lives {
 public:
  constexpr task_lives() = default;
  task_lives(const task_lives&) = delete;
  task_lives& operator=(const task_lives&) = delete;
  ~task_lives() {
    while (ended_ != nullptr) life_pool::give_back(*pop(ended_));
  }

  void begin_body() noexcept {
    task_life* l = nullptr;
    if (unknown_ == 0 && ended_ != nullptr) {
      --kept_;
      l = pop(ended_);
    } else if (unknown_ == 0) {
      l = life_pool::take();
    }
    if (l != nullptr)
      push(bodies_, *l);
    else
      ++unknown_;
  }
  /// `children`: the frame where it has left some, null if there are none.
  void end_body(const frame* children) noexcept {
    if (unknown_ != 0) {  // the innermost ones
      --unknown_;
      return;
    }
    task_life& l = *pop(bodies_);
    l.children = children;
    if (children == nullptr)
      end(l);
    else
      push(waiting_, l);
  }
  /// All children in this frame have ended. Frames end in the reverse order of their beginning.
  void end_frame(const frame* f) noexcept {
    while (waiting_ != nullptr && waiting_->children == f) end(*pop(waiting_));
  }
  /// The life of the running task.
  life_of_task current(const char* name) const noexcept {
    if (unknown_ != 0 || bodies_ == nullptr) return {};
    return {bodies_, bodies_->number.load(base::memory_order_relaxed), name};  // the owner's own store
  }

 private:
  static constexpr std::size_t most_kept = 32;

  static task_life* pop(task_life*& list) noexcept { return std::exchange(list, list->next); }
  static void push(task_life*& list, task_life& l) noexcept { l.next = std::exchange(list, &l); }
  void end(task_life& l) noexcept {
    l.number.store(l.number.load(base::memory_order_relaxed) + 1, base::memory_order_relaxed);  // see there
    if (kept_ == most_kept) return life_pool::give_back(l);
    ++kept_;
    push(ended_, l);
  }

  task_life* bodies_ = nullptr;   // on the stack, innermost first
  task_life* waiting_ = nullptr;  // for the end of a frame, innermost first
  task_life* ended_ = nullptr;
  std::size_t kept_ = 0;     // in it
  std::size_t unknown_ = 0;  // bodies without one
};

}  // namespace weft::inline WEFT_ABI::sched
