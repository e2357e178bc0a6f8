// SPDX-License-Identifier: BSL-1.0
// expect: weft: the result of this task cannot come back from another process
#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

#include <memory>

int main() {
  weft::thread_cluster c(2);
  c.run([] { weft::fork(weft::anywhere, [](int n) { return std::make_unique<int>(n); }, 1); });
}
