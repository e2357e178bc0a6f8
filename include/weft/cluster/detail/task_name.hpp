// SPDX-License-Identifier: BSL-1.0
// The name of a task in checkpoints: a hash of what it is and of all that it reads.
#pragma once

#include <weft/base/config.hpp>

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

namespace detail {

/// Mixes two words into the state of a name. For a given state it is one to one in the words, and for given
/// words one to one in the state, so nothing is lost on the way.
class name_hash {
 public:
  name_hash(std::uint64_t first, std::uint64_t second) noexcept { add(first, second); }

  void add(std::uint64_t first, std::uint64_t second) noexcept {
    a_ = (a_ ^ spread_(first, odd_[0], odd_[1])) * odd_[2];
    b_ = (b_ ^ spread_(second, odd_[1], odd_[3])) * odd_[0];
    a_ += std::rotl(b_, 23);
    b_ += std::rotl(a_, 41);
  }
  task_name name() const noexcept {
    std::uint64_t a = a_, b = b_;
    for (int i = 0; i < 2; ++i) {
      a = spread_(a, odd_[3], odd_[0]) + b;
      b = spread_(b, odd_[2], odd_[1]) + a;
    }
    return {a, b};
  }

 private:
  static std::uint64_t spread_(std::uint64_t w, std::uint64_t by, std::uint64_t then) noexcept {
    w = (w ^ w >> 32) * by;
    w = (w ^ w >> 29) * then;
    return w ^ w >> 32;
  }
  /// The fractions of the square roots of 2, 3, 5 and 7, made odd.
  static constexpr std::uint64_t odd_[] = {0x6a09e667f3bcc909, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                           0xa54ff53a5f1d36f1};
  std::uint64_t a_ = odd_[1], b_ = odd_[2];
};

}  // namespace detail

/// The name of the task whose packed form this is, and whose type's descriptor is found at such an address.
/// The same in all processes that run the same program. *Cost*: less than a nanosecond for each byte.
inline task_name name_of(const void* packed, std::size_t size, std::uint32_t module,
                         std::uint64_t offset) noexcept {
  detail::name_hash h(offset, std::uint64_t{module} << 48 ^ size);
  const auto* at = static_cast<const std::byte*>(packed);
  std::uint64_t words[2];
  for (; size >= sizeof words; at += sizeof words, size -= sizeof words) {
    std::memcpy(words, at, sizeof words);
    h.add(words[0], words[1]);
  }
  if (size != 0) {
    words[0] = words[1] = 0;
    std::memcpy(words, at, size);
    h.add(words[0], words[1]);
  }
  return h.name();
}

}  // namespace weft::inline WEFT_ABI::remote
