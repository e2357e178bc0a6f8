// SPDX-License-Identifier: BSL-1.0
// Ordered locks: a row of cells that is smoothed in place, again and again, each cell by a recurrent task.
// prints: cells after 40 iterations as in the serial loop: yes
//
// With the argument `times` it prints instead when each turn waited and computed, for draw_turns.
#include <weft/orwl.hpp>
#include <weft/weft.hpp>

#include <cstdio>
#include <cstring>
#include <deque>
#include <iostream>
#include <vector>

namespace {

constexpr std::size_t cells = 34;
constexpr int iterations = 40;

double smooth(double west, double mine, double east) {
  for (int i = 0; i < 200; ++i) mine = 0.25 * west + 0.5 * mine + 0.25 * east;  // some work
  return mine;
}

}  // namespace

int main(int argc, char** argv) {
  namespace orwl = weft::orwl;
  std::deque<orwl::location<double>> cell;
  std::vector<double> serial;
  for (std::size_t i = 0; i < cells; ++i) {
    cell.emplace_back(static_cast<double>(i * i % 17));
    serial.push_back(cell.back().get());
  }

  orwl::overlay row;
  for (std::size_t i = 1; i + 1 < cells; ++i)
    row.task(
        {.name = "cell"},
        [](double& mine, const double& west, const double& east) { mine = smooth(west, mine, east); },
        orwl::write(cell[i]), orwl::read(cell[i - 1]), orwl::read(cell[i + 1]));
  row.schedule();
  row.record();
  weft::runtime rt;
  row.run(rt, iterations);

  if (argc > 1 && std::strcmp(argv[1], "times") == 0) {
    row.write_times(std::cout);
    return 0;
  }
  for (int k = 0; k < iterations; ++k)
    for (std::size_t i = 1; i + 1 < cells; ++i) serial[i] = smooth(serial[i - 1], serial[i], serial[i + 1]);
  bool same = true;
  for (std::size_t i = 0; i < cells; ++i) same = same && cell[i].get() == serial[i];
  std::printf("cells after %d iterations as in the serial loop: %s\n", iterations, same ? "yes" : "no");
  return same ? 0 : 1;
}
