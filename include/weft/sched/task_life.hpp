// SPDX-License-Identifier: BSL-1.0
// Checked builds: whether the task that was given a right has ended.
#pragma once

#include <weft/base/spin.hpp>

#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace weft::sched {

struct frame;

/// The lives of one task after the other. Never freed, so that rights may ask when even the runtime has
/// ended.
struct task_life {
  /// Of the task that has it now; changed when that ends, by the owner of its strand. Relaxed: whoever uses a
  /// right lawfully is ordered behind its beginning and before its end.
  base::atomic<std::uint64_t> number{1};
  task_life* next = nullptr;  ///< in a pool

  static task_life* take() noexcept {
    if (base::lock_within(door_, patience)) {
      task_life* const found = pool_;
      if (found != nullptr) pool_ = found->next;
      door_.unlock();
      if (found != nullptr) return found;
    }
    return new (std::nothrow) task_life;
  }
  static void give_back(task_life* l) noexcept {
    if (!base::lock_within(door_, patience)) return;  // after a POSIX fork its holder may not exist
    l->next = std::exchange(pool_, l);
    door_.unlock();
  }

 private:
  static constexpr unsigned patience = 10'000;
  static inline constinit base::spin_lock door_;
  static inline constinit task_life* pool_ = nullptr;
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
/// children. Where there is no memory, its life does not end. *Thread safety*: belongs to the owner of the
/// strand.
class task_lives {
 public:
  constexpr task_lives() = default;
  task_lives(const task_lives&) = delete;
  task_lives& operator=(const task_lives&) = delete;
  ~task_lives() {
    for (task_life* l : ended_) task_life::give_back(l);
  }

  void begin_body() noexcept {
    if (unknown_ == 0) {
      try {
        bodies_.push_back(nullptr);
        if (ended_.empty()) {
          bodies_.back() = task_life::take();
        } else {
          bodies_.back() = ended_.back();
          ended_.pop_back();
        }
        return;
      } catch (const std::bad_alloc&) {
      }
    }
    ++unknown_;
  }
  /// `children`: the frame where it has left some, null if there are none.
  void end_body(const frame* children) noexcept {
    if (unknown_ != 0) {  // the innermost ones
      --unknown_;
      return;
    }
    task_life* const l = bodies_.back();
    bodies_.pop_back();
    if (l == nullptr) return;
    if (children == nullptr) return end(l);
    try {
      waiting_.push_back({children, l});
    } catch (const std::bad_alloc&) {
    }
  }
  /// All children in this frame have ended.
  void end_frame(const frame* f) noexcept {
    while (!waiting_.empty() && waiting_.back().first == f) {
      end(waiting_.back().second);
      waiting_.pop_back();
    }
  }
  /// The life of the running task.
  life_of_task current(const char* name) const noexcept {
    if (unknown_ != 0 || bodies_.empty() || bodies_.back() == nullptr) return {};
    const task_life* const l = bodies_.back();
    return {l, l->number.load(base::memory_order_relaxed), name};  // the owner's own store
  }

 private:
  void end(task_life* l) noexcept {
    l->number.store(l->number.load(base::memory_order_relaxed) + 1, base::memory_order_relaxed);  // see there
    try {
      ended_.push_back(l);
    } catch (const std::bad_alloc&) {
    }
  }

  std::vector<task_life*> bodies_;                            // on the stack, innermost last
  std::vector<std::pair<const frame*, task_life*>> waiting_;  // for the end of a frame, innermost last
  std::vector<task_life*> ended_;
  std::size_t unknown_ = 0;
};

}  // namespace weft::sched
