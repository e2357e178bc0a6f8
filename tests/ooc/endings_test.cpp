// SPDX-License-Identifier: BSL-1.0
// How sweeps end early: what fails, what is stopped or killed, and what the file then holds.
#include "ooc/faulty_engine.hpp"
#include "ooc/sweeps.hpp"
#include "support/environment.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <memory>
#include <sstream>

namespace ooc = weft::ooc;
using weft_test::kernel_23, weft_test::some_disk, weft_test::layouts, weft_test::policies, weft_test::fill,
    weft_test::calibrate;

namespace {

/// Executes transfers by threads, and calls a function before each one.
class watching_engine final : public ooc::io_engine {
 public:
  explicit watching_engine(std::function<void()> before) : before_(std::move(before)) {}
  const char* name() const noexcept override { return "watching"; }
  bool start(ooc::transfer& t) noexcept override {
    before_();
    return threads_.start(t);
  }

 private:
  std::function<void()> before_;
  ooc::detail::thread_engine threads_{4};
};

}  // namespace

TEST_CASE("transfers that are short, late, in another order or refused change nothing") {
  const weft_test::scratch in(weft_test::medium::memory);
  constexpr std::size_t rows = 90, columns = 700, sweeps = 3;
  const std::vector<double> expected = weft_test::plain_loops(rows, columns, sweeps);
  weft::runtime rt({.workers = 3});
  int shortened = 0, interrupted = 0;
  for (const ooc::layout layout : {ooc::layout::strips, ooc::layout::optimized})
    for (const ooc::policy policy : {ooc::policy::basic, ooc::policy::three_buffers, ooc::policy::pool,
                                     ooc::policy::overlay, ooc::policy::chained}) {
      weft_test::fault_counters faults;
      weft_test::grid g(in / "grid", {.rows = rows,
                                      .columns = columns,
                                      .layout = layout,
                                      .tile_rows = 16,
                                      .tile_columns = 150,
                                      .overwrite = true});
      fill(rt, g);
      g.use(weft_test::faulty_engine(weft_test::seed(), faults), 6);
      ooc::sweep(rt, g, sweeps, kernel_23{}, {.policy = policy, .disk = some_disk});
      INFO("seed " << weft_test::seed() << ", layout " << static_cast<int>(layout) << ", policy "
                   << ooc::name_of(policy));
      CHECK(weft_test::holds(g, expected));
      shortened += faults.shortened;
      interrupted += faults.interrupted;
      CHECK(faults.refused > 0);
      CHECK(faults.delayed > 0);
      if (policy != ooc::policy::basic) CHECK(faults.reordered > 0);
    }
  CHECK(shortened > 0);
  CHECK(interrupted > 0);
}

TEST_CASE("after a failed transfer the file holds the last finished pass") {
  const weft_test::scratch in(weft_test::medium::memory);
  constexpr std::size_t rows = 90, columns = 200;
  struct kind {
    ooc::policy policy;
    std::size_t chained;
  };
  for (const auto& [policy, chained] :
       {kind{ooc::policy::basic, 1}, kind{ooc::policy::three_buffers, 1}, kind{ooc::policy::pool, 1},
        kind{ooc::policy::overlay, 1}, kind{ooc::policy::overlay, 0}, kind{ooc::policy::chained, 1},
        kind{ooc::policy::chained, 0}})
    for (const bool writing : {false, true}) {
      INFO(ooc::name_of(policy) << ", " << chained << " chained" << (writing ? ", writing" : ", reading"));
      weft::runtime rt({.workers = 2});
      weft_test::fault_counters faults;
      std::atomic<int> left{1 << 30};
      std::size_t valid = 0;
      {
        weft_test::grid g(in / "grid", {.rows = rows, .columns = columns, .overwrite = true});
        fill(rt, g);
        g.use(weft_test::faulty_engine(
                  3, faults,
                  [&](const ooc::transfer& t) { return t.write == writing && --left < 0 ? EIO : 0; }),
              4);
        const ooc::sweep_options options{.policy = policy, .chained = chained, .disk = some_disk};
        ooc::sweep(rt, g, 2, kernel_23{}, options);
        left = 1;
        try {
          ooc::sweep(rt, g, 2, kernel_23{}, options);
          FAIL("no transfer failed");
        } catch (const std::system_error& e) {
          CHECK(e.code().value() == EIO);
          CHECK(std::string(e.what()).find("' at offset ") != std::string::npos);
        }
        // What the engine refuses never fails, so maybe the first pass has ended well.
        valid = g.sweeps();
        CHECK(valid >= 2);
        CHECK(valid < 4);
      }
      CHECK(faults.failed > 0);
      weft_test::grid again(in / "grid");
      CHECK(again.sweeps() == valid);
      CHECK(weft_test::holds(again, weft_test::plain_loops(rows, columns, valid)));
      ooc::sweep(rt, again, 1, kernel_23{}, {.disk = some_disk});
      CHECK(weft_test::holds(again, weft_test::plain_loops(rows, columns, valid + 1)));
    }
}

