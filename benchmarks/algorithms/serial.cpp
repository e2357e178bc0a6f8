// SPDX-License-Identifier: BSL-1.0
// The standard library's serial algorithms.
#include "config.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace weft_bench {
namespace {

struct serial {
  void sort(std::vector<number>& v) { std::sort(v.begin(), v.end()); }
  template <class T>
  void stable_sort(std::vector<T>& v) {
    std::stable_sort(v.begin(), v.end());
  }
  void scan(const std::vector<number>& v, std::vector<number>& out) {
    std::inclusive_scan(v.begin(), v.end(), out.begin());
  }
  number reduce(const std::vector<number>& v) {
    return std::transform_reduce(v.begin(), v.end(), number(0), std::plus<>(), mapped);
  }
  number pipe(std::size_t n) {
    number all = 0;
    for (number i = 0; i < n; ++i) all = all * 31 + stage_work(stage_work(stage_work(stage_work(i))));
    return all;
  }
};

outcome run(int index, unsigned) {
  serial r;
  return measure(problems[index], r);
}

const registration entry("serial", run, fits_one_worker);

}  // namespace
}  // namespace weft_bench
