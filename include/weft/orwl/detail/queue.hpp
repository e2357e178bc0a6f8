// SPDX-License-Identifier: BSL-1.0
// The queue of a location: requests in the order in which they were posted, and who holds the lock.
#pragma once

#include <weft/base/error.hpp>
#include <weft/blocking/definitions.hpp>
#include <weft/blocking/wait.hpp>

#include <mutex>

namespace weft::inline WEFT_ABI::orwl {

/// A handle, location or overlay is used in a state that does not allow it; the text says which.
class WEFT_CROSSES_MODULES usage_error : public error {
 public:
  using error::error;
};

namespace detail {

/// One request for a lock. Belongs to a handle; the queue links it while it waits.
///
/// Who may touch it when:
///  1. `is` changes under the queue's lock; whoever reads `granted` with acquire holds the lock.
///  2. The other members belong to the queue's lock while the request waits, and to the handle otherwise.
struct request : sched::abandonable {
  enum class state : std::uint8_t { idle, waiting, granted, abandoned };

  base::atomic<state> is{state::idle};
  bool exclusive = false;
  bool awaited = false;  ///< somebody waits in acquire
  class queue* where = nullptr;
  request* behind = nullptr;  ///< in the queue, or in a chain of those to be told
  request* before = nullptr;

  // Acquire pairs with the queue's store of it.
  bool granted() const noexcept { return is.load(base::memory_order_acquire) == state::granted; }
  // Relaxed: only the handle's own thread makes it idle, or not idle.
  bool idle() const noexcept { return is.load(base::memory_order_relaxed) == state::idle; }
};

/// First come, first served: an exclusive request waits for all before it, a shared one for all exclusive
/// ones before it; nobody overtakes. Consecutive shared requests hold the lock together. *Thread safety*: any
/// thread, any member; each request by one thread at a time. *Source*: Clauss and Gustedt, ordered read-write
/// locks.
class queue {
 public:
  /// `of`: the location whose queue this is.
  explicit queue(const void* of = nullptr) noexcept : of_(of) {}
  queue(const queue&) = delete;
  queue& operator=(const queue&) = delete;
  /// *Requires*: nobody holds the lock or waits for it.
  ~queue() {
    if (!unused()) base::fail("an ORWL location is destroyed while handles have requests on it");
  }

  /// Appends a request. *Requires*: it is idle. *Throws*: usage_error while an overlay uses the location.
  void post(request& r, bool exclusive) {
    [[maybe_unused]] const sched::races::unseen library;
    r.exclusive = exclusive;
    r.where = this;
    const std::lock_guard hold(mutex_);
    if (reserved_) throw usage_error("weft: an ORWL request on a location that a running overlay uses");
    append(r);
  }
  /// Appends `next`, like `r`, and releases `r`: its owner keeps its turn. *Requires*: `r` is granted, `next`
  /// is idle.
  void pass_on(request& r, request& next) noexcept {
    let_see(r);
    [[maybe_unused]] const sched::races::unseen library;
    next.exclusive = r.exclusive;
    next.where = this;
    request* told = nullptr;
    {
      const std::lock_guard hold(mutex_);
      append(next);
      told = release_behind_door(r);
    }
    tell(told);
  }
  /// *Requires*: the request is granted.
  void release(request& r) noexcept {
    let_see(r);
    [[maybe_unused]] const sched::races::unseen library;
    request* told = nullptr;
    {
      const std::lock_guard hold(mutex_);
      told = release_behind_door(r);
    }
    tell(told);
  }
  /// Takes a request back, whether it waits or is granted. *Requires*: nobody waits in acquire for it.
  void withdraw(request& r) noexcept {
    let_see(r);
    [[maybe_unused]] const sched::races::unseen library;
    tell(withdraw_as(r, request::state::idle));
  }

  /// Waits until the request is granted. *Throws*: cancelled if the run is stopped meanwhile, and then the
  /// request is withdrawn; std::bad_alloc, std::system_error. *Suspends*: yes.
  void acquire(request& r) {
    if (!r.granted()) wait(r);
    see(r);
  }
  /// Whether the request is granted.
  bool test(const request& r) noexcept {
    if (!r.granted()) return false;
    see(r);
    return true;
  }

  const char* label = nullptr;  ///< of the location, for messages and traces; null: none

