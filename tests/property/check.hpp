// SPDX-License-Identifier: BSL-1.0
// Compares a program's run on the library with the oracle, and explains a difference.
#pragma once

#include "execute.hpp"
#include "program.hpp"

#include <weft/weft.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace property {

/// How a program is run: the runtime's options, the seed it came from, and whether the oracle is made wrong.
struct setup {
  std::uint64_t seed = 0;
  unsigned workers = 1;
  bool inlining = true;
  unsigned surplus = 4;
  unsigned spin = 100;  // microseconds
  unsigned cap = 1u << 14;
  bool planted = false;
  const char* test = "one program";  // the hidden test case that runs one seed

  weft::runtime_options options() const;
  /// One line for a shell that runs this program again under these options.
  std::string command() const;
};

/// *Returns*: a sentence about the first task that did not run as often as it should have, else nothing.
std::string wrong_runs(const expectation& want, const observation& got);

/// Runs p once; empty if library and oracle agree, else one sentence. `alone` says that no other program runs
/// in this process, so that living instances can be counted. The seed's parity picks the value type.
std::string difference(weft::runtime& rt, const program& p, const setup& how, bool alone = true);

/// While it lives, a crash, an abort, or a run that takes longer than the limit for one program also prints
/// the command that repeats it. One at a time.
class last_words {
 public:
  last_words();
  ~last_words();
  last_words(const last_words&) = delete;
  last_words& operator=(const last_words&) = delete;

  /// Says what runs now and starts its clock.
  void now(const setup& how);
  /// Starts the clock anew, for one of the programs that shrinking tries.
  static void give_time();
};

/// What shrinking a program has come to: the first and the last sentence about a difference, sizes, and the
/// program as text.
struct shrunk {
  std::string first, last;
  std::size_t size_before, size;
  std::string text;
};
/// *Returns*: what a person needs to work on it.
std::string report(const setup& how, const shrunk& what);

/// Shrinks a program that differed. `once` runs one, compares it with what is expected, and returns a
/// sentence or nothing.
template <class Program, class Once>
std::string explain_by(const Program& p, const setup& how, const std::string& first, Once&& once) {
  std::string last = first;
  int tries = 1;
  const auto fails = [&](const Program& q) {
    last_words::give_time();
    const auto want = interpret(q, how.planted);
    for (int i = 0; i < tries; ++i) {
      const std::string text = once(q, want);
      if (text.empty()) continue;
      last = text;
      return true;
    }
    return false;
  };
  int again = 0, rounds = 0;  // how often it fails says how often to try a smaller one
  for (tries = 1; rounds < 40; ++rounds) again += fails(p);
  tries = again == 0 ? 200 : 1 + 4 * rounds / again;
  const Program small = shrink(p, fails, std::chrono::seconds(20));
  return report(how, {first, last, size(p), size(small), print(small)});
}

/// Shrinks a program that differed and returns what a person needs to work on it.
std::string explain(weft::runtime& rt, const program& p, const setup& how, const std::string& first);

}  // namespace property
