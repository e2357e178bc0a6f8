// SPDX-License-Identifier: BSL-1.0
// Planted fault: a write behind the end of a heap block.
#include <memory>

int main(int argc, char**) {
  const auto block = std::make_unique<int[]>(4);
  block.get()[3 + argc] = 1;
  return 0;
}
