// SPDX-License-Identifier: BSL-1.0
// Tasks that read a stream while others append to it: what they see, what they wait for, how they fail.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <weft/append.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using weft::append;
using weft::append_file;
using weft::append_layout;
using weft::file_pointer;
using weft::stream_reader;

void leaf(int i, append out) { out.write(std::to_string(i) + ' '); }

std::string numbers(int first, int last) {
  std::string all;
  for (int i = first; i < last; ++i) all += std::to_string(i) + ' ';
  return all;
}

std::string read_on(stream_reader in, std::size_t most = SIZE_MAX) {
  std::string bytes(std::min<std::uint64_t>(most, in.size()), '?');
  bytes.resize(in.read(std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

void wait_for(const std::atomic<bool>& flag) {
  while (!flag.load()) std::this_thread::yield();
}

/// A stream that is kept in memory, up to so many bytes.
class small_device final : public weft::stream::stream_layout {
 public:
  explicit small_device(std::size_t room) : room_(room) {}
  void place(std::span<const weft::stream::piece> pieces) override {
    for (const auto& p : pieces) {
      if (bytes_.size() + p.size > room_)
        throw std::system_error(std::make_error_code(std::errc::no_space_on_device));
      bytes_.append(reinterpret_cast<const char*>(p.data), p.size);
    }
  }
  std::size_t worth_while() const noexcept override { return 1; }
  bool readable() const noexcept override { return true; }
  void read_at(std::span<std::byte> to, std::uint64_t offset) const override {
    bytes_.copy(reinterpret_cast<char*>(to.data()), to.size(), offset);
  }
  void finish() override {}

 private:
  std::size_t room_;
  std::string bytes_;
};
struct device_stream : weft::append_stream {
  explicit device_stream(std::size_t room)
      : append_stream("a small device", std::make_unique<small_device>(room), {.buffer = 4096}, "none") {}
};

}  // namespace

TEST_CASE("a task sees what tasks before it have appended, and nothing else") {
  const weft_test::scratch dir;
  for (const unsigned workers : {1u, 2u, 4u})
    for (const append_layout layout : {append_layout::plain, append_layout::segmented}) {
      weft::runtime rt({.workers = workers});
      append_file file(dir / "out", {.layout = layout,
                                     .overwrite = true,
                                     .readable = true,
                                     .memory = 1 << 14,
                                     .buffer = 4096,
                                     .sync = false});
      constexpr int tasks = 400;
      std::vector<std::string> seen(tasks);
      const std::string line(500, '-');
      rt.run(
          [&](append out) {
            for (int i = 0; i < tasks; ++i) {
              weft::fork([&](int n, append to) { to.write(std::to_string(n) + line); }, i, out);
              weft::fork([&](int n, stream_reader in) { seen[std::size_t(n)] = read_on(in); }, i,
                         weft::read(out));
            }
          },
          file);
      std::string expected;
      for (int i = 0; i < tasks; ++i) {
        expected += std::to_string(i) + line;
        REQUIRE(seen[std::size_t(i)] == expected);
      }
      CHECK(rt.run([](stream_reader in) { return read_on(in); }, file) == expected);
      file.close();
    }
}

TEST_CASE("a task that reads can seek, and read at any offset") {
  const weft_test::scratch dir;
  for (const append_layout layout : {append_layout::plain, append_layout::segmented}) {
    weft::runtime rt({.workers = 4});
    append_file file(dir / "out",
                     {.layout = layout, .overwrite = true, .readable = true, .buffer = 4096, .sync = false});
    std::string all;
    for (int i = 0; i < 3000; ++i) all += std::to_string(i) + ' ';
    rt.run(
        [&](append out) {
          for (int i = 0; i < 3000; ++i) weft::fork(leaf, i, out);
          weft::fork(
              [&](stream_reader in) {
                if (in.size() != all.size()) throw std::logic_error("size");
                char part[100];
                const auto bytes = std::as_writable_bytes(std::span(part));
                for (std::uint64_t at = 0; at < all.size(); at += 37) {
                  const std::string expected = all.substr(at, 100);
                  if (in.pread(bytes, at) != expected.size() ||
                      std::string_view(part, expected.size()) != expected)
                    throw std::logic_error("pread");
                }
                if (in.pread(bytes, all.size()) != 0 || in.position() != 0) throw std::logic_error("end");
                if (in.seek(-3, weft::seek_from::end) != all.size() - 3 || in.read(bytes) != 3)
                  throw std::logic_error("seek");
                if (in.seek(-1, weft::seek_from::current) != all.size() - 1)
                  throw std::logic_error("current");
                if (in.seek(5, weft::seek_from::end) != all.size() + 5 || in.read(bytes) != 0)
                  throw std::logic_error("behind the end");
                try {
                  in.seek(-1);
                  throw std::logic_error("negative");
                } catch (const weft::error&) {
                }
              },
              weft::read(out));
        },
        file);
    file.close();
  }
}

TEST_CASE("a task waits for those before it without a worker, and those behind do not wait for it") {
  const weft_test::scratch dir;
  for (const append_layout layout : {append_layout::plain, append_layout::segmented}) {
    weft::runtime rt({.workers = 2});
    append_file file(dir / "out", {.layout = layout, .overwrite = true, .readable = true, .sync = false});
    std::atomic<bool> later{false}, ended{false}, too_early{false};
    std::string seen;
    rt.run(
        [&](append out) {
          out.write("a ");
          weft::fork(
              {.event = true},
              [&](append to) {  // not run inside fork
                wait_for(later);
                to.write("b ");
                ended = true;
              },
              out);
          weft::fork(
              [&](stream_reader in) {
                too_early = !ended;
                seen = read_on(in);
              },
              weft::read(out));
          weft::fork(
              [&](append to) {
                to.write("c ");
                later = true;
              },
              out);
        },
        file);
    CHECK_FALSE(too_early.load());
    CHECK(seen == "a b ");
    CHECK(rt.run([](stream_reader in) { return read_on(in); }, file) == "a b c ");
    file.close();
  }
}

TEST_CASE("tasks that read run together") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 2});
  append_file file(dir / "out", {.readable = true});
  std::latch both(2);
  rt.run(
      [&](append out) {
        out.write("something");
        for (int i = 0; i < 2; ++i)
          weft::fork({.event = true}, [&](stream_reader) { both.arrive_and_wait(); }, weft::read(out));
      },
      file);
  CHECK(both.try_wait());
}

