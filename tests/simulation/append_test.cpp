// SPDX-License-Identifier: BSL-1.0
// Random programs that append to a stream, in many simulated worlds, against the serial program.
#include "simulate.hpp"
#include "stream/parallel.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

namespace {

/// Keeps the bytes.
class to_string final : public weft::stream::stream_layout {
 public:
  to_string(std::string& all, bool readable) : all_(all), readable_(readable) {}
  void place(std::span<const weft::stream::piece> pieces) override {
    for (const auto& p : pieces) all_.append(reinterpret_cast<const char*>(p.data), p.size);
  }
  std::size_t worth_while() const noexcept override { return 16; }
  bool readable() const noexcept override { return readable_; }
  void read_at(std::span<std::byte> to, std::uint64_t offset) const override {
    all_.copy(reinterpret_cast<char*>(to.data()), to.size(), offset);
  }
  void finish() override {}

 private:
  std::string& all_;
  const bool readable_;
};

struct string_stream : weft::append_stream {
  string_stream(std::string& all, const weft::append_options& o, const std::string& scratch)
      : append_stream("a string", std::make_unique<to_string>(all, o.readable), o, scratch) {}
};

}  // namespace

TEST_CASE("in all worlds a stream has the bytes of the serial program") {
  constexpr int depth = 4;
  const int worlds = weft_test::long_run() ? 1'000'000 : 10'000 / static_cast<int>(weft_test::scale());
  const std::uint64_t first = weft_test::seed() % 1'000'000'000;
  const auto expected = stream_test::serial_results(first, worlds, depth);
  const weft_test::scratch dir;
  stream_test::happenings seen;
  std::uint64_t steals = 0, divisions = 0, spilled = 0, promotions = 0, failed = 0;
  for (int i = 0; i < worlds; ++i) {
    const std::uint64_t seed = first + std::uint64_t(i);
    const stream_test::program p = stream_test::make(seed, depth);
    std::string all;
    bool thrown = false;
    simulation::simulate(seed, [&] {
      weft_test::random dice(seed);
      weft::runtime_options o;
      o.workers = static_cast<unsigned>(2 + dice.below(3));
      o.inlining = dice.one_in(2);
      o.surplus = static_cast<unsigned>(dice.below(5));
      weft::runtime rt(o);
      stream_test::world w{&rt, seen, [&dice] {
                             for (auto n = dice.below(8); n != 0; --n)
                               simulation::point(simulation::action::load, nullptr);
                           }};
      const std::size_t buffer = 16 << dice.below(4);
      string_stream stream(
          all,
          {.readable = stream_test::reads(seed), .memory = buffer * (1 + dice.below(8)), .buffer = buffer},
          dir / "out");
      thrown = stream_test::append_all(p, w, stream, stream_test::reads(seed));
      steals += rt.counters().steals;
      divisions += rt.counters().divisions;
      promotions += rt.counters().promotions;
      spilled += stream.spilled();
    });
    INFO("seed " << seed << ": " << all);
    REQUIRE(stream_test::result::of(all, thrown) == expected[std::size_t(i)]);
    failed += thrown;
  }
  CHECK(steals > 0);
  CHECK(divisions > 0);
  CHECK(promotions > 0);
  CHECK(spilled > 0);
  CHECK(failed > 0);
  CHECK(seen.overtakings.load() > 0);
  CHECK(seen.moves.load() > 0);
  CHECK(seen.reads.load() > 0);
  weft_test::figure("stream_worlds", static_cast<std::uint64_t>(worlds));
}
