// SPDX-License-Identifier: BSL-1.0
// Unbalanced tree search by plain recursion; its counts must be the published ones.
#include "config.hpp"

#include <stdexcept>
#include <string>

namespace weft_bench {
namespace {

long count(tree which, const node& n) {
  const int children = children_of(which, n);
  if (children == 0) return one_leaf + one_node;
  long counts = one_node;
  for (int i = 0; i < children; ++i) counts += count(which, child_of(n, unsigned(i)));
  return counts;
}

outcome run(int index, unsigned) {
  const problem& p = problems[index];
  const stopwatch clock;
  const long counts = count(p.which, root_of(p.which));
  const double seconds = clock.seconds();
  if (nodes_of(counts) != p.nodes)
    throw std::runtime_error(std::string(p.name) + " has " + std::to_string(nodes_of(counts)) +
                             " nodes here, published are " + std::to_string(p.nodes));
  return count_outcome(counts, seconds);
}

const registration entry("serial", run, fits_one_worker);

}  // namespace
}  // namespace weft_bench
