// SPDX-License-Identifier: BSL-1.0
// Compares a program's run on the library with the oracle, and explains a difference.
#pragma once

#include "interpret.hpp"
#include "program.hpp"

#include <weft/weft.hpp>

#include <chrono>
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
  planted fault = planted::nothing;

  weft::runtime_options options() const {
    weft::runtime_options o;
    o.workers = workers;
    o.inlining = inlining;
    o.surplus = surplus;
    o.cap = cap;
    o.spin = std::chrono::microseconds(spin);
    return o;
  }
  /// One line for a shell that runs this program again under these options.
  std::string command() const;
};

struct observation;

/// *Returns*: empty if the run has shown what the oracle wants, else one sentence.
std::string compare(const program& p, const expectation& want, const observation& got);

/// Runs p once; empty if library and oracle agree, else one sentence. `alone` says that no other program runs
/// in this process, so that living instances can be counted. The seed's parity picks the value type.
/// `together` counts the contributors that began while another one of their object ran.
std::string difference(weft::runtime& rt, const program& p, const setup& how, bool alone = true,
                       std::uint64_t* together = nullptr);

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

/// Shrinks a program that differed and returns what a person needs to work on it.
std::string explain(weft::runtime& rt, const program& p, const setup& how, const std::string& first);

}  // namespace property
