// SPDX-License-Identifier: BSL-1.0
// expect: weft: an argument of this task cannot go to another process: pointers, references and views cannot
#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

int main() {
  weft::thread_cluster c(2);
  c.run([] {
    weft::shared<int> r;
    const char* const name = "n";
    weft::fork(
        weft::anywhere, {.name = "length"}, [](const char* n, weft::write<int> w) { w = n[0]; }, name, r);
  });
}
