// SPDX-License-Identifier: BSL-1.0
// expect: weft: cluster::run returns the same in all processes, so the type of the result must be one that can be sent
#include <weft/cluster/threads.hpp>

int main() {
  static int here = 0;
  weft::thread_cluster c(2);
  return *c.run([] { return &here; });
}
