// SPDX-License-Identifier: BSL-1.0
// The oracle: what each step of a program does, in serial order.
#include "interpret.hpp"

#include "walk.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace property {

walk::walk(program& p, bool repair, planted fault) : repair_(repair), fault_(fault) {
  cells_.resize(static_cast<std::size_t>(p.cells));
  out_.tasks.assign(static_cast<std::size_t>(p.tasks), runs{});
  called_.assign(static_cast<std::size_t>(p.tasks), false);
  scope names;
  int n = 0;
  for (const object& o : p.objects) {
    const bool filled = o.where != home::empty;
    for (int i = 0; i < o.size; ++i) at(o.cell + i) = {{o.initial, filled}, filled, filled};
    names[n++] = {o.where == home::borrowed ? grade::lent : grade::owned,
                  -1,
                  false,
                  o.where == home::array,
                  false,
                  o.cell,
                  o.size};
  }
  out_.value = call(p.root, std::move(names));
  if (!thrown_) out_.exception = 0;
  for (const object& o : p.objects)
    for (int i = 0; i < o.size; ++i) out_.objects.push_back(at(o.cell + i));
}

std::uint64_t walk::call(task& t, scope names) {
  body b{t, std::move(names), thrown_, {}, mix(0, static_cast<std::uint64_t>(t.id))};
  runs& r = out_.tasks[static_cast<std::size_t>(t.id)];
  const bool first = !called_[static_cast<std::size_t>(t.id)];
  called_[static_cast<std::size_t>(t.id)] = true;
  const bool never = b.late && barred(b);
  out_.barred += never;
  r.least += !b.late;
  r.most += !never;
  bool ended = false;
  for (auto s = t.steps.begin(); s != t.steps.end() && !ended;) {
    if (!legal(b, *s)) {
      if (!repair_) throw std::logic_error("a generated program is not legal");
      s = t.steps.erase(s);
      changed_ = true;
      continue;
    }
    ended = !perform(b, *s++);
    if (!ended || !repair_ || !first || s == t.steps.end()) continue;
    t.steps.erase(s, t.steps.end());
    changed_ = true;
  }
  left_ = ended || b.failed;
  if (ended) ended_.insert(t.id);
  if (!ended_.contains(t.id)) complete(b);
  if (thrown_ && !b.late)
    for (const argument& a : t.arguments)
      for (const target& g : a.targets)  // a value that was to be written may be missing
        if (of(a.how).right == grade::write) forget(b.names.at(g.name).begin, g.count);
  return b.acc;
}

