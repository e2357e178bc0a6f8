// SPDX-License-Identifier: BSL-1.0
// A cluster of real processes. usage: cluster_program [mode]; prints "right" in process 0. Modes:
// throw, die, die_late, stop, leave, other_program (which becomes copy).
#include <weft/cluster.hpp>
#include <weft/weft.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

/// Takes about a nanosecond for each round.
void spin(long rounds) {
  for (long i = 0; i < rounds; ++i) asm volatile("" ::: "memory");
}
void work(int depth, std::string path, weft::reduce<std::string, std::plus<>> all);
void deeper(int depth, std::string path, weft::update<std::string> all) {
  for (char c = 'a'; c < 'd'; ++c) weft::fork(work, depth - 1, path + c, weft::reduce(all, std::plus<>{}));
}
void work(int depth, std::string path, weft::reduce<std::string, std::plus<>> all) {
  spin(1000000);
  if (depth == 0) all += path + " ";
}
std::string serial(int depth, const std::string& path) {
  std::string all;
  for (char c = 'a'; c < 'd'; ++c)
    if (depth == 1) all += path + c + " ";
  return all;
}

struct own_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
void fail(int) {
  spin(1000000);
  throw own_error("own");
}

void add_up(weft::read<std::vector<long>> table, weft::write<long> sum) {
  spin(1000000);
  long all = 0;
  for (const long x : *table) all += x;
  sum = all;
}

int own_rank = 0;
/// A thread that goes round all processes, with bytes that are sent in parts.
struct tour {
  int step = 0, last = 0;
  long ranks = 0, bytes = 0;
  std::vector<char> load{};
  void operator()() {
    for (; step < last; ++step) {
      const int to = step % weft::this_thread::processes();
      if (weft::this_thread::process() != to) weft::this_thread::migrate(to);
      ranks += own_rank == to ? to + 1 : -1000;
      bytes += static_cast<long>(load.size());
      load.resize(step % 8 == 7 ? 1 << 19 : 10);
    }
  }
};

/// What happens to process 1 inside a task that it has stolen.
void receive_signal(int signal) {
  spin(1000000);
  if (own_rank == 1) std::raise(signal);
}
/// The worker of process 0 executes no task before one has gone to process 1.
void send_signal(weft::cluster& c, int signal) {
  own_rank = c.rank();
  c.run([&c, signal] {
    for (int i = 0; i < 8; ++i) weft::fork(receive_signal, signal);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (c.counters().closures_sent == 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
  });
}

bool check(bool right, const char* what) {
  if (!right) std::printf("wrong: %s\n", what);
  return right;
}

/// Process 1 goes on as a copy of this program with one byte more.
void become_another_program() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr) rank = std::getenv("PMI_RANK");
  if (rank == nullptr || std::string(rank) != "1") return;
  const auto copy = std::filesystem::temp_directory_path() / ("weft-other-" + std::to_string(::getpid()));
  std::filesystem::copy_file("/proc/self/exe", copy);
  std::ofstream(copy, std::ios::app) << '\0';
  std::string path = copy.string(), mode = "copy";
  char* arguments[] = {path.data(), mode.data(), nullptr};
  ::execv(path.c_str(), arguments);
}

int run(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "other_program") become_another_program();
  if (mode == "copy") std::filesystem::remove(argv[0]);
  weft::cluster_options options{.runtime = {.workers = 1}};
  if (mode == "stop") options.silence = std::chrono::seconds(4);
  weft::cluster c(argc, argv, options);
  if (mode == "throw") {
    c.run([] { weft::fork([] { throw std::runtime_error("the disk is on fire"); }); });
    return 0;
  }
  if (mode == "die") {
    if (c.rank() == 1) std::raise(SIGKILL);
    c.run([] {});
    return 0;
  }
  if (mode == "die_late" || mode == "stop") {
    send_signal(c, mode == "stop" ? SIGSTOP : SIGKILL);
    return 0;
  }
  if (mode == "leave") {
    for (int runs = 0; runs < 3 - c.rank(); ++runs) c.run([] {});
    return 0;
  }
  bool right = true;
  const auto ordered = c.run([] {
    std::vector<std::string> all;
    for (int i = 0; i < 20; ++i) {
      weft::shared<std::string> text(std::string{});
      weft::fork(deeper, 1, std::to_string(i), text);
      weft::fork(deeper, 1, std::to_string(-i), text);
      weft::sync();
      all.push_back(text.get());
    }
    return all;
  });
  for (int i = 0; i < 20; ++i)
    right &= check(ordered.at(static_cast<std::size_t>(i)) ==
                       serial(1, std::to_string(i)) + serial(1, std::to_string(-i)),
                   "order");
  // The same result everywhere, and counters that tell of steals.
  std::map<int, double> given;
  given = c.run([] { return std::map<int, double>{{1, 0.5}, {2, 0.25}}; });
  right &= check(given.size() == 2 && given.at(2) == 0.25, "broadcast");
  std::string type;
  try {
    c.run([] {
      for (int i = 0; i < 8; ++i) weft::fork(fail, i);
    });
  } catch (const own_error& e) {  // only where it was thrown
    type = e.what();
  } catch (const weft::remote_error& e) {
    type = e.type_name().find("own_error") != std::string::npos ? e.what() : e.type_name();
  }
  right &= check(type == "own", "exception");
  // What many tasks read goes once to each process.
  constexpr std::size_t large = 1 << 20;
  const auto sent_before = c.counters().bytes;
  const long sum = c.run([&c] {
    weft::shared<std::vector<long>> table(std::vector<long>(large, 1));
    std::deque<weft::shared<long>> sums(64);
    for (auto& s : sums) weft::fork(add_up, table, s);
    // Meanwhile the one worker of this process runs none of them.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (c.size() > 1 && c.counters().values_cached == 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    weft::sync();
    long all = 0;
    for (auto& s : sums) all += s.get();
    return all;
  });
  right &= check(sum == 64 * static_cast<long>(large), "sum");
  if (c.rank() == 0)
    right &= check(
        static_cast<double>(c.counters().bytes - sent_before) <= 1.1 * sizeof(long) * large * (c.size() - 1),
        "cached value");
  if (c.rank() == 0 && c.size() > 1) right &= check(c.counters().values_cached > 0, "values cached");
  // Threads that move.
  own_rank = c.rank();
  const auto toured = c.run([size = c.size()] {
    tour ended;
    weft::spawn(weft::migratable, tour{.last = 24 * size}, [&](tour& t) { ended = std::move(t); });
    weft::sync();
    return std::pair(ended.ranks, ended.bytes);
  });
  const long size = c.size(), ninth = 24 * size / 8 - 1;
  right &= check(toured.first == 24 * size * (size + 1) / 2, "tour");
  right &= check(toured.second == ninth * (1 << 19) + (24 * size - ninth - 1) * 10, "load of a tour");
  if (c.size() > 1)
    right &= check(c.counters().threads_received + c.counters().threads_sent >= 24, "threads sent");
  const auto counters = c.counters();
  const auto steals = c.run([] { return 0; }) == 0 ? counters.closures_received + counters.closures_sent : 0;
  if (c.size() > 1) right &= check(counters.requests + counters.closures_sent > 0, "requests");
  if (c.size() == 2) right &= check(steals > 0, "steals");
  if (c.rank() == 0 && right) std::printf("right\n");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv); }
