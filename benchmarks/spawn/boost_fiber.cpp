// SPDX-License-Identifier: BSL-1.0
// Empty tasks as Boost.Fiber fibers on pooled stacks, on one thread.
#include "config.hpp"

#include <boost/fiber/fiber.hpp>
#include <boost/fiber/operations.hpp>
#include <boost/fiber/pooled_fixedsize_stack.hpp>

#include <memory>
#include <vector>

namespace weft_bench {
namespace {

void all_rounds(slots& s, int count) {
  boost::fibers::pooled_fixedsize_stack stacks(16 * 1024);
  std::vector<boost::fibers::fiber> group;
  group.reserve(batch);
  for (int round = 0; round < count; ++round) {
    for (int i = 0; i < batch; ++i)
      group.emplace_back(boost::fibers::launch::post, std::allocator_arg, stacks,
                         [&v = s.value[i]] { v = v + 1; });
    for (boost::fibers::fiber& f : group) f.join();
    group.clear();
  }
}

outcome run(int, unsigned) {
  slots warm, s;
  all_rounds(warm, 10);
  const stopwatch clock;
  all_rounds(s, rounds);
  return slots_outcome(s, clock.seconds());
}

bool fits(int index, unsigned workers) { return workers == 1 && problems[index].style == plain; }

const registration entry("boost-fiber", run, fits);

}  // namespace
}  // namespace weft_bench
