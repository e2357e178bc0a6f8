// expect: weft: the parameter's right is on another type than the object's
#include <weft/weft.hpp>
void f() {
  weft::shared<int> x;
  weft::fork([](weft::read<long>) {}, x);
}
