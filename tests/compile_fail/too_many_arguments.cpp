// expect: weft: fork (has more arguments than|needs exactly one argument for each of the) ?.*parameter
#include <weft/weft.hpp>
void f() {
  weft::fork([](int) {}, 1, 2);
}
