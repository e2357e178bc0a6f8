// SPDX-License-Identifier: BSL-1.0
// Sets of processors as the kernel takes and gives them, however large the machine (Linux).
#pragma once

#include <weft/base/config.hpp>

#include <sched.h>

#include <cerrno>
#include <cstddef>
#include <new>

namespace weft::inline WEFT_ABI::base {

/// A set of processors below a number. *Throws*: std::bad_alloc from the constructor.
class processor_set {
 public:
  explicit processor_set(std::size_t end) : bytes_(CPU_ALLOC_SIZE(end)), set_(CPU_ALLOC(end)) {
    if (set_ == nullptr) throw std::bad_alloc();
    CPU_ZERO_S(bytes_, set_);
  }
  processor_set(const processor_set&) = delete;
  processor_set& operator=(const processor_set&) = delete;
  ~processor_set() { CPU_FREE(set_); }

  std::size_t bytes() const noexcept { return bytes_; }
  cpu_set_t* data() noexcept { return set_; }
  const cpu_set_t* data() const noexcept { return set_; }
  bool has(std::size_t processor) const noexcept { return CPU_ISSET_S(processor, bytes_, set_); }
  /// *Requires*: it is below the number given to the constructor.
  void add(std::size_t processor) noexcept { CPU_SET_S(processor, bytes_, set_); }
  std::size_t size() const noexcept { return static_cast<std::size_t>(CPU_COUNT_S(bytes_, set_)); }
  /// From this number on it has no processor.
  std::size_t end() const noexcept { return 8 * bytes_; }

 private:
  const std::size_t bytes_;
  cpu_set_t* const set_;
};

/// Has a set filled by `ask(set)`, which returns the number of its error or 0, and calls `use(set)`. The
/// kernel refuses sets shorter than its own (EINVAL), so they grow until it accepts one; if it refuses them
/// all, `use` is not called.
template <class Ask, class Use>
void ask_for_processors(Ask ask, Use use) {
  for (std::size_t end = 1024; end <= (std::size_t{1} << 22); end *= 2) {
    processor_set set(end);
    const int refused = ask(set);
    if (refused == 0) return use(set);
    if (refused != EINVAL) return;
  }
}

}  // namespace weft::inline WEFT_ABI::base
