// SPDX-License-Identifier: BSL-1.0
// What the one-sided operations of an MPI can do, found out by trying.
#pragma once

#include <weft/mpi/communicator.hpp>
#include <weft/rma/detail/remote_memory.hpp>

#include <chrono>
#include <thread>

namespace weft::inline WEFT_ABI::rma::detail {

/// What a probe has found.
struct probe_result {
  const char* wrong = nullptr;  ///< operations that have lost something, or null
  bool one_sided = true;        ///< whether a target may stay outside MPI
};

/// All processes work on one word of process 0 at once, with additions, with replacements by comparison, and
/// with both and others; then the last process adds to it while process 0 sleeps. Collective. The word is
/// zero before and after. *Throws*: mpi::error.
inline probe_result probe(const memory_words& words, std::uint32_t index, const mpi::communicator& group) {
  constexpr std::uint64_t rounds = 20;
  const auto n = static_cast<std::uint64_t>(group.size());
  probe_result found;
  const auto contend = [&](const char* name, std::uint64_t expected, auto operation) {
    group.barrier();
    for (std::uint64_t i = 0; i < rounds; ++i) operation();
    group.barrier();
    const std::uint64_t is = words.load(0, index);
    group.barrier();
    if (group.rank() == 0) words.store(0, index, 0);
    if (group.max<int>(is != expected) != 0 && found.wrong == nullptr) found.wrong = name;
  };
  contend("additions", rounds * n, [&] { words.fetch_add(0, index, 1); });
  const auto increment = [&] {
    for (std::uint64_t seen = words.load(0, index), was = 0;; seen = was)
      if ((was = words.compare_exchange(0, index, seen, seen + 2)) == seen) return;
  };
  contend("replacements by comparison", 2 * rounds * n, increment);
  contend("additions, replacements and bits", (4 * rounds * n) | 1, [&] {
    words.fetch_add(0, index, 2);
    words.fetch_or(0, index, 1);
    increment();
  });
  using clock = std::chrono::steady_clock;
  double seconds = 0;
  group.barrier();
  if (n > 1 && group.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));
  if (n > 1 && group.rank() == group.size() - 1) {
    const auto start = clock::now();
    for (int i = 0; i < 8; ++i) words.fetch_add(0, index, 1);
    seconds = std::chrono::duration<double>(clock::now() - start).count();
  }
  found.one_sided = group.max(seconds) < 0.015;
  if (group.rank() == 0) words.store(0, index, 0);
  group.barrier();
  return found;
}

}  // namespace weft::inline WEFT_ABI::rma::detail
