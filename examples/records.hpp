// SPDX-License-Identifier: BSL-1.0
// Records in groups of groups, made up on the spot, as rows of CSV: something large and uneven to write.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace records {

/// What there is to write: `leaves` groups that hold records, inside groups of up to eight groups each.
struct collection {
  long leaves;
  long records_per_leaf;
  long large_ones;  ///< one leaf in so many, wherever it is, ...
  long how_large;   ///< ... holds so many times as many records

  long records_in(long leaf) const;
};

inline std::uint64_t scatter(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

inline long collection::records_in(long leaf) const {
  const bool large =
      scatter(static_cast<std::uint64_t>(leaf) + 1) % static_cast<std::uint64_t>(large_ones) == 0;
  return records_per_leaf * (large ? how_large : 1);
}

/// The group of the leaves [from, to).
struct group {
  long from, to;

  bool is_leaf() const { return to - from == 1; }
  /// How many leaves each group inside it has, but the last.
  long part() const { return std::max((to - from + 7) / 8, 1L); }

  std::string first_row() const { return row_("begin,"); }
  std::string last_row() const { return row_("end,"); }

 private:
  std::string row_(const char* kind) const {
    return kind + std::to_string(from) + ',' + std::to_string(to) + '\n';
  }
};

/// Calls f(g) for each group g directly inside `outer`, in order.
template <class F>
void for_each_part(group outer, F f) {
  for (long from = outer.from; from < outer.to; from += outer.part())
    f(group{from, std::min(from + outer.part(), outer.to)});
}

/// Formats the records of a leaf and hands the text to `write`, some kilobytes at a time.
template <class Write>
void write_leaf(const collection& c, long leaf, Write&& write) {
  std::array<char, 4096> text;
  constexpr std::size_t longest_row = 100;
  char* at = text.data();
  const auto number = [&](std::uint64_t n, char behind) {
    at = std::to_chars(at, at + 20, n).ptr;  // no number is longer
    *at++ = behind;
  };
  const long count = c.records_in(leaf);
  for (long i = 0; i < count; ++i) {
    const std::uint64_t value =
        scatter(static_cast<std::uint64_t>(leaf) << 32 | static_cast<std::uint64_t>(i));
    std::memcpy(at, "record,", 7);
    at += 7;
    number(static_cast<std::uint64_t>(leaf), ',');
    number(static_cast<std::uint64_t>(i), ',');
    number(value >> 44, '.');
    number(value % 90 + 10, ',');
    number(value >> 8 & 0xffffffff, '\n');
    if (text.data() + text.size() - at < static_cast<std::ptrdiff_t>(longest_row)) {
      write(std::string_view(text.data(), static_cast<std::size_t>(at - text.data())));
      at = text.data();
    }
  }
  write(std::string_view(text.data(), static_cast<std::size_t>(at - text.data())));
}

/// The serial program: everything in one string.
inline void write_group(const collection& c, group g, std::string& out) {
  if (g.is_leaf()) return write_leaf(c, g.from, [&out](std::string_view text) { out += text; });
  out += g.first_row();
  for_each_part(g, [&](group part) { write_group(c, part, out); });
  out += g.last_row();
}

}  // namespace records
