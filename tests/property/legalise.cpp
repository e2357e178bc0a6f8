// SPDX-License-Identifier: BSL-1.0
// Which steps the library allows; nothing else of the suite knows it.
#include "walk.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace property {

void walk::complete(body& b) {
  for (const argument& a : b.t.arguments)
    for (const target& g : a.targets) {
      const held h = b.names.at(g.name);
      if (h.right != grade::write || h.weak) continue;
      bool missing = false;
      for (int i = h.begin; i < h.begin + h.count; ++i) missing = missing || !at(i).filled;
      step set(action::set, g.name, static_cast<std::uint64_t>(b.t.id) + 1);
      // Children may still be at work on a part of an array, or may have been dropped.
      const bool at_end = legal(b, set);
      if (!missing || (!at_end && !b.sure())) continue;
      if (!repair_) throw std::logic_error("a task of a generated program does not write");
      perform(b, set);
      b.t.steps.insert(at_end ? b.t.steps.end() : b.t.steps.begin(), std::move(set));
      changed_ = true;
    }
}

bool walk::legal(const body& b, step& s) {
  switch (s.what) {
    case action::fork:
    case action::repeat:
      return std::all_of(s.child.begin(), s.child.end(), [&](task& c) { return legal_fork(b, c); });
    case action::get:
    case action::set:
    case action::mod:
    case action::add:
    case action::contribute:
      break;
    default:
      return true;
  }
  const auto found = b.names.find(s.name);
  if (found == b.names.end() || found->second.weak) return false;
  const held& h = found->second;
  const range all{h.begin, h.begin + h.count, false};
  const bool reads = s.what == action::get;
  for (const range& r : b.pending)
    if (meet(r, all) && !(reads && r.reads)) return false;
  if (reads || s.what == action::mod || s.what == action::add)
    for (int i = h.begin; i < h.begin + h.count; ++i)
      if (!at(i).filled || !(at(i).known || b.late)) return false;
  switch (s.what) {
    case action::get:
      return h.right != grade::commute && h.right != grade::reduce;
    case action::set:
    case action::mod:
      return h.right == grade::write || h.right == grade::update || h.right == grade::lent;
    case action::add:
      return !h.array && (h.right == grade::commute || h.right == grade::update || h.right == grade::lent);
    default:
      return h.right == grade::reduce;
  }
}

/// A task has no two rights on one object, but may have several on one array.
bool walk::legal_fork(const body& b, task& c) {
  std::vector<std::pair<range, const properties*>> taken;
  if (c.gives == outcome::memory && !c.arguments.empty()) return false;
  for (argument& a : c.arguments) {
    const properties& p = of(a.how);
    for (auto g = a.targets.begin(); g != a.targets.end();) {
      bool good = legal_target(b, *g, p);
      if (good) {
        const held& from = b.names.at(g->from);
        const range r{from.begin + g->first, from.begin + g->first + g->count, false};
        for (const auto& [other, how] : taken)
          good = good &&
                 !(meet(r, other) && (!p.array || p.right == grade::write || how->right == grade::write));
        if (good) taken.emplace_back(r, &p);
      }
      if (good)
        ++g;
      else if (!repair_)
        return false;
      else {
        g = a.targets.erase(g);
        changed_ = true;
      }
    }
    if (!p.list && a.targets.size() != 1) return false;
  }
  return true;
}

bool walk::legal_target(const body& b, const target& g, const properties& p) const {
  const auto found = b.names.find(g.from);
  if (found == b.names.end()) return false;
  const held& h = found->second;
  if (h.plain || h.array != p.array || !may_hand_on(h.right, h.operation, p)) return false;
  if (g.first < 0 || g.count < 0 || g.first + g.count > h.count) return false;
  if (p.right == grade::write && !p.weak) return true;
  for (int i = h.begin + g.first; i < h.begin + g.first + g.count; ++i)
    if (!at(i).filled || !(at(i).safe || thrown_)) return false;  // the task would meet an empty object
  return true;
}

bool walk::meet(const range& x, const range& y) {
  return x.begin < x.end && y.begin < y.end && x.begin < y.end && y.begin < x.end;
}

void drop_waits(task& t) {
  std::erase_if(t.steps, [](const step& s) { return s.what == action::baton || s.what == action::count; });
  for (step& s : t.steps)
    for (task& c : s.child) drop_waits(c);
}

void spawn_nothing(task& t) {
  t.spawned = false;
  for (step& s : t.steps)
    for (task& c : s.child) spawn_nothing(c);
}

bool throws(const task& t) {
  return std::any_of(t.steps.begin(), t.steps.end(), [](const step& s) {
    return s.what == action::fail || std::any_of(s.child.begin(), s.child.end(), throws);
  });
}

void legalise(program& p) {
  if (throws(p.root)) drop_waits(p.root);
  // A body that is repeated may lose a step in its second call that the first one relied on.
  while (walk(p, true, planted::nothing).changed()) {
  }
}

}  // namespace property
