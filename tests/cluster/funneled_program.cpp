// SPDX-License-Identifier: BSL-1.0
// A cluster and steps in a program that has started MPI with MPI_THREAD_FUNNELED: all calls of MPI are made
// by the thread that has started it. usage: funneled_program [directory], where checkpoints are written;
// prints "right" in process 0. Without a directory one call is made by another thread, which is to be seen.
#include <weft/cluster.hpp>
#include <weft/cluster/partition.hpp>
#include <weft/placement/list_schedule.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

const std::thread::id first_thread = std::this_thread::get_id();
std::atomic<long> calls{0};
std::atomic<const char*> by_another{nullptr};

void note(const char* function) {
  ++calls;
  if (std::this_thread::get_id() != first_thread) by_another = function;
}

}  // namespace

// MPI's profiling interface: these are called in place of the library's.
#define WEFT_TEST_NOTED(name, parameters, arguments) \
  extern "C" int MPI_##name parameters {             \
    note("MPI_" #name);                              \
    return PMPI_##name arguments;                    \
  }
WEFT_TEST_NOTED(Isend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* r),
                (b, n, t, to, tag, c, r))
WEFT_TEST_NOTED(Improbe, (int from, int tag, MPI_Comm c, int* flag, MPI_Message* m, MPI_Status* s),
                (from, tag, c, flag, m, s))
WEFT_TEST_NOTED(Get_count, (const MPI_Status* s, MPI_Datatype t, int* n), (s, t, n))
WEFT_TEST_NOTED(Mrecv, (void* b, int n, MPI_Datatype t, MPI_Message* m, MPI_Status* s), (b, n, t, m, s))
WEFT_TEST_NOTED(Imrecv, (void* b, int n, MPI_Datatype t, MPI_Message* m, MPI_Request* r), (b, n, t, m, r))
WEFT_TEST_NOTED(Testany, (int n, MPI_Request* r, int* which, int* flag, MPI_Status* s),
                (n, r, which, flag, s))
WEFT_TEST_NOTED(Testsome, (int n, MPI_Request* r, int* some, int* which, MPI_Status* s),
                (n, r, some, which, s))
WEFT_TEST_NOTED(Wait, (MPI_Request * r, MPI_Status* s), (r, s))
WEFT_TEST_NOTED(Comm_dup, (MPI_Comm c, MPI_Comm* made), (c, made))
WEFT_TEST_NOTED(Comm_free, (MPI_Comm * c), (c))
WEFT_TEST_NOTED(Comm_split_type, (MPI_Comm c, int type, int key, MPI_Info i, MPI_Comm* made),
                (c, type, key, i, made))
WEFT_TEST_NOTED(Comm_rank, (MPI_Comm c, int* rank), (c, rank))
WEFT_TEST_NOTED(Comm_size, (MPI_Comm c, int* size), (c, size))
WEFT_TEST_NOTED(Comm_set_errhandler, (MPI_Comm c, MPI_Errhandler h), (c, h))
WEFT_TEST_NOTED(Barrier, (MPI_Comm c), (c))
WEFT_TEST_NOTED(Bcast, (void* b, int n, MPI_Datatype t, int root, MPI_Comm c), (b, n, t, root, c))
WEFT_TEST_NOTED(Allgather,
                (const void* b, int n, MPI_Datatype t, void* all, int each, MPI_Datatype of, MPI_Comm c),
                (b, n, t, all, each, of, c))
WEFT_TEST_NOTED(Allreduce, (const void* b, void* all, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
                (b, all, n, t, o, c))
WEFT_TEST_NOTED(Finalize, (), ())

namespace {

bool check(bool right, const char* what) {
  if (!right) std::printf("wrong: %s\n", what);
  return right;
}

void add_up(weft::read<std::vector<long>> table, weft::write<long> sum) {
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  long all = 0;
  for (const long x : *table) all += x;
  sum = all;
}
/// Tasks that go to other processes, with a value in parts; some throw.
bool run(weft::cluster& c) {
  bool right = true;
  const long sum = c.run([] {
    weft::shared<std::vector<long>> table(std::vector<long>(100'000, 1));
    std::deque<weft::shared<long>> sums(64);
    for (auto& s : sums) weft::fork(add_up, table, s);
    weft::sync();
    long all = 0;
    for (auto& s : sums) all += s.get();
    return all;
  });
  right &= check(sum == 6'400'000, "sum");
  try {
    c.run([] {
      for (int i = 0; i < 8; ++i)
        weft::fork(
            [](int n) {
              std::this_thread::sleep_for(std::chrono::milliseconds(3));
              if (n == 5) throw std::range_error("five");
            },
            i);
    });
    right = check(false, "no exception");
  } catch (const std::range_error&) {
  }
  return right;
}
/// Tasks in turns, with values in one piece and in parts, more of them than may be ahead.
bool step(weft::cluster& c, const std::string& directory) {
  std::vector<double> large[2] = {std::vector<double>(100'000, 1.0), std::vector<double>(100'000)};
  long small[2] = {1, 1};
  weft::partitioned step(
      c,
      [&] {
        for (int i = 0; i < 2; ++i) {
          weft::fork([](const std::vector<double>& from, std::vector<double>& to) { to[7] = from[7] + 1; },
                     weft::read(weft::borrow(large[i])), weft::update(weft::borrow(large[1 - i])));
          weft::fork([](const long& from, long& to) { to = (to + from) % 1000; },
                     weft::read(weft::borrow(small[i])), weft::update(weft::borrow(small[1 - i])));
        }
      },
      {.method =
           [](const weft::placement::task_graph& g, const weft::placement::machine& m) {
             std::vector<unsigned> on;
             for (std::size_t t = 0; t < g.costs.size(); ++t)
               on.push_back(static_cast<unsigned>((t + t / 2) % m.processors));
             return weft::placement::list_schedule(g, m, on);
           },
       .checkpoint = directory + "/step",
       .checkpoint_seconds = 0.01,
       .ahead_bytes = 1000});
  step.run(100);
  step.save();
  bool right = check(large[0][7] == 201 && large[1][7] == 200, "values of the step");
  right &= check(step.resume() == 100 && large[0][7] == 201, "resumed values");
  if (c.size() > 1) right &= check(step.counters().long_messages > 0, "long messages");
  return right;
}

int use_cluster(int argc, char** argv) {
  const std::string directory = argc > 1 ? argv[1] : "";
  bool right = true;
  if (directory.empty()) {
    std::thread([] { MPI_Barrier(MPI_COMM_SELF); }).join();
  } else {
    std::filesystem::create_directories(directory);
    weft::cluster c(
        argc, argv,
        {.runtime = {.workers = 2}, .checkpoint = directory + "/run", .checkpoint_seconds = 0.01});
    right = run(c) && step(c, directory);
    right &= check(c.size() == 1 || c.counters().messages > 10, "messages");
    right &= check(calls > 100, "few calls were seen");
  }
  if (const char* const function = by_another) {
    std::printf("wrong: %s is called by another thread\n", function);
    right = false;
  }
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int result = use_cluster(argc, argv);
  if (rank == 0 && result == 0) std::printf("right\n");
  MPI_Finalize();
  return result;
}
