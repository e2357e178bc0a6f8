// SPDX-License-Identifier: BSL-1.0
// The random choices of programs over all access modes, and how such a program is printed.
#include "modes.hpp"
#include "support/random.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

namespace property::modes {
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

constexpr properties whole(bool array) { return {.text = "", .right = grade::all, .array = array}; }

class maker {
 public:
  explicit maker(std::uint64_t seed) : dice_(seed ^ 0x6D6F646573ull) {}

  program make() {
    program p;
    fails_ = dice_.percent(30);
    budget_ = 6 + dice_.below(50);
    spins_ = dice_.percent(60) ? 14 : 3;
    scope s;
    const int scalars = 1 + dice_.below(5), arrays = dice_.below(3);
    for (int i = 0; i < scalars + arrays; ++i) {
      const bool array = i >= scalars;
      const int n = !array ? 1 : dice_.percent(5) ? 0 : 1 + dice_.below(20);
      p.objects.push_back({array, cells_, n, array ? 0 : dice_.constant()});
      s.push_back({names_++, whole(array), n});
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
    const int steps = depth == 0 ? 6 + dice_.below(20) : 1 + dice_.below(dice_.percent(25) ? 10 : 4);
    const scope given = s;
    bool weak = false;
    for (const known& k : given) {
      weak = weak || k.how.weak;
      if (dice_.percent(80)) touch(t, k);
    }
    for (int i = 0; i < steps; ++i) {
      const int roll = dice_.below(100);
      if (roll < (weak ? 70 : 35) && depth < 4)
        fork(t, s, depth);
      else if (roll < 50 && depth < 4)
        burst(t, s, depth);
      else if (roll < 53 && depth < 4)
        repeat(t, s, depth);
      else if (roll < 66 && !s.empty())
        touch(t, s[static_cast<std::size_t>(dice_.below(static_cast<int>(s.size())))]);
      else if (roll < 73)
        t.steps.emplace_back(action::sync);
      else if (roll < 76)
        t.steps.emplace_back(fails_ ? action::catching_sync : action::sync);
      else if (roll < 76 + spins_)
        t.steps.emplace_back(action::spin, -1, static_cast<std::uint64_t>(1 + dice_.below(40)));
      else if (roll < 94) {
        t.steps.emplace_back(action::make, names_, dice_.constant(), cells_++);
        s.push_back({names_++, whole(false), 1});
      } else if (roll >= 97 && fails_ && i + 2 >= steps) {
        t.steps.emplace_back(action::fail, -1, dice_.constant());
      }
    }
    if (fails_ && depth > 0 && dice_.percent(5)) t.steps.emplace_back(action::fail, -1, dice_.constant());
  }

  void touch(task& t, const known& k) {
    const int roll = dice_.below(10);
    action what = action::get;
    switch (k.how.right) {
      case grade::all:
      case grade::read:
        break;
      case grade::write:
        what = action::set;
        break;
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
    for (std::size_t i = 0; i < shape_kinds().size(); ++i)
      for (const kind how : shape_kinds()[i]) {
        const grade g = of(how).right;
        const bool interesting = k.how.array || g == grade::commute || g == grade::reduce;
        if (interesting && of(how).array == k.how.array && may_hand_on(k.how.right, k.how.operation, of(how)))
          fitting.push_back(static_cast<int>(i));
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

  void fork(task& t, scope& s, int depth, int shape = -1, const known* preferred = nullptr) {
    if (budget_ <= 0) return;
    task c;
    for (int attempt = 0; attempt < 6; ++attempt) {
      c.shape = shape >= 0 ? shape : dice_.below(static_cast<int>(shape_kinds().size()));
      scope inner;
      c.arguments.clear();
      if (!choose(c, s, inner, preferred)) continue;
      --budget_;
      c.id = tasks_++;
      if (dice_.percent(25)) {
        c.priority = dice_.below(5) - 2;
        c.local = dice_.percent(25);
      }
      const int times = 2 + dice_.below(4);
      if (may_loop(shape_kinds()[static_cast<std::size_t>(c.shape)]) && repeated_ * times <= 8 &&
          dice_.percent(40)) {
        c.times = times;
        c.local = false;
      }
      repeated_ *= std::max(c.times, 1);
      fill(c, std::move(inner), depth + 1);
      repeated_ /= std::max(c.times, 1);
      t.steps.emplace_back(action::fork);
      t.steps.back().child.push_back(std::move(c));
      return;
    }
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
  bool fails_ = false;
  int repeated_ = 1;  // how often what is being made runs
  int budget_ = 0, spins_ = 0, names_ = 0, tasks_ = 0, cells_ = 0;
};

template <class... S>
std::vector<std::vector<kind>> list_kinds(shape_list<S...>) {
  return {std::vector<kind>(S::kinds.begin(), S::kinds.end())...};
}

std::size_t weight(const task& t) {
  std::size_t n = 1;
  for (const argument& a : t.arguments) n += a.targets.size();
  n += static_cast<std::size_t>(t.local) + static_cast<std::size_t>(t.priority != 0) +
       static_cast<std::size_t>(t.times);
  for (const step& s : t.steps) {
    ++n;
    for (const task& c : s.child) n += weight(c);
  }
  return n;
}

void print(std::ostream& out, const task& t, int depth);

void print_fork(std::ostream& out, const task& c, int depth) {
  const std::string indent(2 * static_cast<std::size_t>(depth), ' ');
  out << indent << "fork";
  if (c.times != 0) out << " loop of " << c.times << ", each with a sync behind it";
  if (c.local) out << " local";
  if (c.priority != 0) out << " priority " << c.priority;
  for (const argument& a : c.arguments) {
    out << ", " << of(a.how).text << '(';
    for (const target& g : a.targets) {
      out << " x" << g.name << " = x" << g.from;
      if (of(a.how).array) out << '[' << g.first << ", " << g.first + g.count << ')';
    }
    out << " )";
  }
  out << " {  // task " << c.id << '\n';
  print(out, c, depth + 1);
  out << indent << "}\n";
}

void print(std::ostream& out, const task& t, int depth) {
  for (const step& s : t.steps) {
    if (s.what != action::fork) out << std::string(2 * static_cast<std::size_t>(depth), ' ');
    switch (s.what) {
      case action::get:
        out << "acc = mix(acc, x" << s.name << ")\n";
        break;
      case action::set:
        out << 'x' << s.name << " = mix(acc, " << s.constant << ")\n";
        break;
      case action::mod:
        out << 'x' << s.name << " = mix(x" << s.name << ", acc ^ " << s.constant << "); acc = mix(acc, x"
            << s.name << ")\n";
        break;
      case action::add:
        out << "add mix(acc, " << s.constant << ") to x" << s.name << '\n';
        break;
      case action::contribute:
        out << "contribute mix(acc, " << s.constant << ") to x" << s.name << '\n';
        break;
      case action::make:
        out << "shared x" << s.name << '(' << s.constant << ")\n";
        break;
      case action::sync:
        out << "sync\n";
        break;
      case action::catching_sync:
        out << "try { sync } catch (thrown e) { acc = mix(acc, e) }\n";
        break;
      case action::fail:
        out << "throw thrown(" << s.constant << ")\n";
        break;
      case action::spin:
        out << "spin " << s.constant << '\n';
        break;
      case action::repeat:
        out << "repeat " << s.constant << " times, as a recorded graph {\n";
        for (const task& c : s.child) print_fork(out, c, depth + 1);
        out << std::string(2 * static_cast<std::size_t>(depth), ' ') << "}\n";
        break;
      case action::fork:
        print_fork(out, s.child.front(), depth);
        break;
    }
  }
}

}  // namespace

const std::vector<std::vector<kind>>& shape_kinds() {
  static const std::vector<std::vector<kind>> all = list_kinds(shapes::all{});
  return all;
}

std::size_t size(const program& p) { return weight(p.root); }

std::string print(const program& p) {
  std::ostringstream out;
  int name = 0;
  for (const object& o : p.objects) {
    out << (o.array ? "shared_array x" : "shared x") << name++ << '(';
    if (o.array)
      out << o.size << " elements)\n";
    else
      out << o.initial << ")\n";
  }
  out << "run {  // each body starts with acc = mix(0, its number)\n";
  print(out, p.root, 1);
  out << "}\n";
  return out.str();
}

program generate(std::uint64_t seed) {
  program p = maker(seed).make();
  legalise(p);
  return p;
}

}  // namespace property::modes
