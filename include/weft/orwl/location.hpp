// SPDX-License-Identifier: BSL-1.0
// A location: a value that is reached under an ordered read-write lock.
#pragma once

#include <weft/orwl/detail/queue.hpp>

#include <concepts>
#include <memory>
#include <utility>

namespace weft::inline WEFT_ABI::orwl {

namespace detail {

/// The part of a location that does not depend on its type.
struct any_location {
  any_location() = default;
  any_location(const any_location&) = delete;
  any_location& operator=(const any_location&) = delete;
  virtual ~any_location() = default;

  /// A new location with a copy of the value; null if it cannot be copied.
  /// *Throws*: as the copy.
  virtual std::unique_ptr<any_location> copy() const = 0;
  /// Takes over the value of a location of the same type.
  /// *Requires*: it can be copied.
  /// *Throws*: as the copy.
  virtual void assign(const any_location& from) = 0;

  queue requests{this};
  base::atomic<bool> given{false};  ///< somebody has given it a value, or has had the chance
};

}  // namespace detail

/// A value with a queue of requests for it (see handle, iterative_handle, overlay).
/// *Thread safety*: locks order accesses to the value; one thread makes and destroys the location, while
/// there are no requests.
/// *Source*: Clauss and Gustedt, *Iterative computations with ordered read-write locks*.
template <class T>
class location final : public detail::any_location {
 public:
  /// The type of the value.
  using value_type = T;

  /// Makes the value from the arguments.
  template <class... A>
    requires std::constructible_from<T, A...>
  explicit location(A&&... arguments) : value_(std::forward<A>(arguments)...) {
    if constexpr (sizeof...(A) != 0) mark_();
  }

  /// The value.
  /// *Requires*: no task can change it meanwhile: before or after a run, or by agreement of all handles.
  const T& get() const noexcept { return value_; }
  /// The value.
  T& get() noexcept {
    mark_();
    return value_;
  }
  /// Sets the name that error messages and traces use. The text must outlive the location.
  location& named(const char* name) noexcept {
    requests.label = name;
    return *this;
  }

  /// A copy of the location with its value; null if the type cannot be copied and assigned.
  std::unique_ptr<any_location> copy() const override {
    if constexpr (std::copy_constructible<T> && std::assignable_from<T&, const T&>)
      return std::make_unique<location>(value_);
    else
      return nullptr;
  }
  /// Takes over the value of another location of the same type.
  void assign(const any_location& from) override {
    if constexpr (std::assignable_from<T&, const T&>) value_ = static_cast<const location&>(from).value_;
  }

 private:
  void mark_() noexcept {
    // Relaxed, twice: it is asked for by who orders itself behind all changes of the value.
    if (!given.load(base::memory_order_relaxed)) given.store(true, base::memory_order_relaxed);
  }
  T value_;
};

}  // namespace weft::inline WEFT_ABI::orwl
