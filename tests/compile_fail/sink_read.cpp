// expect: weft: what has gone into a sink cannot be read; use an append_file
#include <weft/append.hpp>
#include <weft/weft.hpp>
void f(weft::append_sink& sink) {
  weft::fork([](weft::stream_reader) {}, weft::read(sink));
}
