// SPDX-License-Identifier: BSL-1.0
// A stencil over time whose tasks check what they read: its buffers, its body, and the serial program.
#pragma once

#include "graph/config.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace weft_bench {

/// What a task writes: 16 bytes that say which task that was, and its value.
struct buffer {
  std::int32_t step;
  std::int32_t column;
  number value;
};
static_assert(sizeof(buffer) == 16);

/// Task (t, i), with t from 1, reads the buffers of columns first(i) to last(i) that row t - 1 has written:
/// its own, and as many on each side as there are. *Source*: Task Bench (Slaughter et al., 2020), section II,
/// the patterns `stencil` and `nearest`.
struct graph_shape {
  int inputs = 3;  ///< of a task that is not at an end: 3 or 5
  int columns = 0;
  unsigned workers = 0;

  int first(int i) const { return std::max(0, i - inputs / 2); }
  int last(int i) const { return std::min(columns - 1, i + inputs / 2); }
  /// An even number.
  int rows() const { return std::max(250, 4000 / columns / 2 * 2); }
};

/// Ends the program, by a task whose input is not what the row before has written.
[[noreturn, gnu::cold, gnu::noinline]] inline void wrong_input(const buffer& found, int t, int i,
                                                               int column) {
  std::fprintf(stderr, "task (%d, %d) reads the buffer of task (%d, %d) in place of that of (%d, %d)\n", t, i,
               found.step, found.column, t - 1, column);
  std::_Exit(1);
}

/// Zero, which the compiler does not know.
inline const number unknown_zero = opaque(number(0));
/// What the last body of this thread has computed.
inline thread_local number last_result = 0;

/// Work that begins when the work before on this thread has ended. Else a processor would overlap short
/// bodies, and one worker would do more than a worker can do with long ones.
inline number work_in_turn(number x, long steps) {
  return last_result = work(x + (last_result & unknown_zero), steps);
}

/// The body of task (t, i): `input(k)` is its k-th input, a buffer, of `count`.
template <class function>
void compute(const graph_shape& s, int t, int i, long steps, const function& input, int count, buffer& out) {
  const int first = s.first(i);
  number x = 0;
  for (int k = 0; k < count; ++k) {
    const buffer& in = input(k);
    if (in.step != t - 1 || in.column != first + k) wrong_input(in, t, i, first + k);
    x = 31 * x + in.value;
  }
  out = {t, i, work_in_turn(x, steps)};
}

/// What is planted in the first row, to see that a program finds it.
enum class fault { none, stamp, value };

inline buffer first_buffer(int i, fault f) {
  if (i != 0 || f == fault::none) return {0, i, number(i)};
  return f == fault::stamp ? buffer{0, 1, 0} : buffer{0, 0, 1};
}

/// The part of column i of the last row in the result, which is the sum of all columns' parts.
inline number part_of_sum(const graph_shape& s, int i, const buffer& b) {
  if (b.step != s.rows() || b.column != i) wrong_input(b, s.rows() + 1, i, i);
  return b.value * number(2 * i + 1);
}

/// Two rows of buffers take turns, each buffer in a cache line of its own.
class buffers {
 public:
  explicit buffers(const graph_shape& s, fault f = fault::none) : shape_(s) {
    for (auto& row : row_) row.resize(std::size_t(s.columns), {{-1, -1, 0}});
    for (int i = 0; i < s.columns; ++i) at(0, i) = first_buffer(i, f);
  }
  struct alignas(64) line {
    buffer content;
  };
  line* row(int t) { return row_[std::size_t(t % 2)].data(); }
  buffer& at(int t, int i) { return row(t)[i].content; }
  number sum() {
    number s = 0;
    for (int i = 0; i < shape_.columns; ++i) s += part_of_sum(shape_, i, at(shape_.rows(), i));
    return s;
  }

 private:
  graph_shape shape_;
  std::array<std::vector<line>, 2> row_;
};

/// Computes task (t, i) from the row before.
inline void compute_in_place(const graph_shape& s, buffers& b, int t, int i, long steps) {
  const buffers::line* const in = b.row(t - 1) + s.first(i);
  compute(
      s, t, i, steps, [in](int k) -> const buffer& { return in[k].content; }, s.last(i) - s.first(i) + 1,
      b.at(t, i));
}

inline number serial_sum(const graph_shape& s, long steps) {
  buffers b(s);
  for (int t = 1; t <= s.rows(); ++t)
    for (int i = 0; i < s.columns; ++i) compute_in_place(s, b, t, i, steps);
  return b.sum();
}

}  // namespace weft_bench
