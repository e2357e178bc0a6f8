// SPDX-License-Identifier: BSL-1.0
// The platform of the models: atomics, locks and futexes of Relacy, which explores who goes on and which of
// the values that the memory model allows a load finds.
#pragma once

#include "model/relacy.hpp"

#include <weft/base/config.hpp>
#include <weft/context/detail/eh_state.hpp>
#include <weft/context/local.hpp>

#include <cstring>
#include <optional>

namespace model {

enum class operation { load, store, rmw, fence, atomicity };

/// What a negative control breaks in functions whose name contains a word: loads, stores or
/// read-modify-writes lose their order, or fences vanish, or read-modify-writes become a load and a store.
struct weakness {
  const char* function = nullptr;
  operation what = operation::load;
};
inline weakness broken;

inline bool is_broken(operation what, const source_location& here) noexcept {
  return broken.function != nullptr && broken.what == what &&
         std::strstr(here.function_name(), broken.function) != nullptr;
}

inline rl::memory_order order(operation what, std::memory_order o, const source_location& here) noexcept {
  if (is_broken(what, here)) [[unlikely]]
    return rl::mo_relaxed;
  switch (o) {
    case std::memory_order_relaxed:
      return rl::mo_relaxed;
    case std::memory_order_consume:
    case std::memory_order_acquire:
      return rl::mo_acquire;
    case std::memory_order_release:
      return rl::mo_release;
    case std::memory_order_acq_rel:
      return rl::mo_acq_rel;
    default:
      return rl::mo_seq_cst;
  }
}

constexpr int most_threads = 4;
constexpr std::size_t history = rl::atomic_history_size;

/// The order of all sequentially consistent operations, which is the one in which they are executed.
struct total_order {
  std::uint64_t now = 0;
  std::uint64_t last_fence[most_threads] = {};  ///< of each thread
};
inline total_order sequence;

/// Random schedules are made of steps if this is 1, and otherwise of stretches, so many steps long on
/// average: some faults need one thread to do much while another one does nothing.
inline unsigned stretch = 1;

/// What a kernel thread has for itself. While this lives other threads of the model may go on, on the same
/// one, and begin.
class thread_state {
  using exceptions = weft::context::detail::eh_state;

 public:
  thread_state() noexcept : current_(weft::context::current()) {
    exceptions::exchange(mine_, {});
    weft::context::set_current(&weft::context::outside);
  }
  thread_state(const thread_state&) = delete;
  thread_state& operator=(const thread_state&) = delete;
  ~thread_state() {
    exceptions others;
    exceptions::exchange(others, mine_);
    weft::context::set_current(current_);
  }

 private:
  void* current_;
  exceptions mine_;
};

/// One operation on an atomic, before which another thread may go on.
class step {
  const thread_state kept_;

 public:
  step() : c_(rl::ctx()), goes_on_(stretch > 1 && c_.rand(stretch, rl::sched_type_user) != 0) {
    if (goes_on_) c_.disable_preemption();
  }
  step(const step&) = delete;
  step& operator=(const step&) = delete;
  ~step() {
    if (goes_on_) c_.enable_preemption();
  }

 private:
  rl::context& c_;
  bool goes_on_;
};

/// The value of an atomic, as Relacy keeps it.
struct cell {
  rl::atomic<std::uint64_t> value;
  std::size_t last = 1;                    ///< the newest record of a write; the first value is number 1
  std::uint64_t sequential[history] = {};  ///< for each: when it was made; 0: not in the total order

