// SPDX-License-Identifier: BSL-1.0
// What a cluster is like, and what a process of it has done.
#pragma once

#include <weft/options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace weft::inline WEFT_ABI {

/// Options of a cluster; the same in all its processes. An aggregate for designated initialisers.
struct cluster_options {
  /// Of the runtime of each process. `workers` 0: the processors that the process may use, shared evenly
  /// among the processes of its machine, at least one.
  runtime_options runtime{};
  /// A process that nobody has work for waits at two others, which send it tasks when they have some.
  /// Meanwhile it asks one chosen at random, after longer and longer pauses, of 32 times this at most.
  std::chrono::microseconds longest_pause{1000};
  /// Longer messages go in parts of so many bytes, from 1 KiB to 1 GiB, when the receiver has room; so do
  /// values of partitioned steps.
  std::size_t part_bytes = 256 << 10;
  std::size_t largest_task = 64 << 20;  ///< tasks that have more bytes to be sent are executed where they are
  /// A process keeps values of so many bytes and more that tasks of other processes have read, so that they
  /// need not be sent again for the next tasks. Bytes are those of the value as it is sent.
  std::size_t cached_from = 8 << 10;
  /// How many bytes of such values a process keeps at most during a run, of all other processes together; 0:
  /// none.
  std::size_t cache_bytes = 256 << 20;
  /// The directory of checkpoints, which all processes see; it is made if there is none. Of one job at a
  /// time. Empty: none are made.
  std::string checkpoint = {};
  double checkpoint_seconds = 1;  ///< from one to the next; 0: none are made
  /// A process that takes part in a run and has not answered for so long has died or hangs: the job ends with
  /// a message that names it. Those above and below it in a tree of the processes watch it; they send each
  /// other a message when they have had nothing else to send for a third of this time. A process that has not
  /// begun the run yet is waited for without limit, since what it computes before is its own affair. So it is
  /// with run(), resume() and save() of a weft::partitioned. From 10 ms to 24 h; 0: nobody is watched.
  ///
  /// The default is long enough for a process that is swapped out. Where all processes are suspended and
  /// resumed together, nobody is blamed; one that alone is suspended for longer is, as in a debugger: set 0.
  std::chrono::milliseconds silence = std::chrono::minutes(5);
};

/// What one process has exchanged with others in all runs so far.
struct cluster_counters {
  std::uint64_t requests = 0;            ///< for tasks, sent
  std::uint64_t requests_in_vain = 0;    ///< answered by no task
  std::uint64_t lifelines = 0;           ///< times it has begun to wait at another process for tasks
  std::uint64_t closures_pushed = 0;     ///< tasks sent to processes that waited; they count as sent, too
  std::uint64_t closures_sent = 0;       ///< tasks that went to other processes
  std::uint64_t closures_received = 0;   ///< tasks of other processes executed here
  std::uint64_t closures_kept = 0;       ///< tasks that could not be sent, and were executed here after all
  std::uint64_t threads_sent = 0;        ///< how often a migratable thread has gone from here
  std::uint64_t threads_received = 0;    ///< how often one has come; that it comes home does not count
  std::uint64_t memory_refused = 0;      ///< tasks and long messages of others for which there was no memory
  std::uint64_t long_messages = 0;       ///< that were sent in parts
  std::uint64_t messages = 0;            ///< sent, all kinds
  std::uint64_t bytes = 0;               ///< of these
  std::uint64_t tasks_recorded = 0;      ///< that have ended, as it is noted for checkpoints
  std::uint64_t tasks_found = 0;         ///< in checkpoints of an earlier job, and not executed again
  std::uint64_t checkpoints = 0;         ///< files of checkpoints written
  std::uint64_t checkpoints_failed = 0;  ///< that could not be written
  std::uint64_t values_cached = 0;       ///< that were not sent to a task, since its process had kept them
  std::uint64_t bytes_saved = 0;         ///< that these have
};

}  // namespace weft::inline WEFT_ABI