TEST_CASE("a mapped file that ends too early is a system error with path and offset") {
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 1});
  for (const ooc::layout layout : layouts)
    for (const bool values : {true, false}) {
      INFO("layout " << static_cast<int>(layout) << (values ? ", values" : ", coefficients"));
      weft_test::grid g(in / "grid", {.rows = 60,
                                      .columns = 700,
                                      .layout = layout,
                                      .tile_rows = 16,
                                      .tile_columns = 100,
                                      .overwrite = true});
      fill(rt, g);
      const ooc::grid_geometry& at = g.geometry();
      const std::uint64_t end = values ? at.values(at.tiles() - 1, 0).offset
                                       : at.field_extent(at.tiles() - 1, at.field_extents() - 1).offset;
      g.file().resize(end);
      try {
        ooc::sweep(rt, g, 1, kernel_23{}, {.policy = ooc::policy::in_core, .disk = some_disk});
        FAIL("the file was too short");
      } catch (const std::system_error& e) {
        CHECK(e.code().value() == ENODATA);
        const std::string what = e.what();
        const std::size_t first = values ? at.field_extent(0, 0).offset : end;
        CHECK(what.find('\'' + (in / "grid") + "' at offset " + std::to_string(first)) != std::string::npos);
      }
      CHECK(g.sweeps() == 0);
    }
}

TEST_CASE("who is killed leaves the values of the last finished pass") {
  const weft_test::scratch in(weft_test::medium::memory);
  calibrate(in);
  constexpr std::size_t rows = 120, columns = 90, sweeps = 12;
  std::vector<std::vector<double>> expected;
  for (std::size_t k = 0; k <= sweeps; ++k) expected.push_back(weft_test::plain_loops(rows, columns, k));
  struct kind {
    ooc::policy policy;
    std::size_t chained;
    std::uint64_t transfers;  // of all sweeps
    long microseconds;
  };
  kind kinds[] = {{ooc::policy::pool, 1, 0, 0},         {ooc::policy::chained, 2, 0, 0},
                  {ooc::policy::overlay, 1, 0, 0},      {ooc::policy::overlay, 3, 0, 0},
                  {ooc::policy::in_core, 1, 0, 0},      {ooc::policy::basic, 1, 0, 0},
                  {ooc::policy::three_buffers, 1, 0, 0}};
  const auto options = [](const kind& k) {
    return ooc::sweep_options{.policy = k.policy, .chained = k.chained, .kernel = "k"};
  };
  const auto create = [&] {
    weft::runtime rt({.workers = 1});
    weft_test::grid g(in / "grid", {.rows = rows, .columns = columns, .overwrite = true});
    fill(rt, g);
  };
  for (kind& k : kinds) {
    create();
    weft::runtime rt({.workers = 2});
    weft_test::grid g(in / "grid");
    const ooc::report done = ooc::sweep(rt, g, sweeps, kernel_23{}, options(k));
    k.transfers = g.queue().statistics().transfers;
    k.microseconds = static_cast<long>(1e6 * done.elapsed.count()) + 1;
  }
  weft_test::random random(weft_test::seed());
  std::size_t in_the_middle = 0;
  for (std::size_t round = 0; round < 50; ++round) {
    create();
    const kind& k = kinds[round % std::size(kinds)];
    // Every other time when a transfer starts (in_core has none), else at any moment.
    const std::uint64_t at = round % 2 == 0 && k.transfers != 0 ? 1 + random.below(k.transfers) : 0;
    const auto after = static_cast<useconds_t>(random.below(2 * static_cast<std::uint64_t>(k.microseconds)));
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      weft::runtime rt({.workers = 2});
      weft_test::grid g(in / "grid");
      std::atomic<std::uint64_t> started{0};
      g.use(std::make_unique<watching_engine>([&] {
              if (++started == at) ::kill(::getpid(), SIGKILL);
            }),
            8);
      ooc::sweep(rt, g, sweeps, kernel_23{}, options(k));
      ::_exit(0);
    }
    if (at == 0) {
      ::usleep(after);
      ::kill(child, SIGKILL);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    weft::runtime rt({.workers = 2});
    weft_test::grid g(in / "grid");
    INFO("seed " << weft_test::seed() << ", round " << round << ", policy " << ooc::name_of(k.policy)
                 << ", sweeps " << g.sweeps());
    if (at != 0) CHECK(WIFSIGNALED(status));
    REQUIRE(g.sweeps() <= sweeps);
    CHECK(g.sweeps() % k.chained == 0);
    if (g.sweeps() > 0 && g.sweeps() < sweeps) in_the_middle += 1;
    CHECK(weft_test::holds(g, expected[g.sweeps()]));
    ooc::sweep(rt, g, sweeps - g.sweeps(), kernel_23{}, options(k));
    CHECK(weft_test::holds(g, expected[sweeps]));
  }
  CHECK(in_the_middle >= 10);
}

