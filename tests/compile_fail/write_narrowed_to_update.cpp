// expect: weft: a task that holds 'write' on an object cannot see its old value, so it cannot delegate 'update'
#include <weft/weft.hpp>
void f(weft::write<int> w) {
  weft::fork([](int&) {}, weft::update(w));
}
