// SPDX-License-Identifier: BSL-1.0
// Append streams as users see them: names, order, exceptions, memory, sinks, misuse.
#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/scratch.hpp"

#include <weft/append.hpp>
#include <weft/threads.hpp>
#include <weft/weft.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <latch>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace {

using weft::append;
using weft::append_file;
using weft::append_sink;

void leaf(int i, append out) { out.write(std::to_string(i) + ' '); }

/// Forks a leaf for each of [first, last).
void leaves(int first, int last, append out) {
  for (int i = first; i < last; ++i) weft::fork(leaf, i, out);
}

std::string numbers(int first, int last) {
  std::string all;
  for (int i = first; i < last; ++i) all += std::to_string(i) + ' ';
  return all;
}

/// Waits until others have gone on, without holding up the worker that runs it.
void wait_for(const std::atomic<bool>& flag) {
  while (!flag.load()) std::this_thread::yield();
}

bool exists(const std::string& path) { return std::filesystem::exists(path); }

/// Both ends of a pipe.
struct pipe_ends {
  int in = -1, out = -1;
  pipe_ends() {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe");
    in = ends[0];
    out = ends[1];
  }
  ~pipe_ends() {
    close_in();
    close_out();
  }
  void close_in() {
    if (in >= 0) ::close(std::exchange(in, -1));
  }
  void close_out() {
    if (out >= 0) ::close(std::exchange(out, -1));
  }
};

}  // namespace

TEST_CASE("a plain file gets its name when it is complete") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 4});
  append_file file(dir / "out");
  CHECK(exists(dir / "out.weft-part"));
  rt.run(leaves, 0, 1000, file);
  CHECK_FALSE(exists(dir / "out"));
  file.close();
  CHECK(weft_test::slurp(dir / "out") == numbers(0, 1000));
  CHECK_FALSE(exists(dir / "out.weft-part"));
  CHECK_FALSE(exists(dir / "out.weft-log"));
  file.close();  // does nothing
  CHECK_THROWS_WITH(file.write("more"), Catch::Contains("is closed"));
}

TEST_CASE("nothing but the file is left when its handle is gone, too") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 2});
  for (const std::uint64_t commit_every : {0, 4096, 1 << 26}) {
    append_file file(dir / "out", {.overwrite = true, .commit_every = commit_every});
    rt.run(leaves, 0, 3000, file);
    file.close();
  }
  for (const auto& entry : std::filesystem::directory_iterator(dir / "")) CHECK(entry.path() == dir / "out");
}

TEST_CASE("an existing file is replaced only if that was asked for, and only by a complete one") {
  const weft_test::scratch dir;
  std::ofstream(dir / "out") << "precious";
  CHECK_THROWS_AS(append_file(dir / "out"), std::system_error);
  {
    append_file abandoned(dir / "out", {.overwrite = true});
    abandoned.write("half");
  }
  CHECK(weft_test::slurp(dir / "out") == "precious");
  append_file file(dir / "out", {.overwrite = true});
  file.write("new");
  file.close();
  CHECK(weft_test::slurp(dir / "out") == "new");
}

TEST_CASE("bytes of a stream in blocks that is never closed are there to be recovered") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 2});
  {
    append_file abandoned(dir / "out", {.layout = weft::append_layout::segmented});
    abandoned.write("half ");
    rt.run(leaves, 0, 50, abandoned);
  }
  CHECK(weft::recover(dir / "out").bytes == 5 + numbers(0, 50).size());
}

TEST_CASE("a body that has waited goes on to append on another worker") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 2});
  append_file file(dir / "out", {.layout = weft::append_layout::segmented});
  rt.run(
      [](append to) {
        weft::latch go(1);
        std::atomic<bool> other{false}, this_one{false}, done{false};
        const auto becomes = [](std::atomic<bool>& b) { weft_test::wait_until([&b] { return b.load(); }); };
        weft::spawn([&] {  // by the other worker, which is to go on with this body
          other = true;
          becomes(this_one);
          go.count_down();
        });
        becomes(other);
        weft::spawn([&] {  // by this one
          this_one = true;
          becomes(done);
        });
        to.write("before ");
        go.wait();
        to.write("behind");
        done = true;
        weft::sync();
      },
      file);
  file.close();
  const weft::append_reader reader(dir / "out");
  CHECK_NOTHROW(reader.verify());
  reader.export_plain(dir / "plain");
  CHECK(weft_test::slurp(dir / "plain") == "before behind");
}

