// SPDX-License-Identifier: BSL-1.0
// A small random generator whose sequence is the same with every standard library (splitmix64).
#pragma once

#include <cstdint>

namespace weft_test {

/// A uniform random bit generator, also usable with the standard distributions.
class random {
 public:
  using result_type = std::uint64_t;
  explicit random(std::uint64_t seed) : state_(seed) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }

  result_type operator()() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// A number in [0, n), n > 0.
  std::uint64_t below(std::uint64_t n) { return (*this)() % n; }
  /// True once in n times.
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace weft_test