TEST_CASE("a body that appends reads what it has appended, and waits for that") {
  const weft_test::scratch dir;
  for (const unsigned workers : {1u, 3u}) {
    weft::runtime rt({.workers = workers});
    append_file file(dir / "out", {.overwrite = true, .readable = true, .buffer = 4096, .sync = false});
    std::atomic<int> wrong{0};
    struct {
      std::atomic<int>& wrong;
      void operator()(int depth, std::string before, append out) const {
        out.write("(");
        if (depth != 0) weft::fork(*this, depth - 1, before + '(', out);
        if (depth != 0) weft::fork(*this, 0, std::string(), out);
        std::string seen;
        weft::fork([&seen](stream_reader in) { seen = read_on(in); }, weft::read(out));
        weft::sync();
        wrong += !before.empty() && seen.substr(0, before.size()) != before;
        wrong += seen.back() != (depth == 0 ? '(' : ')');
        out.write(")");
      }
    } const tree{wrong};
    rt.run(tree, 40, std::string(), file);
    file.close();
    CHECK(wrong.load() == 0);
  }
}

TEST_CASE("in large frames with silent tasks nobody stands in the way of those who read") {
  const weft_test::scratch dir;
  std::uint64_t promotions = 0;
  for (const int last : {-1, 5, 700}) {
    weft::runtime rt({.workers = 4});
    append_file file(dir / "out", {.overwrite = true, .readable = true, .buffer = 4096, .sync = false});
    std::atomic<int> wrong{0};
    std::vector<std::size_t> sizes{0};
    for (int i = 0; i < 1000; ++i) sizes.push_back(sizes.back() + std::to_string(i).size() + 3);
    const auto body = [&](append out) {
      for (int i = 0; i < 1000; ++i) {
        weft::fork([last, i] {
          std::this_thread::yield();
          if (i == last) throw std::runtime_error("planned");
        });
        weft::fork(
            [&](int n, append to) {
              leaf(n, to);
              weft::fork([&, n](stream_reader in) { wrong += in.size() + 2 != sizes[std::size_t(n) + 1]; },
                         weft::read(to));
              weft::sync();
            },
            i, out);
        out.write("- ");
      }
    };
    if (last < 0)
      rt.run(body, file);
    else
      CHECK_THROWS_WITH(rt.run(body, file), "planned");
    CHECK(file.size() == sizes[std::size_t(last < 0 ? 1000 : last)]);
    file.close();
    CHECK(wrong.load() == 0);
    promotions += rt.counters().promotions;
  }
  CHECK(promotions > 0);
}

