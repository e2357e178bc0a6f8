// SPDX-License-Identifier: BSL-1.0
// What windows and hash tables ask of the group of their processes.
#pragma once

#include <weft/rma/words.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <string>

namespace weft::inline WEFT_ABI::mpi {
class communicator;
}

namespace weft::inline WEFT_ABI::rma {

/// The part that one process has in a group of processes, which are numbered from 0: mpi::communicator, or
/// thread_group, where threads of one process are in their place. All but rank(), size(), abandon() and
/// end_job() are collective. Who leaves a window by an exception abandons the group: others that wait for it
/// must learn of that. end_job() prints a message and ends all processes.
template <class G>
concept process_group = requires(const G& g, G& own, int i, std::uint64_t n, const std::string& why) {
  { g.rank() } -> std::convertible_to<process>;
  { g.size() } -> std::convertible_to<int>;
  g.barrier();
  { g.sum(n) } -> std::same_as<std::uint64_t>;
  { g.max(i) } -> std::same_as<int>;
  { g.broadcast(std::array<std::uint64_t, 2>{}) } -> std::same_as<std::array<std::uint64_t, 2>>;
  g.gather(n);
  own.abandon();
  g.end_job(why);
};

namespace detail {

/// The memory of windows of a group: `type`, which derives from window_memory.
template <class Group>
struct memory_of {
  static_assert(sizeof(Group*) == 0,
                "weft: windows of an MPI job need <weft/rma.hpp>, those of threads <weft/rma/threads.hpp>");
};

}  // namespace detail
}  // namespace weft::inline WEFT_ABI::rma