  explicit cell(std::uint64_t v) : value(v) {}
  /// After each write.
  void note(rl::memory_order o) noexcept {
    sequential[++last % history] = o == rl::mo_seq_cst ? ++sequence.now : 0;
  }
};

/// Where Relacy keeps what it knows of an atomic; private there.
struct inside_of_atomic {
  friend rl::atomic_data* rl::generic_atomic<std::uint64_t, false>::* get(inside_of_atomic);
};
template <class Tag, auto Member>
struct reveal {
  friend auto get(Tag) -> decltype(Member) { return Member; }
};
template struct reveal<inside_of_atomic, &rl::generic_atomic<std::uint64_t, false>::impl_>;

/// Notes that the thread which goes on has seen what was written in the total order before its last fence.
/// The standard ensures this ([atomics.order], 4); Relacy knows it only of sequentially consistent loads.
using see_writes = void (*)(rl::atomic_data*, const cell&);
inline see_writes see_writes_before_fence = nullptr;

template <int threads>
void see_writes_before(rl::atomic_data* d, const cell& c) {
  auto& all = *static_cast<rl::atomic_data_impl<threads>*>(d);
  rl::thread_info_base& me = *rl::ctx().threadx_;
  for (std::size_t back = 0; back < history && back < c.last; ++back) {
    const std::size_t i = (c.last - back) % history;
    if (c.sequential[i] == 0 || c.sequential[i] > sequence.last_fence[me.index_]) continue;
    auto& seen = all.history_[i].first_seen_order_[me.index_];
    if (seen == static_cast<rl::timestamp_t>(-1)) seen = ++me.own_acq_rel_order_;
    return;
  }
}

/// Until the threads of an execution start, one thread makes the model, and atomics are plain values.
inline bool making = false;

/// The cell of an atomic that was made then, at its first use. Its value happened before everything.
using bind_late_t = cell* (*)(std::uint64_t);
inline bind_late_t bind_late = nullptr;

inline cell* new_cell(std::uint64_t v) {
  rl::ctx().disable_preemption();  // nobody else knows the atomic yet: its making is one step
  cell* const c = pool<cell>::make(v);
  rl::ctx().enable_preemption();
  return c;
}

template <int threads>
cell* bind_first_value(std::uint64_t v) {
  cell* const c = new_cell(v);
  auto& first = static_cast<rl::atomic_data_impl<threads>*>(c->value.*get(inside_of_atomic()))->history_[1];
  first.acq_rel_timestamp_ = 0;
  for (int i = 0; i < threads; ++i) {
    first.acq_rel_order_[i] = 0;
    first.first_seen_order_[i] = static_cast<rl::timestamp_t>(-1);
  }
  return c;
}

/// A thread that waits for a futex; a list of them.
struct waiting {
  const void* word;
  rl::thread_id_t thread;
};
inline waiting waiters[most_threads];
inline int waiting_count = 0;

inline void remove_waiter(int i) noexcept { waiters[i] = waiters[--waiting_count]; }

inline std::uint64_t time_now = 0;

/// Relacy's promises to a thread that yields: what it has seen once it does not see older again.
inline void yield(const source_location& here = source_location::current()) {
  const thread_state kept;
  rl::ctx().yield(1, info(here));
}

}  // namespace model

namespace weft::inline WEFT_ABI::base {

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

/// Every operation may let another thread go on. Outside of executions a plain value.
template <class T>
class atomic {
  using here_t = std::source_location;