TEST_CASE("an exception before a task that reads drops it, unless it was caught") {
  const weft_test::scratch dir;
  for (const unsigned workers : {1u, 4u}) {
    weft::runtime rt({.workers = workers});
    append_file file(dir / "out", {.overwrite = true, .readable = true, .sync = false});
    std::atomic<bool> called{false};
    std::string seen;
    CHECK_THROWS_WITH(rt.run(
                          [&](append out) {
                            const auto half = [](append to) {
                              to.write("half ");
                              throw std::runtime_error("planned");
                            };
                            try {
                              weft::fork({.event = true}, half, out);
                              weft::fork([&](stream_reader) { called = true; }, weft::read(out));
                              weft::sync();
                            } catch (const std::runtime_error&) {
                            }
                            weft::fork([&](stream_reader in) { seen = read_on(in); }, weft::read(out));
                            weft::sync();
                            weft::fork({.event = true}, half, out);
                            weft::fork([&](stream_reader) { called = true; },
                                       weft::read(out, file_pointer::global));
                          },
                          file),
                      "planned");
    CHECK(seen == "half ");
    CHECK_FALSE(called.load());
    CHECK(rt.run([](stream_reader in) { return read_on(in); }, file) == "half half ");
    file.close();
  }
}

TEST_CASE("what a task throws that reads ends what comes behind") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 3});
  append_file file(dir / "out", {.readable = true});
  CHECK_THROWS_WITH(rt.run(
                        [&](append out) {
                          out.write("before ");
                          weft::fork(
                              {.event = true},
                              [](stream_reader) { throw std::runtime_error("not what it should be"); },
                              weft::read(out));
                          out.write("never");
                        },
                        file),
                    "not what it should be");
  CHECK(file.size() == 7);
  file.close();
}

TEST_CASE("a stopped run drops those who wait to read") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 2});
  append_file file(dir / "out", {.readable = true});
  std::stop_source stop;
  std::atomic<bool> stopped{false}, called{false};
  CHECK_THROWS_AS(rt.run(
                      {.stop = stop.get_token()},
                      [&](append out) {
                        weft::fork(
                            {.event = true},
                            [&](append) {
                              while (!stopped) std::this_thread::yield();
                            },
                            out);
                        weft::fork([&](stream_reader) { called = true; }, weft::read(out));
                        weft::fork([&] {
                          stop.request_stop();
                          stopped = true;  // the run knows by now
                        });
                      },
                      file),
                  weft::cancelled);
  CHECK_FALSE(called.load());
  file.close();
}

TEST_CASE("a stream is not closed under those who read it, and tells those who wait when it is destroyed") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 2});
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> begun{false}, gone{false};
    CHECK_THROWS_WITH(rt.run([&] {
      auto file = std::make_unique<append_file>(
          dir / "out", weft::append_options{.overwrite = true, .readable = true, .sync = false});
      file->write("bytes");
      weft::fork(
          {.event = true},
          [&](stream_reader in) {
            begun = true;
            wait_for(gone);
            if (read_on(in) != "bytes") throw std::logic_error("what was begun ends");
          },
          weft::read(*file));
      wait_for(begun);
      CHECK_THROWS_WITH(file->close(), Catch::Contains("while tasks"));
      weft::fork([](stream_reader) {}, weft::read(*file, file_pointer::global));
      file.reset();
      gone = true;
    }),
                      Catch::Contains("was destroyed while tasks append"));
  }
}

TEST_CASE("what cannot be read says so") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 2});
  const auto look = [](stream_reader) {};
  append_file file(dir / "out");
  CHECK_THROWS_WITH(rt.run(look, weft::read(file)), Catch::Contains("append_options::readable"));
  file.close();
  weft::append_sink sink([](std::span<const std::byte>) {});
  CHECK_THROWS_WITH(rt.run([&](append out) { weft::fork(look, weft::read(out)); }, sink),
                    Catch::Contains("cannot be read while it is written"));
  sink.close();
  append_file closed(dir / "closed", {.readable = true});
  closed.close();
  CHECK_THROWS_WITH(rt.run(look, weft::read(closed)), Catch::Contains("is closed"));
}

