// SPDX-License-Identifier: BSL-1.0
// What the one-sided operations of an MPI can do, found out by trying.
#pragma once

#include <weft/mpi/communicator.hpp>
#include <weft/rma/detail/remote_memory.hpp>
#include <weft/rma/window_options.hpp>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

namespace weft::inline WEFT_ABI::rma::detail {

/// What a probe has found.
struct probe_result {
  std::string wrong;       ///< what forbids the operations; empty if nothing does
  bool one_sided = false;  ///< whether a target may stay outside MPI
};

/// What an error of MPI says, without the name of the library.
inline std::string text_of(const mpi::error& e) { return std::string(e.what()).substr(6); }
/// What the other processes say then.
inline constexpr const char* fails_elsewhere = "MPI's operations fail in another process";

/// How memory is reached that is not shared. *Throws*: weft::error if MPI's operations are demanded, and
/// something forbids them.
inline backend chosen(backend demanded, const probe_result& found) {
  if (demanded == backend::mpi && !found.wrong.empty())
    throw error("weft: the one-sided operations of this MPI cannot be used: " + found.wrong);
  if (demanded != backend::between_nodes) return demanded;
  return found.wrong.empty() && found.one_sided ? backend::mpi : backend::messages;
}

/// Stays outside MPI for a time.
struct sleep_outside {
  void operator()(std::chrono::milliseconds time) const { std::this_thread::sleep_for(time); }
};

/// Whether the last process can finish an operation on process 0 while that stays outside MPI; no other
/// thread of process 0 may call MPI meanwhile. Collective. `flag`: a word of this process; `operation` works
/// on process 0 and returns what it has read last, of the word there. Process 0 sets the word before it
/// enters MPI again: so only an operation that has read zero is sure to have ended before. One that comes too
/// late may have had no processor, and is tried again, for longer; one that MPI refuses counts as too late.
/// `outside(time)`: what process 0 does meanwhile. *Throws*: mpi::error, but for those of `operation`.
template <class Operation, class Outside = sleep_outside>
bool found_one_sided(const mpi::communicator& group, std::uint64_t& flag, Operation&& operation,
                     Outside outside = {}) {
  if (group.size() == 1) return true;
  const std::atomic_ref<std::uint64_t> over(flag);
  for (std::chrono::milliseconds time{5}; time.count() < 100; time *= 4) {
    // Relaxed: the barriers of MPI come before the first operation, and after the last.
    over.store(0, std::memory_order_relaxed);
    group.barrier();
    bool in_time = false;
    if (group.rank() == 0) {
      outside(time);
      // Before all that this process does in MPI: its partner is what MPI does to answer the operation.
      over.store(1, std::memory_order_seq_cst);
    } else if (group.rank() == group.size() - 1) {
      try {
        in_time = operation() == 0;
      } catch (const mpi::error&) {  // process 0 waits in the next collective call
      }
    }
    if (group.max<int>(in_time) != 0) return true;
  }
  return false;
}

/// All processes work on a word of process 0 at once, with additions, with replacements by comparison, and
/// with both and others; then the last process adds to it while process 0 stays outside MPI. Collective. When
/// something has gone wrong, nothing more is tried.
/// `first`: the first of two words, which are zero before; `flag`: the second one of this process.
/// *Throws*: mpi::error, but for those of the operations.
inline probe_result probe(const memory_words& words, std::uint32_t first, std::uint64_t& flag,
                          const mpi::communicator& group) {
  constexpr std::uint64_t rounds = 20;
  const auto n = static_cast<std::uint64_t>(group.size());
  probe_result found;
  const auto contend = [&](const char* name, std::uint64_t expected, auto operation) {
    if (!found.wrong.empty()) return;  // as in all processes
    std::string failed;
    const auto attempt = [&](auto&& f) {  // the others wait in the next barrier
      try {
        if (failed.empty()) f();
      } catch (const mpi::error& e) {
        failed = text_of(e);
      }
    };
    std::uint64_t is = 0;
    group.barrier();
    attempt([&] {
      for (std::uint64_t i = 0; i < rounds; ++i) operation();
    });
    group.barrier();
    attempt([&] { is = words.load(0, first); });
    group.barrier();
    if (group.rank() == 0) attempt([&] { words.store(0, first, 0); });
    const int worst = group.max(!failed.empty() ? 2 : is != expected ? 1 : 0);
    if (worst == 1) found.wrong = std::string("MPI loses ") + name;
    if (worst == 2) found.wrong = failed.empty() ? fails_elsewhere : failed;
  };
  contend("additions", rounds * n, [&] { words.fetch_add(0, first, 1); });
  const auto increment = [&] {
    for (std::uint64_t seen = words.load(0, first), was = 0;; seen = was)
      if ((was = words.compare_exchange(0, first, seen, seen + 2)) == seen) return;
  };
  contend("replacements by comparison", 2 * rounds * n, increment);
  contend("additions, replacements and bits", (4 * rounds * n) | 1, [&] {
    words.fetch_add(0, first, 2);
    words.fetch_or(0, first, 1);
    increment();
  });
  if (!found.wrong.empty()) return found;
  found.one_sided = found_one_sided(group, flag, [&] {
    for (int i = 0; i < 8; ++i) words.fetch_add(0, first, 1);
    return words.load(0, first + 1);
  });
  return found;
}

}  // namespace weft::inline WEFT_ABI::rma::detail
