// SPDX-License-Identifier: BSL-1.0
// Compares a run of a program over all access modes with the oracle, and explains a difference.
#pragma once

#include "check.hpp"
#include "modes_execute.hpp"

#include <chrono>
#include <functional>
#include <string>

namespace property::modes {

/// Runs p once; empty if library and oracle agree, else one sentence. The seed's parity picks the value type.
std::string difference(weft::runtime& rt, const program& p, const setup& how, notices& seen);

/// Makes a program that fails smaller, by leaving out steps and what they use.
program shrink(program p, const std::function<bool(const program&)>& fails, std::chrono::seconds limit);

/// Shrinks a program that differed and returns what a person needs to work on it.
std::string explain(weft::runtime& rt, const program& p, const setup& how, const std::string& first);

}  // namespace property::modes
