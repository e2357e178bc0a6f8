// SPDX-License-Identifier: BSL-1.0
// The name of a task in checkpoints: a hash of what it is and of all that it reads.
#pragma once

#include <weft/cluster/detail/hash.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::inline WEFT_ABI::remote {

/// Tasks of one name have the same function, arguments and values, so they write the same. All zero: the root
/// of a run, which is no such task.
struct task_name {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const task_name&) const = default;
};

/// For hash tables: a name is a hash.
struct hash_of_name {
  std::size_t operator()(const task_name& n) const noexcept { return static_cast<std::size_t>(n.low); }
};

/// The name of the task whose packed form this is, and whose type's descriptor is found at such an address.
/// The same in all processes that run the same program. *Cost*: as content_hash.
inline task_name name_of(const void* packed, std::size_t size, std::uint32_t module,
                         std::uint64_t offset) noexcept {
  const hash128 h =
      content_hash::of(std::span(static_cast<const std::byte*>(packed), size), {offset, module});
  return {h.high, h.low};
}

}  // namespace weft::inline WEFT_ABI::remote