TEST_CASE("a directory that cannot be written is reported with the path") {
  CHECK_THROWS_WITH(append_file("/proc/nowhere/out"), Catch::Contains("/proc/nowhere/"));
  CHECK_THROWS_AS(append_file("/tmp/x", {.buffer = 1}), weft::option_error);
}

TEST_CASE("what the maker of a stream writes stands between the tasks that it starts") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 3});
  append_file file(dir / "out");
  file.write("a ");
  rt.run(leaves, 0, 50, file);
  file.stream() << "b " << 7 << ' ';
  rt.run([&] {  // a task that uses the stream itself, as its maker could
    weft::fork(leaves, 50, 60, file);
    file.write("c ");
    weft::fork(leaves, 60, 70, file);
  });
  file.write("d");
  CHECK(file.size() == (numbers(0, 70) + "a b 7 c d").size());
  file.close();
  CHECK(weft_test::slurp(dir / "out") ==
        "a " + numbers(0, 50) + "b 7 " + numbers(50, 60) + "c " + numbers(60, 70) + "d");
}

TEST_CASE("a stream can be made in a task, and two may be written at once") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 4});
  rt.run([&] {
    append_file one(dir / "one"), two(dir / "two", {.layout = weft::append_layout::segmented});
    for (int i = 0; i < 200; ++i)
      weft::fork(
          [i](append a, append b) {
            leaf(i, a);
            weft::fork(leaf, i, b);
          },
          one, two);
    weft::sync();
    one.close();
    two.close();
  });
  CHECK(weft_test::slurp(dir / "one") == numbers(0, 200));
  weft::append_reader reader(dir / "two");
  std::string all(reader.size(), ' ');
  CHECK(reader.read(std::as_writable_bytes(std::span(all))) == all.size());
  CHECK(all == numbers(0, 200));
}

TEST_CASE("the file holds exactly what the serial program wrote before the exception") {
  const weft_test::scratch dir;
  for (const unsigned workers : {1u, 2u, 8u}) {
    weft::runtime rt({.workers = workers});
    append_file file(dir / "out", {.overwrite = true});
    std::atomic<bool> later{false};
    CHECK_THROWS_WITH(rt.run(
                          [&](append out) {
                            weft::fork(leaves, 0, 10, out);
                            weft::fork([&] {  // it appends nothing, but the serial program ends here
                              if (workers > 1) wait_for(later);
                              throw std::runtime_error("in the middle");
                            });
                            out.write("never ");
                            weft::fork(leaves, 10, 20, out);
                            weft::fork([&](append) { later = true; }, out);
                          },
                          file),
                      "in the middle");
    file.write("| ");
    rt.run(leaves, 20, 30, file);
    file.close();
    CHECK(weft_test::slurp(dir / "out") == numbers(0, 10) + "| " + numbers(20, 30));
  }
}

TEST_CASE("after a caught exception the body appends again") {
  const weft_test::scratch dir;
  for (const unsigned workers : {1u, 4u}) {
    weft::runtime rt({.workers = workers});
    append_file file(dir / "out", {.overwrite = true});
    rt.run(
        [](append out) {
          for (int i = 0; i < 20; ++i) {
            try {
              weft::fork(leaf, i, out);
              weft::fork(
                  [](append o) {
                    o.write("half ");
                    throw std::runtime_error("planned");
                  },
                  out);
              out.write("never ");
              weft::fork(leaf, 99, out);
              weft::sync();
            } catch (const std::runtime_error&) {
              out.write("caught ");
            }
          }
        },
        file);
    file.close();
    std::string expected;
    for (int i = 0; i < 20; ++i) expected += std::to_string(i) + " half caught ";
    CHECK(weft_test::slurp(dir / "out") == expected);
  }
}

