// SPDX-License-Identifier: BSL-1.0
// expect: a task that a steal function forks returns nothing
#include <weft/weft.hpp>
void f() {
  const weft::steal_function give([](weft::thief& t) { t.fork([] { return 1; }); });
}
