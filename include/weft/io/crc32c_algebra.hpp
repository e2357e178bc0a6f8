// SPDX-License-Identifier: BSL-1.0
// Powers and products modulo the polynomial of CRC-32C, and the tables that are made of them when compiling.
#pragma once

#include <weft/base/config.hpp>

#include <array>
#include <cstdint>

namespace weft::inline WEFT_ABI::io::detail {

/// The polynomial of Castagnoli, its lowest power in the highest bit, as all remainders here.
inline constexpr std::uint32_t crc32c_polynomial = 0x82F63B78u;
/// The remainder 1.
inline constexpr std::uint32_t crc32c_one = 0x80000000u;

constexpr std::uint32_t crc32c_times_x(std::uint32_t a) noexcept {
  return a >> 1 ^ ((a & 1) != 0 ? crc32c_polynomial : 0);
}
/// The inverse: the polynomial's power 0, its highest bit, tells whether it was subtracted.
constexpr std::uint32_t crc32c_over_x(std::uint32_t a) noexcept {
  return (a & crc32c_one) != 0 ? (a ^ crc32c_polynomial) << 1 | 1 : a << 1;
}

/// The product of two remainders.
constexpr std::uint32_t crc32c_product(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (; a != 0; a <<= 1) {
    // A mask instead of a branch: the bits are random, and half of all guesses would be wrong.
    product ^= b & (0u - (a >> 31));
    b = b >> 1 ^ (crc32c_polynomial & (0u - (b & 1)));
  }
  return product;
}

/// x to the power n; n may be negative, because x has an inverse. Thousands of steps: never at run time.
consteval std::uint32_t crc32c_power(std::int64_t n) noexcept {
  std::uint32_t base = n < 0 ? crc32c_over_x(crc32c_one) : crc32c_times_x(crc32c_one);
  std::uint32_t power = crc32c_one;
  for (std::uint64_t left = static_cast<std::uint64_t>(n < 0 ? -n : n); left != 0; left >>= 1) {
    if ((left & 1) != 0) power = crc32c_product(power, base);
    base = crc32c_product(base, base);
  }
  return power;
}

/// Row k, column b: the remainder of byte b with k zero bytes behind it.
inline constexpr auto crc32c_tables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> t{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc32c_times_x(crc);
    t[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      t[k][byte] = t[0][t[k - 1][byte] & 255] ^ t[k - 1][byte] >> 8;
  return t;
}();

/// Row i, column d: x to the power 8 d 16^i, times `factor`: the way over as many zero bytes as the i-th
/// hexadecimal digit d of a length says.
consteval std::array<std::array<std::uint32_t, 16>, 16> crc32c_digits(std::uint32_t factor) noexcept {
  std::array<std::array<std::uint32_t, 16>, 16> t{};
  std::uint32_t step = crc32c_power(8);
  for (auto& row : t) {
    std::uint32_t power = crc32c_one;
    for (std::uint32_t& entry : row) {
      entry = crc32c_product(factor, power);
      power = crc32c_product(power, step);
    }
    step = power;
  }
  return t;
}

}  // namespace weft::inline WEFT_ABI::io::detail
