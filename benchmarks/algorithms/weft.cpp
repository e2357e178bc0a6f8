// SPDX-License-Identifier: BSL-1.0
// The algorithms with weft.
#include "config.hpp"

#include <weft/algorithms.hpp>

#include <functional>
#include <optional>

namespace weft_bench {
namespace {

struct with_weft {
  weft::runtime rt;

  void sort(std::vector<number>& v) { weft::sort(rt, v); }
  template <class T>
  void stable_sort(std::vector<T>& v) {
    weft::stable_sort(rt, v, std::less<>());
  }
  void scan(const std::vector<number>& v, std::vector<number>& out) {
    weft::inclusive_scan(rt, v, out.begin());
  }
  number reduce(const std::vector<number>& v) {
    return weft::transform_reduce(rt, v, number(0), std::plus<>(), mapped);
  }
  number pipe(std::size_t n) {
    number i = 0, all = 0;
    weft::pipeline(
        rt, 16, [&]() -> std::optional<number> { return i == n ? std::nullopt : std::optional(i++); },
        weft::serial_stage(stage_work), weft::parallel_stage(stage_work), weft::parallel_stage(stage_work),
        weft::serial_stage([&all](number x) { all = all * 31 + stage_work(x); }));
    return all;
  }
};

outcome run(int index, unsigned workers) {
  with_weft r{weft::runtime({.workers = workers})};
  r.rt.run([] {});
  const weft::counters before = r.rt.counters();
  outcome o = measure(problems[index], r);
  const weft::counters after = r.rt.counters();
  o.steals = static_cast<long long>(after.steals - before.steals);
  o.sleeps = static_cast<long long>(after.sleeps - before.sleeps);
  return o;
}

const registration entry("weft", run, fits_all);

}  // namespace
}  // namespace weft_bench
