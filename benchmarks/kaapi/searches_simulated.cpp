// SPDX-License-Identifier: BSL-1.0
// Searches on the processes of a simulated cluster, by the code of test simulation.cluster.
// usage: searches_simulated (uts DEPTH PROCESSES SECONDS | queens N ROWS PROCESSES SECONDS)...
// uts: the tree T1 down to a depth, each node a task. queens: N-queens, each placement in the first ROWS rows
// a task. Bodies take so long that each process computes for SECONDS. For each search a line: processes,
// seconds of computing for each, seconds in all, messages of a process on average and at most, tasks that
// went to other processes.
#include "simulation/searches.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

using namespace simulation;

int main(int argc, char** argv) {
  std::map<int, long> t1;  // what is there, by depth
  for (int i = 1; i < argc;) {
    const bool queens = std::string(argv[i++]) == "queens";
    if (argc - i < (queens ? 4 : 3)) throw std::invalid_argument("searches_simulated: something is missing");
    const int size = std::atoi(argv[i++]), rows = queens ? std::atoi(argv[i++]) : 0;
    const int processes = std::atoi(argv[i++]);
    const double each = std::atof(argv[i++]);
    if (!queens && !t1.contains(size)) t1[size] = count(root_of(weft_bench::t1), size);
    const searched s =
        queens ? search_queens(processes, each, size, rows) : search_t1(processes, each, size, t1.at(size));
    if (s.counts != (queens ? place({}, 0, size) : t1.at(size)))
      throw std::logic_error("searches_simulated: something was not found");
    std::printf("%d,%.3f,%.6f,%.1f,%llu,%llu\n", processes, each, s.seconds,
                static_cast<double>(s.messages) / processes, static_cast<unsigned long long>(s.most),
                static_cast<unsigned long long>(s.sent));
    std::fflush(stdout);
  }
}
