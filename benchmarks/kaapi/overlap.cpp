// SPDX-License-Identifier: BSL-1.0
// Figure 8: process 0 sends a message, computes, and waits for an acknowledgement.
// usage: mpiexec -n 2 overlap HOW BYTES TURNS SHARE...
// HOW: `mpi` (MPI_Isend, compute, MPI_Wait), `messages` (a thread sends and receives by the transport of a
// cluster, another one computes), `partitioned` (a task of process 1 reads what one of process 0 has written,
// and its result is the acknowledgement, which another task of process 0 reads; a third one computes), or
// `stealing` (the task that reads the data has no place, and process 1 steals it; waiting for that is a part
// of the time). First it finds out how long that takes without computing. Then it computes for each share of
// that time, and prints a line: microseconds of computing, median microseconds in all. With `partitioned`,
// every task is where it is to be, or the program fails. But for `mpi`, whose one thread does both, what
// computes has the first processor, and the threads that send and receive share the others.
#include "../cluster/turns.hpp"

#include <weft/cluster.hpp>
#include <weft/cluster/partition.hpp>
#include <weft/placement/list_schedule.hpp>
#include <weft/system/cpu_count.hpp>
#include <weft/weft.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

int this_rank = 0;

/// The processors of the machine, once the threads of a process are to be apart.
std::vector<unsigned> processors;

void move_to(std::size_t first, std::size_t end) {
  weft::base::processor_set those(processors.back() + std::size_t{1});
  for (std::size_t i = first; i < end; ++i) those.add(processors[i]);
  if (sched_setaffinity(0, those.bytes(), those.data()) != 0) throw std::runtime_error("cannot be pinned");
}

/// The calling thread sends and receives: it leaves the first processor to what computes.
void keep_apart() {
  const std::vector<unsigned> all = weft::base::affinity_mask();
  if (all.size() < 2) return;
  processors = all;
  move_to(1, processors.size());
}

void compute(double microseconds) {
  if (!processors.empty()) move_to(0, 1);
  const auto end = clock_type::now() + std::chrono::duration<double, std::micro>(microseconds);
  while (clock_type::now() < end) {
  }
}

double by_mpi(int rank, std::vector<std::byte>& data, double microseconds) {
  char acknowledged = 0;
  const int bytes = static_cast<int>(data.size());
  if (rank != 0) {
    MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&acknowledged, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
    return 0;
  }
  return weft_bench::seconds_of([&] {
    MPI_Request both[2];
    MPI_Irecv(&acknowledged, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &both[1]);
    MPI_Isend(data.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &both[0]);
    compute(microseconds);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  });
}

double by_messages(weft::remote::mpi_transport& by, const std::vector<std::byte>& data, double microseconds) {
  weft::remote::bytes came;
  const auto receive = [&] {
    while (by.receive(came) < 0) by.wait(std::chrono::microseconds(20));
  };
  if (by.rank() != 0) {
    receive();
    by.send(0, weft::remote::bytes(1));
    // What is sent leaves in later calls.
    MPI_Barrier(by.group().handle());
    return 0;
  }
  const double seconds = weft_bench::seconds_of([&] {
    by.send(1, weft::remote::bytes(data.begin(), data.end()));
    std::thread computes([&] { compute(microseconds); });
    receive();
    computes.join();
  });
  MPI_Barrier(by.group().handle());
  return seconds;
}

using payload = std::vector<char>;

/// All processes make one, and call once().
class partitioned_message {
 public:
  partitioned_message(weft::cluster& c, std::size_t bytes, double microseconds)
      : data_(payload(bytes, 0)),
        step_(c, [this, microseconds] { fork_(microseconds); },
              {.method =
                   [](const weft::placement::task_graph& g, const weft::placement::machine& m) {
                     return weft::placement::list_schedule(g, m, {places.begin(), places.end()});
                   },
               .threshold = 1}) {}
  /// The median time from the first task of a step to its last one, in seconds, of some that follow each
  /// other: the first one waits for the other process to begin.
  double once() {
    constexpr int steps = 6;
    took_of_each_.clear();
    step_.run(steps);
    if (!std::ranges::equal(step_.placement(), places)) throw std::runtime_error("the tasks are elsewhere");
    if (acknowledged_.get() != static_cast<char>(turns_ += steps))
      throw std::runtime_error("the acknowledgement is wrong");
    if (this_rank != 0) return 0;
    took_of_each_.erase(took_of_each_.begin());
    return weft_bench::median_of(took_of_each_);
  }

