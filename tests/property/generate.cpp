// SPDX-License-Identifier: BSL-1.0
// The random choices of the generator.
#include "program.hpp"
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

/// What a body can name.
struct known {
  int name;
  properties how;
  int size;
};
using scope = std::vector<known>;

constexpr properties whole(grade g, bool array = false) { return {.text = "", .right = g, .array = array}; }

class maker {
 public:
  explicit maker(std::uint64_t seed) : dice_(seed ^ 0x6D6F646573ull) {}

  program make() {
    program p;
    classical_ = dice_.percent(35);  // fewer kinds of rights, and for that deeper trees
    for (std::size_t i = 0; i < shape_kinds().size(); ++i)
      if (!classical_ || classical(shape_kinds()[i])) shapes_.push_back(static_cast<int>(i));
    fails_ = dice_.percent(30);
    budget_ = 4 + dice_.below(52);
    waits_ = dice_.percent(40);
    spins_ = dice_.percent(60) ? 12 : 3;
    depth_ = classical_ ? 6 : 4;
    scope s;
    const int scalars = 1 + dice_.below(classical_ ? 6 : 5), arrays = classical_ ? 0 : dice_.below(3);
    for (int i = 0; i < scalars + arrays; ++i) {
      const int roll = dice_.below(10);
      const home where = i >= scalars ? home::array
                         : roll < 5   ? home::valued
                         : roll < 8   ? home::borrowed
                                      : home::empty;
      const bool array = where == home::array;
      const int n = !array ? 1 : dice_.percent(5) ? 0 : 1 + dice_.below(20);
      p.objects.push_back({where, cells_, n, array || where == home::empty ? 0 : dice_.constant()});
      s.push_back({names_++, whole(where == home::borrowed ? grade::lent : grade::owned, array), n});
      cells_ += n;
    }
    p.root.id = tasks_++;
    fill(p.root, s, 0);
    p.names = names_;
    p.tasks = tasks_;
    p.cells = cells_;
    return p;
  }

 private:
  void fill(task& t, scope s, int depth) {
    const int steps = depth == 0 ? 6 + dice_.below(24) : 1 + dice_.below(dice_.percent(30) ? 12 : 4);
    bool weak = false;
    for (const known& k : scope(s)) {
      weak = weak || k.how.weak;
      if (dice_.percent(80)) touch(t, k);
    }
    const int forks = weak ? 70 : classical_ ? 46 : 35;
    for (int i = 0; i < steps; ++i) {
      const int roll = dice_.below(100);
      if (roll < forks)
        fork(t, s, depth);
      else if (roll < 50 && !classical_)
        burst(t, s, depth);
      else if (roll >= 50 && roll < 53)
        repeat(t, s, depth);
      else if (roll < 67 && !s.empty())
        touch(t, s[static_cast<std::size_t>(dice_.below(static_cast<int>(s.size())))]);
      else if (roll < 73)
        t.steps.emplace_back(action::sync);
      else if (roll < 75)
        t.steps.emplace_back(action::sync_in_handler, -1, dice_.constant());
      else if (roll < 78)
        t.steps.emplace_back(fails_ ? action::catching_sync : action::sync);
      else if (roll < 78 + spins_)
        t.steps.emplace_back(action::spin, -1, static_cast<std::uint64_t>(1 + dice_.below(40)));
      else if (roll < 94) {
        t.steps.emplace_back(action::make, names_, dice_.percent(60) ? dice_.constant() : 0, cells_++);
        s.push_back({names_++, whole(grade::owned), 1});
      } else if (roll < 97 && waits_) {
        wait(t, s, depth);
      } else if (roll >= 97 && fails_ && i + 2 >= steps) {
        t.steps.emplace_back(action::fail, -1, dice_.constant());
      }
    }
    if (fails_ && depth > 0 && dice_.percent(5)) t.steps.emplace_back(action::fail, -1, dice_.constant());
  }

