// SPDX-License-Identifier: BSL-1.0
// What a run of a program over all access modes shows, and how to get it.
#pragma once

#include "execute.hpp"
#include "modes.hpp"

namespace property::modes {

/// What bodies noticed while they ran.
struct notices {
  std::uint64_t together = 0;   ///< times a contributor began while another one of the object ran
  std::uint64_t intruders = 0;  ///< times a commuting task met another one on its object
};

/// Runs p with values that are plain words, or with values whose instances are counted.
observation execute_plain(weft::runtime& rt, const program& p, notices& seen);
observation execute_counted(weft::runtime& rt, const program& p, notices& seen);

/// How often each shape was launched by this process.
std::uint64_t launches(std::size_t shape);

}  // namespace property::modes
