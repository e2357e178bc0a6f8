// SPDX-License-Identifier: BSL-1.0
// expect: nothing; it compiles
#include <weft/append.hpp>
#include <weft/weft.hpp>

#include <functional>
void f(weft::read<int> x, weft::reduce<int, std::plus<>> sum, weft::append out) {
  const weft::steal_function give([&](weft::thief& t) {
    t.fork([](int, const int&, weft::reduce<int, std::plus<>>, weft::append) {}, 1, x, sum, out);
  });
}
