// expect: weft: a task that holds 'read' on an object may delegate 'read' only, not 'update'
#include <weft/weft.hpp>
void f(weft::read<int> r) {
  weft::fork([](int&) {}, weft::update(r));
}
