// SPDX-License-Identifier: BSL-1.0
// How an element and a value become the new element.
#pragma once

#include <weft/base/config.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <type_traits>

namespace weft::inline WEFT_ABI::rma {

/// What window::accumulate does with each element.
enum class combine { sum, product, minimum, maximum, bit_and, bit_or, bit_xor, replace };

/// Elements that can be combined: integers and floating-point numbers of at most 8 bytes.
template <class T>
concept number = std::is_arithmetic_v<T> && !std::same_as<T, bool> && sizeof(T) <= 8;

/// Whether a type has an operation: numbers with a point have no bits.
template <number T>
constexpr bool can_combine(combine how) noexcept {
  return std::is_integral_v<T> || how < combine::bit_and || how == combine::replace;
}

/// The new element. Integers wrap around.
template <number T>
constexpr T combined(combine how, T element, T value) noexcept {
  if constexpr (std::is_integral_v<T>) {
    using bits = std::make_unsigned_t<std::common_type_t<T, unsigned>>;
    const bits a = static_cast<bits>(element), b = static_cast<bits>(value);
    if (how == combine::sum) return static_cast<T>(a + b);
    if (how == combine::product) return static_cast<T>(a * b);
    if (how == combine::bit_and) return static_cast<T>(a & b);
    if (how == combine::bit_or) return static_cast<T>(a | b);
    if (how == combine::bit_xor) return static_cast<T>(a ^ b);
  } else {
    if (how == combine::sum) return element + value;
    if (how == combine::product) return element * value;
  }
  if (how == combine::minimum) return std::min(element, value);
  if (how == combine::maximum) return std::max(element, value);
  return value;
}

/// Combines an element in the memory of this process, atomically. *Returns*: what it was. Elements may be
/// flags and counters by which processes agree on something: hence the sequentially consistent order, in
/// which all processes see such operations. Partners are those of other processes, here and in window.
template <number T>
T combine_atomically(T& element, combine how, T value) noexcept {
  const std::atomic_ref<T> at(element);
  if constexpr (std::is_integral_v<T>) {
    if (how == combine::sum) return at.fetch_add(value, std::memory_order_seq_cst);
    if (how == combine::bit_or) return at.fetch_or(value, std::memory_order_seq_cst);
  }
  if (how == combine::replace) return at.exchange(value, std::memory_order_seq_cst);
  T was = at.load(std::memory_order_relaxed);  // a guess, which the exchange checks
  while (!at.compare_exchange_weak(was, combined(how, was, value), std::memory_order_seq_cst,
                                   std::memory_order_relaxed)) {
  }
  return was;
}

}  // namespace weft::inline WEFT_ABI::rma
