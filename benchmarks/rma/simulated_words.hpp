// SPDX-License-Identifier: BSL-1.0
// Words of processes on simulated machines, each access at the cost that SimGrid finds for it.
#pragma once

#include <weft/rma/words.hpp>

#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>
#include <vector>

namespace s4u = simgrid::s4u;
using weft::rma::process;
using weft::rma::progress;

[[noreturn]] inline void fail(const char* why) {
  std::fprintf(stderr, "simulated: %s\n", why);
  std::abort();
}

/// Seconds. The SCC has no atomic operations: they are made of two accesses and a test-and-set register of
/// the core that the word belongs to. They take 1.6 us in all by the paper's Table 2: a shared lock and
/// unlock of GBH are two of them, and 3.35 us; accesses are a third of that.
inline constexpr double software_of_atomics = 1.1e-6;
/// On a cluster: words of the process itself are in its cache; other accesses are packets, of so many bytes.
inline constexpr double own_word = 0.05e-6, first_poll = 0.2e-6, last_poll = 2e-6;
inline constexpr std::uint64_t packet = 64;
/// Processes differ by so much for each number: nothing happens at the same time, so the order in which
/// SimGrid treats simultaneous events, which depends on addresses, does not matter.
inline constexpr double own_tick = 1e-12;
inline constexpr double first_pause = 1e-6, last_pause = 1e-3;  // of gbh_backoff
/// When the writer begins: all readers of mcs_wp wait then. With gbh_backoff they come back all the time, so
/// the moment varies.
inline constexpr double readers_have_come = 250e-6, moments = 100e-6;

/// What all processes see.
struct world {
  std::vector<std::vector<std::uint64_t>> words;
  std::vector<s4u::Host*> memory;
  std::vector<s4u::Host*> tile;       // where the test-and-set register of a core is
  std::vector<char> taken;            // these registers
  std::vector<int> writers, readers;  // inside, of each target
  std::vector<std::vector<double>> times;
  std::vector<const void*> values;  // what processes put together
  std::uint64_t accesses = 0;
  bool scc = false;
};

class simulated_words {
 public:
  /// `patient`: waits between two looks at a register.
  simulated_words(world& w, process self, bool patient)
      : world_(w), self_(self), patient_(patient), here_(s4u::this_actor::get_host()) {}
  process self() const { return self_; }
  std::uint64_t load(process p, std::uint32_t i) { return access(p), at_(p, i); }
  void store(process p, std::uint32_t i, std::uint64_t v) { access(p), at_(p, i) = v; }
  std::uint64_t fetch_add(process p, std::uint32_t i, std::uint64_t v) {
    return atomic(p, [&] { return std::exchange(at_(p, i), at_(p, i) + v); });
  }
  std::uint64_t fetch_or(process p, std::uint32_t i, std::uint64_t v) {
    return atomic(p, [&] { return std::exchange(at_(p, i), at_(p, i) | v); });
  }
  std::uint64_t exchange(process p, std::uint32_t i, std::uint64_t v) {
    return atomic(p, [&] { return std::exchange(at_(p, i), v); });
  }
  std::uint64_t compare_exchange(process p, std::uint32_t i, std::uint64_t expected, std::uint64_t v) {
    return atomic(p, [&] { return std::exchange(at_(p, i), at_(p, i) == expected ? v : at_(p, i)); });
  }
  /// A word of a process, or its first bytes, are read or written.
  void access(process p) {
    ++world_.accesses;
    if (!world_.scc && p == self_)
      s4u::this_actor::sleep_for(own_word + own_tick * self_);
    else
      s4u::Comm::sendto(world_.memory[at(p)], here_, world_.scc ? 4 : packet);
  }
  /// Lets `f` happen at once. On the SCC: with the test-and-set register of a core, a read and a write. Who
  /// waits for the register reads it all the time, which loads the tile of that core and delays its own
  /// accesses.
  template <class F>
  std::invoke_result_t<F> atomic(process p, F f) {
    if (!world_.scc) {
      access(p);
      return f();
    }
    s4u::this_actor::sleep_for(software_of_atomics + own_tick * self_);
    s4u::Host* tile = world_.tile[at(p)];
    for (double pause = first_pause;; pause = std::min(2 * pause, last_pause)) {
      s4u::Comm::sendto(tile, here_, 4);
      if (std::exchange(world_.taken[at(p)], char{1}) == 0) break;
      if (patient_) s4u::this_actor::sleep_for(pause);
    }
    access(p);
    access(p);
    const auto was = f();
    s4u::Comm::sendto(here_, tile, 4);
    world_.taken[at(p)] = 0;
    return was;
  }
  /// Writes bytes into the memory of a process: word by word on the SCC, at once on a cluster.
  void put(process p, int bytes) {
    if (!world_.scc) return s4u::Comm::sendto(here_, world_.memory[at(p)], static_cast<std::uint64_t>(bytes));
    for (int i = 0; i < bytes; i += 4) access(p);
  }
  bool scc() const { return world_.scc; }

 private:
  static std::size_t at(process p) { return static_cast<std::size_t>(p); }
  std::uint64_t& at_(process p, std::uint32_t i) { return world_.words[at(p)][i]; }
  world& world_;
  process self_;
  bool patient_;
  s4u::Host* here_;
};
