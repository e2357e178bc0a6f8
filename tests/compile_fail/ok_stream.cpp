// expect: nothing; the ways to delegate a stream, and a hook
#include <weft/append.hpp>
#include <weft/weft.hpp>
void f(weft::append_file& file, weft::append out) {
  weft::fork([](weft::append) {}, file);
  weft::fork([](auto) {}, out);
  weft::fork([](weft::stream_reader in) { weft::fork([](weft::stream_reader) {}, in); }, weft::read(file));
  weft::fork([](weft::stream_reader) {}, file);
  weft::fork([](auto) {}, weft::read(out, weft::file_pointer::global));
  out.finalise([](weft::append_tail& tail) { tail.write("end"); });
}
