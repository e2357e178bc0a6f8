// SPDX-License-Identifier: BSL-1.0
// One walk through a program in serial order: it computes what the program gives, or drops what is illegal.
#include "modes.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

namespace property::modes {
namespace {

struct held {
  grade right;
  int operation;
  bool weak, array, plain;
  int begin, count;  // cells
};
using scope = std::map<int, held>;

struct range {
  int begin, end;
  bool reads;
};
bool meet(const range& x, const range& y) {
  return x.begin < x.end && y.begin < y.end && x.begin < y.end && y.begin < x.end;
}

class walk {
 public:
  walk(program& p, bool repair, bool planted) : repair_(repair), planted_(planted) {
    cells_.resize(static_cast<std::size_t>(p.cells));
    out_.tasks.assign(static_cast<std::size_t>(p.tasks), runs{});
    scope names;
    int n = 0;
    for (const object& o : p.objects) {
      for (int i = 0; i < o.size; ++i) at(o.cell + i) = {o.initial, true};
      names[n++] = {grade::all, -1, false, o.array, false, o.cell, o.size};
    }
    out_.value = call(p.root, std::move(names));
    if (!thrown_) out_.exception = 0;
    for (const object& o : p.objects)
      for (int i = 0; i < o.size; ++i) out_.objects.push_back(at(o.cell + i));
  }
  expectation take() { return std::move(out_); }

 private:
  struct body {
    task& t;
    scope names;
    bool late;
    std::vector<range> pending{};
    std::uint64_t acc;
  };

  std::uint64_t call(task& t, scope names) {
    body b{t, std::move(names), thrown_, {}, mix(0, static_cast<std::uint64_t>(t.id))};
    runs& r = out_.tasks[static_cast<std::size_t>(t.id)];
    r.least += !b.late;
    ++r.most;
    if (repair_) begin_with_writes(t);
    for (auto s = t.steps.begin(); s != t.steps.end(); ++s) {
      while (s != t.steps.end() && !legal(b, *s)) {
        if (!repair_) throw std::logic_error("a generated program is not legal");
        s = t.steps.erase(s);
      }
      if (s == t.steps.end()) break;
      if (perform(b, *s)) continue;
      if (repair_) t.steps.erase(s + 1, t.steps.end());
      break;
    }
    if (thrown_ && !b.late)
      for (const argument& a : t.arguments)
        for (const target& g : a.targets)
          if (of(a.how).right == grade::write) forget(b.names.at(g.name));  // it may be missing
    return b.acc;
  }

  /// What a task holds for writing has no value before it gives one.
  static void begin_with_writes(task& t) {
    for (const argument& a : t.arguments)
      for (const target& g : a.targets) {
        if (of(a.how).right != grade::write || of(a.how).weak) continue;
        const auto is = [&](const step& s) { return s.what == action::set && s.name == g.name; };
        auto end = t.steps.begin();
        while (end != t.steps.end() && end->what == action::set) ++end;
        if (std::none_of(t.steps.begin(), end, is))
          t.steps.insert(t.steps.begin(), step(action::set, g.name, 77));
      }
  }

  /// *Returns*: false if the body ends here.
  bool perform(body& b, step& s) {
    const bool sure = !thrown_;
    const auto h = b.names.find(s.name);
    const int begin = h != b.names.end() ? h->second.begin : 0;
    const int count = h != b.names.end() ? h->second.count : 0;
    switch (s.what) {
      case action::get:
        for (int i = 0; i < count; ++i) b.acc = mix(b.acc, at(begin + i).value);
        break;
      case action::set:
        for (int i = 0; i < count; ++i)
          at(begin + i) = {mix(b.acc, s.constant + static_cast<std::uint64_t>(i)), sure};
        break;
      case action::mod:
        for (int i = 0; i < count; ++i) {
          cell& c = at(begin + i);
          c = {mix(c.value, b.acc ^ (s.constant + static_cast<std::uint64_t>(i))), sure};
          b.acc = mix(b.acc, c.value);
        }
        break;
      case action::add:
        at(begin) = {at(begin).value + mix(b.acc, s.constant), at(begin).known && sure};
        break;
      case action::contribute: {
        const int op = h->second.operation;
        const std::uint64_t v = contributed(op, mix(b.acc, s.constant));
        cell& c = at(begin);
        const bool wrong = planted_ && s.constant % 3 == 0;
        c = {wrong ? combine(op, v, c.value) : combine(op, c.value, v), c.known && sure};
        break;
      }
      case action::make:
        at(s.cell) = {s.constant, true};
        b.names[s.name] = {grade::all, -1, false, false, false, s.cell, 1};
        break;
      case action::repeat:
        for (std::uint64_t i = 0; i < s.constant; ++i)
          for (task& c : s.child) fork(b, c);
        break;
      case action::fork:
        fork(b, s.child.front());
        break;
      case action::sync:
        b.pending.clear();
        return !thrown_ || b.late;
      case action::catching_sync:
        b.pending.clear();
        if (!thrown_ || b.late) break;
        b.acc = mix(b.acc, out_.exception);
        thrown_ = false;
        ++out_.caught;
        break;
      case action::fail:
        if (!thrown_) out_.exception = s.constant;
        thrown_ = true;
        return false;
      case action::spin:
        break;
    }
    return true;
  }

