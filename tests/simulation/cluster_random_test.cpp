// SPDX-License-Identifier: BSL-1.0
// Random data-flow programs over processes on a simulated network whose messages are delayed and overtake
// each other, against the interpreter. Each run can be repeated from its seeds.
#include "network.hpp"
#include "property/batch.hpp"
#include "property/check.hpp"
#include "property/runner.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"

#include <cstdint>
#include <cstdio>
#include <string>

using namespace property;

namespace {

struct happened {
  std::uint64_t compared = 0, threw = 0, sent = 0, received = 0, by_others = 0, stopped = 0, cached = 0;
};

/// The programs of some seeds in one cluster, whose size, options and network another seed chooses.
void run_programs(std::uint64_t world, std::uint64_t first, std::uint64_t count, happened& h) {
  weft_test::random dice(world);
  static constexpr int sizes[] = {2, 3, 5, 10, 20};
  const int processes = sizes[dice.below(5)];
  const setup how = options_for(world, static_cast<unsigned>(1 + dice.below(2)));
  // The bodies are short, so those who ask must be quick.
  const std::chrono::microseconds longest_pause(dice.below(10));
  weft::cluster_options options{.runtime = how.options(), .longest_pause = longest_pause};
  const auto cache = dice.below(4);
  if (cache != 0) options.cached_from = 1;  // so that values of a few bytes are kept, too
  if (cache == 2) options.cache_bytes = 20;
  if (cache == 3) options.cache_bytes = 100;
  simulation::network_options by{.latency = 100, .overhead = 50, .longest_delay = 500};
  by.delays = dice.one_in(2) ? 0 : world;
  std::string wrong;
  simulation::run_in_virtual_time([&] {
    simulation::cluster c(processes, options, by);
    for (std::uint64_t seed = first; seed < first + count && wrong.empty(); ++seed) {
      program p = generate(seed);
      drop_waits(p.root);
      const expectation want = interpret(p);
      const std::string text = compare(p, want, execute<counted>(c, p, want));
      ++h.compared;
      h.threw += want.exception != 0;
      if (!text.empty()) wrong = text + "\nseed " + std::to_string(seed) + ":\n" + print(p);
    }
    for (int i = 0; i < processes; ++i) {
      const weft::cluster_counters n = c.counters(i);
      h.sent += n.closures_sent;
      h.received += n.closures_received;
      h.cached += n.values_cached;
      if (i != 0) h.by_others += n.closures_sent;
    }
  });
  if (!wrong.empty())
    fail_with(wrong + "world " + std::to_string(world) + ", " + std::to_string(processes) +
              " processes with " + std::to_string(how.workers) + " workers, cache " + std::to_string(cache) +
              ", delays " + std::to_string(by.delays));
}

}  // namespace

TEST_CASE("random programs give on a simulated network what the serial program gives") {
  weft::remote::register_exception<thrown>();
  happened h;
  constexpr std::uint64_t per_cluster = 10;
  const std::uint64_t all = programs(6'000), before = static_cast<std::uint64_t>(counted::live());
  for (std::uint64_t i = 0; i < all; i += per_cluster) {
    const std::uint64_t first = (i < all / 2 ? 1 : weft_test::seed()) + i;
    run_programs(first, first, per_cluster, h);
  }
  std::printf(
      "runs compared %llu, with an exception %llu; tasks sent %llu, by others than process 0 %llu; values "
      "not "
      "sent again %llu\n",
      static_cast<unsigned long long>(h.compared), static_cast<unsigned long long>(h.threw),
      static_cast<unsigned long long>(h.sent), static_cast<unsigned long long>(h.by_others),
      static_cast<unsigned long long>(h.cached));
  weft_test::figure("simulated_cluster_programs", h.compared);
  CHECK(static_cast<std::uint64_t>(counted::live()) == before);
  CHECK(counted::corrupt() == 0);
  CHECK(h.threw > 0);
  CHECK(h.sent > h.compared / 10);
  CHECK(h.sent == h.received);
  CHECK(h.by_others > 0);
  CHECK(h.cached > 0);
}
