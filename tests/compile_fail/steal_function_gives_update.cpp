// SPDX-License-Identifier: BSL-1.0
// expect: a steal function can give away values and rights to read, contribute and append
#include <weft/weft.hpp>
void f(weft::update<int> x) {
  const weft::steal_function give([&](weft::thief& t) { t.fork([](int&) {}, x); });
}
