// SPDX-License-Identifier: BSL-1.0
// Empty tasks with weft, run inside fork where it may, and stored where it may not.
#include "config.hpp"
#include "weft_outcome.hpp"

#include <weft/weft.hpp>

#include <deque>

namespace weft_bench {
namespace {

void plain_rounds(slots& s, int count) {
  for (int round = 0; round < count; ++round) {
    for (int i = 0; i < batch; ++i) weft::fork([&v = s.value[i]] { v = v + 1; });
    weft::sync();
  }
}

void touch(weft::update<long> v) { *v = *v + 1; }

void flow_rounds(std::deque<weft::shared<long>>& objects, int count) {
  for (int round = 0; round < count; ++round) {
    for (weft::shared<long>& v : objects) weft::fork(touch, v);
    weft::sync();
  }
}

outcome run_with(weft::runtime_options options, const problem& p) {
  constexpr long long count = static_cast<long long>(batch) * rounds;
  weft::runtime rt(options);
  if (p.style == plain) {
    slots warm, s;
    rt.run([&] { plain_rounds(warm, 10); });
    return timed_run(rt, count, [&] { return s.sum(); }, [&] { plain_rounds(s, rounds); });
  }
  std::deque<weft::shared<long>> warm, objects;
  for (int i = 0; i < batch; ++i) {
    warm.emplace_back(0L);
    objects.emplace_back(0L);
  }
  rt.run([&] { flow_rounds(warm, 10); });
  auto sum = [&] {
    long s = 0;
    for (const weft::shared<long>& v : objects) s += v.get();
    return s;
  };
  return timed_run(rt, count, sum, [&] { flow_rounds(objects, rounds); });
}

outcome run(int index, unsigned workers) { return run_with({.workers = workers}, problems[index]); }

outcome run_deferred(int index, unsigned workers) {
  return run_with({.workers = workers, .inlining = false}, problems[index]);
}

const registration entry("weft", run, fits_all);
const registration deferred("weft-deferred", run_deferred, fits_all);

}  // namespace
}  // namespace weft_bench