TEST_CASE("a stopped run leaves a prefix") {
  const weft_test::scratch dir;
  for (const unsigned workers : {1u, 4u}) {
    weft::runtime rt({.workers = workers});
    append_file file(dir / "out", {.overwrite = true});
    std::stop_source stop;
    CHECK_THROWS_AS(rt.run(
                        {.stop = stop.get_token()},
                        [&](append out) {
                          for (int i = 0; i < 100000; ++i) {
                            if (i == 500) stop.request_stop();
                            weft::fork(leaf, i, out);
                            out.write("- ");
                          }
                        },
                        file),
                    weft::cancelled);
    file.close();
    const std::string all = weft_test::slurp(dir / "out");
    std::string expected;
    for (int i = 0; expected.size() < all.size(); ++i) expected += std::to_string(i) + " - ";
    CHECK(expected.substr(0, all.size()) == all);
  }
}

TEST_CASE("each task formats with flags of its own") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 2});
  append_file file(dir / "out");
  rt.run(
      [](append out) {
        out.stream() << std::hex << 255 << ' ';
        for (int i = 0; i < 100; ++i) weft::fork([](append o) { o.stream() << 255 << ' '; }, out);
        out.stream() << 255;
      },
      file);
  file.close();
  std::string expected = "ff ";
  for (int i = 0; i < 100; ++i) expected += "255 ";
  CHECK(weft_test::slurp(dir / "out") == expected + "ff");
}

TEST_CASE("finalise is called in the order of the stream, with the position") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 4});
  append_file file(dir / "out", {.buffer = 4096});
  std::vector<int> order;  // one call at a time
  std::vector<std::uint64_t> positions;
  auto unused = std::make_shared<int>(1);
  CHECK_THROWS_AS(rt.run(
                      [&](append out) {
                        for (int i = 0; i < 300; ++i)
                          weft::fork(
                              [&, i](append o) {
                                o.write("ab");
                                o.finalise([&, i](weft::append_tail& tail) {
                                  order.push_back(i);
                                  positions.push_back(tail.position());
                                  tail.write("12345");
                                });
                              },
                              out);
                        weft::fork([] { throw std::logic_error("enough"); });
                        out.finalise([unused, &order](weft::append_tail&) { order.push_back(-1); });
                      },
                      file),
                  std::logic_error);
  file.close();
  REQUIRE(order.size() == 300);
  for (int i = 0; i < 300; ++i) {
    CHECK(order[std::size_t(i)] == i);
    CHECK(positions[std::size_t(i)] == std::uint64_t(7 * i + 2));
  }
  CHECK(unused.use_count() == 1);
  CHECK(file.size() == 2100);
}

TEST_CASE("what finalise throws fails the stream") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 2});
  append_file file(dir / "out");
  rt.run([](append out) { out.finalise([](weft::append_tail&) { throw std::length_error("hook"); }); }, file);
  CHECK_THROWS_AS(file.close(), std::length_error);
  CHECK_FALSE(exists(dir / "out"));
}

TEST_CASE("where the first task is late, memory stays bounded and nothing is lost") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 4});
  append_file file(dir / "out", {.memory = 1 << 20, .buffer = 1 << 16});
  const std::string line(10000, 'x');
  std::atomic<int> written{0};
  rt.run(
      [&](append out) {
        weft::fork(
            [&](append o) {
              while (written.load() < 1000) std::this_thread::yield();
              o.write("first ");
            },
            out);
        for (int i = 0; i < 1000; ++i)
          weft::fork(
              [&, i](append o) {
                leaf(i, o);
                o.write(line);
                ++written;
              },
              out);
      },
      file);
  CHECK(file.spilled() > 5'000'000);
  file.close();
  std::string expected = "first ";
  for (int i = 0; i < 1000; ++i) expected += std::to_string(i) + ' ' + line;
  CHECK(weft_test::slurp(dir / "out") == expected);
}

TEST_CASE("a stream that is destroyed tells the tasks that append to it") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 2});
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> begun{false}, gone{false};
    CHECK_THROWS_WITH(rt.run([&] {
      auto file = std::make_unique<append_file>(dir / "out", weft::append_options{.overwrite = true});
      // With the option event it is not run inside fork, so the other worker gets it.
      weft::fork(
          {.event = true},
          [&](append out) {
            out.write("x");
            begun = true;
            wait_for(gone);
            out.write("y");
          },
          *file);
      wait_for(begun);
      CHECK_THROWS_WITH(file->close(), Catch::Contains("while tasks append"));
      file.reset();
      gone = true;
    }),
                      Catch::Contains("was destroyed while tasks append"));
  }
}

