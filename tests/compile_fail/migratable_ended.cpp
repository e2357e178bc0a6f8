// SPDX-License-Identifier: BSL-1.0
// expect: weft: what is called when a migratable thread has ended gets its object
#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

struct walker {
  int to = 1;
  void operator()() {}
};

int main() {
  weft::thread_cluster c(2);
  c.run([] { weft::spawn(weft::migratable, walker{}, [](int) {}); });
}
