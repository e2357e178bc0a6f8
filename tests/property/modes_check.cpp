// SPDX-License-Identifier: BSL-1.0
// Comparison, explanation and shrinking of programs over all access modes.
#include "modes_check.hpp"

#include "value.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

namespace property::modes {
namespace {

std::string compare(const program& p, const expectation& want, const observation& got) {
  std::ostringstream out;
  out << std::hex;
  if (!got.other.empty())
    out << "run threw '" << got.other << "', a type no task throws";
  else if (got.exception != want.exception)
    out << "the exception is 0x" << got.exception << ", serially 0x" << want.exception << " (0: none)";
  else if (want.exception == 0 && got.value != want.value)
    out << "run returned 0x" << got.value << ", serially 0x" << want.value;
  if (!out.str().empty()) return out.str();
  std::size_t at = 0;
  for (std::size_t o = 0; o < p.objects.size(); ++o)
    for (int i = 0; i < p.objects[o].size; ++i, ++at) {
      if (!want.objects[at].known || got.objects[at].value == want.objects[at].value) continue;
      out << 'x' << o << '[' << std::dec << i << std::hex << "] is 0x" << got.objects[at].value
          << ", serially 0x" << want.objects[at].value;
      return out.str();
    }
  if (const std::string wrong = wrong_runs(want, got); !wrong.empty()) return wrong;
  return got.wrong_tokens != 0 ? "a task did not get the argument it was forked with" : "";
}

std::string once(weft::runtime& rt, const program& p, const expectation& want, const setup& how,
                 notices& seen) {
  const long before = counted::live(), corrupt = counted::corrupt();
  const std::uint64_t intruders = seen.intruders;
  std::string text =
      compare(p, want, how.seed % 2 == 0 ? execute_plain(rt, p, seen) : execute_counted(rt, p, seen));
  if (seen.intruders != intruders)
    text += (text.empty() ? "" : "; ") + std::string("two tasks commuted at once");
  if (!text.empty()) return text;
  if (counted::live() != before)
    return std::to_string(counted::live() - before) + " instances of values or exceptions are left";
  return counted::corrupt() != corrupt ? "a value was used before its construction or after its destruction"
                                       : "";
}

void collect(task& t, std::vector<task*>& out) {
  out.push_back(&t);
  for (step& s : t.steps)
    for (task& c : s.child) collect(c, out);
}
std::vector<task*> tasks(program& p) {
  std::vector<task*> out;
  collect(p.root, out);
  return out;
}

/// Each takes a place in a task and says whether there was something to change there.
bool erase_steps(task& t, std::size_t at, std::size_t count) {
  if (at >= t.steps.size()) return false;
  const auto from = t.steps.begin() + static_cast<std::ptrdiff_t>(at);
  t.steps.erase(from, from + static_cast<std::ptrdiff_t>(std::min(count, t.steps.size() - at)));
  return true;
}
bool erase_target(task& t, std::size_t at, std::size_t) {
  for (argument& a : t.arguments) {
    if (!of(a.how).list) continue;
    if (at < a.targets.size()) {
      a.targets.erase(a.targets.begin() + static_cast<std::ptrdiff_t>(at));
      return true;
    }
    at -= a.targets.size();
  }
  return false;
}
/// Other shapes that need no more than this task has.
bool drop_argument(task& t, std::size_t at, std::size_t) {
  if (at > t.arguments.size()) return false;
  if (at == t.arguments.size()) {
    t.priority = 0;
    t.local = false;
    return true;
  }
  std::vector<kind> wanted;
  for (std::size_t i = 0; i < t.arguments.size(); ++i)
    if (i != at) wanted.push_back(t.arguments[i].how);
  const auto found = std::find(shape_kinds().begin(), shape_kinds().end(), wanted);
  if (found == shape_kinds().end()) return true;
  t.shape = static_cast<int>(found - shape_kinds().begin());
  t.arguments.erase(t.arguments.begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

}  // namespace

std::string difference(weft::runtime& rt, const program& p, const setup& how, notices& seen) {
  return once(rt, p, interpret(p, how.planted), how, seen);
}

program shrink(program p, const std::function<bool(const program&)>& fails, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  using change = bool (*)(task&, std::size_t, std::size_t);
  static constexpr std::pair<change, std::size_t> moves[] = {
      {erase_steps, 16}, {erase_steps, 4}, {erase_steps, 1}, {erase_target, 1}, {drop_argument, 1}};
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const auto& [what, count] : moves)
      for (std::size_t t = 0; t < tasks(p).size(); ++t)
        for (std::size_t at = 0;;) {
          if (std::chrono::steady_clock::now() > end) return p;
          program q = p;
          if (!what(*tasks(q)[t], at, count)) break;
          legalise(q);
          if (size(q) < size(p) && fails(q)) {
            p = std::move(q);
            smaller = true;
            if (t >= tasks(p).size()) break;
          } else {
            ++at;
          }
        }
  }
  return p;
}

std::string explain(weft::runtime& rt, const program& p, const setup& how, const std::string& first) {
  std::string last = first;
  notices seen;
  int tries = 1;
  const auto fails = [&](const program& q) {
    const expectation want = interpret(q, how.planted);
    for (int i = 0; i < tries; ++i) {
      const std::string text = once(rt, q, want, how, seen);
      if (text.empty()) continue;
      last = text;
      return true;
    }
    return false;
  };
  int again = 0, rounds = 0;  // how often it fails says how often to try a smaller one
  for (tries = 1; rounds < 40; ++rounds) again += fails(p);
  tries = again == 0 ? 200 : 1 + 4 * rounds / again;
  const program small = shrink(p, fails, std::chrono::seconds(20));
  std::ostringstream out;
  out << first << "\nseed " << how.seed << ", " << how.workers << " workers, inlining " << how.inlining
      << ", surplus " << how.surplus << ", cap " << how.cap << ", spin " << how.spin << ", values "
      << (how.seed % 2 == 0 ? "plain" : "counted") << "\nshrunk from size " << size(p) << " to "
      << size(small) << ", where " << last << ":\n"
      << print(small) << "to repeat it:\n  " << how.command() << '\n';
  return out.str();
}

}  // namespace property::modes
