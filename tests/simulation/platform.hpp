// SPDX-License-Identifier: BSL-1.0
// The simulated platform: threads are contexts on one kernel thread, and at every atomic operation, lock,
// wait and look at the clock, the simulated machine chooses which of them goes on: the one in simulate.cpp by
// a seed, to find wrong protocols; the one in cost_model.cpp by what each operation costs, to find slow ones.
#pragma once

#include <weft/base/config.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

namespace simulation {

/// What a marked point does.
enum class action : std::uint8_t { load, store, exchange, fence, clock };

/// A marked point: maybe another thread goes on. Does nothing outside a simulated machine. `place`: what is
/// read or written, if anything.
void point(action what, const void* place) noexcept;
/// The calling thread cannot go on before another one has: another one does. `long_time`: it gives its
/// processor away.
void give_way(bool long_time) noexcept;
/// Each other thread passes a fence.
void fence_all() noexcept;

/// The ends of simulated threads, locks and futexes, see platform.cpp.
std::uint64_t now() noexcept;  // nanoseconds
unsigned start(std::function<void()> body);
void join(unsigned thread) noexcept;
void wait(const void* word) noexcept;
void wait_until(const void* word, std::uint64_t end) noexcept;
void wake(const void* word, int count) noexcept;
/// Whether what may fail for no reason shall do so.
bool spurious() noexcept;

}  // namespace simulation

namespace weft::inline WEFT_ABI::base {

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

/// Every operation is a marked point. Sequentially consistent: this platform finds wrong protocols, not wrong
/// memory orders (tests/model does).
template <class T>
class atomic {
 public:
  constexpr atomic() noexcept = default;
  constexpr atomic(T v) noexcept : value_(v) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load(std::memory_order = memory_order_seq_cst) const noexcept {
    simulation::point(simulation::action::load, this);
    return value_;
  }
  void store(T v, std::memory_order = memory_order_seq_cst) noexcept {
    simulation::point(simulation::action::store, this);
    value_ = v;
  }
  T exchange(T v, std::memory_order = memory_order_seq_cst) noexcept {
    simulation::point(simulation::action::exchange, this);
    return std::exchange(value_, v);
  }
  bool compare_exchange_strong(T& expected, T v, std::memory_order = memory_order_seq_cst,
                               std::memory_order = memory_order_seq_cst) noexcept {
    simulation::point(simulation::action::exchange, this);
    if (value_ == expected) {
      value_ = v;
      return true;
    }
    expected = value_;
    return false;
  }
  bool compare_exchange_weak(T& expected, T v, std::memory_order = memory_order_seq_cst,
                             std::memory_order = memory_order_seq_cst) noexcept {
    return !simulation::spurious() && compare_exchange_strong(expected, v);
  }
  T fetch_add(T v, std::memory_order = memory_order_seq_cst) noexcept {
    return change([v](T old) { return static_cast<T>(old + v); });
  }
  T fetch_sub(T v, std::memory_order = memory_order_seq_cst) noexcept {
    return change([v](T old) { return static_cast<T>(old - v); });
  }
  T fetch_or(T v, std::memory_order = memory_order_seq_cst) noexcept {
    return change([v](T old) { return static_cast<T>(old | v); });
  }
  T fetch_and(T v, std::memory_order = memory_order_seq_cst) noexcept {
    return change([v](T old) { return static_cast<T>(old & v); });
  }

 private:
  template <class F>
  T change(F f) noexcept {
    simulation::point(simulation::action::exchange, this);
    return std::exchange(value_, f(value_));
  }
  T value_{};
};

inline void fence() noexcept { simulation::point(simulation::action::fence, nullptr); }
inline void process_fence() noexcept { simulation::fence_all(); }
inline void pause() noexcept { simulation::give_way(false); }
inline void yield() noexcept { simulation::give_way(true); }

struct clock : std::chrono::steady_clock {
  static time_point now() noexcept {
    simulation::point(simulation::action::clock, nullptr);
    return time_point(std::chrono::nanoseconds(simulation::now()));
  }
};

inline void futex_wait(atomic<std::uint32_t>& word, std::uint32_t seen) noexcept {
  if (word.load() == seen && !simulation::spurious()) simulation::wait(&word);
}
inline void futex_wait_until(atomic<std::uint32_t>& word, std::uint32_t seen,
                             clock::time_point end) noexcept {
  const auto nanoseconds = static_cast<std::uint64_t>(end.time_since_epoch().count());
  if (word.load() == seen && !simulation::spurious()) simulation::wait_until(&word, nanoseconds);
}
inline void futex_wake(atomic<std::uint32_t>& word, int count) noexcept {
  simulation::point(simulation::action::exchange, &word);
  simulation::wake(&word, count);
}

class mutex {
 public:
  constexpr mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
  void lock() noexcept {
    simulation::point(simulation::action::exchange, this);
    while (held_) simulation::wait(this);
    held_ = true;
  }
  bool try_lock() noexcept {
    simulation::point(simulation::action::exchange, this);
    return !std::exchange(held_, true);
  }
  void unlock() noexcept {
    held_ = false;
    simulation::wake(this, 1);
    simulation::point(simulation::action::exchange, this);
  }

 private:
  bool held_ = false;
};

class thread {
 public:
  thread() noexcept = default;
  template <class F, class... A>
  explicit thread(F f, A... a) : id_(simulation::start([=] { std::invoke(f, a...); })) {}
  thread(thread&& other) noexcept : id_(std::exchange(other.id_, 0)) {}
  thread& operator=(thread&& other) noexcept {
    id_ = std::exchange(other.id_, 0);
    return *this;
  }
  bool joinable() const noexcept { return id_ != 0; }
  void join() noexcept { simulation::join(std::exchange(id_, 0)); }

 private:
  unsigned id_ = 0;  // 0 is who called simulate()
};

}  // namespace weft::inline WEFT_ABI::base
