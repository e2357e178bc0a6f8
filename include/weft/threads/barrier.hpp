// SPDX-License-Identifier: BSL-1.0
// Bodies that wait for each other, again and again.
#pragma once

#include <weft/threads/detail/waiters.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace weft::inline WEFT_ABI {

/// A number of participants that wait for each other in phases. A participant whose time is over, or that is
/// cancelled while it waits, has arrived: the phase ends without it. *Requires*: nobody waits when it is
/// destroyed; each participant arrives once in each phase, so one whose time was over not again before it
/// knows that the phase has ended. *Throws*: weft::error if more participants leave than there are, or (as
/// far as that is seen) arrive than there are; weft::cancelled from the functions that wait, if the run is
/// stopped meanwhile; std::bad_alloc, std::system_error from these before anything was done. *Suspends*:
/// those that wait. *Thread safety*: any.
class barrier {
 public:
  /// That a participant has arrived, and in which phase. Can be copied.
  class arrival {
    friend barrier;
    explicit arrival(std::uint64_t phase) noexcept : phase_(phase) {}
    std::uint64_t phase_;
  };

  /// `at_end` is called when all have arrived, by the last of them, before any of them goes on; it must not
  /// throw. *Throws*: weft::error if there are no participants.
  explicit barrier(std::ptrdiff_t participants, std::function<void()> at_end = {})
      : participants_(participants), missing_(participants), at_end_(std::move(at_end)) {
    if (participants < 1) throw error("weft: a barrier needs at least one participant");
  }
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;
  ~barrier() {
    if (!waiters_.empty()) base::fail("a weft::barrier is destroyed while somebody waits for it");
  }

  /// Arrives, and does not wait. *Returns*: what to wait with until all have arrived.
  /// *Example*: `const auto mine = phase.arrive(); while (!phase.wait_for(mine, 1s)) report_a_delay();`
  [[nodiscard]] arrival arrive() {
    threads::let_see(this);
    [[maybe_unused]] const sched::races::unseen library;
    std::unique_lock hold(waiters_.mutex);
    const arrival mine(phase_);
    const bool last = count_();
    hold.unlock();
    if (last) end_phase_();
    return mine;
  }
  /// Waits until all have arrived in the phase of an arrival.
  void wait(const arrival& mine) {
    std::optional done(mine);
    wait_(done, {});
  }
  /// Waits so long at most. *Returns*: whether all have arrived.
  template <class Rep, class Period>
  bool wait_for(const arrival& mine, const std::chrono::duration<Rep, Period>& time) {
    std::optional done(mine);
    return wait_(done, threads::after(time));
  }
  /// Waits until then at most. *Returns*: as above.
  template <class Clock, class Duration>
  bool wait_until(const arrival& mine, const std::chrono::time_point<Clock, Duration>& time) {
    std::optional done(mine);
    return threads::until_time(time, [&](threads::deadline d) { return wait_(done, d); });
  }
  /// Arrives, and waits until all have.
  void arrive_and_wait() {
    std::optional<arrival> none;
    wait_(none, {});
  }
  /// The same; waits so long at most. *Returns*: whether all have arrived. If not, the caller has, all the
  /// same: it does not arrive again in this phase. One that wants to wait once more calls arrive() and
  /// wait_for().
  template <class Rep, class Period>
  bool arrive_and_wait_for(const std::chrono::duration<Rep, Period>& time) {
    std::optional<arrival> none;
    return wait_(none, threads::after(time));
  }
  /// The same; waits until then at most.
  template <class Clock, class Duration>
  bool arrive_and_wait_until(const std::chrono::time_point<Clock, Duration>& time) {
    std::optional<arrival> mine;
    return threads::until_time(time, [&](threads::deadline d) { return wait_(mine, d); });
  }
  /// Arrives for the last time: from the next phase on there is a participant less. Does not wait.
  void arrive_and_drop() {
    threads::let_see(this);
    [[maybe_unused]] const sched::races::unseen library;
    bool last = false;
    {
      const std::lock_guard hold(waiters_.mutex);
      if (participants_ == 0) throw error("weft: more participants leave a barrier than it has");
      last = count_();
      --participants_;
    }
    if (last) end_phase_();
  }

 private:
  /// Counts an arrival. *Returns*: whether it is the last one. *Requires*: the lock is held.
  bool count_() {
    // Also until the last one to arrive has ended the phase.
    if (missing_ == 0) throw error("weft: more participants arrive at a barrier than it has");
    return --missing_ == 0;
  }
  /// Arrives unless that has been done, and waits. *Returns*: false if the time is over.
  bool wait_(std::optional<arrival>& mine, threads::deadline until) {
    if (!mine) threads::let_see(this);
    bool over = false;
    {
      [[maybe_unused]] const sched::races::unseen library;
      threads::waiter w;
      bool last = false;
      over = threads::wait_at(waiters_, w, {"a barrier", "waits for a weft::barrier", this}, until, [&] {
        if (mine) return phase_ == mine->phase_;
        last = count_();
        mine.emplace(arrival(phase_));
        return !last;
      });
      if (last) end_phase_();
    }
    if (over) threads::see(this);
    return over;
  }
  /// *Requires*: called by the last one to arrive; nobody else arrives before it has ended.
  void end_phase_() noexcept {
    if (at_end_) at_end_();
    threads::wait_entry* all = nullptr;
    {
      const std::lock_guard hold(waiters_.mutex);
      missing_ = participants_;
      ++phase_;
      all = waiters_.grant_all();
    }
    threads::waiter_list::tell(all);
  }

  threads::waiter_list waiters_;
  std::ptrdiff_t participants_, missing_;
  std::uint64_t phase_ = 0;
  std::function<void()> at_end_;
};

}  // namespace weft::inline WEFT_ABI
