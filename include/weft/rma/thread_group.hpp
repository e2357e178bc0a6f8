// SPDX-License-Identifier: BSL-1.0
// Threads of one process that take the place of processes.
#pragma once

#include <weft/base/error.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::rma {

namespace detail {
/// Another thread of the group has ended by an exception.
struct group_abandoned : error {
  group_abandoned() : error("weft: another thread of the group has ended by an exception") {}
};
}  // namespace detail

/// The part of one thread in a group of threads that run_threads() has started. It has the functions of
/// mpi::communicator that are no matter of MPI, and stands for it in windows and hash tables. All functions
/// but rank(), size(), abandon() and end_job() are collective: every thread of the group calls them, in the
/// same order. *Throws*: weft::error if another thread has ended by an exception, or std::bad_alloc.
/// *Suspends*: never; a thread that waits sleeps. *Thread safety*: only its thread uses it.
class thread_group {
 public:
  /// The number of this thread.
  int rank() const noexcept { return rank_; }
  /// How many threads there are.
  int size() const noexcept { return static_cast<int>(all_->values.size()); }

  /// Returns when all threads have called it. What they have done before is visible to all of them.
  void barrier() const {
    std::unique_lock hold(all_->mutex);
    if (all_->abandoned) throw detail::group_abandoned();
    const std::uint64_t mine = all_->round;
    if (++all_->arrived == size()) {
      all_->arrived = 0;
      ++all_->round;
      all_->changed.notify_all();
      return;
    }
    all_->changed.wait(hold, [&] { return all_->round != mine || all_->abandoned; });
    if (all_->round == mine) throw detail::group_abandoned();
  }
  /// The values of all threads, by their numbers.
  template <class T>
    requires std::is_nothrow_copy_assignable_v<T> && std::is_default_constructible_v<T>
  std::vector<T> gather(const T& value) const {
    std::vector<T> all(all_->values.size());  // what may throw comes before others look at `value`
    all_->values[static_cast<std::size_t>(rank_)] = &value;
    barrier();
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = *static_cast<const T*>(all_->values[i]);
    barrier();
    return all;
  }
  /// The value of thread `root`.
  template <class T>
  T broadcast(const T& value, int root = 0) const {
    return gather(value)[static_cast<std::size_t>(root)];
  }
  /// The sum of the values of all threads.
  template <class T>
    requires std::is_arithmetic_v<T>
  T sum(T value) const {
    const std::vector<T> all = gather(value);
    return std::accumulate(all.begin(), all.end(), T{});
  }
  /// The largest of the values of all threads.
  template <class T>
    requires std::is_arithmetic_v<T>
  T max(T value) const {
    return std::ranges::max(gather(value));
  }
  /// The smallest of the values of all threads.
  template <class T>
    requires std::is_arithmetic_v<T>
  T min(T value) const {
    return std::ranges::min(gather(value));
  }

  /// From now on all functions of the group throw, in all threads.
  void abandon() const noexcept {
    const std::lock_guard hold(all_->mutex);
    all_->abandoned = true;
    all_->changed.notify_all();
  }
  /// Prints who ends the process, and why, and ends it.
  [[noreturn]] void end_job(const std::string& why) const noexcept {
    std::fprintf(stderr, "weft: thread %d of a group %s\n", rank_, why.c_str());
    std::abort();
  }

 private:
  template <class F>
  friend void run_threads(int count, F f);
  /// Its mutex guards all but `values`: each thread sets its own before a barrier, and all read it between
  /// that barrier and the next one.
  struct common {
    explicit common(int count) : values(static_cast<std::size_t>(count)) {}
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t round = 0;
    int arrived = 0;
    bool abandoned = false;
    std::vector<const void*> values;
  };

  thread_group(std::shared_ptr<common> all, int rank) noexcept : all_(std::move(all)), rank_(rank) {}

  std::shared_ptr<common> all_;
  int rank_;
};

/// Calls `f(group)` in `count` threads at once, of which the caller is number 0; each has its own part in one
/// group. *Returns*: when all have ended. *Throws*: what `f` has thrown, in one of the threads: the others
/// then throw when they wait for the group, as the destructors of windows do without throwing; weft::error if
/// `count` is less than 1; std::system_error if a thread cannot be started. *Suspends*: never.
/// *Example*: `run_threads(4, [](const thread_group& g) { window<int, thread_group> w(g, 10); ... });`
template <class F>
void run_threads(int count, F f) {
  if (count < 1) throw error("weft: a group has at least one thread");
  const auto all = std::make_shared<thread_group::common>(count);
  std::exception_ptr cause, consequence;  // guarded by the mutex of the group
  const auto work = [&](int rank) noexcept {
    const thread_group mine(all, rank);
    const auto failed = [&](std::exception_ptr& what) noexcept {
      mine.abandon();
      const std::lock_guard hold(all->mutex);
      if (what == nullptr) what = std::current_exception();
    };
    try {
      f(mine);
    } catch (const detail::group_abandoned&) {
      failed(consequence);
    } catch (...) {
      failed(cause);
    }
  };
  std::vector<std::thread> others;
  try {
    for (int rank = 1; rank < count; ++rank) others.emplace_back(work, rank);
    work(0);
  } catch (...) {
    thread_group(all, 0).abandon();
    const std::lock_guard hold(all->mutex);  // threads have started
    if (cause == nullptr) cause = std::current_exception();
  }
  for (std::thread& t : others) t.join();
  if (cause == nullptr) cause = consequence;
  if (cause != nullptr) std::rethrow_exception(cause);
}

}  // namespace weft::inline WEFT_ABI::rma
