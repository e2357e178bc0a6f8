// SPDX-License-Identifier: BSL-1.0
// Large graphs of small tasks: their shapes, their bodies, and what their results must be.
#pragma once

#include "rival.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace weft_bench {

static const char* const kernel_name = "graph";
static const char* const task_name = "task";
static const char* const reference_name = "serial";

enum form {
  independent,   ///< each task updates an object of its own
  chain,         ///< all tasks update one object
  wavefront,     ///< a square; each task reads north and west and updates its own object
  random_graph,  ///< each task reads three objects of tasks before it and updates its own
  tiny_frames,   ///< each task forks nine that update one object
  alternating,   ///< independent tasks, short ones and long ones in blocks
  stencil,       ///< the smallest task at which a three-point stencil is half efficient (stencil.hpp)
  pending,       ///< independent tasks, all of them waiting in one frame
  stealing,      ///< a thief's time per task while the owner of so many is busy
  repeated,      ///< a three-point stencil of size x size tasks, again and again
  cholesky,      ///< a matrix in tiles (tiles.hpp)
};

struct problem {
  const char* name;
  form shape;
  int size;    ///< tasks, side of the square, steps of the stencil, or order of the matrix
  int rounds;  ///< how often one body forks them and waits
  int repetitions;
  long steps = 0;  ///< of a task's body, as work() takes them
  int edge = 0;    ///< rows and columns of a tile
};

/// About one microsecond at 4 GHz. What a busy body really takes is what the serial program shows.
static const long microsecond = 800;

// A block of short tasks, then a block of long ones, which take as long in all: a processor overlaps two
// short bodies, so that each takes about 0.02 microseconds.
static const long short_steps = microsecond / 25, long_steps = 20 * microsecond;
static const int short_block = 10000, long_block = 10, blocks = 100;
inline long alternating_steps(int i) {
  return i % (short_block + long_block) < short_block ? short_steps : long_steps;
}

static const problem problems[] = {
    {"independent", independent, 1000000, 1, 5},
    {"chain", chain, 1000000, 1, 5},
    {"wavefront", wavefront, 1024, 1, 5},
    {"random", random_graph, 1000000, 1, 5},
    {"tiny-frames", tiny_frames, 100000, 1, 5},
    {"wavefront-250ns", wavefront, 700, 1, 5, microsecond / 4},
    {"wavefront-500ns", wavefront, 640, 1, 5, microsecond / 2},
    {"wavefront-1us", wavefront, 512, 1, 5, microsecond},
    {"wavefront-2us", wavefront, 360, 1, 5, 2 * microsecond},
    {"wavefront-5us", wavefront, 220, 1, 5, 5 * microsecond},
    {"alternating", alternating, blocks*(short_block + long_block), 1, 5},
    {"alternating-short", independent, blocks* short_block, 1, 5, short_steps},
    {"alternating-long", independent, blocks* long_block, 1, 5, long_steps},
    {"metg", stencil, 1000, 1, 5},
    {"pending-1000", pending, 1000, 100, 5, 5 * microsecond},
    {"pending-1000000", pending, 1000000, 1, 3, 5 * microsecond},
    {"steal-1000", stealing, 1000, 20, 5},
    {"steal-1000000", stealing, 1000000, 20, 5},
    {"stencil-10000", repeated, 100, 40, 5},
    {"cholesky-2048", cholesky, 2048, 1, 5, 0, 128},
    {"cholesky-2048-64", cholesky, 2048, 1, 5, 0, 64},
};

using number = std::uint64_t;

/// Steps that depend on one another and have no closed form, of five cycles each. Never inlined: a compiler
/// would take several bodies of a plain loop at once.
[[gnu::noinline]] inline number work(number x, long steps) {
  for (long i = 0; i < steps; ++i) x = (x ^ (x >> 29)) * 6364136223846793005u;
  return x;
}