TEST_CASE("tasks that commute do not append where others read") {
  const weft_test::scratch dir;
  for (const bool inlining : {true, false})
    for (const bool readable : {false, true}) {
      weft::runtime rt({.workers = 2, .inlining = inlining});
      append_file file(dir / "out", {.overwrite = true, .readable = readable});
      weft::shared<int> sum(0);
      int refused = 0;
      const auto add = [](weft::commute<int> s, append out) {
        ++*s;
        out.write("+");
      };
      const auto add_all = [](std::vector<weft::commute<int>> all, append out) {
        for (const auto& s : all) ++*s;
        out.write("*");
      };
      const auto catching = [&refused](auto&& forks) {
        try {
          forks();
        } catch (const weft::error& e) {
          CHECK_THAT(e.what(), Catch::Contains("must not commute"));
          ++refused;
        }
      };
      rt.run(
          [&](append out) {
            catching([&] { weft::fork(add, weft::commute(sum), out); });
            catching([&] { weft::fork(add_all, std::vector{weft::commute(sum)}, out); });
            weft::fork(
                [](int& s, append to) {
                  ++s;
                  to.write("!");
                },
                weft::update(sum), out);
          },
          file);
      file.close();
      CHECK(refused == (readable ? 2 : 0));
      CHECK(sum.get() == (readable ? 1 : 3));
      CHECK(weft_test::slurp(dir / "out") == (readable ? "!" : "+*!"));
    }
}

TEST_CASE("where bytes cannot be placed, nobody waits for them") {
  for (const unsigned workers : {1u, 4u}) {
    weft::runtime rt({.workers = workers});
    device_stream stream(100);
    CHECK_THROWS_AS(rt.run(
                        [](append out) {
                          for (int i = 0; i < 1000; ++i) {
                            weft::fork(leaf, i, out);
                            weft::fork([](stream_reader in) { read_on(in); }, weft::read(out));
                            weft::fork([](stream_reader in) { read_on(in); },
                                       weft::read(out, file_pointer::global));
                          }
                        },
                        stream),
                    std::system_error);
    CHECK_THROWS_AS(stream.close(), std::system_error);
  }
}

TEST_CASE("local: each task has a position of its own, or inherits one; global: all share one, in order") {
  const weft_test::scratch dir;
  for (const unsigned workers : {1u, 4u}) {
    weft::runtime rt({.workers = workers});
    append_file file(dir / "out", {.overwrite = true, .readable = true, .sync = false});
    std::vector<std::string> own(50), shared(50), inherited(50);
    rt.run(
        [&](append out) {
          for (std::size_t i = 0; i < 50; ++i) {
            weft::fork(leaf, int(i) + 100, out);
            weft::fork(
                [&, i](stream_reader in) {
                  own[i] = read_on(in, 4);
                  in.seek(std::int64_t(4 * i));
                  weft::fork([&, i](stream_reader same) { inherited[i] = read_on(same); }, in);
                  in.seek(0);
                },
                weft::read(out));
            weft::fork([&, i](stream_reader in) { shared[i] = read_on(in, i % 2 == 0 ? 3 : 5); },
                       weft::read(out, file_pointer::global));
          }
        },
        file);
    const std::string all = numbers(100, 150);
    for (std::size_t i = 0, at = 0; i < 50; at += shared[i++].size()) {
      CHECK(own[i] == "100 ");
      CHECK(inherited[i] == std::to_string(i + 100) + ' ');
      CHECK(shared[i] == all.substr(at, i % 2 == 0 ? 3 : 5));
    }
    CHECK(rt.run([](stream_reader in) { return in.position(); }, weft::read(file, file_pointer::global)) ==
          200);
    CHECK(rt.run([](stream_reader in) { return in.position(); }, file) == 0);
    file.close();
  }
}

TEST_CASE("a recorded graph may read") {
  const weft_test::scratch dir;
  weft::runtime rt({.workers = 4});
  append_file file(dir / "out", {.readable = true});
  std::atomic<int> wrong{0};
  rt.run(
      [&](append out) {
        weft::recorded graph;
        weft::shared<int> x(0);
        for (int round = 0; round < 20; ++round) {
          graph([&] {
            for (int i = 0; i < 100; ++i) {
              weft::fork([](int& v, append to) { leaf(1000 + v++, to); }, weft::update(x), out);
              weft::fork([&](const int& v, stream_reader in) { wrong += in.size() != 5 * std::size_t(v); },
                         weft::read(x), weft::read(out));
            }
          });
          weft::sync();
        }
      },
      file);
  CHECK(wrong.load() == 0);
  file.close();
}

TEST_CASE("a loop that reads a stream stays one task, at one position") {
  const weft_test::scratch dir;
  for (const unsigned workers : {1u, 4u}) {
    weft::runtime rt({.workers = workers});
    append_file out(dir / "out", {.overwrite = true, .readable = true});
    rt.run([](append to) { to.write("0123456789"); }, out);
    std::string text(10, '?');
    rt.run(
        [&text](stream_reader in) {
          weft::fork_for(
              std::size_t{0}, text.size(),
              [&text](std::size_t i, stream_reader own) { text[i] = read_on(own, 1).at(0); }, in);
        },
        out);
    CHECK(text == "0123456789");
    CHECK(rt.counters().divisions == 0);
    out.close();
  }
}
