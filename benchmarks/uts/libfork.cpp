// SPDX-License-Identifier: BSL-1.0
// Unbalanced tree search with libfork.
#include "config.hpp"

#include <libfork/core.hpp>
#include <libfork/schedule.hpp>

namespace weft_bench {
namespace {

constexpr auto forked = [](auto self, tree which, const node* parent, int number) -> lf::task<long> {
  const node n = number < 0 ? *parent : child_of(*parent, unsigned(number));
  const int children = children_of(which, n);
  if (children == 0) co_return one_leaf + one_node;
  auto [part] = co_await lf::co_new<long>(std::size_t(children));
  for (int i = 0; i < children; ++i) {
    if (i + 1 < children)
      co_await lf::fork(&part[std::size_t(i)], self)(which, &n, i);
    else
      co_await lf::call(&part[std::size_t(i)], self)(which, &n, i);
  }
  co_await lf::join;
  long counts = one_node;
  for (int i = 0; i < children; ++i) counts += part[std::size_t(i)];
  co_return counts;
};

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  lf::lazy_pool pool(workers);
  const node root = root_of(p.which);
  const stopwatch clock;
  const long counts = lf::sync_wait(pool, forked, tree(p.which), &root, -1);
  return count_outcome(counts, clock.seconds());
}

const registration entry("libfork", run, fits_all);

}  // namespace
}  // namespace weft_bench