/// *Returns*: false if the body ends here.
bool walk::perform(body& b, step& s) {
  const bool sure = !thrown_, runs_on = !b.late;  // up to its next sync, whatever children throw
  const auto h = b.names.find(s.name);
  const int begin = h != b.names.end() ? h->second.begin : 0;
  const int count = h != b.names.end() ? h->second.count : 0;
  switch (s.what) {
    case action::get:
      for (int i = 0; i < count; ++i) b.acc = mix(b.acc, at(begin + i).value);
      break;
    case action::set:
      for (int i = 0; i < count; ++i)
        put(begin + i, mix(b.acc, s.constant + static_cast<std::uint64_t>(i)), runs_on);
      break;
    case action::mod:
      for (int i = begin; i < begin + count; ++i) {
        const bool wrong = fault_ == planted::value && s.constant % 3 == 0;
        put(i, mix(at(i).value, b.acc ^ (s.constant + static_cast<std::uint64_t>(i - begin)) ^ wrong),
            runs_on);
        b.acc = mix(b.acc, at(i).value);
      }
      break;
    case action::add:
      put(begin, at(begin).value + mix(b.acc, s.constant), at(begin).known && sure);
      break;
    case action::contribute: {
      const int op = h->second.operation;
      const std::uint64_t v = contributed(op, mix(b.acc, s.constant)), old = at(begin).value;
      const bool wrong = fault_ == planted::order_of_contributions && s.constant % 3 == 0;
      put(begin, wrong ? combine(op, v, old) : combine(op, old, v), at(begin).known && sure);
      break;
    }
    case action::make:
      broken_.erase(s.cell);  // in a body that is repeated, a new object each time
      at(s.cell) = {{s.constant, s.constant != 0}, s.constant != 0, s.constant != 0};
      b.names[s.name] = {grade::owned, -1, false, false, false, s.cell, 1};
      break;
    case action::repeat:
      for (std::uint64_t i = 0; i < s.constant; ++i)
        for (task& c : s.child) fork(b, c);
      break;
    case action::baton: {
      std::uint64_t log = 0;
      for (task& c : s.child) log = mix(log, call(c, {}));
      out_.sums[static_cast<std::size_t>(s.cell)] += log;
      break;
    }
    case action::count:
      out_.sums[static_cast<std::size_t>(s.cell)] += mix(b.acc, s.constant);
      break;
    case action::fork:
      fork(b, s.child.front());
      break;
    case action::sync:
    case action::sync_in_handler:
      b.pending.clear();
      if (b.failed) return false;
      if (s.what == action::sync_in_handler) b.acc = mix(b.acc, s.constant);
      break;
    case action::catching_sync:
      b.pending.clear();
      if (!std::exchange(b.failed, false) || b.late) break;
      b.acc = mix(b.acc, out_.exception);
      thrown_ = false;
      for (place& c : cells_) c.filled = c.filled && c.safe;
      ++out_.caught;
      break;
    case action::fail:
      if (!thrown_) {
        out_.exception = s.constant;
        broken_.clear();
        if (b.t.times == 0)
          for (const auto& [name, x] : b.names)
            if ((x.right == grade::write || x.right == grade::update) && !x.weak)
              for (int i = 0; i < x.count; ++i) broken_.insert(x.begin + i);
      }
      thrown_ = true;
      return false;
    case action::spin:
      break;
  }
  return true;
}

void walk::fork(body& b, task& c) {
  const bool late = thrown_;
  scope names;
  for (const argument& a : c.arguments)
    for (const target& g : a.targets) {
      const held& from = b.names.at(g.from);
      const properties& p = of(a.how);
      names[g.name] = {p.right, p.operation, p.weak, p.array, p.plain, from.begin + g.first, g.count};
      if (p.right == grade::write && !p.weak)
        for (int i = 0; i < g.count; ++i) at(from.begin + g.first + i).filled = false;
    }
  const scope given = names;
  std::uint64_t result = 0;
  for (int i = 0; i < std::max(c.times, 1); ++i) {
    result = call(c, names);
    b.failed = b.failed || left_;
  }
  const bool sure = b.sure();
  for (const auto& [name, h] : given) {
    b.pending.push_back({h.begin, h.begin + h.count, h.right == grade::read});
    if ((late || (thrown_ && c.times != 0)) && h.right != grade::read) forget(h.begin, h.count);
    for (int i = h.begin; i < h.begin + h.count && h.right == grade::write; ++i) {
      at(i).filled = sure || at(i).safe;      // what comes later may count on it
      if (late && !h.weak) broken_.erase(i);  // its readers wait for this version only
    }
  }
  if (c.gives == outcome::none) return;
  const grade g = c.gives == outcome::object ? grade::owned : grade::result;
  b.names[c.result] = {g, -1, false, false, false, c.result_cell, 1};
  b.pending.push_back({c.result_cell, c.result_cell + 1, false});
  at(c.result_cell) = {{result, !thrown_}, sure, !thrown_};
}

bool walk::body::sure() const {
  const auto waits_for_nothing = [](const auto& named) { return named.second.weak; };
  return !late || (!failed && std::none_of(names.begin(), names.end(), waits_for_nothing));
}

/// It reads what the thrower should have written, so it cannot have started.
bool walk::barred(const body& b) const {
  if (b.t.times != 0) return false;
  for (const auto& [name, h] : b.names)
    if (h.right != grade::write && !h.weak)
      for (int i = h.begin; i < h.begin + h.count; ++i)
        if (broken_.contains(i)) return true;
  return false;
}

void walk::put(int i, std::uint64_t value, bool known) {
  at(i) = {{value, known}, true, at(i).safe || known};
}

expectation interpret(const program& p, planted fault) {
  program copy = p;
  return walk(copy, false, fault).take();
}

}  // namespace property
