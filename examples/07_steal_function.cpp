// SPDX-License-Identifier: BSL-1.0
// A body that gives work away while it runs: the adaptive thread of KAAPI (PASCO'07, figure 3). The start
// below one million with the longest Collatz chain; chains differ in length, so no division in advance is a
// fair one. A task, as it declares where its result goes; a body that is spawned may have a steal function,
// too. prints "837799 takes 524 steps, thefts: fewer than one for each 256 numbers: yes"
#include <weft/weft.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>

namespace {

struct longest {
  std::uint32_t start = 0, steps = 0;
};

/// The longer one; of two that are as long, the one before: associative, and not commutative.
struct longer {
  longest operator()(const longest& before, const longest& next) const {
    return next.steps > before.steps ? next : before;
  }
};

std::atomic<long> thefts{0};

std::uint32_t steps_from(std::uint64_t n) {
  std::uint32_t steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

void search(std::uint32_t first, std::uint32_t last, weft::reduce<longest, longer> best) {
  weft::interval<std::uint32_t> left(first, last);
  const weft::steal_function give([&](weft::thief& t) {
    if (const auto part = left.take_back_half(256)) {
      ++thefts;
      t.fork(search, part->first, part->last, best);
    }
  });
  longest own;
  while (const auto part = left.take_front(64))
    for (std::uint32_t n = part->first; n < part->last; ++n) own = longer{}(own, {n, steps_from(n)});
  best += own;
}

}  // namespace

int main() {
  constexpr std::uint32_t end = 1'000'000;
  weft::runtime rt;
  weft::shared<longest> best(longest{});
  rt.run([&] { weft::fork(search, 1u, end, weft::reduce(best, longer{})); });
  std::printf("%u takes %u steps, thefts: fewer than one for each 256 numbers: %s\n", best.get().start,
              best.get().steps, thefts < end / 256 ? "yes" : "no");
}
