// SPDX-License-Identifier: BSL-1.0
// Planted fault: two threads that add to one variable without order.
#include <thread>

int main() {
  long sum = 0;
  const auto add = [&sum] {
    for (int i = 0; i < 1000; ++i) sum += i;
  };
  std::thread other(add);
  add();
  other.join();
  return sum < 0 ? 1 : 0;
}
