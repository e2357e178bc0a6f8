// expect: weft: a task that holds 'read' on an object may hand on 'read' only
#include <weft/weft.hpp>
void set(weft::write<int>);
void f(weft::read<int> r) { weft::fork(set, r); }
