// expect: weft: the task cannot be called with these arguments
#include <weft/weft.hpp>
void f(int& i) {
  weft::fork([](int&) {}, i);
}
