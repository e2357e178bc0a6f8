// SPDX-License-Identifier: BSL-1.0
// The oracle of graphs: which tasks of a random program must wait for which. It uses nothing of the library.
#pragma once

#include "program.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace property {

/// A task as it is forked, in serial order.
struct forked_task {
  struct use {
    std::uint64_t cell;  // of one object: another object in the same place has another number
    grade right;
    int operation;
  };
  int parent = -1;  // number of the task that forks it; -1: the root
  std::vector<use> uses{};
};

/// All tasks of a program without loops that throws nothing, and how long it takes on one worker and with as
/// many as there is use for, if bodies take one unit of time up to each fork, each sync, and their end.
struct execution {
  std::vector<forked_task> tasks{};
  std::uint64_t work = 0, span = 0;
};
execution execute_ideally(const program& p);

/// For each task, whether it begins after each other one has ended. Two uses conflict unless both read, both
/// contribute by the same operation, or both commute.
std::vector<std::vector<bool>> order_of(const std::vector<forked_task>& tasks);
/// The same from a list of direct dependences, earlier task first.
std::vector<std::vector<bool>> order_of(const std::vector<forked_task>& tasks,
                                        const std::vector<std::pair<int, int>>& direct);

}  // namespace property
