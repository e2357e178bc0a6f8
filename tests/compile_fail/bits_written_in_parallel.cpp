// expect: weft: elements of a std::vector<bool> share words and cannot be written in parallel; take bytes
#include <weft/algorithms.hpp>

#include <vector>
void f(weft::runtime& rt, const std::vector<int>& v, std::vector<bool>& bits) {
  weft::transform(rt, v, bits.rbegin(), [](int i) { return i > 0; });
}
