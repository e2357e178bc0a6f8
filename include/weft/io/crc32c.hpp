// SPDX-License-Identifier: BSL-1.0
// Checksums of bytes: CRC-32C, by the fastest instructions the processor has.
#pragma once

#include <weft/io/crc32c_algebra.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft::inline WEFT_ABI::io {

namespace detail {

/// Without special instructions: eight bytes a step by eight tables. Takes and returns the bare remainder,
/// without the inversions before and after (the same for all three ways).
inline std::uint32_t crc32c_by_tables(const unsigned char* data, std::size_t size,
                                      std::uint32_t crc) noexcept {
  const auto& t = crc32c_tables;
  for (; size >= 8; data += 8, size -= 8) {
    const std::uint32_t a = crc ^ (std::uint32_t{data[0]} | std::uint32_t{data[1]} << 8 |
                                   std::uint32_t{data[2]} << 16 | std::uint32_t{data[3]} << 24);
    crc = t[7][a & 255] ^ t[6][a >> 8 & 255] ^ t[5][a >> 16 & 255] ^ t[4][a >> 24] ^ t[3][data[4]] ^
          t[2][data[5]] ^ t[1][data[6]] ^ t[0][data[7]];
  }
  for (; size > 0; ++data, --size) crc = t[0][(crc ^ *data) & 255] ^ crc >> 8;
  return crc;
}

#if defined(__x86_64__)

inline std::uint64_t eight_bytes(const unsigned char* data) noexcept {
  std::uint64_t word;
  std::memcpy(&word, data, 8);
  return word;
}

/// One stream through the crc32 instruction: what is left over by the ways below.
[[gnu::target("sse4.2")]] inline std::uint32_t crc32c_by_words(const unsigned char* data, std::size_t size,
                                                               std::uint32_t crc) noexcept {
  std::uint64_t wide = crc;
  for (; size >= 8; data += 8, size -= 8) wide = _mm_crc32_u64(wide, eight_bytes(data));
  crc = static_cast<std::uint32_t>(wide);
  for (; size > 0; ++data, --size) crc = _mm_crc32_u8(crc, *data);
  return crc;
}

/// The product of a remainder and x^(n - 33): the remainder after the n further zero bits of `power`.
[[gnu::target("sse4.2,pclmul")]] inline std::uint32_t crc32c_times(std::uint32_t crc,
                                                                   std::uint32_t power) noexcept {
  const auto product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(crc)),
                                            _mm_cvtsi64_si128(static_cast<long long>(power)), 0);
  return static_cast<std::uint32_t>(_mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product))));
}

/// Three streams at a time, because the instruction takes three cycles and one can begin in each.
template <std::size_t Part>
[[gnu::target("sse4.2,pclmul")]] inline std::uint32_t crc32c_three_parts(const unsigned char*& data,
                                                                         std::size_t& size,
                                                                         std::uint32_t crc) noexcept {
  constexpr std::uint32_t over_two = crc32c_power(2 * 8 * Part - 33);
  constexpr std::uint32_t over_one = crc32c_power(8 * Part - 33);
  for (; size >= 3 * Part; data += 3 * Part, size -= 3 * Part) {
    std::uint64_t a = crc;
    std::uint64_t b = 0;
    std::uint64_t c = 0;
    for (std::size_t i = 0; i < Part; i += 8) {
      a = _mm_crc32_u64(a, eight_bytes(data + i));
      b = _mm_crc32_u64(b, eight_bytes(data + Part + i));
      c = _mm_crc32_u64(c, eight_bytes(data + 2 * Part + i));
    }
    crc = crc32c_times(static_cast<std::uint32_t>(a), over_two) ^
          crc32c_times(static_cast<std::uint32_t>(b), over_one) ^ static_cast<std::uint32_t>(c);
  }
  return crc;
}

[[gnu::target("sse4.2,pclmul")]] inline std::uint32_t crc32c_by_streams(const unsigned char* data,
                                                                        std::size_t size,
                                                                        std::uint32_t crc) noexcept {
  crc = crc32c_three_parts<1024>(data, size, crc);
  crc = crc32c_three_parts<128>(data, size, crc);
  return crc32c_by_words(data, size, crc);
}

/// By what 512 bits move on over `bits` bits: a factor for the first and one for the last 64 of every 128.
[[gnu::target("avx512f")]] inline __m512i crc32c_factors(std::uint64_t first, std::uint64_t last) noexcept {
  first <<= 32;
  last <<= 32;
  const auto wide_first = static_cast<long long>(first);
  const auto wide_last = static_cast<long long>(last);
  return _mm512_set_epi64(wide_last, wide_first, wide_last, wide_first, wide_last, wide_first, wide_last,
                          wide_first);
}

/// `before`, moved on by `factors`, plus the 64 bytes there.
[[gnu::target("avx512f,vpclmulqdq")]] inline __m512i crc32c_fold(__m512i before, __m512i factors,
                                                                 __m512i there) noexcept {
  constexpr int sum_of_three = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(before, factors, 0x00),
                                   _mm512_clmulepi64_epi128(before, factors, 0x11), there, sum_of_three);
}

