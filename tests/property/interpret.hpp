// SPDX-License-Identifier: BSL-1.0
// The oracle: runs a random program serially. It uses nothing of the library.
#pragma once

#include "program.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace property {

/// How often a task may run.
struct runs {
  int least = 0, most = 0;
};

struct cell {
  std::uint64_t value = 0;
  bool known = false;  // false: empty, or it depends on when an exception was noticed
};

/// What a correct run shows.
struct expectation {
  std::vector<cell> objects{};  // the cells of the whole program's objects, one after the other
  std::vector<runs> tasks{};    // by id
  std::uint64_t exception = 0;  // constant of the exception that leaves run, 0 if none does
  std::uint64_t value = 0;      // accumulator of the root if no exception leaves it
  std::array<std::uint64_t, counters> sums{};
  int barred = 0;  // tasks that an exception keeps from running
  int caught = 0;  // exceptions that a catching sync stopped
};

/// How to make the oracle wrong.
enum class planted : unsigned char { nothing, value, order_of_contributions };

/// Serial elision: a fork is a call. A task throws into its parent, whose body goes on to its next sync; what
/// happens in between is marked unknown, because it may or may not happen.
/// *Throws*: std::logic_error if a step is not legal.
expectation interpret(const program& p, planted fault = planted::nothing);

}  // namespace property
