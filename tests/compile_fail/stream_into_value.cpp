// expect: weft: a task that is given a stream gets the right to append to it; declare the parameter as weft::append
#include <weft/append.hpp>
#include <weft/weft.hpp>
void f(weft::append_file& file) {
  weft::fork([](weft::append_file&) {}, file);
}
