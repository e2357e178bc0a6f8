// SPDX-License-Identifier: BSL-1.0
// Transfers as tasks: complete, in order where they overlap, bounded; failures with path and offset; engines.
#include "ooc/faulty_engine.hpp"
#include "ooc/switched.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <weft/ooc.hpp>
#include <weft/weft.hpp>

#include <array>
#include <string>
#include <thread>

#ifdef WEFT_LIBURING
#include <liburing.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ooc = weft::ooc;

#ifdef WEFT_LIBURING
namespace {

std::atomic<bool> ring_refuses_transfers{false}, ring_takes_nothing{false};
std::atomic<int> rings_restricted{0}, submissions_refused{0};

}  // namespace

// Instead of those of the library: rings of kernels and sandboxes that allow less.
extern "C" {
int io_uring_queue_init(unsigned entries, io_uring* ring, unsigned flags) {
  io_uring_params parameters{};
  parameters.flags = flags | (ring_refuses_transfers ? IORING_SETUP_R_DISABLED : 0);
  if (const int failed = ::io_uring_queue_init_params(entries, ring, &parameters)) return failed;
  if (!ring_refuses_transfers) return 0;
  rings_restricted += 1;
  io_uring_restriction only[2]{};
  only[0].opcode = only[1].opcode = IORING_RESTRICTION_SQE_OP;
  only[0].sqe_op = IORING_OP_NOP;
  only[1].sqe_op = IORING_OP_POLL_ADD;
  ::syscall(SYS_io_uring_register, ring->ring_fd, IORING_REGISTER_RESTRICTIONS, only, 2);
  return static_cast<int>(
      ::syscall(SYS_io_uring_register, ring->ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0));
}
int io_uring_submit(io_uring* ring) {
  if (!ring_takes_nothing) return ::io_uring_submit_and_wait(ring, 0);
  submissions_refused += 1;
  return -EBADR;
}
}
#endif

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
  else
    WARN("io_uring is not available here: only the engine on threads is tested");
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
  ooc::io_queue queue(weft_test::faulty_engine(7, faults), 8);
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

TEST_CASE("transfers that overlap in part, through several descriptors and from several tasks, are ordered") {
  const weft_test::scratch in;
  weft_test::fault_counters faults;
  ooc::memory_budget memory;
  constexpr std::size_t tasks = 4, steps = 80, region = 8;  // pages
  const weft::io::file files[] = {fresh(in / "overlap"), weft::io::file::open_write(in / "overlap")};
  REQUIRE(::ftruncate(files[0].descriptor(), tasks * region * page) == 0);
  struct step {
    bool write;
    std::size_t first, pages, descriptor;
    ooc::aligned_buffer memory;
    std::vector<char> expected;  // of each page that is read
  };
  std::vector<std::vector<step>> all(tasks);
  weft_test::random number(11);
  for (std::vector<step>& of : all) {
    std::array<char, region> holds{};
    for (std::size_t i = 0; i < steps; ++i) {
      step s{number.one_in(2), number.below(region), 0, number.below(2), {}, {}};
      s.pages = 1 + number.below(std::min<std::size_t>(region - s.first, 4));
      s.memory = ooc::aligned_buffer(memory, s.pages * page);
      if (s.write) {
        fill(s.memory, static_cast<char>(i + 1));
        std::fill_n(holds.begin() + static_cast<std::ptrdiff_t>(s.first), s.pages, static_cast<char>(i + 1));
      } else {
        const auto from = holds.begin() + static_cast<std::ptrdiff_t>(s.first);
        s.expected.assign(from, from + static_cast<std::ptrdiff_t>(s.pages));
      }
      of.push_back(std::move(s));
    }
  }
  ooc::io_queue queue(weft_test::faulty_engine(5, faults), 8);
  weft::runtime rt({.workers = 4});
  rt.run([&] {
    for (std::size_t t = 0; t < tasks; ++t)
      weft::fork({.name = "submit", .event = true}, [&, t] {
        for (step& s : all[t]) {
          const std::uint64_t at = (t * region + s.first) * page;
          if (s.write)
            queue.write(files[s.descriptor], at, s.memory.data(), s.memory.size(), weft::this_task::hold());
          else
            queue.read(files[s.descriptor], at, s.memory.data(), s.memory.size(), weft::this_task::hold());
        }
      });
  });
  int wrong = 0;
  for (const std::vector<step>& of : all)
    for (const step& s : of)
      for (std::size_t i = 0; i < s.expected.size(); ++i)
        for (std::size_t b = 0; b < page; ++b)
          wrong += static_cast<char>(s.memory.data()[i * page + b]) != s.expected[i];
  CHECK(wrong == 0);
  CHECK(queue.statistics().waited > 0);
  CHECK(faults.shortened > 0);
  CHECK(faults.delayed > 0);
  CHECK(faults.reordered > 0);
}

