// SPDX-License-Identifier: BSL-1.0
// Turns any program into a legal one; the only place of the suite that knows which steps the library allows.
#include "generate.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace property {
namespace {

/// How a body holds what it can name.
enum class held : unsigned char { owned, lent, read, write, update, const_reference, reference, slot };

/// The access patterns the runner can launch, modes sorted. Each set is closed under dropping an access.
bool launchable(flavour f, const std::vector<access>& accesses) {
  static constexpr std::array<std::string_view, 14> rights{"",   "r",  "w",  "u",   "rr",  "rw",  "ru",
                                                           "wu", "uu", "ww", "rrw", "rru", "rwu", "rrwu"};
  static constexpr std::array<std::string_view, 4> plain{"r", "w", "u", "rw"}, result{"", "r", "u", "ru"};
  std::string key;
  for (const access& a : accesses) key += "rwu"[static_cast<int>(a.how)];
  const auto in = [&](const auto& set) { return std::find(set.begin(), set.end(), key) != set.end(); };
  return f == flavour::rights   ? in(rights)
         : f == flavour::plain  ? in(plain)
         : f == flavour::result ? in(result)
                                : key.empty();
}

/// What one task leaves behind for its parent when an exception leaves it.
struct outcome {
  bool threw = false;
  std::set<int> spoiled{};  // objects whose value nobody may read after the exception was caught
};

class legaliser {
 public:
  explicit legaliser(program& p) {
    for (std::size_t i = 0; i < p.objects.size(); ++i) {
      readable_[static_cast<int>(i)] = p.objects[i].where != home::empty;
      scope_[static_cast<int>(i)] = p.objects[i].where == home::borrowed ? held::lent : held::owned;
    }
    visit(p.root, std::exchange(scope_, {}));
  }

 private:
  using scope = std::map<int, held>;

  struct body {
    task& t;
    scope names;
    std::map<int, mode> pending{};  // the strongest right children were given since the last sync
    bool failed = false;            // an exception of a child waits for the next sync
    std::set<int> spoiled{};
  };

  outcome visit(task& t, scope names) {
    body b{t, std::move(names)};
    for (auto s = t.steps.begin(); s != t.steps.end();) {
      if (!allowed(b, *s)) {
        s = t.steps.erase(s);
        continue;
      }
      bool leaves = s->what == action::fail;
      switch (s->what) {
        case action::make:
          b.names[s->object] = held::owned;
          readable_[s->object] = s->constant != 0;
          break;
        case action::set:
        case action::mod:
          readable_[s->object] = true;
          if (b.failed) b.spoiled.insert(s->object);
          break;
        case action::fork:
          fork(b, s->child.front());
          break;
        case action::sync:
        case action::sync_in_handler:
          leaves = b.failed;
          break;
        case action::catching_sync:
          for (int o : b.spoiled) readable_[o] = false;
          b.spoiled.clear();
          b.failed = false;
          break;
        case action::get:
        case action::fail:
        case action::spin:
          break;
      }
      if (s->what == action::sync || s->what == action::catching_sync || s->what == action::sync_in_handler)
        b.pending.clear();
      ++s;
      if (leaves) {
        t.steps.erase(s, t.steps.end());
        return left(b);
      }
    }
    for (const access& a : t.accesses)
      if (a.how == mode::write && !readable_[a.object]) {
        t.steps.emplace_back(action::set, a.object, static_cast<std::uint64_t>(t.id) + 1);
        readable_[a.object] = true;
      }
    return b.failed ? left(b) : outcome{};
  }

  static outcome left(body& b) {
    for (const access& a : b.t.accesses)
      if (a.how == mode::write) b.spoiled.insert(a.object);
    return {true, std::move(b.spoiled)};
  }

  bool allowed(const body& b, const step& s) {
    if (s.what != action::get && s.what != action::set && s.what != action::mod) return true;
    const auto name = b.names.find(s.object);
    if (name == b.names.end()) return false;
    const held h = name->second;
    const auto child = b.pending.find(s.object);
    if (s.what == action::get)
      return readable_[s.object] && (child == b.pending.end() || child->second == mode::read);
    const bool writable = h == held::lent || h == held::write || h == held::update || h == held::reference;
    return writable && child == b.pending.end() && (s.what == action::set || readable_[s.object]);
  }

  void fork(body& b, task& c) {
    std::sort(c.accesses.begin(), c.accesses.end(),
              [](const access& x, const access& y) { return x.how < y.how; });
    std::erase_if(c.accesses, [&](const access& a) { return !handed(b, a); });
    if (c.kind == flavour::slot) c.accesses.clear();
    while (!launchable(c.kind, c.accesses)) {
      if (c.accesses.empty())
        c.kind = flavour::rights;  // a plain body without an access is the same thing
      else
        c.accesses.pop_back();
    }
    scope names;
    for (const access& a : c.accesses) {
      const bool plain = c.kind == flavour::plain;
      if (a.how == mode::read) names[a.object] = plain ? held::const_reference : held::read;
      if (a.how == mode::write) names[a.object] = plain ? held::reference : held::write;
      if (a.how == mode::update) names[a.object] = plain ? held::reference : held::update;
      if (a.how == mode::write) readable_[a.object] = false;
    }
    outcome out = visit(c, std::move(names));
    if (c.kind == flavour::result || c.kind == flavour::slot) {
      b.names[c.result] = c.kind == flavour::result ? held::owned : held::slot;
      b.pending[c.result] = mode::write;
      results_.insert(c.result);
      readable_[c.result] = true;
    }
    for (const access& a : c.accesses) {
      mode& p = b.pending.try_emplace(a.object, mode::read).first->second;
      p = std::max(p, a.how);
      if (a.how == mode::write) readable_[a.object] = true;  // what comes later in the group may count on it
      if (b.failed && a.how != mode::read) b.spoiled.insert(a.object);
    }
    if ((b.failed || out.threw) && c.result >= 0) b.spoiled.insert(c.result);
    if (b.failed || !out.threw) return;
    b.failed = true;
    b.spoiled.merge(out.spoiled);
  }

  bool handed(const body& b, const access& a) {
    const auto name = b.names.find(a.object);
    if (name == b.names.end()) return false;
    if (a.how != mode::write && !readable_[a.object]) return false;
    switch (name->second) {
      case held::owned:
      case held::lent:
      case held::update:
        return true;
      case held::read:
        return a.how == mode::read;
      case held::write:
        return a.how == mode::write;
      case held::const_reference:
      case held::reference:
      case held::slot:
        break;
    }
    return false;
  }

  scope scope_{};
  std::set<int> results_{};  // objects that tasks return
  std::map<int, bool>
      readable_{};  // does the object have a value that is known at this point of the serial run?
};

}  // namespace

void legalise(program& p) { legaliser{p}; }

}  // namespace property
