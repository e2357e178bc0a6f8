// SPDX-License-Identifier: BSL-1.0
// The oracle of graphs: a walk that looks at accesses only.
#include "dependences.hpp"

#include <algorithm>
#include <map>

namespace property {

namespace {

bool conflict(const forked_task::use& a, const forked_task::use& b) {
  if (a.cell != b.cell) return false;
  if (a.right != b.right) return true;
  return !(a.right == grade::read || a.right == grade::commute ||
           (a.right == grade::reduce && a.operation == b.operation && a.operation != 3));  // 3 has a state
}

bool is_below(const std::vector<forked_task>& tasks, std::size_t lower, std::size_t upper) {
  for (int i = static_cast<int>(lower); i >= 0; i = tasks[static_cast<std::size_t>(i)].parent)
    if (i == static_cast<int>(upper)) return true;
  return false;
}

class forks {
 public:
  explicit forks(const program& p) {
    scope names;
    int n = 0;
    for (const object& o : p.objects) names[n++] = {o.cell, o.size};
    out.span = call(p.root, names, -1, 0);
  }
  execution out{};

 private:
  struct cells {
    int begin, count;
  };
  using scope = std::map<int, cells>;

  /// *Returns*: when the task ends that begins `now`, with all below it.
  std::uint64_t call(const task& t, scope names, int number, std::uint64_t now) {
    std::uint64_t children = 0;
    const auto create = [&](const task& c) {
      ++out.work;
      ++now;
      children = std::max(children, fork(c, names, number, now));
    };
    for (const step& s : t.steps) {
      if (s.what == action::make) names[s.name] = fresh(s.cell);
      if (s.what == action::fork) create(s.child.front());
      if (s.what == action::repeat)
        for (std::uint64_t i = 0; i < s.constant; ++i)
          for (const task& c : s.child) create(c);
      if (s.what == action::sync || s.what == action::catching_sync || s.what == action::sync_in_handler) {
        ++out.work;
        now = std::max(now + 1, children);
      }
    }
    ++out.work;
    return std::max(now + 1, children);
  }
  std::uint64_t fork(const task& c, scope& names, int parent, std::uint64_t now) {
    std::vector<forked_task>& all = out.tasks;
    const int number = static_cast<int>(all.size());
    all.push_back({parent});
    scope given;
    for (const argument& a : c.arguments)
      for (const target& g : a.targets) {
        const properties& p = of(a.how);
        const cells held{names.at(g.from).begin + g.first, g.count};
        given[g.name] = held;
        for (int i = held.begin; i < held.begin + held.count && !p.weak; ++i)
          all.back().uses.push_back({identity(i), p.right, p.operation});
      }
    if (c.gives != outcome::none) {
      names[c.result] = fresh(c.result_cell);
      if (c.gives == outcome::object) all.back().uses.push_back({identity(c.result_cell), grade::write, -1});
    }
    for (int i = 0; i < number; ++i) {
      if (is_below(all, static_cast<std::size_t>(number), static_cast<std::size_t>(i))) continue;
      for (const forked_task::use& a : all[static_cast<std::size_t>(i)].uses)
        for (const forked_task::use& b : all.back().uses)
          if (conflict(a, b) || (a.cell == b.cell && a.right == grade::commute))
            now = std::max(now, ends[static_cast<std::size_t>(i)]);
    }
    ends.push_back(0);
    const std::uint64_t end = call(c, given, number, now);
    return ends[static_cast<std::size_t>(number)] = end;
  }
  cells fresh(int cell) {
    ++generation[cell];
    return {cell, 1};
  }
  std::uint64_t identity(int cell) {
    return static_cast<std::uint64_t>(cell) << 32 | static_cast<std::uint64_t>(generation[cell]);
  }

  std::map<int, int> generation{};
  std::vector<std::uint64_t> ends{};  // of tasks that have ended
};

}  // namespace

execution execute_ideally(const program& p) { return forks(p).out; }

std::vector<std::vector<bool>> order_of(const std::vector<forked_task>& tasks) {
  std::vector<std::pair<int, int>> direct;
  for (std::size_t later = 0; later < tasks.size(); ++later)
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      if (is_below(tasks, later, earlier)) continue;  // it has its rights from there
      const auto meets = [&](const forked_task::use& a) {
        return std::any_of(tasks[later].uses.begin(), tasks[later].uses.end(),
                           [&](const forked_task::use& b) { return conflict(a, b); });
      };
      if (std::any_of(tasks[earlier].uses.begin(), tasks[earlier].uses.end(), meets))
        direct.emplace_back(earlier, later);
    }
  return order_of(tasks, direct);
}

std::vector<std::vector<bool>> order_of(const std::vector<forked_task>& tasks,
                                        const std::vector<std::pair<int, int>>& direct) {
  const std::size_t n = tasks.size();
  // A task ends with all below it, and what is below it begins after it has begun.
  std::vector<std::vector<bool>> after(n, std::vector<bool>(n));
  for (const auto& [from, to] : direct)
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b)
        if (is_below(tasks, a, static_cast<std::size_t>(from)) &&
            is_below(tasks, b, static_cast<std::size_t>(to)))
          after[b][a] = true;
  for (std::size_t middle = 0; middle < n; ++middle)
    for (std::size_t b = 0; b < n; ++b)
      if (after[b][middle])
        for (std::size_t a = 0; a < n; ++a)
          if (after[middle][a]) after[b][a] = true;
  return after;
}

}  // namespace property
