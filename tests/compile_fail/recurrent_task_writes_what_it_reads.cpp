// expect: weft: a recurrent task is called with T& for each location that it writes and const T& for each that it reads
#include <weft/orwl.hpp>
void f(weft::orwl::overlay& o, weft::orwl::location<int>& l) {
  o.task([](int&) {}, weft::orwl::read(l));
}
