// expect: (deleted function|call to deleted constructor)
#include <weft/weft.hpp>
void f() {
  weft::shared<int> x(1);
  weft::shared<int> y(x);
}
