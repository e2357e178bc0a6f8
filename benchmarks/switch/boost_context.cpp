// SPDX-License-Identifier: BSL-1.0
// Boost.Context's public fiber: the same switch without anything around it.
#include "config.hpp"

#include <boost/context/fiber.hpp>

#include <cfenv>
#include <utility>

namespace weft_bench {
namespace {

outcome run(int, unsigned) {
  std::feraiseexcept(FE_INEXACT);  // equal flags in both contexts, see weft.cpp
  long n = 0;
  bool stop = false;
  boost::context::fiber other([&](boost::context::fiber&& main) {
    while (!stop) {
      ++n;
      main = std::move(main).resume();
    }
    return std::move(main);
  });
  other = std::move(other).resume();
  n = 0;
  const stopwatch clock;
  for (long i = 0; i < switches / 2; ++i) other = std::move(other).resume();
  const double seconds = clock.seconds();
  stop = true;
  other = std::move(other).resume();
  return plain_outcome(2 * n, switches, seconds);
}

bool fits(int index, unsigned workers) { return problems[index].what == change_stacks && workers == 1; }

const registration entry("boost-context", run, fits);

}  // namespace
}  // namespace weft_bench