// What tasks do to their objects; an empty task has no steps.
inline number busy(number x, long steps) { return steps == 0 ? x : work(x, steps); }
inline void touch(number& own, long steps = 0) { own = busy(3 * own + 1, steps); }
inline void append(number& all, int i) { all = 3 * all + number(i); }
inline void meet(const number& north, const number& west, number& own, long steps = 0) {
  own = busy(own + 3 * north + 5 * west, steps);
}
inline void gather(const number& a, const number& b, const number& c, number& own) {
  own += 3 * a + 5 * b + 7 * c;
}
static const int children = 9;  ///< of a task of `tiny_frames`

/// What each task of a random graph reads: objects of tasks before it, or of the three that tasks only read.
class random_inputs {
 public:
  static const int ends = 3;
  using three = std::array<int, ends>;

  explicit random_inputs(int tasks) : inputs_(std::size_t(tasks)) {
    number state = 20;
    for (int i = 0; i < tasks; ++i) {
      three& in = inputs_[std::size_t(i)];
      do
        for (int& input : in) {
          state = state * 6364136223846793005u + 1442695040888963407u;
          input = int((state >> 33) % number(i + ends));
        }
      while (in[0] == in[1] || in[0] == in[2] || in[1] == in[2]);
    }
  }
  /// The inputs of the task that updates object `own`.
  const three& of(int own) const { return inputs_[std::size_t(own - ends)]; }

 private:
  std::vector<three> inputs_;
};

/// The objects of a graph. A wavefront has one row and one column more, a random graph three more, which
/// tasks only read.
class field {
 public:
  explicit field(const problem& p)
      : width_(std::size_t(p.size) + (is_square(p)              ? 1
                                      : p.shape == random_graph ? std::size_t(random_inputs::ends)
                                                                : 0)),
        inputs_(p.shape == random_graph ? p.size : 0) {
    value_.resize(p.shape == chain ? 1 : is_square(p) ? width_ * width_ : width_);
    for (std::size_t i = 0; i < value_.size(); ++i) value_[i] = i;
  }
  number& operator[](int i) { return value_[std::size_t(i)]; }
  number& at(int i, int j) { return value_[std::size_t(i) * width_ + std::size_t(j)]; }
  const random_inputs::three& inputs(int own) const { return inputs_.of(own); }
  int objects() const { return int(value_.size()); }
  long long sum() const {
    number s = 0;
    for (const number v : value_) s = s * 31 + v;
    return static_cast<long long>(s >> 1);
  }
  static bool is_square(const problem& p) { return p.shape == wavefront; }
  static long long tasks(const problem& p) {
    const int per_object = is_square(p) ? p.size : p.shape == tiny_frames ? 1 + children : p.rounds;
    return static_cast<long long>(p.size) * per_object;
  }

 private:
  std::size_t width_;
  random_inputs inputs_;
  std::vector<number> value_;
};

/// The same graph with empty bodies: a warm-up that makes what memory a runtime keeps.
inline problem rehearsal(problem p) {
  if (p.shape == pending || p.shape == alternating) p.shape = independent;
  p.steps = 0;
  return p;
}

/// The time of `f`: what it returns, or, if it returns nothing, what it takes.
template <class function>
double seconds_of_call(const function& f) {
  if constexpr (std::is_void_v<decltype(f())>) {
    const stopwatch clock;
    f();
    return clock.seconds();
  } else {
    return f();
  }
}

/// Times `execute(problem, field)`.
template <class function>
outcome field_outcome(const problem& p, const function& execute) {
  {
    const problem empty = rehearsal(p);
    field warm(empty);
    execute(empty, warm);
  }
  field f(p);
  const double seconds = seconds_of_call([&] { return execute(p, f); });
  return plain_outcome(f.sum(), field::tasks(p), seconds);
}

/// Where a rival that runs every kind of graph takes part: what is about stealing needs a thief.
inline bool fits_graph(int index, unsigned workers) {
  const form shape = problems[index].shape;
  if (shape == stealing || shape == repeated) return false;
  return workers > 1 || (shape != stencil && shape != pending);
}

/// The same for a rival whose tasks cannot fork.
inline bool fits_flat_graph(int index, unsigned workers) {
  return fits_graph(index, workers) && problems[index].shape != tiny_frames;
}

/// Where a rival with counters takes part.
inline bool fits_counters(int index, unsigned) {
  return problems[index].shape == wavefront || problems[index].shape == random_graph;
}

}  // namespace weft_bench
