// expect: weft: the right on this object is not named
#include <weft/weft.hpp>
void f() {
  weft::shared<int> x;
  weft::fork([](int&) {}, x);
}
