// SPDX-License-Identifier: BSL-1.0
// CRC-32C: published values, all ways alike, parts put together.
#include "support/catch.hpp"
#include "support/random.hpp"

#include <weft/io/crc32c.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

using weft::io::crc32c;
using weft::io::crc32c_combine;
namespace detail = weft::io::detail;

namespace {

/// The definition, bit by bit.
std::uint32_t by_bits(const unsigned char* data, std::size_t size) {
  std::uint32_t crc = ~0u;
  for (std::size_t i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
  }
  return ~crc;
}

std::vector<unsigned char> random_bytes(std::size_t size, std::uint64_t seed) {
  weft_test::random draw(seed);
  std::vector<unsigned char> bytes(size);
  for (unsigned char& each : bytes) each = static_cast<unsigned char>(draw());
  return bytes;
}

}  // namespace

TEST_CASE("the published values of RFC 3720") {
  CHECK(crc32c("123456789", 9) == 0xE3069283u);
  CHECK(crc32c(nullptr, 0) == 0);
  std::vector<unsigned char> bytes(32, 0);
  CHECK(crc32c(bytes.data(), 32) == 0x8A9136AAu);
  bytes.assign(32, 0xFF);
  CHECK(crc32c(bytes.data(), 32) == 0x62A8AB43u);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
  CHECK(crc32c(bytes.data(), 32) == 0x46DD794Eu);
}

TEST_CASE("every length and alignment, by every way this processor has") {
  const std::vector<unsigned char> bytes = random_bytes(9000, 1);
  std::vector<std::size_t> sizes;
  for (std::size_t n = 0; n < 1100; ++n) sizes.push_back(n);
  for (const std::size_t n : {3071u, 3072u, 3073u, 4096u, 6144u, 6500u, 8191u, 8900u}) sizes.push_back(n);
  for (const std::size_t size : sizes) {
    const unsigned char* const from = bytes.data() + size % 67;
    const std::uint32_t expected = by_bits(from, size);
    REQUIRE(crc32c(from, size) == expected);
    REQUIRE(~detail::crc32c_by_tables(from, size, ~0u) == expected);
#if defined(__x86_64__)
    if (detail::crc32c_ways::best().multiplies)
      REQUIRE(~detail::crc32c_by_streams(from, size, ~0u) == expected);
#endif
  }
}

TEST_CASE("a checksum can be continued, and two can be put together") {
  const std::vector<unsigned char> bytes = random_bytes(200'000, 2);
  weft_test::random draw(3);
  for (int i = 0; i < 300; ++i) {
    const std::size_t size = draw.below(bytes.size());
    const std::size_t cut = draw.below(size + 1);
    const std::uint32_t whole = crc32c(bytes.data(), size);
    const std::uint32_t a = crc32c(bytes.data(), cut);
    const std::uint32_t b = crc32c(bytes.data() + cut, size - cut);
    REQUIRE(crc32c(bytes.data() + cut, size - cut, a) == whole);
    REQUIRE(crc32c_combine(a, b, size - cut) == whole);
    REQUIRE((detail::crc32c_over_zeros(a, size - cut) ^ b) == whole);
  }
}

TEST_CASE("combining does not depend on where one cuts, for lengths that no memory has") {
  weft_test::random draw(4);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t m = draw() >> draw.below(64);
    const std::uint64_t n = draw() >> (1 + draw.below(63));
    if (m + n < m) continue;
    const auto a = static_cast<std::uint32_t>(draw());
    const auto b = static_cast<std::uint32_t>(draw());
    const auto c = static_cast<std::uint32_t>(draw());
    REQUIRE(crc32c_combine(crc32c_combine(a, b, m), c, n) ==
            crc32c_combine(a, crc32c_combine(b, c, n), m + n));
    REQUIRE(crc32c_combine(a, b, m) == (detail::crc32c_over_zeros(a, m) ^ b));
  }
  CHECK(crc32c_combine(0x12345678u, 0, 0) == 0x12345678u);
}
