// SPDX-License-Identifier: BSL-1.0
// Random programs append to files, on few and many workers, against the serial program.
#include "stream/parallel.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"
#include "support/scratch.hpp"

#include <thread>

namespace {

std::string whole(const std::string& path) {
  weft::append_reader reader(path);
  std::string all(reader.size(), ' ');
  reader.pread(std::as_writable_bytes(std::span(all)), 0);
  return all;
}

}  // namespace

TEST_CASE("random programs append the bytes of the serial program") {
  constexpr int depth = 5;
  const std::uint64_t first = weft_test::seed() % 1'000'000'000;
  const int programs = weft_test::long_run() ? 20'000 : 300 / static_cast<int>(weft_test::scale());
  const auto expected = stream_test::serial_results(first, programs, depth);
  const weft_test::scratch dir;
  stream_test::happenings seen;
  std::uint64_t steals = 0, divisions = 0, failed = 0;
  for (const unsigned workers : {1u, 2u, 3u, 4u, 8u, 16u}) {
    weft::runtime rt({.workers = workers});
    stream_test::world w{&rt, seen, [] { std::this_thread::yield(); }};
    for (int i = 0; i < programs; ++i) {
      const std::uint64_t seed = first + std::uint64_t(i);
      INFO("seed " << seed << ", " << workers << " workers");
      weft::append_file file(
          dir / "out", {.layout = i % 5 == 0 ? weft::append_layout::segmented : weft::append_layout::plain,
                        .overwrite = true,
                        .readable = stream_test::reads(seed),
                        .memory = i % 3 == 0 ? std::size_t{1} << 13 : std::size_t{1} << 26,
                        .buffer = 4096,
                        .sync = false});
      const bool thrown =
          stream_test::append_all(stream_test::make(seed, depth), w, file, stream_test::reads(seed));
      REQUIRE(stream_test::result::of(whole(dir / "out"), thrown) == expected[std::size_t(i)]);
      failed += thrown;
    }
    steals += rt.counters().steals;
    divisions += rt.counters().divisions;
  }
  CHECK(steals > 0);
  CHECK(divisions > 0);
  CHECK(failed > 0);
  CHECK(seen.overtakings.load() > 0);
  CHECK(seen.reads.load() > 0);
  weft_test::figure("stream_programs", 6 * static_cast<std::uint64_t>(programs));
}