 private:
  static constexpr std::array<unsigned, 4> places{0, 1, 0, 0};
  static double now() { return std::chrono::duration<double>(clock_type::now().time_since_epoch()).count(); }
  void fork_(double microseconds) {
    weft::fork(
        [](payload& data, double& began, const double&) {
          data.back() = ++data.front();
          began = now();
        },
        weft::update(data_), weft::write(began_), weft::read(took_));  // after the step before
    weft::fork(
        [](const payload& data, char& acknowledged) {
          if (data.front() != data.back()) throw std::runtime_error("the data are wrong");
          acknowledged = data.back();
        },
        weft::read(data_), weft::write(acknowledged_));
    weft::fork(
        [microseconds](const double&, char& computed) {
          compute(microseconds);
          computed = 1;
        },
        weft::read(began_), weft::write(computed_));
    weft::fork(
        [this](const char&, const char&, const double& began, double& took) {
          took = now() - began;
          took_of_each_.push_back(took);
        },
        weft::read(acknowledged_), weft::read(computed_), weft::read(began_), weft::write(took_));
  }

  weft::shared<payload> data_;
  weft::shared<double> began_{0.0}, took_{0.0};
  weft::shared<char> acknowledged_{'\0'}, computed_{'\0'};
  int turns_ = 0;
  std::vector<double> took_of_each_;
  weft::partitioned step_;
};

/// In memory that both processes share: the number of the last task that process 1 has begun.
std::atomic<long>* last_begun = nullptr;

void read_all(long number, weft::read<payload> data, weft::write<long> sum) {
  if (this_rank == 1) last_begun->store(number, std::memory_order_release);  // pairs with the body that waits
  long all = 0;
  for (const char c : *data) all += c;
  sum = all;
}

/// Negative: the other process did not take the task.
double by_stealing(weft::cluster& c, std::size_t bytes, double microseconds) {
  static long number = 0;
  double seconds = -1;
  c.run([&] {
    weft::shared<payload> data(payload(bytes, 1));
    const auto gone = [mine = ++number] {
      return last_begun->load(std::memory_order_acquire) == mine;  // pairs with the task
    };
    const double took = weft_bench::seconds_of([&] {
      weft::shared<long> sum;
      const auto begin = clock_type::now();
      weft::fork(read_all, number, data, sum);
      compute(microseconds);
      while (!gone() && clock_type::now() - begin < std::chrono::milliseconds(100)) {
      }
      weft::sync();
      if (sum.get() != static_cast<long>(bytes)) throw std::runtime_error("the sum is wrong");
    });
    if (gone()) seconds = took;
  });
  return seconds;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc < 5 ? "" : argv[1];
  if (how != "mpi" && how != "messages" && how != "partitioned" && how != "stealing") {
    std::fprintf(stderr,
                 "usage: mpiexec -n 2 overlap mpi|messages|partitioned|stealing BYTES TURNS SHARE...\n");
    return 2;
  }
  const auto bytes = static_cast<std::size_t>(std::atol(argv[2]));
  const int turns = std::atoi(argv[3]);
  if (bytes == 0 || turns < 1) throw std::runtime_error("there is nothing to send");
  std::vector<std::byte> data(bytes);
  // Each task is left in its frame, so that the other process can take it.
  weft::cluster c(argc, argv, {.runtime = {.workers = 1, .inlining = false}});
  if (c.size() != 2) throw std::runtime_error("two processes are needed");
  weft::remote::mpi_transport by(MPI_COMM_WORLD);
  this_rank = c.rank();
  MPI_Win window = MPI_WIN_NULL;
  MPI_Aint size = 0;
  int unit = 0;
  MPI_Win_allocate_shared(this_rank == 0 ? sizeof *last_begun : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                          &last_begun, &window);
  MPI_Win_shared_query(window, 0, &size, &unit, &last_begun);
  if (this_rank == 0) new (last_begun) std::atomic<long>(0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (how != "mpi") keep_apart();
  std::vector<double> computing{0};
  // For each time of computing, in turns: microseconds in all, 0 first.
  const auto medians = [&] {
    std::vector<std::unique_ptr<partitioned_message>> steps;
    if (how == "partitioned")
      for (const double m : computing) steps.push_back(std::make_unique<partitioned_message>(c, bytes, m));
    std::vector<std::vector<double>> took(computing.size());
    for (int turn = -1; turn < turns; ++turn)  // the first one opens the connection
      for (std::size_t i = 0; i < computing.size(); ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double seconds = how == "mpi"           ? by_mpi(this_rank, data, computing[i])
                               : how == "messages"    ? by_messages(by, data, computing[i])
                               : how == "partitioned" ? steps[i]->once()
                                                      : by_stealing(c, bytes, computing[i]);
        if (turn >= 0 && seconds >= 0) took[i].push_back(1e6 * seconds);
      }
    std::vector<double> found(computing.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (this_rank == 0 && took[i].empty())
        throw std::runtime_error("no task was taken by the other process");
      if (!took[i].empty()) found[i] = weft_bench::median_of(took[i]);
    }
    MPI_Bcast(found.data(), static_cast<int>(found.size()), MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return found;
  };
  const double alone = medians()[0];
  computing.clear();
  for (int i = 4; i < argc; ++i) computing.push_back(alone * std::atof(argv[i]));
  const std::vector<double> in_all = medians();
  for (std::size_t i = 0; this_rank == 0 && i < in_all.size(); ++i)
    std::printf("%.1f,%.3f\n", computing[i], in_all[i]);
  MPI_Win_free(&window);
}
