// SPDX-License-Identifier: BSL-1.0
// N-queens with XKaapi's kaapi++ (C++98): spawn every placement, then wait.
#include "config.hpp"
#include "xkaapi_main.hpp"

#include <kaapi++>

struct queens_task : public ka::Task<6>::Signature<ka::W<long>, unsigned, unsigned, unsigned, unsigned, int> {
};

template <>
struct TaskBodyCPU<queens_task> {
  void operator()(ka::Thread* thread, ka::pointer_w<long> result, unsigned all, unsigned columns,
                  unsigned left, unsigned right, int levels) {
    using namespace weft_bench;
    const board b = {all, columns, left, right};
    if (b.complete()) {
      *result = one_solution + one_node;
      return;
    }
    if (levels == 0) {
      *result = search(b);
      return;
    }
    long part[most_queens];
    int k = 0;
    for (unsigned free = b.free(); free != 0; free &= free - 1) {
      const board next = b.with(lowest(free));
      thread->Spawn<queens_task>()(&part[k], next.all, next.columns, next.left, next.right, levels - 1);
      ++k;
    }
    ka::Sync();
    long counts = one_node;
    for (int i = 0; i < k; ++i) counts += part[i];
    *result = counts;
  }
};

namespace weft_bench {
namespace {

long whole(int n, int levels) {
  long* value = ka::Alloca<long>(1);
  *value = 0;
  ka::pointer<long> r = value;
  const board b = empty_board(n);
  ka::Spawn<queens_task>()(r, b.all, b.columns, b.left, b.right, levels);
  ka::Sync();
  return *value;
}

outcome body(int index) {
  const problem& p = problems[index];
  whole(8, no_cut_off);
  const stopwatch clock;
  const long counts = whole(p.n, p.fork_levels);
  return count_outcome(counts, clock.seconds());
}

outcome run(int index, unsigned workers) { return xkaapi_main<body>(index, workers); }

const registration entry("xkaapi", run, fits_all);

}  // namespace
}  // namespace weft_bench
