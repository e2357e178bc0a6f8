// SPDX-License-Identifier: BSL-1.0
// Programs that are traced. usage: trace_program <scene> <file>     prints what the trace has to show
#include <weft/append.hpp>
#include <weft/cluster/threads.hpp>
#include <weft/ooc/io_queue.hpp>
#include <weft/orwl.hpp>
#include <weft/threads.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

void spin(std::chrono::microseconds t) {
  for (const auto end = std::chrono::steady_clock::now() + t; std::chrono::steady_clock::now() < end;) {
  }
}

std::atomic<int> calls{0};

int fib(int n) {
  calls.fetch_add(1, std::memory_order_relaxed);
  if (n < 2) return n;
  auto a = weft::fork({.name = "fib"}, fib, n - 1);
  auto b = weft::fork({.name = "fib"}, fib, n - 2);
  weft::sync();
  return a.get() + b.get();
}

/// Deferred, stolen and inlined tasks, each counted by itself.
void tree(const std::string& file, unsigned workers) {
  weft::runtime rt({.workers = workers, .trace = file});
  const int found = rt.run(fib, 16);
  std::printf("result %d\ntasks fib %d\nsteals %llu\n", found, calls.load() - 1,
              static_cast<unsigned long long>(rt.counters().steals));
}

/// Turns of an overlay, one slice each.
void turns(const std::string& file) {
  weft::runtime rt({.workers = 3, .trace = file});
  weft::orwl::location<long> first(0), second(0);
  weft::orwl::overlay o;
  o.task({.name = "first"}, [](long& v) { ++v; }, weft::orwl::write(first));
  o.task(
      {.name = "second"}, [](long& v, const long& before) { v += before; }, weft::orwl::write(second),
      weft::orwl::read(first));
  o.schedule();
  o.run(rt, 100);
  std::printf("total %ld\ntasks first 100\ntasks second 100\n", second.get());
}

/// Large frames, contributions, weak rights, loops.
void mixed(const std::string& file) {
  weft::runtime rt({.workers = 3, .trace = file});
  std::atomic<int> parts{0};
  long total = 0;
  for (int round = 0; round < 5; ++round) {
    weft::shared<long> sum(0), value(1);
    rt.run([&] {
      for (int i = 0; i < 200; ++i) {
        weft::fork(
            {.name = "add"}, [](const long& v, auto s) { s += v; }, weft::read(value),
            weft::reduce(sum, std::plus<>{}));
        if (i % 50 == 0)
          weft::fork(
              {.name = "weak"},
              [](weft::weak_update<long> v) {
                weft::fork({.name = "below"}, [](long& x) { x += 1; }, weft::update(v));
              },
              weft::weak_update(value));
      }
      weft::fork_for({.name = "loop", .grain = 4}, 0, 1000, [&](int) { parts.fetch_add(1); });
    });
    total += sum.get();
  }
  std::printf("total %ld\nindices %d\ntasks add 1000\ntasks weak 20\ntasks below 20\n", total, parts.load());
}

