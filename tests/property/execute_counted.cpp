// SPDX-License-Identifier: BSL-1.0
// The runner with values whose instances are counted, and the launch statistics.
#include "runner.hpp"

namespace property {

observation execute_counted(weft::runtime& rt, const program& p, const expectation& expected,
                            weft::sched::run_recorder* record) {
  recorded_runtime where{rt, record};
  return execute<counted>(where, p, expected);
}

std::vector<usage> launches() {
  std::vector<usage> out;
  const auto add = [&out](const std::string& name) {
    out.push_back({name, uses[out.size()].load(std::memory_order_relaxed)});  // read at the end
  };
  for (const std::vector<kind>& kinds : shape_kinds()) {
    std::string name = "shape (";
    for (const kind k : kinds) name += std::string(of(k).text) + ", ";
    add(name + ")");
  }
  add("result in memory");
  add("result returned");
  add("parts given away by a steal function");
  add("spawned bodies");
  add("sections under a lock");
  add("waits for a lock");
  add("turns of a baton");
  add("waits for a turn");
  return out;
}

}  // namespace property
