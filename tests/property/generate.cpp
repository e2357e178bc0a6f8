// SPDX-License-Identifier: BSL-1.0
// The random choices of the generator.
#include "generate.hpp"

#include "support/random.hpp"

#include <algorithm>
#include <utility>

namespace property {
namespace {

class dice : public weft_test::random {
 public:
  using random::random;
  int below(int n) { return static_cast<int>(random::below(static_cast<std::uint64_t>(n))); }
  bool percent(int p) { return below(100) < p; }
  std::uint64_t constant() { return ((*this)() >> 48) | 1; }
};

/// What a body can name, and which right it has on it: mode for a right, update for an object of its own.
using scope = std::vector<access>;

class maker {
 public:
  explicit maker(std::uint64_t seed) : dice_(seed) {}

  program make() {
    program p;
    fails_ = dice_.percent(30);
    budget_ = 4 + dice_.below(60);
    spins_ = dice_.percent(60) ? 12 : 3;
    scope s;
    const int objects = 1 + dice_.below(6);
    for (int i = 0; i < objects; ++i) {
      const int kind = dice_.below(10);
      p.objects.push_back({kind < 5   ? home::valued
                           : kind < 8 ? home::borrowed
                                      : home::empty,
                           dice_.constant()});
      s.push_back({mode::update, i});
    }
    names_ = objects;
    p.root.id = tasks_++;
    fill(p.root, s, 0);
    p.names = names_;
    p.tasks = tasks_;
    return p;
  }

 private:
  void fill(task& t, scope s, int depth) {
    const int steps = depth == 0 ? 6 + dice_.below(24) : 1 + dice_.below(dice_.percent(30) ? 14 : 5);
    for (const access& a : t.accesses)
      if (dice_.percent(75)) t.steps.push_back(touch(a));
    for (int i = 0; i < steps; ++i) {
      const int roll = dice_.below(100);
      if (roll < 46 && depth < 6 && t.kind != flavour::plain)
        fork(t, s, depth);
      else if (roll < 70 && !s.empty())
        t.steps.push_back(touch(s[static_cast<std::size_t>(dice_.below(static_cast<int>(s.size())))]));
      else if (roll < 76)
        t.steps.emplace_back(action::sync);
      else if (roll < 78)
        t.steps.emplace_back(action::sync_in_handler, -1, dice_.constant());
      else if (roll < 80)
        t.steps.emplace_back(fails_ ? action::catching_sync : action::sync);
      else if (roll < 80 + spins_)
        t.steps.emplace_back(action::spin, -1, static_cast<std::uint64_t>(1 + dice_.below(40)));
      else if (roll < 94 && t.kind != flavour::plain) {
        const int name = names_++;
        t.steps.emplace_back(action::make, name, dice_.percent(50) ? dice_.constant() : 0);
        s.push_back({mode::update, name});
      } else if (roll >= 97 && fails_ && i + 2 >= steps)
        t.steps.emplace_back(action::fail, -1, dice_.constant());
    }
    if (fails_ && depth > 0 && dice_.percent(5)) t.steps.emplace_back(action::fail, -1, dice_.constant());
  }

  step touch(const access& a) {
    const int roll = dice_.below(10);
    action what = action::get;
    if (a.how == mode::write) what = roll < 6 ? action::set : roll < 8 ? action::mod : action::get;
    if (a.how == mode::update) what = roll < 6 ? action::mod : roll < 8 ? action::get : action::set;
    return step(what, a.object, dice_.constant());
  }

  void fork(task& t, scope& s, int depth) {
    if (budget_-- <= 0) return;
    task c;
    c.id = tasks_++;
    c.options = dice_.percent(25);
    const int kind = dice_.below(20);
    c.kind = kind < 13   ? flavour::rights
             : kind < 16 ? flavour::plain
             : kind < 19 ? flavour::result
                         : flavour::slot;
    if (c.kind != flavour::slot) choose(c, s);
    scope inner(c.accesses.begin(), c.accesses.end());
    fill(c, std::move(inner), depth + 1);
    if (c.kind == flavour::result || c.kind == flavour::slot) c.result = names_++;
    if (c.kind == flavour::result) s.push_back({mode::update, c.result});
    if (c.kind == flavour::slot) s.push_back({mode::read, c.result});
    t.steps.emplace_back(action::fork);
    t.steps.back().child.push_back(std::move(c));
  }

  void choose(task& c, const scope& from) {
    static constexpr const char* patterns[] = {"",   "r",  "w",  "u",   "rr",  "rw",  "ru",
                                               "wu", "uu", "ww", "rrw", "rru", "rwu", "rrwu"};
    const char* wanted = patterns[dice_.below(14)];
    for (; *wanted != 0 && !from.empty(); ++wanted)
      for (int attempt = 0; attempt < 4; ++attempt) {
        const access& held = from[static_cast<std::size_t>(dice_.below(static_cast<int>(from.size())))];
        const mode how = *wanted == 'r' ? mode::read : *wanted == 'w' ? mode::write : mode::update;
        if (held.how != mode::update && held.how != how) continue;
        if (std::any_of(c.accesses.begin(), c.accesses.end(),
                        [&](const access& b) { return b.object == held.object; }))
          continue;
        c.accesses.push_back({how, held.object});
        break;
      }
  }

  dice dice_;
  bool fails_ = false;
  int budget_ = 0, spins_ = 0, names_ = 0, tasks_ = 0;
};

}  // namespace

program generate(std::uint64_t seed) {
  program p = maker(seed).make();
  legalise(p);
  return p;
}

}  // namespace property
