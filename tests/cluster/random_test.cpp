// SPDX-License-Identifier: BSL-1.0
// Random data-flow programs over processes that are threads, with messages in any order, against the
// interpreter.
#include "property/batch.hpp"
#include "property/check.hpp"
#include "property/runner.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"

#include <weft/cluster/threads.hpp>

#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

using namespace property;

namespace {

struct happened {
  std::uint64_t compared = 0, threw = 0, sent = 0, received = 0, kept = 0, by_others = 0, recorded = 0,
                cached = 0;
};

void run_programs(std::uint64_t first, std::uint64_t count, happened& h) {
  constexpr std::uint64_t per_cluster = 20;
  for (std::uint64_t batch = 0; batch < count; batch += per_cluster)
    for (const int processes : {1, 2, 3, 4, 8}) {
      weft_test::random dice((first + batch) * 64 + static_cast<std::uint64_t>(processes));
      const setup how = options_for(first + batch, static_cast<unsigned>(1 + dice.below(2)));
      const auto disorder = dice.one_in(3) ? 0u : static_cast<std::uint32_t>(1 + dice.below(1000));
      weft::cluster_options options{.runtime = how.options()};
      const auto cache = dice.below(4);
      if (cache != 0) options.cached_from = 1;  // so that values of a few bytes are kept, too
      if (cache == 2) options.cache_bytes = 20;
      if (cache == 3) options.cache_bytes = 100;
      weft::thread_cluster c(processes, options, {.disorder = disorder});
      // In every second cluster the ends of tasks are recorded, so bodies wait for what they have forked.
      std::deque<weft::remote::finished_tasks> records;
      if (batch / per_cluster % 2 == 0)
        for (int i = 0; i < processes; ++i)
          weft::remote::thread_cluster_key::process(c, i).record_in(&records.emplace_back());
      for (std::uint64_t seed = first + batch; seed < first + std::min(count, batch + per_cluster); ++seed) {
        for (weft::remote::finished_tasks& r : records) r.begin_run();
        program p = generate(seed);
        drop_waits(p.root);
        const expectation want = interpret(p);
        const long before = counted::live(), corrupt = counted::corrupt();
        const std::string text = compare(p, want, execute<counted>(c, p, want));
        ++h.compared;
        h.threw += want.exception != 0;
        if (!text.empty())
          fail_with(text + "\nseed " + std::to_string(seed) + ", " + std::to_string(processes) +
                    " processes with " + std::to_string(how.workers) + " workers, disorder " +
                    std::to_string(disorder) + ", cache " + std::to_string(cache) + ":\n" + print(p));
        CHECK(counted::live() == before);
        CHECK(counted::corrupt() == corrupt);
      }
      for (int i = 0; i < processes; ++i) {
        const weft::cluster_counters n = c.counters(i);
        h.sent += n.closures_sent;
        h.received += n.closures_received;
        h.kept += n.closures_kept;
        h.recorded += n.tasks_recorded;
        h.cached += n.values_cached;
        if (i != 0) h.by_others += n.closures_sent;  // so tasks of tasks that had come from elsewhere went on
      }
    }
}

}  // namespace

TEST_CASE("random programs give what the serial program gives, wherever their tasks run") {
  weft::remote::register_exception<thrown>();
  happened h;
  const std::uint64_t all = programs(600);
  run_programs(1, all / 2, h);
  run_programs(weft_test::seed(), all - all / 2, h);
  std::printf(
      "runs compared %llu, with an exception %llu; tasks sent %llu, by others than process 0 %llu, kept "
      "%llu, recorded %llu; values not sent again %llu\n",
      static_cast<unsigned long long>(h.compared), static_cast<unsigned long long>(h.threw),
      static_cast<unsigned long long>(h.sent), static_cast<unsigned long long>(h.by_others),
      static_cast<unsigned long long>(h.kept), static_cast<unsigned long long>(h.recorded),
      static_cast<unsigned long long>(h.cached));
  weft_test::figure("cluster_programs_compared", h.compared);
  CHECK(h.threw > 0);
  CHECK(h.sent > (weft_test::scale() == 1 ? h.compared / 10 : 0));
  CHECK(h.sent == h.received);
  CHECK(h.by_others > 0);
  CHECK(h.recorded > h.compared);
  CHECK(h.cached > 0);
}