  void fork(body& b, task& c) {
    const bool late = thrown_;
    scope names;
    for (const argument& a : c.arguments)
      for (const target& g : a.targets) {
        const held& from = b.names.at(g.from);
        const properties& p = of(a.how);
        names[g.name] = {p.right, p.operation, p.weak, p.array, p.plain, from.begin + g.first, g.count};
      }
    const scope given = names;
    for (int i = 0; i < std::max(c.times, 1); ++i) call(c, names);
    for (const auto& [name, h] : given) {
      b.pending.push_back({h.begin, h.begin + h.count, h.right == grade::read});
      if ((late || (thrown_ && c.times != 0)) && h.right != grade::read) forget(h);
    }
  }

  bool legal(const body& b, step& s) {
    if (s.what == action::fork || s.what == action::repeat)
      return std::all_of(s.child.begin(), s.child.end(), [&](task& c) { return legal_fork(b, c); });
    if (s.what != action::get && s.what != action::set && s.what != action::mod && s.what != action::add &&
        s.what != action::contribute)
      return true;
    const auto found = b.names.find(s.name);
    if (found == b.names.end() || found->second.weak) return false;
    const held& h = found->second;
    const range all{h.begin, h.begin + h.count, false};
    const bool reads = s.what == action::get;
    for (const range& r : b.pending)
      if (meet(r, all) && !(reads && r.reads)) return false;
    if (reads || s.what == action::mod || s.what == action::add)
      for (int i = 0; i < h.count; ++i)
        if (!at(h.begin + i).known) return false;
    switch (s.what) {
      case action::get:
        return h.right == grade::all || h.right == grade::read || h.right == grade::update;
      case action::set:
        return h.right == grade::write || h.right == grade::update;
      case action::mod:
        return h.right == grade::update;
      case action::add:
        return !h.array && (h.right == grade::commute || h.right == grade::update);
      default:
        return h.right == grade::reduce;
    }
  }

  /// A task has no two rights on one object, but may have several on one array.
  bool legal_fork(const body& b, task& c) {
    std::vector<std::pair<range, const properties*>> taken;
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
        else if (repair_)
          g = a.targets.erase(g);
        else
          return false;
      }
      if (!p.list && a.targets.size() != 1) return false;
    }
    return true;
  }

  static bool legal_target(const body& b, const target& g, const properties& p) {
    const auto found = b.names.find(g.from);
    if (found == b.names.end()) return false;
    const held& h = found->second;
    if (h.plain || h.array != p.array || !may_hand_on(h.right, h.operation, p)) return false;
    return g.first >= 0 && g.count >= 0 && g.first + g.count <= h.count;
  }

  cell& at(int i) { return cells_[static_cast<std::size_t>(i)]; }
  void forget(const held& h) {
    for (int i = 0; i < h.count; ++i) at(h.begin + i).known = false;
  }

  bool repair_, planted_, thrown_ = false;
  std::vector<cell> cells_{};
  expectation out_{};
};

}  // namespace

void legalise(program& p) {
  // A body that is repeated may lose a step in its second call that the first one relied on.
  for (std::size_t before = 0; before != size(p);) {
    before = size(p);
    walk(p, true, false);
  }
}

expectation interpret(const program& p, bool planted) {
  program copy = p;
  return walk(copy, false, planted).take();
}

}  // namespace property::modes
