// SPDX-License-Identifier: BSL-1.0
// The search for a small program that fails: greedy, large pieces first.
#include "shrink.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace property {
namespace {

/// A way to make a task smaller: takes a place in it, and how much, and says whether there was something
/// there.
struct reduction {
  bool (*apply)(task&, std::size_t at, std::size_t count);
  std::size_t count;
};

bool erase_steps(task& t, std::size_t at, std::size_t count) {
  if (at >= t.steps.size()) return false;
  const auto from = t.steps.begin() + static_cast<std::ptrdiff_t>(at);
  t.steps.erase(from, from + static_cast<std::ptrdiff_t>(std::min(count, t.steps.size() - at)));
  return true;
}

/// Of steps with several children only.
bool erase_child(task& t, std::size_t at, std::size_t) {
  for (step& s : t.steps) {
    if (s.child.size() < 2) continue;
    if (at < s.child.size()) {
      s.child.erase(s.child.begin() + static_cast<std::ptrdiff_t>(at));
      return true;
    }
    at -= s.child.size();
  }
  return false;
}

void rename(std::vector<step>& steps, int from, int to) {
  for (step& s : steps) {
    if (s.name == from) s.name = to;
    for (task& c : s.child)
      for (argument& a : c.arguments)
        for (target& g : a.targets)
          if (g.from == from) g.from = to;
  }
}

/// Puts a child's steps in its place.
bool raise_child(task& t, std::size_t at, std::size_t) {
  if (at >= t.steps.size()) return false;
  if (t.steps[at].what != action::fork) return true;  // nothing here, but there may be later
  task c = std::move(t.steps[at].child.front());
  for (const argument& a : c.arguments)
    for (const target& g : a.targets) rename(c.steps, g.name, g.from);
  const auto gap = t.steps.erase(t.steps.begin() + static_cast<std::ptrdiff_t>(at));
  t.steps.insert(gap, std::make_move_iterator(c.steps.begin()), std::make_move_iterator(c.steps.end()));
  return true;
}

bool erase_target(task& t, std::size_t at, std::size_t) {
  for (argument& a : t.arguments) {
    if (!of(a.how).list) continue;
    if (at < a.targets.size()) {
      a.targets.erase(a.targets.begin() + static_cast<std::ptrdiff_t>(at));
      return true;
    }
    at -= a.targets.size();
  }
  return false;
}

/// Another shape that needs less than this task has; at last, no options and no loop, and not spawned.
bool drop_argument(task& t, std::size_t at, std::size_t) {
  if (at > t.arguments.size()) return false;
  if (at == t.arguments.size()) {
    t.options = t.local = t.spawned = false;
    t.priority = t.times = 0;
    return true;
  }
  std::vector<kind> wanted;
  for (std::size_t i = 0; i < t.arguments.size(); ++i)
    if (i != at) wanted.push_back(t.arguments[i].how);
  const int shape = shape_of(wanted);
  if (shape < 0) return true;
  t.shape = shape;
  t.arguments.erase(t.arguments.begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

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

}  // namespace

program shrink(program p, const std::function<bool(const program&)>& fails, std::chrono::seconds limit) {
  static constexpr reduction reductions[] = {{erase_steps, 16}, {erase_steps, 4}, {erase_steps, 1},
                                             {erase_child, 1},  {raise_child, 1}, {erase_target, 1},
                                             {drop_argument, 1}};
  const auto end = std::chrono::steady_clock::now() + limit;
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const reduction& r : reductions)
      for (std::size_t t = 0; t < tasks(p).size(); ++t)
        for (std::size_t at = 0;;) {
          if (std::chrono::steady_clock::now() > end) return p;
          program q = p;
          if (!r.apply(*tasks(q)[t], at, r.count)) break;
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
