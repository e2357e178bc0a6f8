// SPDX-License-Identifier: BSL-1.0
// What can be left out of a program.
#include "shrink.hpp"

#include "generate.hpp"
#include "shrinker.hpp"

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace property {
namespace {

/// Each takes a place in a task and says whether there was something to change there.
bool raise_child(task& t, std::size_t at, std::size_t) {
  if (at >= t.steps.size()) return false;
  if (t.steps[at].what != action::fork) return true;  // nothing here, but there may be later
  std::vector<step> inner = std::move(t.steps[at].child.front().steps);
  const auto gap = t.steps.erase(t.steps.begin() + static_cast<std::ptrdiff_t>(at));
  t.steps.insert(gap, std::make_move_iterator(inner.begin()), std::make_move_iterator(inner.end()));
  return true;
}

bool simplify(task& t, std::size_t at, std::size_t) {
  if (at > t.accesses.size()) return false;
  if (at < t.accesses.size()) {
    t.accesses.erase(t.accesses.begin() + static_cast<std::ptrdiff_t>(at));
  } else {
    t.options = false;
    if (t.kind == flavour::plain) t.kind = flavour::rights;
  }
  return true;
}

}  // namespace

program shrink(program p, const std::function<bool(const program&)>& fails, std::chrono::seconds limit) {
  static constexpr reduction<task> reductions[] = {
      {erase_steps, 16}, {erase_steps, 4}, {erase_steps, 1}, {raise_child, 1}, {simplify, 1}};
  return shrink_by(std::move(p), reductions, fails, limit);
}

}  // namespace property
