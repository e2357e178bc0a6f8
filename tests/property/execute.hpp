// SPDX-License-Identifier: BSL-1.0
// What a run of a random program on the library shows.
#pragma once

#include "interpret.hpp"
#include "program.hpp"

#include <weft/weft.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace property {

struct observation {
  std::vector<cell> objects{};  // the cells of the whole program; known: the library was asked for the value
  std::vector<unsigned char> ran{};  // how often each task ran, by id
  std::uint64_t exception = 0;       // constant of the exception that left run, 0 if none did
  std::string other{};               // what() of an exception that no task of the program threw
  std::uint64_t value = 0;           // what the root returned
  std::vector<std::uint64_t> sums{};
  int wrong_names = 0;          // times a task did not see the name it was forked with
  int wrong_tokens = 0;         // tasks that did not get the argument they were forked with
  std::uint64_t together = 0;   // times a contributor began while another one of the object ran
  std::uint64_t intruders = 0;  // times a commuting task met another one on its object
};

/// Runs p with values that are plain words. Reads only the objects that `expected` knows. With `record`, it
/// is recorded.
observation execute_plain(weft::runtime& rt, const program& p, const expectation& expected,
                          weft::sched::run_recorder* record = nullptr);

/// The same with values whose instances are counted.
observation execute_counted(weft::runtime& rt, const program& p, const expectation& expected,
                            weft::sched::run_recorder* record = nullptr);

/// How often each way of launching a task was used by this process, and its name.
struct usage {
  std::string name;
  std::uint64_t times;
};
std::vector<usage> launches();

}  // namespace property