TEST_CASE("in large frames, too, only tasks before an exception count") {
  const weft_test::scratch dir;
  std::uint64_t promotions = 0;
  for (const int last : {-1, 0, 3, 700, 1500, 2999}) {
    weft::runtime rt({.workers = 4});
    append_file file(dir / "out", {.overwrite = true});
    const auto body = [&](append out) {
      for (int i = 0; i < 3000; ++i) {
        weft::fork([last, i] {
          std::this_thread::yield();
          if (i == last) throw std::runtime_error("planned");
        });
        if (i % 3 == 0) weft::fork(leaf, i, out);
        if (i % 7 == 0) out.write("- ");
      }
    };
    std::string expected;
    for (int i = 0; i < 3000 && i != last; ++i) {
      if (i % 3 == 0) expected += std::to_string(i) + ' ';
      if (i % 7 == 0) expected += "- ";
    }
    if (last < 0)
      rt.run(body, file);
    else
      CHECK_THROWS_WITH(rt.run(body, file), "planned");
    file.close();
    CHECK(weft_test::slurp(dir / "out") == expected);
    promotions += rt.counters().promotions;
  }
  CHECK(promotions > 0);
}

TEST_CASE("a recorded graph may append") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 4});
  append_file file(dir / "out");
  rt.run(
      [](append out) {
        weft::recorded graph;
        weft::shared<int> x(0);
        for (int round = 0; round < 20; ++round) {
          out.write("round ");
          graph([&] {
            for (int i = 0; i < 100; ++i) {
              weft::fork([](int& v) { ++v; }, weft::update(x));
              weft::fork([](const int& v, append o) { leaf(v, o); }, weft::read(x), out);
            }
          });
          weft::sync();
        }
      },
      file);
  file.close();
  std::string expected;
  for (int round = 0; round < 20; ++round) expected += "round " + numbers(100 * round + 1, 100 * round + 101);
  CHECK(weft_test::slurp(dir / "out") == expected);
}

TEST_CASE("a sink gets the bytes in order") {
  pipe_ends ends;
  std::string all;
  std::thread reader([&] {
    char part[4096];
    for (ssize_t n; (n = ::read(ends.in, part, sizeof part)) > 0;) all.append(part, std::size_t(n));
  });
  weft::runtime rt({.workers = 4});
  append_sink sink(ends.out, {.buffer = 4096});
  rt.run(leaves, 0, 5000, sink);
  sink.close();
  ends.close_out();
  reader.join();
  CHECK(all == numbers(0, 5000));
}

TEST_CASE("tasks wait for a sink that is behind, workers do not") {
  weft::runtime rt({.workers = 2});
  std::atomic<bool> open{false};
  std::uint64_t taken = 0;
  append_sink sink(
      [&](std::span<const std::byte> bytes) {
        wait_for(open);
        taken += bytes.size();
      },
      {.memory = 1 << 20, .buffer = 1 << 16});
  const std::string line(10000, 'x');
  const auto before = rt.counters().suspensions;
  std::jthread opener([&] {
    while (rt.counters().suspensions == before) std::this_thread::yield();
    open = true;
  });
  rt.run(
      [&](append out) {
        for (int i = 0; i < 1000; ++i) out.write(line);
      },
      sink);
  sink.close();
  CHECK(taken == 10'000'000);
  CHECK(rt.counters().suspensions > before);
}

TEST_CASE("a run that waits for a sink can be stopped") {
  weft::runtime rt({.workers = 1});
  std::atomic<bool> open{false};
  append_sink sink([&](std::span<const std::byte>) { wait_for(open); },
                   {.memory = 1 << 16, .buffer = 1 << 14});
  std::stop_source stop;
  std::jthread stopper([&] {
    while (rt.counters().suspensions == 0) std::this_thread::yield();
    stop.request_stop();
  });
  const std::string line(10000, 'x');
  CHECK_THROWS_AS(rt.run(
                      {.stop = stop.get_token()},
                      [&](append out) {
                        for (int i = 0; i < 1000; ++i) out.write(line);
                      },
                      sink),
                  weft::cancelled);
  open = true;
}

