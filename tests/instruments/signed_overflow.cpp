// SPDX-License-Identifier: BSL-1.0
// Planted fault: an addition that leaves the range of int.
#include <limits>

int main(int argc, char**) {
  volatile int sum = std::numeric_limits<int>::max();
  sum = sum + argc;
  return 0;
}
