// SPDX-License-Identifier: BSL-1.0
// The serial program: runs random programs with every fork as a call, and prints what they append.
// usage: serial_appends <first seed> <count> <depth>
#include "stream/programs.hpp"

#include <cstdlib>

namespace {

using stream_test::planned;
using stream_test::program;
using stream_test::statement;

void call(const program& p, std::string& out) {
  for (const statement& s : p) switch (s.what) {
      case statement::kind::write:
      case statement::kind::text:
      case statement::kind::hook:
        out += s.bytes;
        break;
      case statement::kind::append_child:
      case statement::kind::run:
      case statement::kind::other_child:
        call(s.body, out);
        break;
      case statement::kind::guarded:
        try {
          call(s.body, out);
        } catch (const planned&) {
        }
        break;
      case statement::kind::fail:
        throw planned();
      case statement::kind::sync:
      case statement::kind::nap:
        break;
    }
}

}  // namespace

int main(int count_of_arguments, char** arguments) {
  if (count_of_arguments != 4) return 2;
  const std::uint64_t first = std::strtoull(arguments[1], nullptr, 10);
  for (int i = 0; i < std::atoi(arguments[2]); ++i) {
    std::string bytes = "begin ";
    bool throws = false;
    try {
      call(stream_test::make(first + std::uint64_t(i), std::atoi(arguments[3])), bytes);
    } catch (const planned&) {
      throws = true;
    }
    const auto r = stream_test::result::of(bytes + "end", throws);
    std::printf("%llu %llu %d\n", static_cast<unsigned long long>(r.size),
                static_cast<unsigned long long>(r.hash), r.throws);
  }
}
