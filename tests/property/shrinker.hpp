// SPDX-License-Identifier: BSL-1.0
// The search for a small program that fails, whatever programs are: greedy, large pieces first.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace property {

/// A way to make a task smaller: takes a place in it, and how much, and says whether there was something
/// there.
template <class Task>
struct reduction {
  bool (*what)(Task&, std::size_t at, std::size_t count);
  std::size_t count;
};

template <class Task>
bool erase_steps(Task& t, std::size_t at, std::size_t count) {
  if (at >= t.steps.size()) return false;
  const auto from = t.steps.begin() + static_cast<std::ptrdiff_t>(at);
  t.steps.erase(from, from + static_cast<std::ptrdiff_t>(std::min(count, t.steps.size() - at)));
  return true;
}

template <class Task>
void collect(Task& t, std::vector<Task*>& out) {
  out.push_back(&t);
  for (auto& s : t.steps)
    for (Task& c : s.child) collect(c, out);
}

/// Applies the reductions to all tasks, as long as `fails` says yes of what remains (which is legal) and time
/// is left. Returns the smallest program that failed.
template <class Program, class Task, std::size_t N, class Fails>
Program shrink_by(Program p, const reduction<Task> (&reductions)[N], Fails&& fails,
                  std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  const auto tasks = [](Program& of) {
    std::vector<Task*> out;
    collect(of.root, out);
    return out;
  };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const reduction<Task>& r : reductions)
      for (std::size_t t = 0; t < tasks(p).size(); ++t)
        for (std::size_t at = 0;;) {
          if (std::chrono::steady_clock::now() > end) return p;
          Program q = p;
          if (!r.what(*tasks(q)[t], at, r.count)) break;
          legalise(q);
          if (size(q) < size(p) && fails(q)) {
            p = std::move(q);
            smaller = true;
            if (t >= tasks(p).size()) break;
          } else {
            ++at;
          }
        }
  }
  return p;
}

}  // namespace property
