// SPDX-License-Identifier: BSL-1.0
// How a step is partitioned, and what a process has done for it.
#pragma once

#include <weft/placement/owner_computes.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::inline WEFT_ABI {

/// Options of a partitioned step; the same in all processes. An aggregate for designated initialisers.
struct partition_options {
  /// Where tasks are executed: weft::placement::owner_computes, etf, dsc, metis, scotch, or a function of the
  /// program's own. Process 0 calls it.
  placement::method method = placement::owner_computes;
  /// Of each task, in seconds, in the order of their forks. Empty: all alike, until they have been measured.
  std::vector<double> costs = {};
  /// Tasks are placed anew between steps when a step would then take less than 1 minus so much of its time,
  /// as far as the measured costs tell. 1: never.
  double threshold = 0.2;
  double latency = 20e-6;  ///< of a message, in seconds
  double bandwidth = 1e9;  ///< in bytes per second
  /// The file that names the last checkpoint, in a directory that all processes see; their parts lie beside
  /// it. Of one step of one job at a time. Empty: none are made.
  std::string checkpoint = {};
  double checkpoint_seconds = 1;  ///< from one to the next, if an iteration does not take longer
  /// How many bytes of values a process has at most that have come before a task there needs them; and how
  /// many wait in a process to be sent. Who would send more waits: its next task that writes the object does
  /// not begin before. One value of each object that comes from another process is accepted in any case, so
  /// that no limit is too small to go on. Bytes are those of values as they are sent.
  std::size_t ahead_bytes = 64 << 20;
};

/// What one process has done for a partitioned step so far.
struct partition_counters {
  std::uint64_t steps = 0;            ///< iterations in which it took part
  std::uint64_t tasks = 0;            ///< of the step, executed here
  std::uint64_t messages = 0;         ///< sent, all kinds
  std::uint64_t bytes = 0;            ///< of these
  std::uint64_t redistributions = 0;  ///< how often tasks were placed anew
  std::uint64_t checkpoints = 0;      ///< of which this process has begun to write its part
  std::uint64_t long_messages = 0;    ///< sent in parts, of cluster_options::part_bytes
  std::uint64_t memory_refused = 0;   ///< long messages of others for which there was no memory
  std::uint64_t values_held = 0;      ///< that waited here until their receiver had asked for them
  std::uint64_t most_ahead = 0;       ///< bytes that had come before a task needed them, at most at a time
};

}  // namespace weft::inline WEFT_ABI
