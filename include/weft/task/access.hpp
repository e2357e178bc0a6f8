// SPDX-License-Identifier: BSL-1.0
// The rights a task may declare on an object, and which of them conflict.
#pragma once

#include <weft/base/config.hpp>

#include <cstddef>
#include <cstdint>

namespace weft::inline WEFT_ABI::sched {

/// A right as the scheduler sees it. Weak rights are a matter of the room flow.
enum class access_mode : std::uint8_t { read, write, update, reduce, commute };

/// Whether a task with right `later` must wait for an unfinished earlier one with right `earlier`, if it can
/// only be told apart by these. (Contributions with the same operation, and tasks that commute, are set free
/// by a graph.)
constexpr bool conflict(access_mode earlier, access_mode later) noexcept {
  return earlier != access_mode::read || later != access_mode::read;
}

/// What renaming needs to know of a type of objects. The functions throw nothing.
struct version_kind {
  std::size_t size, alignment;
  void (*construct)(void* place);
  void (*move)(void* from, void* to);  ///< assigns to an object
  void (*destroy)(void* place);
};

/// One access of a task, as it is told to a visitor.
struct access {
  const void* object;  ///< identifies the data: an object, or a whole array
  access_mode mode;
  bool sliced = false;                 ///< only the part [begin, end) of an array
  std::size_t begin = 0, end = 0;      ///< in bytes
  const void* operation = nullptr;     ///< identifies the operation of a reduce
  std::uint32_t part = 0;              ///< which contribution of the closure this is
  void* place = nullptr;               ///< where the closure keeps the address of the object; null: nowhere
  const version_kind* kind = nullptr;  ///< of an object that may be renamed for this access
};

/// Is told the accesses of a closure one by one.
struct access_visitor {
  void (*see)(access_visitor& self, const access& a);
};

}  // namespace weft::inline WEFT_ABI::sched
