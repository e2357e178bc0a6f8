// SPDX-License-Identifier: BSL-1.0
// expect: weft: the body of a migratable thread cannot go to another process: it must be an object whose members travel
#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

int main() {
  weft::thread_cluster c(2);
  c.run([] {
    const int to = 1;
    weft::spawn(weft::migratable, [to] { weft::this_thread::migrate(to); });
  });
}
