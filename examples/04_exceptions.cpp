// SPDX-License-Identifier: BSL-1.0
// Exceptions: whatever the schedule, run throws the exception that the serial program would have thrown
// first.
//
// Prints:
//   caught: line 3 is not a number
//   the runtime goes on: 6

#include <weft/weft.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>

static void parse(int line, const std::string& text, weft::write<int> value) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos)
    throw std::invalid_argument("line " + std::to_string(line) + " is not a number");
  value = std::stoi(text);
}

int main() {
  weft::runtime rt;
  weft::shared<int> a, b, c, d;
  try {
    rt.run([&] {
      weft::fork(parse, 1, std::string("1"), a);
      weft::fork(parse, 2, std::string("2"), b);
      weft::fork(parse, 3, std::string("three"), c);
      weft::fork(parse, 4, std::string("four"), d);  // throws too, or is dropped: line 3 comes first
    });
  } catch (const std::invalid_argument& e) {
    std::printf("caught: %s\n", e.what());
  }

  weft::shared<int> sum;
  rt.run([&] {
    weft::fork(parse, 3, std::string("3"), c);
    weft::fork([](int x, int y, int z, int& r) { r = x + y + z; }, weft::read(a), weft::read(b),
               weft::read(c), weft::write(sum));
  });
  std::printf("the runtime goes on: %d\n", sum.get());
}
