// SPDX-License-Identifier: BSL-1.0
// expect: weft: the body of a migratable thread is called without arguments
#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

struct walker {
  int to = 1;
  void operator()(int) {}
};

int main() {
  weft::thread_cluster c(2);
  c.run([] { weft::spawn(weft::migratable, walker{}); });
}