 public:
  constexpr atomic() noexcept : atomic(T{}) {}
  constexpr atomic(T v) noexcept : plain_(v) {
    if (!std::is_constant_evaluated() && rl::is_ctx()) {
      watched_ = true;
      if (!model::making) cell_ = model::new_cell(bits(plain_));
    }
  }
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load(std::memory_order o = memory_order_seq_cst, const here_t& here = here_t::current()) const noexcept {
    if (is_plain()) return plain_;
    const model::step one;
    if (model::sequence.last_fence[rl::ctx().threadx_->index_] != 0)
      model::see_writes_before_fence(cell_->value.*get(model::inside_of_atomic()), *cell_);
    return from(cell_->value.load(model::order(model::operation::load, o, here), model::info(here)));
  }
  void store(T v, std::memory_order o = memory_order_seq_cst,
             const here_t& here = here_t::current()) noexcept {
    if (is_plain()) {
      plain_ = v;
      return;
    }
    const model::step one;
    const rl::memory_order m = model::order(model::operation::store, o, here);
    cell_->value.store(bits(v), m, model::info(here));
    cell_->note(m);
  }
  T exchange(T v, std::memory_order o = memory_order_seq_cst,
             const here_t& here = here_t::current()) noexcept {
    if (is_plain()) return std::exchange(plain_, v);
    if (is_split(here)) [[unlikely]] {
      const T old = load(o == memory_order_release ? memory_order_relaxed : memory_order_acquire, here);
      store(v, memory_order_release, here);
      return old;
    }
    const model::step one;
    const rl::memory_order m = model::order(model::operation::rmw, o, here);
    const std::uint64_t old = cell_->value.exchange(bits(v), m, model::info(here));
    cell_->note(m);
    return from(old);
  }
  bool compare_exchange_strong(T& expected, T v, std::memory_order o = memory_order_seq_cst,
                               const here_t& here = here_t::current()) noexcept {
    return compare_exchange<false>(expected, v, o, here);
  }
  /// Failures here acquire what successes do.
  bool compare_exchange_strong(T& expected, T v, std::memory_order o, std::memory_order,
                               const here_t& here = here_t::current()) noexcept {
    return compare_exchange<false>(expected, v, o, here);
  }
  bool compare_exchange_weak(T& expected, T v, std::memory_order o = memory_order_seq_cst,
                             const here_t& here = here_t::current()) noexcept {
    return compare_exchange<true>(expected, v, o, here);
  }
  /// Failures here acquire what successes do.
  bool compare_exchange_weak(T& expected, T v, std::memory_order o, std::memory_order,
                             const here_t& here = here_t::current()) noexcept {
    return compare_exchange<true>(expected, v, o, here);
  }
  T fetch_add(T v, std::memory_order o = memory_order_seq_cst,
              const here_t& here = here_t::current()) noexcept {
    return change(rl::rmw_type_t<rl::rmw_type_add>(), v, o, here);
  }
  T fetch_sub(T v, std::memory_order o = memory_order_seq_cst,
              const here_t& here = here_t::current()) noexcept {
    return change(rl::rmw_type_t<rl::rmw_type_sub>(), v, o, here);
  }
  T fetch_or(T v, std::memory_order o = memory_order_seq_cst,
             const here_t& here = here_t::current()) noexcept {
    return change(rl::rmw_type_t<rl::rmw_type_or>(), v, o, here);
  }
  T fetch_and(T v, std::memory_order o = memory_order_seq_cst,
              const here_t& here = here_t::current()) noexcept {
    return change(rl::rmw_type_t<rl::rmw_type_and>(), v, o, here);
  }

  /// The newest value, without any order: what the kernel compares, and what a test looks at in the end.
  T newest() const noexcept { return cell_ != nullptr ? from(cell_->value.debug_value()) : plain_; }

 private:
  static std::uint64_t bits(T v) noexcept {
    if constexpr (std::is_pointer_v<T>)
      return reinterpret_cast<std::uintptr_t>(v);
    else
      return static_cast<std::uint64_t>(v);
  }
  static T from(std::uint64_t b) noexcept {
    if constexpr (std::is_pointer_v<T>)
      return reinterpret_cast<T>(static_cast<std::uintptr_t>(b));
    else
      return static_cast<T>(b);
  }
  /// Outside of executions, and while the model is made.
  bool is_plain() const noexcept {
    if (cell_ != nullptr) return false;
    if (!watched_ || model::making) return true;
    cell_ = model::bind_late(bits(plain_));
    return false;
  }
  static bool is_split(const here_t& here) noexcept {
    return model::is_broken(model::operation::atomicity, here);
  }

  template <bool weak>
  bool compare_exchange(T& expected, T v, std::memory_order o, const here_t& here) noexcept {
    if (is_plain()) {
      const bool equal = plain_ == expected;
      (equal ? plain_ : expected) = equal ? v : plain_;
      return equal;
    }
    if (is_split(here)) [[unlikely]] {
      const T old = load(memory_order_acquire, here);
      if (old == expected) store(v, memory_order_release, here);
      return std::exchange(expected, old) == old;
    }
    const model::step one;
    const rl::memory_order m = model::order(model::operation::rmw, o, here);
    std::uint64_t seen = bits(expected);
    const bool done = cell_->value.compare_exchange(rl::bool_t<weak>(), seen, bits(v), m, model::info(here));
    if (done)
      cell_->note(m);
    else
      expected = from(seen);
    return done;
  }
  template <rl::rmw_type_e type>
  T change(rl::rmw_type_t<type> how, T v, std::memory_order o, const here_t& here) noexcept {
    if (is_plain()) return std::exchange(plain_, static_cast<T>(rl::perform_rmw(how, plain_, v)));
    if (is_split(here)) [[unlikely]] {
      const T old = load(memory_order_acquire, here);
      store(from(rl::perform_rmw(how, bits(old), bits(v))), memory_order_release, here);
      return old;
    }
    const model::step one;
    const rl::memory_order m = model::order(model::operation::rmw, o, here);
    const std::uint64_t old = cell_->value.rmw(how, bits(v), m, model::info(here));
    cell_->note(m);
    return from(old);
  }

