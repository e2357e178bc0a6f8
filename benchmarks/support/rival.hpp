// SPDX-License-Identifier: BSL-1.0
// Where a kernel's files register what they measure (plain enough for a C++98 rival).
#pragma once

#include "outcome.hpp"

namespace weft_bench {

/// Runs problem number `problem` of this kernel's config.hpp on `workers` workers.
typedef outcome (*run_function)(int problem, unsigned workers);

/// Does this rival take part in the problem with so many workers?
typedef bool (*fits_function)(int problem, unsigned workers);

inline bool fits_all(int, unsigned) { return true; }
inline bool fits_one_worker(int, unsigned workers) { return workers == 1; }

/// A static object of this class in a kernel's file adds a rival to that kernel's executable.
class registration {
 public:
  registration(const char* name, run_function run, fits_function fits);
};

}  // namespace weft_bench
