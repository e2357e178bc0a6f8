// SPDX-License-Identifier: BSL-1.0
// The atomic operations on words of other processes that locks are made of.
#pragma once

#include <weft/base/config.hpp>

#include <concepts>
#include <cstdint>

namespace weft::inline WEFT_ABI::rma {

/// A number of a process.
using process = int;
/// Words of 64 bits, each named by its process and its index there. All operations on words are atomic,
/// and complete when they return; those that change a word return what it was. All but `store` have one order
/// that all processes agree on. A store may be seen late: it prepares a word that others find only through a
/// later operation of its process that is no store, or hands something over to a process that waits for it.
template <class W>
concept remote_words = requires(W& w, process p, std::uint32_t index, std::uint64_t v) {
  { w.self() } -> std::convertible_to<process>;
  { w.load(p, index) } -> std::same_as<std::uint64_t>;
  w.store(p, index, v);
  { w.fetch_add(p, index, v) } -> std::same_as<std::uint64_t>;
  { w.fetch_or(p, index, v) } -> std::same_as<std::uint64_t>;
  { w.exchange(p, index, v) } -> std::same_as<std::uint64_t>;
  { w.compare_exchange(p, index, v, v) } -> std::same_as<std::uint64_t>;
};

/// What a step of a lock has achieved. Each step does at most one operation on words.
enum class progress {
  more,   ///< it goes on with the next step
  wait,   ///< it waits for another process: the same step again, soon
  retry,  ///< it has failed and begins again, maybe after some time
  done    ///< it has ended
};

}  // namespace weft::inline WEFT_ABI::rma
