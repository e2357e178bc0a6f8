// SPDX-License-Identifier: BSL-1.0
// Size and printed form of a random program.
#include "program.hpp"

#include <sstream>

namespace property {
namespace {

const char* word(mode m) { return m == mode::read ? "read" : m == mode::write ? "write" : "update"; }

std::size_t weight(const task& t) {
  std::size_t n = 1 + 2 * t.accesses.size() + (t.options ? 1 : 0) + (t.kind == flavour::rights ? 0 : 1);
  for (const step& s : t.steps) {
    n += s.what == action::spin ? 2 : 4;
    for (const task& c : s.child) n += weight(c);
  }
  return n;
}

bool mentions(const task& t, int object) {
  for (const step& s : t.steps) {
    if (s.object == object) return true;
    for (const task& c : s.child)
      for (const access& a : c.accesses)
        if (a.object == object) return true;
  }
  return false;
}

void print(std::ostream& out, const task& t, int depth);

void print(std::ostream& out, const step& s, int depth) {
  out << std::string(2 * static_cast<std::size_t>(depth), ' ');
  switch (s.what) {
    case action::make:
      if (s.constant != 0)
        out << "shared x" << s.object << "(0x" << s.constant << ")\n";
      else
        out << "shared x" << s.object << "\n";
      break;
    case action::get:
      out << "acc = mix(acc, x" << s.object << ")\n";
      break;
    case action::set:
      out << 'x' << s.object << " = mix(acc, 0x" << s.constant << ")\n";
      break;
    case action::mod:
      out << 'x' << s.object << " = mix(x" << s.object << ", acc ^ 0x" << s.constant << "); acc = mix(acc, x"
          << s.object << ")\n";
      break;
    case action::fork:
      print(out, s.child.front(), depth);
      break;
    case action::sync:
      out << "sync\n";
      break;
    case action::catching_sync:
      out << "try { sync } catch (thrown e) { acc = mix(acc, e) }\n";
      break;
    case action::sync_in_handler:
      out << "try { throw thrown(0x" << s.constant
          << ") } catch (thrown) { sync; try { throw } catch (thrown e) { acc = mix(acc, e) } }\n";
      break;
    case action::fail:
      out << "throw thrown(0x" << s.constant << ")\n";
      break;
    case action::spin:
      out << "spin " << std::dec << s.constant << std::hex << "\n";
      break;
  }
}

void print(std::ostream& out, const task& t, int depth) {
  if (t.kind == flavour::result) out << "shared x" << t.result << " = ";
  if (t.kind == flavour::slot) out << "plain x" << t.result << " = ";
  out << "fork" << (t.kind == flavour::plain ? " plain" : "") << (has_options(t) ? " with options" : "");
  for (const access& a : t.accesses) out << ' ' << word(a.how) << "(x" << a.object << ')';
  out << " {  // task " << std::dec << t.id << std::hex << '\n';
  for (const step& s : t.steps) print(out, s, depth + 1);
  out << std::string(2 * static_cast<std::size_t>(depth), ' ') << "}\n";
}

}  // namespace

std::size_t size(const program& p) { return weight(p.root); }

std::string print(const program& p) {
  std::ostringstream out;
  out << std::hex;
  for (std::size_t i = 0; i < p.objects.size(); ++i) {
    const object& o = p.objects[i];
    if (!mentions(p.root, static_cast<int>(i))) continue;
    if (o.where == home::empty)
      out << "shared x" << i << '\n';
    else
      out << (o.where == home::borrowed ? "borrowed x" : "shared x") << i << "(0x" << o.initial << ")\n";
  }
  out << "run {  // each body starts with acc = mix(0, its number)\n";
  for (const step& s : p.root.steps) print(out, s, 1);
  out << "}\n";
  return out.str();
}

}  // namespace property
