// expect: weft: a temporary shared object ends before the task that is to use it
#include <weft/weft.hpp>
void f() {
  weft::fork([](weft::read<int>) {}, weft::shared<int>(1));
}