TEST_CASE("an engine that takes nothing more does not make the stack deep") {
  const weft_test::scratch in;
  weft::io::file f = fresh(in / "bytes");
  f.resize(page);
  constexpr std::uint64_t transfers = 200'000;
  std::atomic<bool> all_wait{false};
  std::atomic<int> started{0};
  char byte = 1;
  ooc::io_queue queue(weft_test::scripted({.result =
                                               [&](const ooc::transfer&) {
                                                 while (!all_wait) std::this_thread::yield();
                                                 return 1L;
                                               },
                                           .takes = [&] { return started++ == 0; }}),
                      1);
  weft::runtime rt({.workers = 2});
  rt.run([&] {
    weft::fork({.event = true}, [&] {
      for (std::uint64_t i = 0; i < transfers; ++i) queue.read(f, 0, &byte, 1, weft::this_task::hold());
      all_wait = true;
    });
  });
  CHECK(queue.statistics().transfers == transfers);
  CHECK(started == static_cast<int>(transfers));
}

TEST_CASE("a transfer that the kernel refuses for a moment does not hold up others") {
  const weft_test::scratch in;
  weft::io::file f = fresh(in / "bytes");
  f.resize(2 * page);
  std::atomic<int> refused{0};
  bool other_ended = false;  // of the thread of the engine
  char bytes[2] = {1, 1};
  ooc::io_queue queue(weft_test::scripted({.result = [&](const ooc::transfer& t) -> long {
                        if (t.offset != 0) {
                          other_ended = true;
                        } else if (!other_ended) {
                          refused += 1;
                          return -EAGAIN;
                        }
                        *t.memory = other_ended ? 7 : 3;
                        return 1;
                      }}),
                      2);
  weft::runtime rt({.workers = 2});
  rt.run([&] {
    weft::fork({.event = true}, [&] {
      queue.read(f, 0, &bytes[0], 1, weft::this_task::hold());
      while (refused == 0) std::this_thread::yield();
      queue.read(f, page, &bytes[1], 1, weft::this_task::hold());
    });
  });
  CHECK(bytes[0] == 7);  // by the engine, after the other one
  CHECK(queue.statistics().repeated == 1);
  CHECK(refused > 0);
}

TEST_CASE("what the device has not begun when the run is stopped does not take place") {
  const weft_test::scratch in;
  weft::io::file f = fresh(in / "bytes");
  f.resize(page);
  std::atomic<bool> all_wait{false};
  int begun = 0;  // of the thread of the engine
  std::stop_source stop;
  char byte = 1;
  ooc::io_queue queue(weft_test::scripted({.result =
                                               [&](const ooc::transfer&) {
                                                 while (!all_wait) std::this_thread::yield();
                                                 if (++begun == 2) stop.request_stop();
                                                 return 1L;
                                               }}),
                      2);
  weft::runtime rt({.workers = 2});
  const auto read_all = [&] {
    weft::fork({.event = true}, [&] {
      for (int i = 0; i < 20; ++i) queue.read(f, 0, &byte, 1, weft::this_task::hold());
      all_wait = true;
    });
  };
  CHECK_THROWS_AS(rt.run({.stop = stop.get_token()}, read_all), weft::cancelled);
  CHECK(begun <= 3);  // one had begun beside the second one, if not before it
  CHECK(queue.statistics().transfers == 20);
  CHECK(queue.statistics().dropped == static_cast<std::uint64_t>(20 - begun));
  rt.run(read_all);  // another run is not concerned
  CHECK(begun == 20 + static_cast<int>(20 - queue.statistics().dropped));
  CHECK(queue.statistics().bytes_read == static_cast<std::uint64_t>(begun));
}

