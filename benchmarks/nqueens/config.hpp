// SPDX-License-Identifier: BSL-1.0
// N-queens, all solutions, by backtracking with bit masks: the boards, the counting, the sizes.
#pragma once

#include "rival.hpp"

namespace weft_bench {

static const char* const kernel_name = "nqueens";
static const char* const task_name = "node";
static const char* const reference_name = "serial";

struct problem {
  const char* name;
  int n;
  int fork_levels;  ///< every placement in the first so many rows is a task, below that the search is serial
  int repetitions;
};

static const int no_cut_off = 1000;

static const problem problems[] = {
    {"14-no-cut-off", 14, no_cut_off, 5},
    {"14-cut-off-5", 14, 5, 5},
    {"12-no-cut-off", 12, no_cut_off, 5},
};

static const int most_queens = 16;

/// Columns and diagonals already attacked in the next row.
struct board {
  unsigned all;  ///< one bit per column of the board
  unsigned columns;
  unsigned left;
  unsigned right;

  bool complete() const { return columns == all; }
  unsigned free() const { return all & ~(columns | left | right); }

  /// The board with one more queen, in the column of `bit`.
  board with(unsigned bit) const {
    const board next = {all, columns | bit, (left | bit) << 1, (right | bit) >> 1};
    return next;
  }
};

inline board empty_board(int n) {
  const board b = {(1u << n) - 1, 0, 0, 0};
  return b;
}

/// Lowest set bit.
inline unsigned lowest(unsigned bits) { return bits & (0u - bits); }

/// Two counts in one number, so that they are added at once: nodes below, solutions above. There is room for
/// both up to 17 queens.
static const long one_node = 1;
static const int bits_of_nodes = 36;
static const long one_solution = 1L << bits_of_nodes;

inline long nodes_of(long counts) { return counts & (one_solution - 1); }
inline long solutions_of(long counts) { return counts >> bits_of_nodes; }

/// The serial search below `b`, `b` included.
inline long search(board b) {
  if (b.complete()) return one_solution + one_node;
  long counts = one_node;
  for (unsigned free = b.free(); free != 0; free &= free - 1) counts += search(b.with(lowest(free)));
  return counts;
}

inline outcome count_outcome(long counts, double seconds) {
  return plain_outcome(counts, nodes_of(counts), seconds);
}

}  // namespace weft_bench
