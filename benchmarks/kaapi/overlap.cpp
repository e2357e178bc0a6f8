// SPDX-License-Identifier: BSL-1.0
// Figure 8: process 0 sends a message, computes, and waits for an acknowledgement.
// usage: mpiexec -n 2 overlap HOW BYTES TURNS SHARE...
// HOW: `mpi` (MPI_Isend, compute, MPI_Wait), `messages` (a thread sends and receives by the transport of a
// cluster, another one computes), or `flow` (a task of the other process reads the data; its result is the
// acknowledgement). First it finds out how long that takes without computing. Then it computes for each share
// of that time, and prints a line: microseconds of computing, median microseconds in all.
#include "../cluster/turns.hpp"

#include <weft/cluster.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

void compute(double microseconds) {
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

void read_all(weft::read<std::vector<char>> data, weft::write<long> sum) {
  long all = 0;
  for (const char c : *data) all += c;
  sum = all;
}

/// Negative: the other process did not take the task.
double by_flow(weft::cluster& c, std::size_t bytes, double microseconds) {
  double seconds = -1;
  c.run([&] {
    weft::shared<std::vector<char>> data(std::vector<char>(bytes, 1));
    const auto sent = [&c] {
      std::atomic_signal_fence(std::memory_order_seq_cst);  // read anew
      return c.counters().closures_sent;
    };
    const auto before = sent();
    const double took = weft_bench::seconds_of([&] {
      weft::shared<long> sum;
      const auto begin = clock_type::now();
      weft::fork(read_all, data, sum);
      while (sent() == before && clock_type::now() - begin < std::chrono::milliseconds(20)) {
      }
      compute(microseconds);
      weft::sync();
      if (sum.get() != static_cast<long>(bytes)) throw std::runtime_error("the sum is wrong");
    });
    if (sent() != before) seconds = took;
  });
  return seconds;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: mpiexec -n 2 overlap mpi|messages|flow BYTES TURNS SHARE...\n");
    return 2;
  }
  const std::string how = argv[1];
  const auto bytes = static_cast<std::size_t>(std::atol(argv[2]));
  const int turns = std::atoi(argv[3]);
  std::vector<std::byte> data(bytes);
  // Each task is left in its frame, so that the other process can take it.
  weft::cluster c(argc, argv, {.runtime = {.workers = 1, .inlining = false}});
  if (c.size() != 2) throw std::runtime_error("two processes are needed");
  weft::remote::mpi_transport by(MPI_COMM_WORLD);
  const auto median = [&](double microseconds) {
    std::vector<double> took;
    for (int turn = -1; turn < turns; ++turn) {  // the first one opens the connection
      MPI_Barrier(MPI_COMM_WORLD);
      const double seconds = how == "mpi"        ? by_mpi(c.rank(), data, microseconds)
                             : how == "messages" ? by_messages(by, data, microseconds)
                                                 : by_flow(c, bytes, microseconds);
      if (turn >= 0 && seconds >= 0) took.push_back(1e6 * seconds);
    }
    if (c.rank() == 0 && took.empty()) throw std::runtime_error("no task was taken by the other process");
    double found = took.empty() ? 0 : weft_bench::median_of(took);
    MPI_Bcast(&found, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return found;
  };
  const double alone = median(0);
  for (int i = 4; i < argc; ++i) {
    const double microseconds = alone * std::atof(argv[i]), in_all = median(microseconds);
    if (c.rank() == 0) std::printf("%.1f,%.3f\n", microseconds, in_all);
  }
}
