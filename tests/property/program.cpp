// SPDX-License-Identifier: BSL-1.0
// Shapes, size and printed form of a random program.
#include "program.hpp"

#include <algorithm>
#include <sstream>

namespace property {
namespace {

template <class... S>
std::vector<std::vector<kind>> list_kinds(shape_list<S...>) {
  return {std::vector<kind>(S::kinds.begin(), S::kinds.end())...};
}

std::size_t weight(const task& t) {
  std::size_t n = 1;
  for (const argument& a : t.arguments) n += a.targets.size();
  n += static_cast<std::size_t>(t.options) + static_cast<std::size_t>(t.gives != outcome::none) +
       static_cast<std::size_t>(t.local) + static_cast<std::size_t>(t.spawned) +
       static_cast<std::size_t>(t.priority != 0) + static_cast<std::size_t>(t.times);
  for (const step& s : t.steps) {
    ++n;
    for (const task& c : s.child) n += weight(c);
  }
  return n;
}

void print(std::ostream& out, const task& t, int depth);

void print_fork(std::ostream& out, const task& c, int depth, const char* how = "fork") {
  const std::string indent(2 * static_cast<std::size_t>(depth), ' ');
  out << indent;
  if (c.gives != outcome::none)
    out << (c.gives == outcome::object ? "shared x" : "plain x") << c.result << " = ";
  out << (c.spawned ? "spawn" : how);
  if (c.times != 0) out << " loop of " << c.times << ", each with a sync behind it";
  if (c.options) out << " named " << name_of(c);
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
        out << "shared x" << s.name;
        if (s.constant != 0) out << '(' << s.constant << ')';
        out << '\n';
        break;
      case action::sync_in_handler:
        out << "try { throw thrown(" << s.constant
            << ") } catch (thrown) { sync; try { throw } catch (thrown e) { acc = mix(acc, e) } }\n";
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
      case action::baton:
        out << "add to counter " << s.cell << " what " << s.child.size()
            << " spawned bodies leave that take turns {\n";
        for (const task& c : s.child) print_fork(out, c, depth + 1, "turn");
        out << std::string(2 * static_cast<std::size_t>(depth), ' ') << "}\n";
        break;
      case action::count:
        out << "add mix(acc, " << s.constant << ") to counter " << s.cell << " under its lock\n";
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

int shape_of(const std::vector<kind>& kinds) {
  const auto found = std::find(shape_kinds().begin(), shape_kinds().end(), kinds);
  return found == shape_kinds().end() ? -1 : static_cast<int>(found - shape_kinds().begin());
}

std::size_t size(const program& p) { return weight(p.root); }

std::string print(const program& p) {
  std::ostringstream out;
  int name = 0;
  for (const object& o : p.objects) {
    out << (o.where == home::array      ? "shared_array x"
            : o.where == home::borrowed ? "borrowed x"
                                        : "shared x")
        << name++;
    if (o.where == home::array)
      out << '(' << o.size << " elements)";
    else if (o.where != home::empty)
      out << '(' << o.initial << ')';
    out << '\n';
  }
  out << "run {  // each body starts with acc = mix(0, its number)\n";
  print(out, p.root, 1);
  out << "}\n";
  return out.str();
}

}  // namespace property