TEST_CASE("a closed pipe is an exception of the run, no signal") {
  pipe_ends ends;
  ends.close_in();
  weft::runtime rt({.workers = 2});
  append_sink sink(ends.out, {.buffer = 4096});
  const std::string line(10000, 'x');
  try {
    rt.run(
        [&](append out) {
          for (int i = 0; i < 100000; ++i) out.write(line);
        },
        sink);
    FAIL("no exception");
  } catch (const std::system_error& e) {
    CHECK(e.code() == std::errc::broken_pipe);
  }
  CHECK_THROWS_AS(sink.close(), std::system_error);
}

TEST_CASE("a full device is an exception, and what was placed can be told") {
  const int full = ::open("/dev/full", O_WRONLY);
  REQUIRE(full >= 0);
  weft::runtime rt({.workers = 2});
  append_sink sink(full);
  rt.run(leaves, 0, 10, sink);
  CHECK_THROWS_AS(sink.close(), std::system_error);
  ::close(full);
}

TEST_CASE("nested runs and handles that were moved keep their places") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 3}), other({.workers = 2});
  append_file first(dir / "out");
  append_file file(std::move(first));
  rt.run(
      [&](append out) {
        for (int i = 0; i < 50; ++i) {
          weft::fork(leaf, 2 * i, out);
          (i % 2 == 0 ? rt : other).run(leaf, 2 * i + 1, out);
        }
      },
      file);
  file.close();
  CHECK(weft_test::slurp(dir / "out") == numbers(0, 100));
}

TEST_CASE(
    "a stream outlives any number of runtimes, and what it had for their workers serves the next ones") {
  const weft_test::scratch dir;
  constexpr int rounds = 1100;  // of two workers each
  std::string sunk;
  append_file plain(dir / "plain", {.memory = 1 << 16, .buffer = 4096});
  append_file segmented(dir / "segmented", {.layout = weft::append_layout::segmented, .buffer = 4096});
  append_sink sink([&](std::span<const std::byte> bytes) {
    sunk.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  std::vector<std::unique_ptr<char[]>> gaps;  // so that no worker is where another one was
  std::atomic<std::uint64_t> steals{0};
  for (int i = 0; i < rounds; ++i) {
    weft::runtime rt({.workers = 2});
    std::atomic<int> begun{0};
    rt.run(
        [i, &begun](append a, append b, append c) {
          for (const append& each : {a, b, c}) {
            weft::fork(leaf, 2 * i, each);
            weft::fork(leaf, 2 * i + 1, each);
          }
          if (i % 50 != 0) return;
          for (int meet = 0; meet < 2; ++meet)  // so that both workers append
            weft::fork(
                [&begun](append x, append y, append z) {
                  begun.fetch_add(1);
                  while (begun.load() < 2) std::this_thread::yield();
                  for (const append& each : {x, y, z}) each.write("");
                },
                a, b, c);
        },
        plain, segmented, sink);
    gaps.push_back(std::make_unique<char[]>(1 + static_cast<std::size_t>(i) % 3000));
    steals += rt.counters().steals;
  }
  plain.close();
  segmented.close();
  sink.close();
  const std::string expected = numbers(0, 2 * rounds);
  CHECK(weft_test::slurp(dir / "plain") == expected);
  CHECK(sunk == expected);
  weft::append_reader(dir / "segmented").export_plain(dir / "copy");
  CHECK(weft_test::slurp(dir / "copy") == expected);
  // For two workers and this thread, and the files of the others.
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) <= 3 + 3);
  CHECK(steals.load() > 0);
}

TEST_CASE("workers of several runtimes append to one stream") {
  const weft_test::scratch dir;
  std::vector<std::unique_ptr<weft::runtime>> all;
  for (unsigned i = 0; i < 70; ++i)
    all.push_back(std::make_unique<weft::runtime>(weft::runtime_options{.workers = 2}));
  append_file file(dir / "s", {.layout = weft::append_layout::segmented, .buffer = 4096});
  int next = 0;
  for (int round = 0; round < 3; ++round)
    for (auto& rt : all) {
      rt->run(leaves, next, next + 10, file);
      next += 10;
    }
  file.close();
  weft::append_reader(dir / "s").export_plain(dir / "copy");
  CHECK(weft_test::slurp(dir / "copy") == numbers(0, next));
}