TEST_CASE("a failed transfer drops those behind it in its series, and no others") {
  const weft_test::scratch in;
  weft::io::file f = fresh(in / "bytes");
  f.resize(page);
  std::atomic<bool> all_wait{false};
  std::vector<std::uint64_t> begun;  // of the thread of the engine
  char bytes[20] = {};
  ooc::io_queue queue(weft_test::scripted({.result =
                                               [&](const ooc::transfer& t) {
                                                 while (!all_wait) std::this_thread::yield();
                                                 begun.push_back(t.offset);
                                                 return t.offset == 10 ? -EIO : 1L;
                                               }}),
                      1);
  weft::runtime rt({.workers = 2});
  ooc::transfer_series series;
  try {
    rt.run([&] {
      weft::fork({.event = true}, [&] {
        for (const std::uint64_t i : {10u, 9u, 11u, 8u, 10u, 12u})
          queue.read(f, i, &bytes[i], 1, weft::this_task::hold(), {&series, i});
        queue.read(f, 13, &bytes[13], 1, weft::this_task::hold());  // of no series
        all_wait = true;
      });
    });
    FAIL("no transfer failed");
  } catch (const std::system_error& e) {
    CHECK(e.code().value() == EIO);
  }
  CHECK(begun == std::vector<std::uint64_t>{10, 9, 8, 13});
  CHECK(queue.statistics().dropped == 3);
}

#ifdef WEFT_LIBURING
TEST_CASE("a ring that refuses transfers is none") {
  if (ooc::uring_factory(2) == nullptr) {
    WARN("io_uring is not available here");
    return;
  }
  const weft_test::switched refuses(ring_refuses_transfers, true);
  CHECK_THROWS_AS(ooc::io_queue({.engine = ooc::engine::io_uring}), weft::error);
  CHECK(std::string(ooc::io_queue().engine_name()) == "threads");
  CHECK(rings_restricted > 0);
}

TEST_CASE("transfers that a ring does not take are done without it") {
  if (ooc::uring_factory(2) == nullptr) {
    WARN("io_uring is not available here");
    return;
  }
  const weft_test::scratch in;
  const weft::io::file f = fresh(in / "blocks");
  ooc::memory_budget memory;
  ooc::aligned_buffer out(memory, page), back(memory, page);
  fill(out, 'x');
  const weft_test::switched at_end(ring_takes_nothing, false);
  ooc::io_queue queue({.engine = ooc::engine::io_uring, .in_flight = 2});
  weft::runtime rt({.workers = 2});
  for (const bool refused : {true, false}) {  // and taken again afterwards
    ring_takes_nothing = refused;
    rt.run([&] {
      weft::fork({.event = true}, [&] {
        for (std::size_t i = 0; i < 10; ++i) {
          queue.write(f, i * page, out.data(), page, weft::this_task::hold());
          queue.read(f, i * page, back.data(), page, weft::this_task::hold());
        }
      });
    });
    CHECK(holds(back, 'x'));
    fill(back, 'y');
  }
  CHECK(submissions_refused > 0);
  CHECK(queue.statistics().bytes_read == 20 * page);
  ring_takes_nothing = true;
}  // the queue ends all the same
#endif

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
    const weft_test::switched none(
        ooc::uring_factory, +[](unsigned) -> std::unique_ptr<ooc::io_engine> { return nullptr; });
    CHECK_THROWS_AS(ooc::io_queue({.engine = ooc::engine::io_uring}), weft::error);
    CHECK(std::string(ooc::io_queue().engine_name()) == "threads");
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