TEST_CASE("a stop ends the sweeps within the blocks in work, after the pass that is valid") {
  const weft_test::scratch in(weft_test::medium::memory);
  calibrate(in);
  constexpr long workers = 2, block = 16 * 300;  // calls for a tile
  weft::runtime rt({.workers = workers});
  for (const ooc::policy policy : policies) {
    if (policy == ooc::policy::automatic) continue;  // one of the others
    weft_test::grid g(in / "grid", {.rows = 64, .columns = 300, .overwrite = true});
    fill(rt, g);
    INFO(ooc::name_of(policy));
    ooc::sweep_options options{.policy = policy, .chained = 2, .kernel = "k"};
    weft_test::kernel_23::count();
    const std::size_t one =
        ooc::sweep(rt, g, 2, kernel_23{}, options).passes == 1 ? 2 : 1;  // sweeps of a pass
    const long of_pass = weft_test::kernel_23::counted() * static_cast<long>(one) / 2;
    REQUIRE(of_pass > block / 8);
    // In the second pass from here.
    std::stop_source stop;
    options.stop = stop.get_token();
    const long at = of_pass * 3 / 2;
    weft_test::kernel_23::stop_after(at, stop);
    CHECK_THROWS_AS(ooc::sweep(rt, g, 1000, kernel_23{}, options), weft::cancelled);
    const long calls = weft_test::kernel_23::counted();
    CHECK(g.sweeps() == 2 + one);
    CHECK(calls >= at);
    CHECK(calls - at <= (policy == ooc::policy::overlay ? workers : 1) * block);
    CHECK(weft_test::holds(g, weft_test::plain_loops(64, 300, g.sweeps())));
  }
}

