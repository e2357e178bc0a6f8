// SPDX-License-Identifier: BSL-1.0
// Sets of processors as the kernel takes and gives them, however large the machine (Linux).
#pragma once

#include <weft/base/config.hpp>

#include <sched.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <vector>

namespace weft::inline WEFT_ABI::base {

/// A set of processors below a number. *Throws*: std::bad_alloc from the constructor.
class processor_set {
 public:
  explicit processor_set(std::size_t end)
      : bytes_(CPU_ALLOC_SIZE(end)), sets_((bytes_ + sizeof(cpu_set_t) - 1) / sizeof(cpu_set_t)) {}
  std::size_t bytes() const noexcept { return bytes_; }
  /// From this number on it has no processor.
  std::size_t end() const noexcept { return 8 * bytes_; }
  cpu_set_t* data() noexcept { return sets_.data(); }
  bool has(std::size_t processor) const noexcept {
    return processor < end() && CPU_ISSET_S(processor, bytes_, sets_.data());
  }
  /// *Requires*: it is below end().
  void add(std::size_t processor) noexcept { CPU_SET_S(processor, bytes_, sets_.data()); }
  std::size_t size() const noexcept { return static_cast<std::size_t>(CPU_COUNT_S(bytes_, sets_.data())); }

 private:
  std::size_t bytes_;
  std::vector<cpu_set_t> sets_;
};

/// Has a set filled by `ask(bytes, set)`, which returns the number of its error or 0. The kernel refuses sets
/// shorter than its own (EINVAL), so they grow until it accepts one. *Returns*: nothing if it refuses them
/// all.
template <class Ask>
std::optional<processor_set> ask_for_processors(Ask ask) {
  for (std::size_t end = 1024; end <= (std::size_t{1} << 22); end *= 2) {
    processor_set set(end);
    const int refused = ask(set.bytes(), set.data());
    if (refused == 0) return set;
    if (refused != EINVAL) break;
  }
  return std::nullopt;
}

}  // namespace weft::inline WEFT_ABI::base
