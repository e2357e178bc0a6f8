// SPDX-License-Identifier: BSL-1.0
// Comparison, explanation and shrinking of programs over all access modes.
#include "modes_check.hpp"

#include "shrinker.hpp"
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

/// Each takes a place in a task and says whether there was something to change there.
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
    t.times = 0;
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
  static constexpr reduction<task> reductions[] = {
      {erase_steps, 16}, {erase_steps, 4}, {erase_steps, 1}, {erase_target, 1}, {drop_argument, 1}};
  return shrink_by(std::move(p), reductions, fails, limit);
}

std::string explain(weft::runtime& rt, const program& p, const setup& how, const std::string& first) {
  notices seen;
  return explain_by(p, how, first,
                    [&](const program& q, const expectation& want) { return once(rt, q, want, how, seen); });
}

}  // namespace property::modes
