// SPDX-License-Identifier: BSL-1.0
// Prints metrics for metrics_test.py: first what the runtime counted, as name and number, then the text.
#include <weft/observe.hpp>
#include <weft/weft.hpp>

#include <cstdio>

int main() {
  weft::runtime rt({.workers = 3, .inlining = false}), other({.workers = 1});
  rt.run([] {
    for (int i = 0; i < 100; ++i) weft::fork([] {});
  });
  const weft::observe::runtime_metrics hostile(rt, "q\"uote, back\\slash, line\nend, brace} \xC3\xA9 \xFF#");
  const weft::observe::runtime_metrics plain(other, "other");
  for (const weft::observe::metric_family& m : weft::observe::counted_metrics)
    std::printf("%.*s %llu\n", static_cast<int>(m.name.size()), m.name.data(),
                static_cast<unsigned long long>(hostile.totals.*m.value));
  std::printf("\n%s", weft::observe::open_metrics({hostile, plain}).c_str());
}
