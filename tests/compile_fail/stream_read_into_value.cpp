// expect: weft: a task that reads a stream declares the parameter as weft::stream_reader
#include <weft/append.hpp>
#include <weft/weft.hpp>
void f(weft::append_file& file) {
  weft::fork([](weft::append) {}, weft::read(file));
}
