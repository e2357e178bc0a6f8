// SPDX-License-Identifier: BSL-1.0
// A hash of 128 bits by which contents are told apart.
#pragma once

#include <weft/base/config.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace weft::inline WEFT_ABI::remote {

/// Two different contents have the same hash by chance only: of contents of a gigabyte, about one pair in
/// 2^78; of shorter ones, fewer. No protection against those who look for a collision.
struct hash128 {
  std::uint64_t high = 0, low = 0;

  friend bool operator==(const hash128&, const hash128&) = default;
  friend auto operator<=>(const hash128&, const hash128&) = default;
  /// For unordered containers: any part of it is as good as a hash of it.
  struct part {
    std::size_t operator()(const hash128& h) const noexcept { return static_cast<std::size_t>(h.low); }
  };
};

/// The state is four words. Each word of the content goes into two of them, as a factor of a product of 128
/// bits that is folded into 64; so a bit of it changes about half of the bits of both.
class content_hash {
 public:
  /// The hash of these bytes; `before`: of what stands before them, so that several parts have one hash. It
  /// depends on the order of bytes in a number. *Cost*: about a second for 14 GB.
  static hash128 of(std::span<const std::byte> content, hash128 before = {}) noexcept {
    content_hash h(before);
    const std::byte* at = content.data();
    std::size_t left = content.size();
    for (; left >= stripe; at += stripe, left -= stripe) h.add_(at);
    if (left != 0) {
      std::byte tail[stripe] = {};
      std::memcpy(tail, at, left);
      h.add_(tail);
    }
    return h.end_(content.size());
  }

 private:
  using word = std::uint64_t;
  static constexpr std::size_t stripe = 4 * sizeof(word);
  // Odd numbers without a pattern: the digits of the square roots of 2, 3, 5 and 7 behind the point.
  static constexpr word key[] = {0x6a09e667f3bcc909, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                 0xa54ff53a5f1d36f1};

  explicit content_hash(hash128 before) noexcept
      : state_{key[0] ^ before.high, key[1] ^ before.low, key[2] + before.low, key[3] + before.high} {}

  static word product(word a, word b) noexcept {
    __extension__ using wide = unsigned __int128;
    const wide p = static_cast<wide>(a) * b;
    return static_cast<word>(p) ^ static_cast<word>(p >> 64);
  }
  /// Both factors depend on the state: no content makes one zero except by chance, and then the other state
  /// of the pair still has what is lost.
  static word next(word state, word a, word b, word k) noexcept {
    return product(a ^ state, b ^ (std::rotl(state, 32) + k));
  }
  void add_(const std::byte* from) noexcept {
    word w[4];
    std::memcpy(w, from, stripe);
    state_[0] = next(state_[0], w[0], w[1], key[1]);
    state_[1] = next(state_[1], w[1], w[0], key[2]);
    state_[2] = next(state_[2], w[2], w[3], key[3]);
    state_[3] = next(state_[3], w[3], w[2], key[0]);
  }
  hash128 end_(std::size_t size) const noexcept {
    const word high = next(state_[0] ^ size, state_[2], size + key[0], key[2]);
    const word low = next(state_[1] + size, state_[3], size ^ key[1], key[3]);
    // A state of one half alone would leave the hash with the 64 bits of that.
    return {next(high, low, state_[3], key[0]), next(low, high, state_[2], key[1])};
  }

  word state_[4];
};

}  // namespace weft::inline WEFT_ABI::remote
