// expect: weft: the function given to finalise is too large; keep what it needs behind a pointer
#include <weft/append.hpp>

#include <array>
void f(weft::append out) {
  out.finalise([bytes = std::array<char, 100000>()](weft::append_tail& tail) { tail.write(bytes.data()); });
}
