// expect: weft: the right is 'read', so the parameter must not be a reference to non-const
#include <weft/weft.hpp>
void f() {
  weft::shared<int> x;
  weft::fork([](int&) {}, weft::read(x));
}
