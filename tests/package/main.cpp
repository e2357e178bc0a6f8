// SPDX-License-Identifier: BSL-1.0
// A program of somebody who knows only the package's name.
#include <weft/version.hpp>
#include <weft/weft.hpp>

#include <cstdio>

int main() {
  weft::runtime rt;
  weft::shared<long> x, y;
  rt.run([&] {
    weft::fork([](long& out) { out = 21; }, weft::write(x));
    weft::fork([](const long& in, long& out) { out = 2 * in; }, weft::read(x), weft::write(y));
  });
  std::printf("weft %s says %ld\n", weft::version_string, y.get());
}