TEST_CASE("transfers that wait when the sweeps end early are not carried out") {
  const weft_test::scratch in(weft_test::medium::memory);
  calibrate(in);
  weft::runtime rt({.workers = 1});  // so the transfers are submitted nearly in reference order
  for (const ooc::policy policy : {ooc::policy::basic, ooc::policy::three_buffers, ooc::policy::pool,
                                   ooc::policy::overlay, ooc::policy::chained})
    for (const bool stopped : {true, false}) {
      INFO(ooc::name_of(policy) << (stopped ? ", stopped" : ", failed"));
      weft_test::grid g(in / "grid",
                        {.rows = 160, .columns = 60, .layout = ooc::layout::row_major, .overwrite = true});
      fill(rt, g);
      std::stop_source stop;
      std::atomic<int> begun{0};
      constexpr int last = 9;
      g.use(weft_test::scripted({.result = [&](const ooc::transfer& t) -> long {
              if (++begun == last) {
                std::this_thread::sleep_for(weft_test::scale() *
                                            std::chrono::milliseconds(20));  // others come to wait
                if (!stopped) return -EIO;
                stop.request_stop();
              }
              return weft_test::transfer_now(t);
            }}),
            1);
      const ooc::sweep_options options{
          .policy = policy, .chained = 1, .kernel = "k", .stop = stop.get_token()};
      const auto sweep = [&] { ooc::sweep(rt, g, 3, kernel_23{}, options); };
      if (stopped)
        CHECK_THROWS_AS(sweep(), weft::cancelled);
      else
        CHECK_THROWS_AS(sweep(), std::system_error);
      CHECK(g.queue().statistics().dropped > 0);
      // What stands before a failed one is carried out, too.
      CHECK(begun <= last + (stopped ? 0 : 12));
      CHECK(g.sweeps() == 0);
      ooc::sweep(rt, g, 2, kernel_23{}, {.policy = policy, .kernel = "k"});
      CHECK(weft_test::holds(g, weft_test::plain_loops(160, 60, 2)));
    }
}

TEST_CASE("a stop that comes when a pass is complete loses nothing") {
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 2});
  // The turns are written when all of them have ended.
  struct stopping : std::stringbuf {
    std::stop_source stop;
    std::streamsize xsputn(const char* text, std::streamsize length) override {
      stop.request_stop();
      return std::stringbuf::xsputn(text, length);
    }
  };
  for (const std::size_t sweeps : {std::size_t{4}, std::size_t{10}}) {
    weft_test::grid g(in / "grid", {.rows = 64, .columns = 50, .overwrite = true});
    fill(rt, g);
    stopping buffer;
    std::ostream times(&buffer);
    const auto sweep = [&] {
      return ooc::sweep(rt, g, sweeps, kernel_23{},
                        {.policy = ooc::policy::overlay,
                         .chained = 4,
                         .disk = some_disk,
                         .times = &times,
                         .stop = buffer.stop.get_token()});
    };
    if (sweeps == 4)
      CHECK(sweep().sweeps == 4);
    else
      CHECK_THROWS_AS(sweep(), weft::cancelled);
    CHECK(buffer.stop.stop_requested());
    CHECK(g.sweeps() == 4);
    weft_test::grid again(in / "grid");
    CHECK(weft_test::holds(again, weft_test::plain_loops(64, 50, 4)));
  }
}

TEST_CASE("an overlay of several sweeps that does not end leaves the values from before it") {
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 2});
  weft_test::fault_counters faults;
  std::atomic<int> left{1 << 30};
  weft_test::grid g(
      in / "grid",
      {.rows = 64, .columns = 64, .layout = ooc::layout::blocks, .tile_rows = 16, .tile_columns = 16});
  fill(rt, g);
  g.use(weft_test::faulty_engine(5, faults,
                                 [&](const ooc::transfer& t) { return t.write && --left < 0 ? ENOSPC : 0; }),
        4);
  const ooc::sweep_options options{.policy = ooc::policy::overlay, .disk = some_disk};
  ooc::sweep(rt, g, 3, kernel_23{}, options);
  const std::vector<double> three = weft_test::plain_loops(64, 64, 3);
  CHECK(weft_test::holds(g, three));
  left = 40;  // of 64 writes: in the third sweep some tiles have been written, others have not
  CHECK_THROWS_AS(ooc::sweep(rt, g, 4, kernel_23{}, options), std::system_error);
  CHECK(g.sweeps() == 3);
  CHECK(weft_test::holds(g, three));
  {
    weft_test::grid again(in / "grid");
    CHECK(again.sweeps() == 3);
    CHECK(weft_test::holds(again, three));
  }
  left = 1 << 30;
  ooc::sweep(rt, g, 4, kernel_23{}, options);
  CHECK(weft_test::holds(g, weft_test::plain_loops(64, 64, 7)));
}
