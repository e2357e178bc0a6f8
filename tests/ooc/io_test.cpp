// SPDX-License-Identifier: BSL-1.0
// Transfers as tasks: complete, in order where they overlap, bounded; failures with path and offset; engines.
#include "ooc/faulty_engine.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <weft/ooc.hpp>
#include <weft/weft.hpp>

#include <array>
#include <string>

namespace ooc = weft::ooc;

namespace {

constexpr std::size_t page = ooc::file_alignment;

struct block {
  ooc::aligned_buffer memory;
  char first() const { return static_cast<char>(*memory.data()); }
};

weft::io::file fresh(const std::string& path) { return weft::io::file::create(path, true); }

/// Calls f on each engine that there is, by name.
template <class F>
void on_each_engine(F f) {
  std::vector<ooc::engine> engines = {ooc::engine::threads};
  if (ooc::uring_factory != nullptr && ooc::uring_factory(2) != nullptr)
    engines.push_back(ooc::engine::io_uring);
  for (const ooc::engine e : engines) f(ooc::io_options{.engine = e, .in_flight = 3});
}

void fill(ooc::aligned_buffer& b, char with) {
  std::fill_n(reinterpret_cast<char*>(b.data()), b.size(), with);
}
bool holds(const ooc::aligned_buffer& b, char what) {
  const char* const at = reinterpret_cast<const char*>(b.data());
  return std::all_of(at, at + b.size(), [what](char c) { return c == what; });
}

}  // namespace

TEST_CASE("tasks write blocks and read them again") {
  const weft_test::scratch in;
  on_each_engine([&](const ooc::io_options& options) {
    ooc::memory_budget memory;
    constexpr std::size_t blocks = 40, size = 5 * page;
    std::vector<ooc::aligned_buffer> out, back;
    for (std::size_t i = 0; i < blocks; ++i) {
      out.emplace_back(memory, size);
      fill(out.back(), static_cast<char>('a' + i % 26));
      back.emplace_back(memory, size);
    }
    const weft::io::file f = fresh(in / "blocks");
    ooc::io_queue queue(options);
    weft::runtime rt({.workers = 2});
    std::atomic<int> right{0};
    rt.run([&] {
      for (std::size_t i = 0; i < blocks; ++i) {
        weft::fork(
            {.name = "write", .event = true},
            [&, i](const ooc::aligned_buffer& b) {
              queue.write(f, i * size, b.data(), size, weft::this_task::hold());
            },
            weft::read(weft::borrow(out[i])));
        weft::fork(
            {.name = "read", .event = true},
            [&, i](ooc::aligned_buffer& b, ooc::aligned_buffer&) {
              queue.read(f, i * size, b.data(), size, weft::this_task::hold());
            },
            weft::update(weft::borrow(back[i])), weft::update(weft::borrow(out[i])));  // it follows the write
        weft::fork(
            [&, i](const ooc::aligned_buffer& b) { right += holds(b, static_cast<char>('a' + i % 26)); },
            weft::read(weft::borrow(back[i])));
      }
    });
    const ooc::io_statistics s = queue.statistics();
    INFO(queue.engine_name());
    CHECK(right == static_cast<int>(blocks));
    CHECK(s.transfers == 2 * blocks);
    CHECK(s.bytes_written == blocks * size);
    CHECK(s.most_in_flight <= 3);
    CHECK(s.most_in_flight >= 1);
  });
}

TEST_CASE("overlapping transfers take place in the order of submission") {
  const weft_test::scratch in;
  weft_test::fault_counters faults;
  ooc::memory_budget memory;
  constexpr int rounds = 60;
  std::vector<ooc::aligned_buffer> all;
  for (int i = 0; i < 2 * rounds; ++i) all.emplace_back(memory, 3 * page);
  const weft::io::file f = fresh(in / "overlap");
  ooc::io_queue queue(std::make_unique<weft_test::faulty_engine>(7, faults), 8);
  weft::runtime rt({.workers = 2});
  rt.run([&] {
    weft::fork({.name = "all", .event = true}, [&] {
      for (int i = 0; i < rounds; ++i) {
        ooc::aligned_buffer& w = all[static_cast<std::size_t>(2 * i)];
        ooc::aligned_buffer& r = all[static_cast<std::size_t>(2 * i + 1)];
        fill(w, static_cast<char>(i));
        queue.write(f, page, w.data(), w.size(), weft::this_task::hold());
        queue.read(f, page, r.data(), r.size(), weft::this_task::hold());
      }
    });
  });
  for (int i = 0; i < rounds; ++i)
    CHECK(holds(all[static_cast<std::size_t>(2 * i + 1)], static_cast<char>(i)));
  const ooc::io_statistics s = queue.statistics();
  CHECK(s.waited > 0);
  CHECK(s.continued > 0);
  CHECK(s.repeated > 0);
  CHECK(faults.shortened > 0);
  CHECK(faults.interrupted > 0);
  CHECK(faults.refused > 0);
  CHECK(faults.delayed > 0);
}

