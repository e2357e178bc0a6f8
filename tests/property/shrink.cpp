// SPDX-License-Identifier: BSL-1.0
// The search of the shrinker: greedy, large pieces first.
#include "shrink.hpp"

#include "generate.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace property {
namespace {

void collect(task& t, std::vector<task*>& out) {
  out.push_back(&t);
  for (step& s : t.steps)
    for (task& c : s.child) collect(c, out);
}

std::vector<task*> tasks(program& p) {
  std::vector<task*> out;
  collect(p.root, out);
  return out;
}

/// Each takes a place in a task and says whether there was something to change there.
bool erase_steps(task& t, std::size_t at, std::size_t count) {
  if (at >= t.steps.size()) return false;
  const auto from = t.steps.begin() + static_cast<std::ptrdiff_t>(at);
  t.steps.erase(from, from + static_cast<std::ptrdiff_t>(std::min(count, t.steps.size() - at)));
  return true;
}

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
  const auto end = std::chrono::steady_clock::now() + limit;
  using change = bool (*)(task&, std::size_t, std::size_t);
  struct move {
    change what;
    std::size_t count;
  };
  static constexpr move moves[] = {
      {erase_steps, 16}, {erase_steps, 4}, {erase_steps, 1}, {raise_child, 1}, {simplify, 1}};
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const move& m : moves)
      for (std::size_t t = 0; t < tasks(p).size(); ++t)
        for (std::size_t at = 0;;) {
          if (std::chrono::steady_clock::now() > end) return p;
          program q = p;
          if (!m.what(*tasks(q)[t], at, m.count)) break;
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
