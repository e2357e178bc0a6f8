// SPDX-License-Identifier: BSL-1.0
// expect: fork_for needs exactly one argument for each parameter of the function but the index
#include <weft/weft.hpp>
void f(weft::runtime& rt, weft::shared<int>& x) {
  rt.run([](weft::read<int> v) { weft::fork_for(0, 3, [](const int&) {}, v); }, x);
}