  /// Whether there is no request.
  bool unused() const noexcept {
    const std::lock_guard hold(mutex_);
    return holders_ == 0 && first_ == nullptr;
  }
  /// Keeps requests away, or no longer. *Returns*: false if it has some, or is reserved.
  bool reserve() noexcept {
    const std::lock_guard hold(mutex_);
    if (reserved_ || holders_ != 0 || first_ != nullptr) return false;
    return reserved_ = true;
  }
  void end_reservation() noexcept {
    const std::lock_guard hold(mutex_);
    reserved_ = false;
  }

 private:
  // Holders before and after, for Thread Sanitizer, where it does not see what the library does.
#if WEFT_RACES
  void let_see(const request& r) noexcept { context::races::release(r.exclusive ? &first_ : &last_); }
  void see(const request& r) noexcept {
    context::races::acquire(&first_);
    if (r.exclusive) context::races::acquire(&last_);
  }
#else
  static void let_see(const request&) noexcept {}
  static void see(const request&) noexcept {}
#endif

  void append(request& r) noexcept {
    r.awaited = false;
    r.behind = nullptr;
    r.before = last_;
    if (first_ == nullptr && (holders_ == 0 || (shared_ && !r.exclusive))) return grant(r);
    r.is.store(request::state::waiting, base::memory_order_relaxed);  // ordered by the lock
    (last_ != nullptr ? last_->behind : first_) = &r;
    last_ = &r;
  }
  void grant(request& r) noexcept {
    ++holders_;
    shared_ = !r.exclusive;
    // Release publishes what the holders before did, which the lock has handed over.
    r.is.store(request::state::granted, base::memory_order_release);
  }
  void unlink(request& r) noexcept {
    (r.before != nullptr ? r.before->behind : first_) = r.behind;
    (r.behind != nullptr ? r.behind->before : last_) = r.before;
  }
  /// Grants what can be. *Returns*: the chain of those that are waited for.
  request* grant_first_ones() noexcept {
    request* told = nullptr;
    while (first_ != nullptr && (holders_ == 0 || (shared_ && !first_->exclusive))) {
      request& r = *first_;
      unlink(r);
      if (r.awaited) r.behind = std::exchange(told, &r);
      grant(r);
    }
    return told;
  }
  request* release_behind_door(request& r) noexcept {
    r.is.store(request::state::idle, base::memory_order_relaxed);  // read by its own thread
    return --holders_ == 0 ? grant_first_ones() : nullptr;
  }
  request* withdraw_as(request& r, request::state then) noexcept {
    const std::lock_guard hold(mutex_);
    const request::state now = r.is.load(base::memory_order_relaxed);  // ordered by the lock
    if (r.awaited && now == request::state::waiting && then == request::state::idle)
      base::fail("an ORWL handle is destroyed or cancelled while somebody waits for its lock in acquire()");
    if (now == request::state::idle || (now == request::state::granted && then != request::state::idle))
      return nullptr;
    if (now == request::state::waiting)
      unlink(r);
    else if (now == request::state::granted)
      --holders_;
    r.is.store(then, base::memory_order_relaxed);
    return grant_first_ones();
  }
  /// They stay where they are until they are told.
  static void tell(request* told) noexcept {
    while (told != nullptr) sched::raise_signal(*std::exchange(told, told->behind));
  }
  void wait(request& r) {
    [[maybe_unused]] const sched::races::unseen library;
    r.what = "the lock of an ORWL location";
    r.object = of_;
    r.label = label;
    r.give_up = [](sched::abandonable& a) noexcept {
      auto& self = static_cast<request&>(a);
      tell(self.where->withdraw_as(self, request::state::abandoned));
      // Relaxed: who has granted it tells it, and until then it changes only under the lock.
      if (self.is.load(base::memory_order_relaxed) == request::state::abandoned) sched::raise_signal(self);
    };
    sched::wait_abandonable(r, "acquires an ORWL lock", [this, &r] {
      const std::lock_guard hold(mutex_);
      return !r.granted() && (r.awaited = true);
    });
    if (r.granted()) return;
    r.is.store(request::state::idle, base::memory_order_relaxed);  // its own thread; nobody else knows of it
    throw cancelled();
  }

  const void* const of_;
  mutable base::spin_lock mutex_;
  request* first_ = nullptr;  // of those that wait
  request* last_ = nullptr;
  std::size_t holders_ = 0;
  bool shared_ = false;    // what the holders are
  bool reserved_ = false;  // for an overlay
};

}  // namespace detail
}  // namespace weft::inline WEFT_ABI::orwl
