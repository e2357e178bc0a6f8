// SPDX-License-Identifier: BSL-1.0
// The serial program: runs random programs with every fork as a call, and prints what they append.
// usage: serial_appends <first seed> <count> <depth>
#include "stream/programs.hpp"

#include <cstdlib>

namespace {

using stream_test::digest;
using stream_test::planned;
using stream_test::program;
using stream_test::statement;

struct stream {
  std::string bytes;
  std::size_t position = 0;
};

void call(const program& p, stream& to) {
  std::string& out = to.bytes;
  for (const statement& s : p) switch (s.what) {
      case statement::kind::write:
      case statement::kind::text:
      case statement::kind::hook:
        out += s.bytes;
        break;
      case statement::kind::append_child:
      case statement::kind::run:
      case statement::kind::other_child:
        call(s.body, to);
        break;
      case statement::kind::loop:
        for (int i = 0; i < s.times; ++i) call(s.body, to);
        break;
      case statement::kind::guarded:
        try {
          call(s.body, to);
        } catch (const planned&) {
        }
        break;
      case statement::kind::fail:
        throw planned();
      case statement::kind::read: {
        const std::size_t half = out.size() / 2;
        const std::string head = digest(out.substr(0, half)), tail = digest(out.substr(half));
        out += tail + head;
        break;
      }
      case statement::kind::look:
      case statement::kind::inspect:
        out += digest(out);
        break;
      case statement::kind::next: {
        const std::string next = out.substr(to.position, stream_test::next_bytes);
        to.position += next.size();
        out += '(' + next + ')';
        break;
      }
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
    const std::uint64_t seed = first + std::uint64_t(i);
    stream to{"begin "};
    bool throws = false;
    try {
      call(stream_test::make(seed, std::atoi(arguments[3])), to);
    } catch (const planned&) {
      throws = true;
    }
    if (stream_test::reads(seed)) to.bytes += digest(to.bytes);
    const auto r = stream_test::result::of(to.bytes + "end", throws);
    std::printf("%llu %llu %d\n", static_cast<unsigned long long>(r.size),
                static_cast<unsigned long long>(r.hash), r.throws);
  }
}
