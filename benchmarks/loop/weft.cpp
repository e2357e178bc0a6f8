// SPDX-License-Identifier: BSL-1.0
// The loops with weft: with the grain of the others, and with a look at thieves in each iteration; one is a
// body with a steal function.
#include "config.hpp"
#include "weft_outcome.hpp"

#include <weft/weft.hpp>

#include <functional>

namespace weft_bench {
namespace {

/// A body that fills [first, last) of the row, while thieves take halves of what is left.
struct fill {
  const problem& p;
  unsigned* row;

  void operator()(long first, long last) const {
    weft::interval<long> left(first, last);
    const weft::steal_function give([&](weft::thief& t) {
      if (const auto part = left.take_back_half(10 * grain(p))) t.fork(*this, part->first, part->last);
    });
    while (const auto part = left.take_front(static_cast<std::size_t>(grain(p))))
      for (long i = part->first; i < part->last; ++i) row[i] = iteration(p, i);
  }
};

outcome run_with(int index, unsigned workers, long each) {
  const problem& p = problems[index];
  weft::runtime rt({.workers = workers});
  rt.run([] {});
  std::vector<unsigned> row = row_of(p);
  weft::shared<unsigned long> sum(0ul);
  const weft::loop_options options{.grain = static_cast<std::size_t>(each)};
  const stopwatch clock;
  if (p.what == shape::sum)
    rt.run(
        [&](weft::update<unsigned long> s) {
          weft::fork_for(
              options, 0, p.iterations,
              [](weft::indices<long> part, auto to) {
                unsigned long of_part = 0;
                for (const long i : part) of_part += addend(i);
                to += of_part;
              },
              weft::reduce(s, std::plus<>{}));
        },
        sum);
  else if (p.what == shape::body)
    rt.run([&] { weft::fork(fill{p, row.data()}, 0l, long{p.iterations}); });
  else
    rt.run([&] {
      weft::fork_for(options, 0, p.iterations, [&row, &p](long i) { row[std::size_t(i)] = iteration(p, i); });
    });
  const double seconds = clock.seconds();
  return loop_outcome(p, row, sum.get(), seconds);
}

outcome run(int index, unsigned workers) { return run_with(index, workers, grain(problems[index])); }
outcome run_each(int index, unsigned workers) { return run_with(index, workers, 1); }

const registration entry("weft", run, fits_all);
bool is_loop(int index, unsigned) { return problems[index].what != shape::body; }
const registration each("weft-grain-1", run_each, is_loop);

}  // namespace
}  // namespace weft_bench