  /// Something by which bodies wait for each other.
  void wait(task& t, scope& s, int depth) {
    const int which = dice_.below(3), sum = dice_.below(static_cast<int>(counters));
    if (which == 0) {
      t.steps.emplace_back(action::count, -1, dice_.constant(), sum);
    } else if (which == 1) {  // a few bodies that share a lock
      for (int n = 1 + dice_.below(4); n > 0; --n) spawn(t, s, depth, sum);
    } else {
      step turns(action::baton, -1, dice_.constant(), sum);
      for (int n = 2 + dice_.below(4); n > 0 && budget_ > 0 && depth < depth_; --n)
        turns.child.push_back(without_rights(depth));
      if (!turns.child.empty()) t.steps.push_back(std::move(turns));
    }
  }

  void touch(task& t, const known& k) {
    const int roll = dice_.below(10);
    action what = action::get;
    switch (k.how.right) {
      case grade::owned:
      case grade::result:
      case grade::read:
        break;
      case grade::write:
        what = roll < 7 ? action::set : roll < 9 ? action::mod : action::get;
        break;
      case grade::lent:
      case grade::update:
        what = roll < 6 ? action::mod : roll < 8 ? action::get : roll < 9 ? action::set : action::add;
        break;
      case grade::commute:
        what = action::add;
        break;
      case grade::reduce:
        what = action::contribute;
        break;
    }
    for (int n = what == action::contribute ? dice_.below(4) : 1; n > 0; --n)
      t.steps.emplace_back(what, k.name, dice_.constant());
  }

  /// Several tasks in a row that share one object in the same way.
  void burst(task& t, scope& s, int depth) {
    if (s.empty()) return;
    const known k = s[static_cast<std::size_t>(dice_.below(static_cast<int>(s.size())))];
    std::vector<int> fitting;
    for (const int i : shapes_)
      for (const kind how : shape_kinds()[static_cast<std::size_t>(i)]) {
        const grade g = of(how).right;
        const bool interesting = k.how.array || g == grade::commute || g == grade::reduce;
        if (interesting && of(how).array == k.how.array && may_hand_on(k.how.right, k.how.operation, of(how)))
          fitting.push_back(i);
      }
    if (fitting.empty()) return;
    const int shape = fitting[static_cast<std::size_t>(dice_.below(static_cast<int>(fitting.size())))];
    for (int n = 2 + dice_.below(6); n > 0; --n) fork(t, s, depth, shape, &k);
  }

  /// What such a task forks joins the graph, and may differ: it may be on objects of its own.
  static bool weak_only(const task& t) {
    return !t.arguments.empty() && std::all_of(t.arguments.begin(), t.arguments.end(),
                                               [](const argument& a) { return of(a.how).weak; });
  }

  void repeat(task& t, scope& s, int depth) {
    const int times = 2 + dice_.below(3);
    if (repeated_ * times > 8) return;
    repeated_ *= times;
    task body;
    for (int n = 1 + dice_.below(5); n > 0; --n) fork(body, s, depth);
    repeated_ /= times;
    step again(action::repeat, -1, static_cast<std::uint64_t>(times));
    for (step& f : body.steps)
      if (!weak_only(f.child.front())) again.child.push_back(std::move(f.child.front()));
    if (!again.child.empty()) t.steps.push_back(std::move(again));
  }

  task without_rights(int depth) {
    task c;
    --budget_;
    c.id = tasks_++;
    fill(c, {}, depth + 1);
    return c;
  }

  void spawn(task& t, scope& s, int depth, int sum) {
    if (budget_ <= 0 || depth >= depth_) return;
    task c = without_rights(depth);
    c.steps.emplace_back(action::count, -1, dice_.constant(), sum);
    if (repeated_ == 1 && dice_.percent(30)) {
      give(c, s, outcome::memory);
    } else if (dice_.percent(30)) {
      c.options = true;
      c.priority = dice_.below(5) - 2;
    }
    c.spawned = true;
    t.steps.emplace_back(action::fork);
    t.steps.back().child.push_back(std::move(c));
  }

