// SPDX-License-Identifier: BSL-1.0
// expect: weft: the callable of this task cannot go to another process: take a function, a lambda that captures nothing
#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

int main() {
  weft::thread_cluster c(2);
  c.run([] {
    weft::shared<int> r;
    const int n = 1;
    weft::fork(weft::anywhere, [n](weft::write<int> w) { w = n; }, r);
  });
}