/// Bodies that wait, and go on on another worker.
void waits(const std::string& file) {
  weft::runtime rt({.workers = 2, .trace = file});
  const auto waits_so_far = [&rt] { return rt.counters().suspensions + rt.counters().parkings; };
  int held = 0;
  rt.run([&] {
    for (int i = 0; i < 20; ++i) {
      weft::shared<int> a(0);
      auto slow = weft::fork({.name = "slow"}, [] { return spin(std::chrono::microseconds(300)), 1; });
      weft::fork(
          {.name = "other"}, [](int& v) { spin(std::chrono::microseconds(300)), v = 1; }, weft::write(a));
      weft::sync();
    }
    // Where a thief takes the task, the body waits for the thief, not for the event: then once more.
    std::uint64_t thefts = 0;
    do {
      const auto before = waits_so_far();
      thefts = rt.counters().steals;
      ++held;
      weft::fork({.name = "held", .event = true}, [&] {
        std::thread([&, done = weft::this_task::hold()]() mutable {
          const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
          while (waits_so_far() == before && std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
          done.complete();
        }).detach();
      });
      weft::sync();
    } while (rt.counters().steals != thefts);
  });
  std::printf("suspensions %llu\ntasks held %d\n", static_cast<unsigned long long>(waits_so_far()), held);
}

/// Names that are no text.
void hostile(const std::string& file) {
  weft::runtime rt({.workers = 2, .trace = file});
  std::uint64_t random = 88172645463325252u;
  rt.run([&] {
    for (int i = 0; i < 3000; ++i) {
      char name[24];  // gone before the trace is written
      for (char& c : name) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        c = static_cast<char>(random % 3 == 0 ? "\"\\\n\x1f/\x7f{"[random / 3 % 7] : random >> 16);
      }
      name[random % sizeof name] = '\0';
      weft::fork({.name = name}, [] {});
      weft::sync();
    }
  });
  std::puts("forked 3000");
}

