// SPDX-License-Identifier: BSL-1.0
// Makes a failing program small.
#pragma once

#include "program.hpp"

#include <chrono>
#include <functional>

namespace property {

/// Deletes steps, subtrees, arguments and options, and puts children's steps in their parents' place, as long
/// as `fails` says yes of what remains (which is legal) and time is left. Returns the smallest program that
/// failed.
program shrink(program p, const std::function<bool(const program&)>& fails, std::chrono::seconds limit);

}  // namespace property
