// SPDX-License-Identifier: BSL-1.0
// SHA-1 (FIPS 180-4) of a message short enough for one block.
#pragma once

namespace weft_bench {

/// A digest, as five big-endian words.
struct digest {
  unsigned word[5];
};

inline unsigned rotate_left(unsigned v, int by) { return (v << by) | (v >> (32 - by)); }

/// SHA-1 of the `words` (at most 13) given as big-endian 32-bit words.
template <int words>
inline digest sha1(const unsigned (&message)[words]) {
  unsigned w[16];
  for (int i = 0; i < words; ++i) w[i] = message[i];
  w[words] = 0x80000000u;
  for (int i = words + 1; i < 15; ++i) w[i] = 0;
  w[15] = 32u * words;  // length in bits
  unsigned a = 0x67452301u;
  unsigned b = 0xefcdab89u;
  unsigned c = 0x98badcfeu;
  unsigned d = 0x10325476u;
  unsigned e = 0xc3d2e1f0u;
  for (int i = 0; i < 80; ++i) {
    if (i >= 16) w[i & 15] = rotate_left(w[(i + 13) & 15] ^ w[(i + 8) & 15] ^ w[(i + 2) & 15] ^ w[i & 15], 1);
    unsigned f = 0;
    unsigned k = 0;
    if (i < 20) {
      f = (b & c) | (~b & d);
      k = 0x5a827999u;
    } else if (i < 40) {
      f = b ^ c ^ d;
      k = 0x6ed9eba1u;
    } else if (i < 60) {
      f = (b & c) | (b & d) | (c & d);
      k = 0x8f1bbcdcu;
    } else {
      f = b ^ c ^ d;
      k = 0xca62c1d6u;
    }
    const unsigned next = rotate_left(a, 5) + f + e + k + w[i & 15];
    e = d;
    d = c;
    c = rotate_left(b, 30);
    b = a;
    a = next;
  }
  const digest out = {{a + 0x67452301u, b + 0xefcdab89u, c + 0x98badcfeu, d + 0x10325476u, e + 0xc3d2e1f0u}};
  return out;
}

}  // namespace weft_bench