/// Four times 64 bytes at a time, each multiplied over the 256 bytes that follow. *Requires*: 256 bytes.
/// *Source*: Gopal et al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ (Intel, 2009).
[[gnu::target("sse4.2,pclmul,avx512f,vpclmulqdq")]] inline std::uint32_t crc32c_by_folding(
    const unsigned char* data, std::size_t size, std::uint32_t crc) noexcept {
  constexpr std::size_t wide = 64;
  const __m512i over_four = crc32c_factors(crc32c_power(4 * 512 + 63), crc32c_power(4 * 512 - 1));
  const __m512i over_one = crc32c_factors(crc32c_power(512 + 63), crc32c_power(512 - 1));
  __m512i a = _mm512_loadu_si512(data);
  __m512i b = _mm512_loadu_si512(data + wide);
  __m512i c = _mm512_loadu_si512(data + 2 * wide);
  __m512i d = _mm512_loadu_si512(data + 3 * wide);
  // The remainder so far is a sum with the first four bytes.
  a = _mm512_xor_si512(a, _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, static_cast<long long>(crc)));
  for (data += 4 * wide, size -= 4 * wide; size >= 4 * wide; data += 4 * wide, size -= 4 * wide) {
    a = crc32c_fold(a, over_four, _mm512_loadu_si512(data));
    b = crc32c_fold(b, over_four, _mm512_loadu_si512(data + wide));
    c = crc32c_fold(c, over_four, _mm512_loadu_si512(data + 2 * wide));
    d = crc32c_fold(d, over_four, _mm512_loadu_si512(data + 3 * wide));
  }
  a = crc32c_fold(crc32c_fold(crc32c_fold(a, over_one, b), over_one, c), over_one, d);
  for (; size >= wide; data += wide, size -= wide) a = crc32c_fold(a, over_one, _mm512_loadu_si512(data));
  std::uint64_t words[8];
  _mm512_storeu_si512(words, a);
  std::uint64_t steal_cooldown = 0;
  for (const std::uint64_t word : words) steal_cooldown = _mm_crc32_u64(steal_cooldown, word);
  return crc32c_by_words(data, size, static_cast<std::uint32_t>(steal_cooldown));
}

[[gnu::target("sse4.2,pclmul,avx512f,vpclmulqdq")]] inline std::uint32_t crc32c_widest(
    const unsigned char* data, std::size_t size, std::uint32_t crc) noexcept {
  return size < 256 ? crc32c_by_words(data, size, crc) : crc32c_by_folding(data, size, crc);
}

#endif

/// What this processor is best at; asked once.
struct crc32c_ways {
  std::uint32_t (*of_bytes)(const unsigned char*, std::size_t, std::uint32_t) noexcept = crc32c_by_tables;
  bool multiplies = false;

  crc32c_ways() noexcept {
#if defined(__x86_64__)
    __builtin_cpu_init();  // static objects of a program may come before the compiler's own
    if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("pclmul")) return;
    of_bytes = crc32c_by_streams;
    multiplies = true;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq")) of_bytes = crc32c_widest;
#endif
  }
  static const crc32c_ways& best() noexcept {
    static const crc32c_ways found;
    return found;
  }
};

inline constexpr auto crc32c_digits_plain = crc32c_digits(crc32c_one);

/// The remainder `crc` with `length` zero bytes behind it, by a product for each digit of the length.
inline std::uint32_t crc32c_over_zeros(std::uint32_t crc, std::uint64_t length) noexcept {
  for (std::size_t i = 0; length != 0; ++i, length >>= 4)
    if ((length & 15) != 0) crc = crc32c_product(crc, crc32c_digits_plain[i][length & 15]);
  return crc;
}

#if defined(__x86_64__)
inline constexpr auto crc32c_digits_for_times = crc32c_digits(crc32c_power(-33));

[[gnu::target("sse4.2,pclmul")]] inline std::uint32_t crc32c_over_zeros_by_times(
    std::uint32_t crc, std::uint64_t length) noexcept {
  for (std::size_t i = 0; length != 0; ++i, length >>= 4)
    if ((length & 15) != 0) crc = crc32c_times(crc, crc32c_digits_for_times[i][length & 15]);
  return crc;
}
#endif

}  // namespace detail

/// CRC-32C (Castagnoli) of bytes. *Returns*: the checksum of the bytes behind those that `so_far` is the
/// checksum of, so that crc32c(b, n, crc32c(a, m)) is that of both. *Suspends*: no. *Thread safety*: any.
inline std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t so_far = 0) noexcept {
  return ~detail::crc32c_ways::best().of_bytes(static_cast<const unsigned char*>(data), size, ~so_far);
}

/// *Returns*: the checksum of a sequence a, whose checksum is `crc_a`, and `length_b` bytes behind it, whose
/// own is `crc_b`. *Cost*: a product for each hexadecimal digit of `length_b`. *Suspends*: no.
inline std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b,
                                    std::uint64_t length_b) noexcept {
#if defined(__x86_64__)
  if (detail::crc32c_ways::best().multiplies)
    return detail::crc32c_over_zeros_by_times(crc_a, length_b) ^ crc_b;
#endif
  return detail::crc32c_over_zeros(crc_a, length_b) ^ crc_b;
}

}  // namespace weft::inline WEFT_ABI::io
