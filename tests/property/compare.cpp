// SPDX-License-Identifier: BSL-1.0
// Compares what a run of a random program has shown with what the oracle says.
#include "check.hpp"
#include "execute.hpp"

#include <sstream>

namespace property {
namespace {

std::string wrong_runs(const expectation& want, const observation& got) {
  for (std::size_t i = 0; i < want.tasks.size(); ++i) {
    const int n = got.ran[i];
    const runs may = want.tasks[i];
    if (may.least <= n && n <= may.most) continue;
    std::ostringstream out;
    out << "task " << i << " ran " << n << " times, it should have run " << may.least;
    if (may.most != may.least) out << " to " << may.most;
    out << " times";
    return out.str();
  }
  return {};
}

}  // namespace

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
  for (std::size_t i = 0; i < counters; ++i)
    if (got.sums[i] != want.sums[i]) {
      out << "counter " << i << " is 0x" << got.sums[i] << ", serially 0x" << want.sums[i];
      return out.str();
    }
  if (const std::string wrong = wrong_runs(want, got); !wrong.empty()) return wrong;
  if (got.intruders != 0) return "two tasks commuted at once";
  if (got.wrong_tokens != 0) return "a task did not get the argument it was forked with";
  if (got.wrong_names != 0) return "a task did not see the name it was forked with";
  return {};
}

}  // namespace property
