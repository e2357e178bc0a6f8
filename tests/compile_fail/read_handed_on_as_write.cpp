// expect: weft: a task that holds 'read' on an object may delegate 'read' only
#include <weft/weft.hpp>
void set(weft::write<int>);
void f(weft::read<int> r) { weft::fork(set, r); }
