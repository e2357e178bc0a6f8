// SPDX-License-Identifier: BSL-1.0
// A copy of a task that can be executed again and again, on the same objects.
#pragma once

#include <weft/cluster/archive.hpp>
#include <weft/flow/fork.hpp>

#include <concepts>
#include <memory>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// What can be archived, and made without arguments.
template <class T>
inline constexpr bool value_travels = travels<T> && std::default_initializable<T> && std::movable<T>;

/// How the value of an object goes to another process.
struct value_kind {
  void (*pack)(const void* value, writer& w);
  void (*unpack)(void* value, reader& r);  ///< in place: others may hold addresses of its elements
};
template <class T>
inline constexpr value_kind kind_of_travelling_value{
    [](const void* value, writer& w) { w(*static_cast<const T*>(value)); },
    [](void* value, reader& r) { r(*static_cast<T*>(value)); }};
/// Null if it does not.
template <class T>
constexpr const value_kind* kind_of_value() noexcept {
  if constexpr (value_travels<T>)
    return &kind_of_travelling_value<T>;
  else
    return nullptr;
}

/// An access of a task that is repeated. `mode`: read, write or update.
struct repeated_access {
  void* object;
  sched::access_mode mode;
  const std::type_info* type;  ///< of the value
  const value_kind* kind;
};

class repeatable {
 public:
  repeatable() = default;
  repeatable(const repeatable&) = delete;
  repeatable& operator=(const repeatable&) = delete;
  virtual ~repeatable() = default;
  /// Executes the body, with a copy of its callable and its arguments. *Throws*: what these throw.
  virtual void run() const = 0;
  /// The function that it calls, if its callable is a pointer to one; else null.
  virtual const void* function() const noexcept = 0;
  /// In the order of the arguments.
  virtual std::vector<repeated_access> accesses() const = 0;
};

/// Whether a closure that is copied may have such an argument.
template <class Adaptor>
inline constexpr bool argument_repeats =
    flow::right_travels<Adaptor> && std::copy_constructible<typename Adaptor::kept>;

template <class F, class... Adaptors>
class repeated final : public repeatable {
 public:
  repeated(const F& f, const typename Adaptors::kept&... kept) : f_(f), kept_(kept...) {}

  void run() const override {
    F f(f_);
    std::tuple<typename Adaptors::kept...> kept(kept_);
    std::apply([&f](auto&... k) { flow::call_with<Adaptors...>(std::move(f), k...); }, kept);
  }
  const void* function() const noexcept override {
    if constexpr (std::is_pointer_v<F>)
      return reinterpret_cast<const void*>(f_);
    else
      return nullptr;
  }
  std::vector<repeated_access> accesses() const override {
    std::vector<repeated_access> all;
    std::apply([&all](const auto&... k) { (tell_<Adaptors>(k, all), ...); }, kept_);
    return all;
  }

 private:
  template <class Adaptor>
  static void tell_([[maybe_unused]] const typename Adaptor::kept& k,
                    [[maybe_unused]] std::vector<repeated_access>& all) {
    using mode = sched::access_mode;
    if constexpr (Adaptor::access) {
      using value = std::remove_cv_t<typename Adaptor::value>;
      constexpr mode m = Adaptor::mode;
      all.push_back({const_cast<value*>(k), m == mode::read || m == mode::write ? m : mode::update,
                     &typeid(value), kind_of_value<value>()});
    } else if constexpr (Adaptor::parts != 0) {
      // Contributions are made one after the other, to the object itself.
      using value = std::remove_pointer_t<decltype(k.object)>;
      all.push_back({k.object, mode::update, &typeid(value), kind_of_value<value>()});
    }
  }

  const F f_;
  const std::tuple<typename Adaptors::kept...> kept_;
};

}  // namespace weft::inline WEFT_ABI::remote
