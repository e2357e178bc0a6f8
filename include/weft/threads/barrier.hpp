// SPDX-License-Identifier: BSL-1.0
// Bodies that wait for each other, again and again.
#pragma once

#include <weft/threads/detail/waiters.hpp>

#include <cstddef>
#include <functional>

namespace weft::inline WEFT_ABI {

/// A number of participants that wait for each other in phases. *Requires*: nobody waits when it is
/// destroyed; each participant arrives once in each phase. *Throws*: weft::error if more participants leave
/// than there are; weft::cancelled if the run is stopped meanwhile; std::bad_alloc, std::system_error.
/// *Suspends*: those that wait. *Thread safety*: any.
class barrier {
 public:
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

  /// Arrives, and waits until all have. A participant that is cancelled while it waits has arrived.
  void arrive_and_wait() {
    threads::let_see(this);
    {
      [[maybe_unused]] const sched::races::unseen library;
      threads::waiter w;
      bool last = false;
      threads::wait_at(waiters_, w, {"a barrier", "waits for a weft::barrier"}, {}, [&] {
        last = --missing_ == 0;
        return !last;
      });
      if (last) end_phase_();
    }
    threads::see(this);
  }
  /// Arrives for the last time: from the next phase on there is a participant less. Does not wait.
  void arrive_and_drop() {
    threads::let_see(this);
    [[maybe_unused]] const sched::races::unseen library;
    bool last = false;
    {
      const std::lock_guard hold(waiters_.mutex);
      if (participants_ == 0) throw error("weft: more participants leave a barrier than it has");
      --participants_;
      last = --missing_ == 0;
    }
    if (last) end_phase_();
  }

 private:
  /// *Requires*: called by the last one to arrive; all others wait.
  void end_phase_() noexcept {
    if (at_end_) at_end_();
    threads::wait_entry* all = nullptr;
    {
      const std::lock_guard hold(waiters_.mutex);
      missing_ = participants_;
      all = waiters_.grant_all();
    }
    threads::waiter_list::tell(all);
  }

  threads::waiter_list waiters_;
  std::ptrdiff_t participants_, missing_;
  std::function<void()> at_end_;
};

}  // namespace weft::inline WEFT_ABI
