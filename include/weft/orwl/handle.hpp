// SPDX-License-Identifier: BSL-1.0
// Handles: who holds an ordered lock, or will hold it.
#pragma once

#include <weft/orwl/location.hpp>
#include <weft/sched/definitions.hpp>
#include <weft/sched/inlining.hpp>

#include <exception>
#include <string>

namespace weft::inline WEFT_ABI::orwl {

namespace detail {

/// What goes wrong most: the sentence, and what the handle is good for at the moment.
[[noreturn]] WEFT_COLD inline void refuse(const char* what, const request& r) {
  const char* const now = r.idle()      ? "it has no request"
                          : r.granted() ? "it holds the lock"
                                        : "its request waits";
  throw usage_error(std::string("weft: an ORWL handle ") + what + ", but " + now);
}

inline void need_idle(const request& r, const char* what) {
  if (!r.idle()) refuse(what, r);
}
inline void need_granted(const request& r, const char* what) {
  if (!r.granted()) [[unlikely]]
    refuse(what, r);
}

}  // namespace detail

/// One request at a time for one location. An iterative handle posts its next request before it releases the
/// lock, so the order of the first requests is the order of all turns.
/// *Thread safety*: one thread at a time.
/// *Source*: Clauss and Gustedt.
template <class T, bool Iterative>
class basic_handle {
 public:
  basic_handle() = default;
  basic_handle(const basic_handle&) = delete;
  basic_handle& operator=(const basic_handle&) = delete;
  /// Withdraws the request.
  /// *Requires*: no thread or task waits in acquire().
  ~basic_handle() { cancel(); }

  /// Posts a request, behind all that were posted before.
  /// *Throws*: usage_error if the handle has one, or while an overlay uses the location.
  /// *Suspends*: no.
  /// *Effects*: from its first request to the destruction of the handle, no task of the process runs inside
  /// fork (docs/explanation/ordered-locks.md).
  void request_read(location<T>& where) { post_(where, false); }
  /// The same for an exclusive lock.
  void request_write(location<T>& where) { post_(where, true); }
  /// Whether the lock is held.
  /// *Throws*: usage_error without a request.
  bool test() {
    if (now_().idle()) detail::refuse("is tested", now_());
    return now_().where->test(now_());
  }
  /// Waits until the lock is held.
  /// *Throws*: usage_error without a request; cancelled if the run was stopped, and then the request is
  /// withdrawn; std::bad_alloc, std::system_error.
  /// *Suspends*: yes; outside tasks the thread blocks.
  void acquire() {
    if (now_().idle()) detail::refuse("is acquired", now_());
    now_().where->acquire(now_());
  }
  /// Releases the lock. An iterative handle first posts its next request, of the same kind.
  /// *Throws*: usage_error if the lock is not held.
  void release() {
    detail::request& r = now_();
    detail::need_granted(r, "is released");
    if constexpr (Iterative) {
      turn_ ^= 1u;
      r.where->pass_on(r, now_());
    } else {
      r.where->release(r);
    }
  }
  /// Withdraws the request, or releases the lock without posting another request; does nothing without
  /// either.
  void cancel() noexcept {
    if (!now_().idle()) now_().where->withdraw(now_());
  }
  /// The value.
  /// *Throws*: usage_error if the lock is not held; for write() also if it is held for reading.
  const T& read() const {
    detail::need_granted(now_(), "is read through");
    return std::as_const(*where_).get();
  }
  /// Delegates a right that includes this one.
  T& write() const {
    detail::need_granted(now_(), "is written through");
    if (!now_().exclusive)
      throw usage_error("weft: an ORWL handle is written through, but it holds the lock for reading");
    return where_->get();
  }

 private:
  detail::request& now_() noexcept { return request_[turn_]; }
  const detail::request& now_() const noexcept { return request_[turn_]; }
  void post_(location<T>& where, bool exclusive) {
    detail::need_idle(now_(), "posts a request");
    inlining_.begin();
    where.requests.post(now_(), exclusive);
    where_ = &where;
  }

  detail::request request_[Iterative ? 2 : 1];
  unsigned turn_ = 0;
  location<T>* where_ = nullptr;
  sched::inlining_disabled inlining_;  // since the first request
};

template <class T>
using handle = basic_handle<T, false>;
template <class T>
using iterative_handle = basic_handle<T, true>;

/// Holds the lock of a handle for a scope. If an exception leaves the scope, the handle gives up its turns,
/// so that no other handle waits for them.
template <class Handle>
class section {
 public:
  /// As acquire().
  [[nodiscard]] explicit section(Handle& h) : handle_(h) { h.acquire(); }
  section(const section&) = delete;
  section& operator=(const section&) = delete;
  ~section() {
    if (std::uncaught_exceptions() > before_)
      handle_.cancel();
    else
      handle_.release();
  }

  /// Delegates a right that includes this one.
  decltype(auto) read() const { return handle_.read(); }
  /// Delegates a right that includes this one.
  decltype(auto) write() const { return handle_.write(); }

 private:
  Handle& handle_;
  int before_ = std::uncaught_exceptions();
};

}  // namespace weft::inline WEFT_ABI::orwl
