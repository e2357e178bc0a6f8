// SPDX-License-Identifier: BSL-1.0
// The stencil with weft: one body forks all rows, or replays two rows that were recorded.
// usage: bench_metg_weft forked|replayed 3|5 COLUMNS WORKERS [check|wrong-stamp|wrong-value]
#include "search.hpp"

#include <weft/weft.hpp>

#include <array>
#include <utility>

namespace weft_bench {
namespace {

template <std::size_t>
using input = buffer;

/// Forks task (t, i), which has as many inputs as there are numbers k.
template <std::size_t... k>
void fork_task(const graph_shape& s, buffers& b, int t, int i, long steps, std::index_sequence<k...>) {
  buffers::line* const in = b.row(t - 1) + s.first(i);
  weft::fork(
      [&s, t, i, steps](const input<k>&... inputs, buffer& out) {
        const std::array<const buffer*, sizeof...(k)> all{&inputs...};
        compute(
            s, t, i, steps, [&all](int n) -> const buffer& { return *all[std::size_t(n)]; },
            int(sizeof...(k)), out);
      },
      weft::read(weft::borrow(in[k].content))..., weft::write(weft::borrow(b.at(t, i))));
}

void fork_row(const graph_shape& s, buffers& b, int t, long steps) {
  for (int i = 0; i < s.columns; ++i) switch (s.last(i) - s.first(i) + 1) {
      case 1:
        fork_task(s, b, t, i, steps, std::make_index_sequence<1>());
        break;
      case 2:
        fork_task(s, b, t, i, steps, std::make_index_sequence<2>());
        break;
      case 3:
        fork_task(s, b, t, i, steps, std::make_index_sequence<3>());
        break;
      case 4:
        fork_task(s, b, t, i, steps, std::make_index_sequence<4>());
        break;
      default:
        fork_task(s, b, t, i, steps, std::make_index_sequence<5>());
    }
}

class weft_rival : public threads_rival {
 public:
  weft_rival(const graph_shape& s, bool replays)
      : threads_rival(s), rt_({.workers = s.workers}), replays_(replays) {}

  timed_sum run(long steps, fault f) {
    const graph_shape& s = shape();
    buffers b(s, f);
    const auto before = rt_.counters().replayed;
    const stopwatch clock;
    rt_.run([&] {
      if (!replays_) {
        for (int t = 1; t <= s.rows(); ++t) fork_row(s, b, t, steps);
        return;
      }
      weft::recorded two_rows;
      for (int t = 1; t <= s.rows(); t += 2)
        two_rows([&] {
          fork_row(s, b, t, steps);
          fork_row(s, b, t + 1, steps);
        });
    });
    const double seconds = clock.seconds();
    replayed_ = double(rt_.counters().replayed - before) / (double(s.rows()) * s.columns);
    return {seconds, b.sum()};
  }
  std::string note() const {
    return replays_ ? std::to_string(std::lround(100 * replayed_)) + " % replayed" : std::string();
  }

 private:
  weft::runtime rt_;
  bool replays_;
  double replayed_ = 0;
};

}  // namespace
}  // namespace weft_bench

int main(int argc, char** argv) {
  using namespace weft_bench;
  const std::string how = argc > 1 ? argv[1] : "";
  if (how != "forked" && how != "replayed") return 2;
  weft_rival r(shape_of(argc, argv, 2), how == "replayed");
  return measure(r, argc > 5 ? argv[5] : nullptr);
}