TEST_CASE("a failure names operation, path and offset, and the first in reference order leaves run") {
  const weft_test::scratch in;
  on_each_engine([&](const ooc::io_options& options) {
    ooc::memory_budget memory;
    ooc::aligned_buffer a(memory, 2 * page), b(memory, page);
    weft::io::file f = fresh(in / "short");
    f.resize(page);
    ooc::io_queue queue(options);
    weft::runtime rt({.workers = 2});
    const auto both = [&] {
      weft::fork(
          {.event = true},
          [&](ooc::aligned_buffer& m) { queue.read(f, 0, m.data(), m.size(), weft::this_task::hold()); },
          weft::update(weft::borrow(a)));
      weft::fork(
          {.event = true},
          [&](ooc::aligned_buffer& m) {
            queue.read(f, 100 * page, m.data(), m.size(), weft::this_task::hold());
          },
          weft::update(weft::borrow(b)));
    };
    try {
      rt.run(both);
      FAIL("the file was too short");
    } catch (const std::system_error& e) {
      CHECK(e.code().value() == ENODATA);
      CHECK(std::string(e.what()).find("cannot read '" + (in / "short") + "' at offset 4096") !=
            std::string::npos);
    }
    const weft::io::file closed = weft::io::file::open_read(in / "short");
    try {
      rt.run([&] {
        weft::fork(
            {.event = true},
            [&](const ooc::aligned_buffer& m) {
              queue.write(closed, 8192, m.data(), m.size(), weft::this_task::hold());
            },
            weft::read(weft::borrow(b)));
      });
      FAIL("the file was open for reading");
    } catch (const std::system_error& e) {
      CHECK(e.code().value() == EBADF);
      CHECK(std::string(e.what()).find("at offset 8192") != std::string::npos);
    }
  });
}

TEST_CASE("a full device is a failure of the task that writes") {
  on_each_engine([&](const ooc::io_options& options) {
    ooc::memory_budget memory;
    block b{ooc::aligned_buffer(memory, 2 * page)};
    const weft::io::file full = weft::io::file::open_write("/dev/full");
    ooc::io_queue queue(options);
    weft::runtime rt({.workers = 2});
    try {
      rt.run([&] {
        weft::fork({.event = true},
                   [&] { queue.write(full, page, b.memory.data(), 2 * page, weft::this_task::hold()); });
      });
      FAIL("the device was not full");
    } catch (const std::system_error& e) {
      CHECK(e.code().value() == ENOSPC);
      CHECK(std::string(e.what()).find("'/dev/full' at offset 4096") != std::string::npos);
    }
  });
}

TEST_CASE("io_uring is refused with a reason where it is not there, and threads serve") {
  if (ooc::uring_factory == nullptr) {
    CHECK_THROWS_AS(ooc::io_queue({.engine = ooc::engine::io_uring}), weft::error);
  } else {
    auto* const kept = std::exchange(ooc::uring_factory,
                                     [](unsigned) -> std::unique_ptr<ooc::io_engine> { return nullptr; });
    CHECK_THROWS_AS(ooc::io_queue({.engine = ooc::engine::io_uring}), weft::error);
    CHECK(std::string(ooc::io_queue().engine_name()) == "threads");
    ooc::uring_factory = kept;
  }
  CHECK(std::string(ooc::io_queue({.engine = ooc::engine::threads}).engine_name()) == "threads");
}

TEST_CASE("the budget counts what is taken, and refuses what is too much") {
  ooc::memory_budget memory(3 * page);
  ooc::aligned_buffer a(memory, 1), b(memory, 2 * page);
  CHECK(a.size() == page);
  CHECK_THROWS_AS(ooc::aligned_buffer(memory, 1), std::bad_alloc);
  b = {};
  a = ooc::aligned_buffer(memory, page);
  CHECK(memory.peak() == 3 * page);
}
