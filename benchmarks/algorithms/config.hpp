// SPDX-License-Identifier: BSL-1.0
// Algorithms on 10^7 elements: sorts, a scan, a reduction; and a pipeline of four stages.
#pragma once

#include "rival.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft_bench {

static const char* const kernel_name = "algorithms";
static const char* const task_name = "element";
static const char* const reference_name = "serial";

enum class what { sort, stable_sort, stable_sort_pairs, scan, reduce, pipe };

struct problem {
  const char* name;
  std::size_t n;
  what algorithm;
  int repetitions;
};

static const problem problems[] = {
    {"sort-10^7", 10000000, what::sort, 5},
    {"stable-sort-10^7", 10000000, what::stable_sort, 5},
    {"stable-sort-pairs-10^7", 10000000, what::stable_sort_pairs, 5},
    {"inclusive-scan-10^7", 10000000, what::scan, 9},
    {"transform-reduce-10^7", 10000000, what::reduce, 9},
    {"pipeline-4x10us", 5000, what::pipe, 5},
};

using number = std::uint64_t;
/// Sorted by the key alone.
struct pair {
  std::uint32_t key, place;
  friend bool operator<(const pair& a, const pair& b) { return a.key < b.key; }
};

inline number step(number x) { return x * 6364136223846793005u + 1442695040888963407u; }
inline std::vector<number> random_numbers(std::size_t n) {
  std::vector<number> v(n);
  number x = 1;
  for (number& e : v) e = (x = step(x)) >> 20;
  return v;
}
inline std::vector<pair> random_pairs(std::size_t n) {
  std::vector<pair> v(n);
  number x = 1;
  for (std::size_t i = 0; i < n; ++i) {
    v[i].key = std::uint32_t((x = step(x)) >> 44);
    v[i].place = std::uint32_t(i);
  }
  return v;
}
/// What the reduction makes of an element.
inline constexpr auto mapped = [](number e) { return (e ^ (e >> 7)) * 2654435761u; };

/// A stage: so many dependent steps take about 10 microseconds.
inline constexpr auto stage_work = [](number x) {
  for (int i = 0; i < 8000; ++i) x = step(x);
  return x;
};

inline long long digest(const std::vector<number>& v) {
  number h = 0;
  for (const number e : v) h = h * 31 + e;
  return static_cast<long long>(h >> 1);
}
inline long long digest(const std::vector<pair>& v) {
  number h = 0;
  for (const pair& e : v) h = (h * 31 + e.key) * 31 + e.place;
  return static_cast<long long>(h >> 1);
}

/// Calls the algorithms of a rival, which are functions of `r`, and times them. The memory written to is
/// there before.
template <class Rival>
outcome measure(const problem& p, Rival& r) {
  const long long n = static_cast<long long>(p.n);
  if (p.algorithm == what::pipe) {
    const stopwatch clock;
    const number all = r.pipe(p.n);
    return plain_outcome(static_cast<long long>(all >> 1), n, clock.seconds());
  }
  if (p.algorithm == what::stable_sort_pairs) {
    std::vector<pair> v = random_pairs(p.n);
    const stopwatch clock;
    r.stable_sort(v);
    const double seconds = clock.seconds();
    return plain_outcome(digest(v), n, seconds);
  }
  std::vector<number> v = random_numbers(p.n), out(p.algorithm == what::scan ? p.n : 0, 1);
  number sum = 0;
  const stopwatch clock;
  if (p.algorithm == what::sort) r.sort(v);
  if (p.algorithm == what::stable_sort) r.stable_sort(v);
  if (p.algorithm == what::scan) r.scan(v, out);
  if (p.algorithm == what::reduce) sum = r.reduce(v);
  const double seconds = clock.seconds();
  return plain_outcome(
      p.algorithm == what::reduce ? static_cast<long long>(sum >> 1) : digest(out.empty() ? v : out), n,
      seconds);
}

}  // namespace weft_bench
