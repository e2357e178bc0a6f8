// SPDX-License-Identifier: BSL-1.0
// Numbers as files have them: little-endian, at any offset.
#pragma once

#include <weft/base/config.hpp>

#include <bit>
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

}  // namespace weft::inline WEFT_ABI::stream
