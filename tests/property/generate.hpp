// SPDX-License-Identifier: BSL-1.0
// Makes a random program from a seed, and makes any program legal under the rules of the library.
#pragma once

#include "program.hpp"

#include <cstdint>

namespace property {

/// The program of this seed: always the same one, and legal.
program generate(std::uint64_t seed);

/// Drops what the rules forbid (a right that is not held, a touch while a child holds the object, a value
/// that nobody gave, a step that no run can reach) and adds the missing value where a task must give one.
void legalise(program& p);

}  // namespace property
