// expect: weft: fork needs exactly one argument for each parameter of the task
#include <weft/weft.hpp>
void f() {
  weft::fork([](int, int) {}, 1);
}