  T plain_;
  bool watched_ = false;  // made in an execution
  mutable model::cell* cell_ = nullptr;
};

inline void fence(const std::source_location& here = std::source_location::current()) noexcept {
  if (model::is_broken(model::operation::fence, here)) [[unlikely]]
    return;
  const model::thread_state kept;
  rl::atomic_thread_fence(rl::mo_seq_cst, model::info(here));
  model::sequence.last_fence[rl::ctx().threadx_->index_] = ++model::sequence.now;
}
/// With WEFT_ASYMMETRIC: all threads pass a fence at this moment.
inline void process_fence(const std::source_location& here = std::source_location::current()) noexcept {
  const model::thread_state kept;
  rl::ctx().sched();
  if (!model::is_broken(model::operation::fence, here)) rl::systemwide_fence(model::info(here));
}
inline void pause() noexcept {
  const model::thread_state kept;
  rl::ctx().sched();
}
inline void yield() noexcept { model::yield(); }

/// Goes on by itself, a little with each look.
struct clock : std::chrono::steady_clock {
  static time_point now() noexcept { return time_point(std::chrono::microseconds(++model::time_now)); }
};

/// The comparison is one step with the beginning of the wait, and orders nothing.
inline void futex_wait(atomic<std::uint32_t>& word, std::uint32_t seen,
                       const std::source_location& here = std::source_location::current()) noexcept {
  const model::thread_state kept;
  rl::context& c = rl::ctx();
  c.sched();
  if (word.newest() != seen) return model::yield(here);  // a system call later the value is no secret
  const rl::thread_id_t me = c.threadx_->index_;
  model::waiters[model::waiting_count++] = {&word, me};
  if (c.park_current_thread(false, c.is_random_sched(), false, model::info(here)) == rl::unpark_reason_normal)
    return;
  for (int i = 0; i < model::waiting_count; ++i)
    if (model::waiters[i].thread == me) return model::remove_waiter(i);
}
inline void futex_wait_until(atomic<std::uint32_t>& word, std::uint32_t seen,
                             clock::time_point end) noexcept {
  const model::thread_state kept;
  rl::ctx().sched();
  if (word.newest() != seen) return;
  model::time_now = std::max<std::uint64_t>(
      model::time_now,
      static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::microseconds>(end.time_since_epoch()).count()));
  model::yield();
}
inline void futex_wake(atomic<std::uint32_t>& word, int count,
                       const std::source_location& here = std::source_location::current()) noexcept {
  const model::thread_state kept;
  rl::context& c = rl::ctx();
  c.sched();
  for (; count > 0; --count) {
    int found[model::most_threads], n = 0;
    for (int i = 0; i < model::waiting_count; ++i)
      if (model::waiters[i].word == &word) found[n++] = i;
    if (n == 0) return;
    const int chosen = found[n > 1 ? c.rand(static_cast<unsigned>(n), rl::sched_type_user) : 0];
    const rl::thread_id_t thread = model::waiters[chosen].thread;
    model::remove_waiter(chosen);
    c.unpark_thread(thread, false, model::info(here));
  }
}

/// One that is made outside of executions excludes nobody: there is one thread then.
class mutex {
 public:
  mutex() {
    if (rl::is_ctx()) mutex_.emplace();
  }
  void lock(const std::source_location& here = std::source_location::current()) {
    const model::thread_state kept;
    if (mutex_) mutex_->lock(model::info(here));
  }
  bool try_lock(const std::source_location& here = std::source_location::current()) {
    const model::thread_state kept;
    return !mutex_ || mutex_->try_lock(model::info(here));
  }
  void unlock(const std::source_location& here = std::source_location::current()) {
    const model::thread_state kept;
    if (mutex_) mutex_->unlock(model::info(here));
  }

 private:
  std::optional<rl::mutex> mutex_;
};

/// Nobody: the threads of a model are Relacy's.
class thread {
 public:
  thread() noexcept = default;
  template <class F, class... A>
  explicit thread(F, A...) {}
  bool joinable() const noexcept { return false; }
  void join() noexcept {}
};

}  // namespace weft::inline WEFT_ABI::base
