// SPDX-License-Identifier: BSL-1.0
// Large graphs of small tasks: their shapes, their bodies, and what their results must be.
#pragma once

#include "rival.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace weft_bench {

static const char* const kernel_name = "graph";
static const char* const task_name = "task";
static const char* const reference_name = "serial";

enum form {
  independent,     ///< each task updates an object of its own
  chain,           ///< all tasks update one object
  wavefront,       ///< a square; each task reads north and west and updates its own object
  wavefront_busy,  ///< the same with bodies of about a microsecond
  stencil,         ///< the smallest task at which a three-point stencil is half efficient (stencil.hpp)
  pending,         ///< independent tasks of about 5 microseconds, all of them waiting in one frame
  stealing,        ///< a thief's time per task while the owner of so many is busy
  repeated,        ///< a three-point stencil of size x size tasks, again and again
  cholesky,        ///< a matrix in tiles (tiles.hpp)
};

struct problem {
  const char* name;
  form shape;
  int size;    ///< tasks, side of the square, steps of the stencil, or order of the matrix
  int rounds;  ///< how often one body forks them and waits
  int repetitions;
};

static const problem problems[] = {
    {"independent", independent, 1000000, 1, 5},
    {"chain", chain, 1000000, 1, 5},
    {"wavefront", wavefront, 1024, 1, 5},
    {"wavefront-1us", wavefront_busy, 512, 1, 5},
    {"metg", stencil, 1000, 1, 5},
    {"pending-1000", pending, 1000, 100, 5},
    {"pending-1000000", pending, 1000000, 1, 3},
    {"steal-1000", stealing, 1000, 20, 5},
    {"steal-1000000", stealing, 1000000, 20, 5},
    {"stencil-10000", repeated, 100, 40, 5},
    {"cholesky-2048", cholesky, 2048, 1, 5},
};

using number = std::uint64_t;

/// Steps that depend on one another and have no closed form, of five cycles each. Never inlined: a compiler
/// would take several bodies of a plain loop at once.
[[gnu::noinline]] inline number work(number x, long steps) {
  for (long i = 0; i < steps; ++i) x = (x ^ (x >> 29)) * 6364136223846793005u;
  return x;
}

/// About one microsecond at 4 GHz. What a busy body really takes is what the serial program shows.
static const long microsecond = 800;

// What tasks do to their objects; `steps` is 0 for an empty one.
template <long steps>
number busy(number x) {
  if constexpr (steps == 0) return x;
  return work(x, steps);
}
template <long steps>
void touch(number& own) {
  own = busy<steps>(3 * own + 1);
}
inline void append(number& all, int i) { all = 3 * all + number(i); }
template <long steps>
void meet(const number& north, const number& west, number& own) {
  own = busy<steps>(own + 3 * north + 5 * west);
}

/// The objects of a graph. A wavefront has one row and one column more, which tasks only read.
class field {
 public:
  explicit field(const problem& p) : width_(is_square(p) ? std::size_t(p.size) + 1 : std::size_t(p.size)) {
    value_.resize(p.shape == chain ? 1 : is_square(p) ? width_ * width_ : width_);
    for (std::size_t i = 0; i < value_.size(); ++i) value_[i] = i;
  }
  number& operator[](int i) { return value_[std::size_t(i)]; }
  number& at(int i, int j) { return value_[std::size_t(i) * width_ + std::size_t(j)]; }
  long long sum() const {
    number s = 0;
    for (const number v : value_) s = s * 31 + v;
    return static_cast<long long>(s >> 1);
  }
  static bool is_square(const problem& p) { return p.shape == wavefront || p.shape == wavefront_busy; }
  static long long tasks(const problem& p) {
    return static_cast<long long>(p.size) * (is_square(p) ? p.size : p.rounds);
  }

 private:
  std::size_t width_;
  std::vector<number> value_;
};

/// The same graph with empty bodies: a warm-up that makes what memory a runtime keeps.
inline problem rehearsal(problem p) {
  if (p.shape == pending) p.shape = independent;
  if (p.shape == wavefront_busy) p.shape = wavefront;
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

}  // namespace weft_bench
