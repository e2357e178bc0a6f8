// SPDX-License-Identifier: BSL-1.0
// Second station: all solutions of the N-queens problem, forking at every placement or only in the first
// rows.
#include "tour.hpp"

namespace tour {

namespace {

/// Columns and diagonals that are attacked in the next row.
struct board {
  unsigned all;
  unsigned columns = 0;
  unsigned left = 0;
  unsigned right = 0;

  unsigned free() const { return all & ~(columns | left | right); }
  board with(unsigned bit) const { return {all, columns | bit, (left | bit) << 1, (right | bit) >> 1}; }
};

constexpr int most_queens = 16;

long search(board b) {
  if (b.columns == b.all) return 1;
  long solutions = 0;
  for (unsigned free = b.free(); free != 0; free &= free - 1) solutions += search(b.with(free & -free));
  return solutions;
}

/// Every placement in the next `levels` rows is a task.
long forked(board b, int levels) {
  if (b.columns == b.all) return 1;
  if (levels == 0) return search(b);
  long part[most_queens];
  int k = 0;
  for (unsigned free = b.free(); free != 0; free &= free - 1) {
    const board next = b.with(free & -free);
    weft::fork([&mine = part[k], next, levels] { mine = forked(next, levels - 1); });
    ++k;
  }
  weft::sync();
  long solutions = 0;
  for (int i = 0; i < k; ++i) solutions += part[i];
  return solutions;
}

/// Placements in the next `levels` rows.
std::uint64_t placements(board b, int levels) {
  std::uint64_t count = 0;
  if (levels == 0) return count;
  for (unsigned free = b.free(); free != 0; free &= free - 1)
    count += 1 + placements(b.with(free & -free), levels - 1);
  return count;
}

}  // namespace

void queens(size s, report& r) {
  const volatile int n = s == size::full ? 14 : 10;
  const board empty{(1u << n) - 1};
  long expected = 0;
  long value = 0;
  problem p;
  p.serial = [&] { expected = search(empty); };
  p.equal = [&] {
    const bool equal = value == expected;
    value = 0;
    return equal;
  };
  for (const int levels : {5, int(n)}) {
    p.name = "queens(" + std::to_string(n) + ") " + (levels == n ? "no cut-off" : "cut-off at depth 5");
    p.tasks = placements(empty, levels);
    p.parallel = [&, levels](weft::runtime& rt) { value = rt.run([&] { return forked(empty, levels); }); };
    visit(p, r);
  }
}

}  // namespace tour