void small(const std::string& file) {
  weft::runtime rt({.workers = 1, .trace = file, .trace_mb = 1});
  rt.run([] {
    for (int i = 0; i < 100'000; ++i) weft::fork({.name = "one"}, [] {});
  });
  std::puts("forked 100001");
}

void two(const std::string& file) {
  {
    weft::runtime first({.workers = 1, .trace = file}), second({.workers = 1, .trace = file});
    first.run([] { weft::fork({.name = "of the first"}, [] {}); });
    second.run([] { weft::fork({.name = "of the second"}, [] {}); });
    if (!first.write_trace()) std::puts("no trace");
  }
  weft::runtime plain({.workers = 1});
  if (plain.write_trace()) std::puts("a trace of nothing");
}

void request(const std::string& file) {
  weft::runtime rt({.workers = 1, .trace = file});
  rt.run([&] {
    weft::fork({.name = "early"}, [] {});
    weft::sync();
    rt.write_trace();
  });
  std::fflush(stdout);
  std::_Exit(0);  // the end of the runtime does not write
}

void unwritable() {
  try {
    weft::runtime rt({.workers = 1, .trace = "/nonexistent/trace.json"});
  } catch (const std::system_error& e) {
    std::puts(e.what());
  }
}

void full() {
  weft::runtime rt({.workers = 1, .trace = "/dev/full"});
  std::printf("result %d\n", rt.run(fib, 10));
  try {
    rt.write_trace();
  } catch (const std::system_error& e) {
    std::puts(e.what());
  }
}

void dies(const std::string& file, bool by_exception) {
  weft::runtime rt({.workers = 2, .trace = file});
  rt.run([&] {
    weft::fork({.name = "before"}, [] {});
    weft::sync();
    weft::fork({.name = "last"}, [&]() noexcept {
      if (by_exception) std::terminate();
      std::abort();
    });
  });
}

/// Whether the file has a trace up to its end.
bool is_written(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return text.ends_with("}}\n");
}

void stalls(const std::string& file) {
  weft::runtime rt({.workers = 1, .stall = std::chrono::milliseconds(40), .trace = file});
  rt.run([&] {
    weft::fork({.name = "before the stall"}, [] {});
    weft::sync();
    weft::fork([&] {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(15);
      while (!is_written(file) && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    });
    weft::sync();
    std::fflush(stdout);
    std::_Exit(0);
  });
}

void throws(const std::string& file) {
  weft::runtime rt({.workers = 2, .trace = file});
  try {
    rt.run([] {
      weft::fork({.name = "thrower"}, [] { throw std::runtime_error("planned"); });
      weft::sync();
    });
  } catch (const std::runtime_error& e) {
    std::puts(e.what());
  }
  std::puts("tasks thrower 1");
}

/// A body whose time is told by the wall clock, too.
void moment(const std::string& file) {
  const auto wall_clock = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  weft::runtime rt({.workers = 1, .trace = file});
  rt.run([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::printf("before %lld\n", static_cast<long long>(wall_clock()));
    weft::fork({.name = "marked"}, [] { spin(std::chrono::microseconds(300)); });
    weft::sync();
    std::printf("after %lld\n", static_cast<long long>(wall_clock()));
  });
}

void part(int depth, weft::reduce<long, std::plus<>> all) {
  if (depth == 0) {
    spin(std::chrono::microseconds(300));
    all += 1;
  } else {
    for (int i = 0; i < 2; ++i) weft::fork({.name = "part"}, part, depth - 1, all);
  }
}

/// Several runtimes as a cluster, a trace of each.
void cluster(const std::string& file) {
  weft::cluster_options o;
  o.runtime.trace = file;
  weft::thread_cluster c(3, o);
  const long n = c.run([] {
    weft::shared<long> all(0L);
    weft::fork({.name = "part"}, part, 8, weft::reduce(all, std::plus<>{}));
    weft::sync();
    return all.get();
  });
  std::printf("leaves %ld\n", n);
}

/// Tasks write a stream and read it, within little memory; closed in the run, so that tasks write all of it.
void stream(const std::string& file, weft::append_layout layout, std::size_t memory) {
  const std::string path = file + ".stream";
  constexpr std::size_t lines = 400;
  weft::runtime rt({.workers = 2, .trace = file});
  std::size_t seen = 0;
  std::uint64_t spilled = 0;
  rt.run([&] {
    weft::append_file out(path, {.layout = layout,
                                 .readable = true,
                                 .memory = memory,
                                 .buffer = 4096,
                                 .commit_every = 0,
                                 .sync = false});
    std::optional<weft::completion> late;  // ends when the others have appended, behind its place
    std::atomic<bool> held{false};
    std::atomic<std::size_t> appended{0};
    weft::fork(
        {.event = true},
        [&](weft::append) {
          late.emplace(weft::this_task::hold());
          held.store(true);
        },
        out);
    for (std::size_t i = 0; i < lines; ++i)
      weft::fork(
          [&](weft::append to) {
            to.write(std::string(997, 'x'));
            appended.fetch_add(1);
          },
          out);
    while (!held.load() || appended.load() < lines) std::this_thread::yield();
    late->complete();
    weft::fork(
        [&](weft::stream_reader in) {
          std::string to(1 << 18, ' ');
          seen = in.read(std::as_writable_bytes(std::span(to)));
        },
        weft::read(out));
    weft::sync();
    spilled = out.spilled();
    out.close();
  });
  std::printf("read %zu\nwritten %zu\nspilled %llu\n", seen, lines * 997,
              static_cast<unsigned long long>(spilled));
}

/// A body waits at each object, one after the other, which is told with the object's address or name.
void objects(const std::string& file) {
  weft::runtime rt({.workers = 1, .trace = file});
  weft::mutex mutex;
  weft::shared_mutex shared;
  weft::semaphore semaphore(0);
  weft::latch latch(1);
  weft::barrier barrier(2);
  weft::condition<int> condition(0);
  weft::condition_variable variable;
  weft::channel<int> channel(1);
  weft::orwl::location<int> unnamed(0), named(0);
  named.named("left \"border\"");
  std::vector<std::string> told;
  const auto waits_until = [&told](std::string what, auto begin, auto end) {
    told.push_back(std::move(what));
    weft::latch over(1);
    bool begun = false;
    weft::spawn({.name = "waits"}, [&] {
      begun = true;
      begin();
      over.count_down();
    });
    // The only worker executes the other body, until that waits.
    while (!begun) weft::this_task::sleep_for(std::chrono::milliseconds(1));
    end();
    over.wait();
  };
  const auto which = [](const char* kind, const void* object) {
    char text[40];
    std::snprintf(text, sizeof text, "%p", object);
    return std::string(kind) + " = " + text;
  };
  rt.run([&] {
    mutex.lock();
    waits_until(which("a mutex", &mutex), [&] { mutex.lock(), mutex.unlock(); }, [&] { mutex.unlock(); });
    shared.lock();
    waits_until(
        which("a shared mutex", &shared), [&] { shared.lock_shared(), shared.unlock_shared(); },
        [&] { shared.unlock(); });
    waits_until(which("a semaphore", &semaphore), [&] { semaphore.acquire(); }, [&] { semaphore.release(); });
    waits_until(which("a latch", &latch), [&] { latch.wait(); }, [&] { latch.count_down(); });
    waits_until(
        which("a barrier", &barrier), [&] { barrier.arrive_and_wait(); }, [&] { barrier.arrive_and_wait(); });
    waits_until(
        which("a condition", &condition), [&] { condition.wait_equal(1); }, [&] { condition.set(1); });
    bool ready = false;
    waits_until(
        which("a condition variable", &variable),
        [&] {
          std::unique_lock hold(mutex);
          while (!ready) variable.wait(hold);
        },
        [&] { ready = true, variable.notify_one(); });
    waits_until(which("a channel", &channel), [&] { channel.pop(); }, [&] { channel.push(1); });
    for (auto* const location : {&unnamed, &named}) {
      weft::orwl::handle<int> mine, other;
      mine.request_write(*location);
      mine.acquire();
      other.request_write(*location);
      waits_until(
          location == &named ? "the lock of an ORWL location = left \"border\""
                             : which("the lock of an ORWL location", location),
          [&] { other.acquire(), other.release(); }, [&] { mine.release(); });
    }
  });
  for (const std::string& each : told) std::printf("waits for %s\n", each.c_str());
}

/// Transfers of a queue.
void queue(const std::string& file) {
  const std::string path = file + ".queue";
  weft::runtime rt({.workers = 2, .trace = file});
  weft::ooc::io_queue transfers({.in_flight = 2});
  const weft::io::file f = weft::io::file::create(path, true);
  std::vector<char> memory(1 << 16, 'x');
  rt.run([&] {
    for (unsigned i = 0; i < 10; ++i) {
      weft::fork({.event = true}, [&, i] {
        transfers.write(f, std::uint64_t{i} << 16, memory.data(), memory.size(), weft::this_task::hold());
      });
      weft::sync();
    }
    for (unsigned i = 0; i < 3; ++i) {
      weft::fork({.event = true},
                 [&] { transfers.read(f, 0, memory.data(), memory.size(), weft::this_task::hold()); });
      weft::sync();
    }
  });
  const weft::ooc::io_statistics s = transfers.statistics();
  std::printf("read %llu\nwritten %llu\n", static_cast<unsigned long long>(s.bytes_read),
              static_cast<unsigned long long>(s.bytes_written));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string scene = argv[1], file = argv[2];
  if (scene == "tree") tree(file, 2);
  if (scene == "serial") tree(file, 1);
  if (scene == "mixed") mixed(file);
  if (scene == "turns") turns(file);
  if (scene == "waits") waits(file);
  if (scene == "hostile") hostile(file);
  if (scene == "small") small(file);
  if (scene == "two") two(file);
  if (scene == "request") request(file);
  if (scene == "unwritable") unwritable();
  if (scene == "full") full();
  if (scene == "aborts") dies(file, false);
  if (scene == "terminates") dies(file, true);
  if (scene == "stalls") stalls(file);
  if (scene == "throws") throws(file);
  if (scene == "moment") moment(file);
  if (scene == "plain") stream(file, weft::append_layout::plain, 64 << 20);
  if (scene == "segmented") stream(file, weft::append_layout::segmented, 64 << 20);
  if (scene == "spilled") stream(file, weft::append_layout::plain, 4096);
  if (scene == "queue") queue(file);
  if (scene == "objects") objects(file);
  if (scene == "cluster") cluster(file);
}
