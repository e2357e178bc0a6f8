// SPDX-License-Identifier: BSL-1.0
// Random programs that append to streams, over processes that are threads, against the serial program: who
// owns a stream writes it, bytes come from tasks elsewhere, and tasks elsewhere have streams of their own.
#include "stream/parallel.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

#include <weft/cluster/threads.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

namespace stream_test {

/// It has nothing but its type.
template <class Archive>
void serialize(Archive&, planned&) {}

}  // namespace stream_test

namespace {

using stream_test::program;
using stream_test::statement;

/// What a program appends that neither throws nor reads.
void append_serially(const program& p, std::string& to) {
  for (const statement& s : p) {
    to += s.bytes;
    for (int i = 0; i < (s.what == statement::kind::loop ? s.times : 1); ++i) append_serially(s.body, to);
  }
}

/// Streams of tasks, and how many of them tasks in other processes than the first had.
struct own_streams {
  std::atomic<std::uint64_t> made{0}, elsewhere{0}, wrong{0};
  std::atomic<bool> one_worker{false};
  std::atomic<std::thread::id> first_worker{};
  stream_test::happenings& seen;

  /// What a task does, in whatever process it is: a stream of its own, to which tasks append.
  void use_one() {
    const std::uint64_t seed = made.fetch_add(1);
    const program p = stream_test::generator(seed, false, false).make(2, true);
    std::string expected, got;
    append_serially(p, expected);
    stream_test::world here{nullptr, seen, [] { std::this_thread::yield(); }};
    weft::append_sink out([&got](std::span<const std::byte> bytes) {
      got.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    here.run(stream_test::with, std::cref(p), std::ref(here), out);
    out.close();
    wrong += got != expected;
    elsewhere += one_worker && !expected.empty() && std::this_thread::get_id() != first_worker.load();
  }
};

}  // namespace

TEST_CASE("random programs append the bytes of the serial program, wherever their tasks run", "[cluster]") {
  weft::remote::register_exception<stream_test::planned>();
  constexpr int depth = 5;
  const std::uint64_t first = weft_test::seed() % 1'000'000'000;
  const int programs = weft_test::long_run() ? 4'000 : 120 / static_cast<int>(weft_test::scale());
  const auto expected = stream_test::serial_results(first, programs, depth);
  const weft_test::scratch dir;
  stream_test::happenings seen;
  own_streams own{.seen = seen};
  std::uint64_t sent = 0, by_others = 0, failed = 0;
  for (const int processes : {1, 2, 3, 4, 8})
    for (const unsigned workers : {1u, 2u}) {
      weft_test::random dice(first + static_cast<std::uint64_t>(processes));
      const auto disorder = dice.one_in(3) ? 0u : static_cast<std::uint32_t>(1 + dice.below(1000));
      weft::thread_cluster c(processes, {.runtime = {.workers = workers}}, {.disorder = disorder});
      own.one_worker = workers == 1;
      stream_test::world w{nullptr, seen, [] { std::this_thread::yield(); }, [&own] { own.use_one(); }};
      for (int i = 0; i < programs; ++i) {
        const std::uint64_t seed = first + std::uint64_t(i);
        INFO("seed " << seed << ", " << processes << " processes with " << workers << " workers, disorder "
                     << disorder);
        const bool thrown = c.run([&] {
          own.first_worker = std::this_thread::get_id();
          weft::append_file file(dir / "out", {.layout = i % 5 == 0 ? weft::append_layout::segmented
                                                                    : weft::append_layout::plain,
                                               .overwrite = true,
                                               .readable = stream_test::reads(seed),
                                               .buffer = 4096,
                                               .sync = false});
          return stream_test::append_all(stream_test::make(seed, depth), w, file, stream_test::reads(seed));
        });
        weft::append_reader reader(dir / "out");
        std::string all(reader.size(), ' ');
        reader.pread(std::as_writable_bytes(std::span(all)), 0);
        REQUIRE(stream_test::result::of(all, thrown) == expected[std::size_t(i)]);
        failed += thrown;
      }
      for (int i = 0; i < processes; ++i) (i == 0 ? sent : by_others) += c.counters(i).closures_sent;
    }
  std::printf(
      "programs %d; tasks sent %llu, by others than process 0 %llu; streams of tasks %llu, in other "
      "processes "
      "%llu; programs with an exception %llu\n",
      programs, static_cast<unsigned long long>(sent), static_cast<unsigned long long>(by_others),
      static_cast<unsigned long long>(own.made.load()), static_cast<unsigned long long>(own.elsewhere.load()),
      static_cast<unsigned long long>(failed));
  CHECK(own.wrong == 0);
  CHECK(own.elsewhere > 0);
  CHECK(sent > 0);
  CHECK(failed > 0);
  CHECK(seen.reads.load() > 0);
  weft_test::figure("cluster_stream_programs", 10 * static_cast<std::uint64_t>(programs));
}
