// expect: weft: a task that holds 'write' on an object may delegate 'write' only
#include <weft/weft.hpp>
void look(weft::read<int>);
void f(weft::write<int> w) { weft::fork(look, w); }