  void fork(task& t, scope& s, int depth, int shape = -1, const known* preferred = nullptr) {
    if (budget_ <= 0 || depth >= depth_) return;
    task c;
    if (shape < 0 && repeated_ == 1 && dice_.percent(5)) {  // what it gives exists once
      c = without_rights(depth);
      give(c, s, outcome::memory);
      t.steps.emplace_back(action::fork);
      t.steps.back().child.push_back(std::move(c));
      return;
    }
    for (int attempt = 0; attempt < 6; ++attempt) {
      c.shape = shape >= 0 ? shape
                           : shapes_[static_cast<std::size_t>(dice_.below(static_cast<int>(shapes_.size())))];
      const std::vector<kind>& kinds = shape_kinds()[static_cast<std::size_t>(c.shape)];
      scope inner;
      c.arguments.clear();
      if (!choose(c, s, inner, preferred)) continue;
      --budget_;
      c.id = tasks_++;
      if (may_have_options(kinds) && dice_.percent(25)) {
        c.options = true;
        c.priority = dice_.below(5) - 2;
        c.local = dice_.percent(30);
      }
      const bool gives = may_return(kinds) && repeated_ == 1 && dice_.percent(40);
      const int times = 2 + dice_.below(4);
      if (!gives && may_loop(kinds) && repeated_ * times <= 8 && dice_.percent(40)) {
        c.times = times;
        c.local = false;
      }
      repeated_ *= std::max(c.times, 1);
      fill(c, std::move(inner), depth + 1);
      repeated_ /= std::max(c.times, 1);
      if (gives) give(c, s, outcome::object);
      t.steps.emplace_back(action::fork);
      t.steps.back().child.push_back(std::move(c));
      return;
    }
  }

  void give(task& c, scope& s, outcome how) {
    c.gives = how;
    c.options = c.local = false;
    c.priority = 0;
    c.result = names_++;
    c.result_cell = cells_++;
    s.push_back({c.result, whole(how == outcome::object ? grade::owned : grade::result), 1});
  }

  bool choose(task& c, const scope& from, scope& inner, const known* preferred) {
    std::vector<int> used;
    for (const kind how : shape_kinds()[static_cast<std::size_t>(c.shape)]) {
      argument a{how, {}};
      const properties& p = of(how);
      const int wanted = p.list ? dice_.below(7) : 1;
      for (int i = 0; i < wanted; ++i)
        for (int attempt = 0; attempt < 5 && !from.empty(); ++attempt) {
          const known& k = preferred != nullptr && attempt < 2
                               ? *preferred
                               : from[static_cast<std::size_t>(dice_.below(static_cast<int>(from.size())))];
          if (k.how.plain || k.how.array != p.array || !may_hand_on(k.how.right, k.how.operation, p))
            continue;
          bool again = false;
          for (const int u : used) again = again || u == k.name;
          if (again && !p.array) continue;
          used.push_back(k.name);
          target g{names_++, k.name, 0, k.size};
          if (p.array && dice_.percent(85)) {
            g.first = dice_.below(k.size + 1);
            g.count = dice_.below(k.size - g.first + 1);
            if (dice_.percent(30)) {  // neighbours, with a fixed grid
              const int half = (k.size + 1) / 2;
              g.first = dice_.percent(50) ? 0 : half;
              g.count = g.first == 0 ? half : k.size - half;
            }
          }
          inner.push_back({g.name, p, g.count});
          a.targets.push_back(g);
          break;
        }
      if (!p.list && a.targets.empty()) return false;
      c.arguments.push_back(std::move(a));
    }
    return true;
  }

  dice dice_;
  bool classical_ = false, fails_ = false, waits_ = false;
  std::vector<int> shapes_{};  // those of this program
  int repeated_ = 1;           // how often what is being made runs
  int budget_ = 0, spins_ = 0, depth_ = 0, names_ = 0, tasks_ = 0, cells_ = 0;
};

}  // namespace

program generate(std::uint64_t seed) {
  program p = maker(seed).make();
  legalise(p);
  return p;
}

}  // namespace property