TEST_CASE("what a body has written before it waits keeps its checksum, however much others write then") {
  const weft_test::scratch dir;
  const std::string much(100'000, 'm');
  for (const unsigned workers : {1u, 2u, 4u}) {
    weft::runtime rt({.workers = workers, .inlining = false});
    append_file file(
        dir / "s",
        {.layout = weft::append_layout::segmented, .overwrite = true, .buffer = 4096, .sync = false});
    std::string expected;
    for (int round = 0; round < 50; ++round) {
      rt.run(
          [&](append out) {
            out.write("begin");
            for (int i = 0; i < 3; ++i) weft::fork([&](append o) { o.write(much); }, out);
            out.write("before");
            weft::sync();
            out.write("after");
          },
          file);
      expected += "begin" + much + much + much + "beforeafter";
    }
    file.close();
    const weft::append_reader reader(dir / "s");
    reader.verify();
    std::string bytes(reader.size(), '?');
    reader.pread(std::as_writable_bytes(std::span(bytes)), 0);
    CHECK(bytes == expected);
  }
}

namespace {

/// Appends [first, last), and gives half of what is left away whenever a thief asks; waits at each number
/// until `parts` bodies have begun, and throws at `bad`.
struct sharing_leaves {
  std::atomic<int>& begun;
  int parts, bad;

  void operator()(int first, int last, append out) const {
    ++begun;
    weft::interval<int> left(first, last);
    const weft::steal_function give([&](weft::thief& t) {
      if (const auto part = left.take_back_half(1)) t.fork(*this, part->first, part->last, out);
    });
    while (begun < parts) std::this_thread::yield();
    while (const auto part = left.take_front(1)) {
      if (part->first == bad) throw std::runtime_error("bad number");
      if (part->first % 3 == 0)
        weft::fork(leaf, part->first, out);
      else
        leaf(part->first, out);
    }
  }
};

std::string shared_leaves(unsigned workers, bool inlining, int bad, bool& failed) {
  std::string text;
  std::atomic<int> begun{0};
  failed = false;
  append_sink file([&](std::span<const std::byte> bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  weft::runtime rt({.workers = workers, .inlining = inlining});
  try {
    rt.run(
        [&](append out) {
          out.write("first ");
          weft::fork(sharing_leaves{begun, static_cast<int>(workers), bad}, 0, 100, out);
          out.write("between ");
          weft::fork(leaf, 100, out);
        },
        file);
  } catch (const std::runtime_error&) {
    failed = true;
  }
  file.close();
  return text;
}

}  // namespace

TEST_CASE("parts that thieves take append where the serial program would have appended") {
  const std::string all = "first " + numbers(0, 100) + "between 100 ";
  bool failed = false;
  for (int round = 0; round < 5; ++round)
    for (const unsigned workers : {1u, 2u, 4u})
      for (const bool inlining : {true, false}) {
        CHECK(shared_leaves(workers, inlining, -1, failed) == all);
        CHECK_FALSE(failed);
      }
}

TEST_CASE("what stands behind an exception in a part, or in its body, does not count") {
  bool failed = false;
  for (int round = 0; round < 5; ++round)
    for (const unsigned workers : {1u, 2u, 4u})
      for (const int bad : {0, 1, 30, 70, 99}) {
        INFO("workers " << workers << ", bad number " << bad);
        CHECK(shared_leaves(workers, true, bad, failed) == "first " + numbers(0, bad));
        CHECK(failed);
      }
}

TEST_CASE("a stream that can be read cannot be given away by a steal function") {
  const weft_test::scratch folder;
  std::atomic<bool> refused{false};
  append_file file(folder / "text", {.readable = true});
  weft::runtime rt({.workers = 2});
  CHECK_THROWS_WITH(rt.run(
                        [&](append out) {
                          const weft::steal_function give([&](weft::thief& t) {
                            try {
                              t.fork(leaf, 1, out);
                            } catch (...) {
                              refused = true;
                              throw;
                            }
                          });
                          wait_for(refused);
                        },
                        file),
                    weft_test::contains("cannot give away the right to append"));
}
