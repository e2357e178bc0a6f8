// SPDX-License-Identifier: BSL-1.0
// Numbers as files have them: little-endian, at any offset; and the salts that tell one stream from another.
#pragma once

#include <weft/base/config.hpp>

#include <sys/random.h>

#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft::inline WEFT_ABI::stream {

template <std::unsigned_integral T>
constexpr T little_endian(T value) noexcept {
  if constexpr (std::endian::native == std::endian::little || sizeof(T) == 1) return value;
  T turned = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i, value = static_cast<T>(value >> 8 % (8 * sizeof(T))))
    turned = static_cast<T>(turned << 8 % (8 * sizeof(T)) | (value & 255));
  return turned;
}

template <std::unsigned_integral T>
void put(std::byte* to, T value) noexcept {
  value = little_endian(value);
  std::memcpy(to, &value, sizeof value);
}
template <std::unsigned_integral T>
T get(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return little_endian(value);
}

/// A random number that is not 0: blocks of another stream, which a device may bring back after a crash, do
/// not carry it.
inline std::uint64_t new_salt() noexcept {
  std::uint64_t salt = 0;
  if (getrandom(&salt, sizeof salt, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof salt) || salt == 0) {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    salt = (static_cast<std::uint64_t>(now) ^ reinterpret_cast<std::uintptr_t>(&salt)) | 1;
  }
  return salt;
}

}  // namespace weft::inline WEFT_ABI::stream
