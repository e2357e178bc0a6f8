// SPDX-License-Identifier: BSL-1.0
// The policy of granularity: from which length on work is worth moving to another core.
#pragma once

#include <weft/base/config.hpp>

#include <chrono>
#include <cstdint>

/// Constants of all feedback loops that compare the length of tasks with the price of moving them. *Source*
/// of the measured ones: docs/development/decisions.md, "Large frames become graphs", on two cores of an AMD
/// EPYC.
namespace weft::inline WEFT_ABI::sched::granularity {

/// Thieves leave shorter tasks of large frames to their owner: a closure and its data take as long to reach
/// another core's cache. Measured: empty tasks take 250 ns each when they are stolen, 10 to 20 when they are
/// left.
inline constexpr std::chrono::nanoseconds tiny_task(WEFT_TINY_TASK_NS);
/// A batch of tasks at least this many times as long as tiny ones ends the cooldown. Between the two nothing
/// changes, so that tasks of about the limit do not make thieves come and go.
inline constexpr unsigned worthwhile = 2;

/// What a body takes longer if it is not its frame's owner who executes it: its record and its data come from
/// another core's cache. Not counted as the task's own time.
inline constexpr std::chrono::nanoseconds transfer(100);

/// After so many tasks of its own, the owner of a graph compares what all workers have done meanwhile with
/// what it would have done alone; not where tasks are longer than the second.
inline constexpr std::uint32_t comparison_window = 128;
inline constexpr std::chrono::nanoseconds longest_doubtful(1'000);

/// How many pending closures make a frame large. Smaller ones cost some 100 instructions per task less
/// without a graph.
inline constexpr unsigned large_frame = WEFT_LARGE_FRAME;

/// For how long thieves leave a frame of tiny tasks alone, at first; doubled each time, up to
/// longest_cooldown. A theft in vain stops the owner for about a microsecond: 2 % of the first cooldown.
inline constexpr std::chrono::microseconds first_cooldown(WEFT_COOLDOWN_US);
inline constexpr std::chrono::microseconds longest_cooldown = 32 * first_cooldown;
/// After a search that found no parallelism in a frame, thieves leave it alone for this many times as long as
/// they searched: the owner, who stood still meanwhile, loses 6 %. Measured: a chain took 60 to 1,000 ns per
/// task without. The first search of a strand often comes while its body still forks, and says less.
/// Simulated: 16 workers had nothing to do for the first 300 microseconds of a wavefront.
inline constexpr unsigned fruitless_search = 16, first_fruitless_search = 2;
/// Thieves who have found nothing but graphs in a strand do not enter it for the first, doubled each time up
/// to the second: what graphs have to do is seen from outside. A visit may take a process-wide fence, which
/// stops every worker for about a microsecond.
inline constexpr std::chrono::microseconds first_visit_pause(25), longest_visit_pause(200);

/// Workers take twice as many tasks of a graph at once while a batch takes less than the first, half as many
/// while it takes more than the second. Short enough to be given back soon, long enough for the lock of the
/// graph. Measured: 10 and 20 microseconds in place of 5 changed nothing.
inline constexpr std::chrono::nanoseconds short_batch(5'000), long_batch(20'000);
inline constexpr std::uint32_t largest_batch = 64;
/// Of tasks whose bodies take longer, a worker keeps one only while fewer are ready than there are workers:
/// who looks at the others' needs once in a body looks too rarely. Simulated: Cholesky, 16 workers.
inline constexpr std::chrono::microseconds long_body(5);
/// A batch that took longer than this, and three times as long as tiny tasks would, contains longer tasks
/// than its first one.
inline constexpr std::chrono::nanoseconds mixed_batch(10'000);

/// After so many tasks that became ready when it ended others, and that it kept, a worker reports to the
/// graph what it has done; after twice as many, even if another worker holds the lock.
inline constexpr std::uint32_t most_kept_nodes = 64;
/// How many closures a worker visits when it comes to a graph in which too few nodes are ready: while it is
/// not known that tasks are not tiny, else, and if it is the owner then. A thief does so if it has not seen
/// the owner for some time. Simulated, with 16 workers: a visit takes a thief 300 ns, since what it reads is
/// in other caches, and the owner 25 if it is ahead of those who execute what it has visited.
inline constexpr std::size_t visited_at_first = 32, visited_at_once = 128, visited_by_owner = 2048;
inline constexpr std::chrono::microseconds owner_stays_away(10);
/// How often a thief looks whether a graph, all of which was visited, has more closures by now: a body may go
/// on forking for long.
inline constexpr std::chrono::microseconds unasked_look(50);

/// Thieves do not come back to a graph for a batch that took no longer than this, whatever its tasks took.
inline constexpr std::chrono::nanoseconds short_stay(1'000);

/// A thief whose stolen task took less than the first pauses before the next theft, for the second at first,
/// doubled each time up to 32 times. A theft costs both workers about as much as the task then.
inline constexpr std::chrono::nanoseconds short_theft(3'000), first_pause(2'000);
inline constexpr unsigned pause_doublings = 5;
/// After so many thefts in a row that took less than this from one crowded frame, or one right after a
/// cooldown of it, thieves leave the frame alone for another one. In a frame of few closures, later ones may
/// be far longer, as where a body calls itself. Measured: a theft of one empty task takes 300 to 500 ns, of
/// one of 250 ns 700 to 900. Where cache lines travel slowly, twice the time to take a task out counts, if
/// that is more. Simulated, with lines of 415 ns: a theft of a task of 10 ns takes 4 microseconds, and holds
/// its owner up for 18.
inline constexpr std::chrono::nanoseconds tiny_theft = 4 * tiny_task;
inline constexpr unsigned most_tiny_thefts = 4;
inline constexpr unsigned crowded_frame = (large_frame + 1) / 2;

/// A strand leaves tasks to thieves at most this often, on average (exposure.hpp). A theft costs both workers
/// one to five microseconds; with a task that is left, in a recursion, some ten smaller ones are deferred, 20
/// ns each.
inline constexpr std::chrono::nanoseconds exposure_interval(WEFT_EXPOSURE_NS);
/// Where nothing is known of the tasks of a strand, so many are exposed at first, whenever they come.
inline constexpr unsigned exposed_at_first = 16;

/// An owner wakes a sleeping worker at most once in this time (a system call of some microseconds), up to 2^8
/// times more rarely while wakes are in vain; and asks more rarely whether to, where tasks take less than
/// `fast_task`.
inline constexpr std::chrono::microseconds wake_interval(20), fast_task(1);
inline constexpr unsigned wake_doublings = 8;
/// An owner whose wakes were not answered for so long moves sleepers away from its own processor: the kernel
/// may have put them behind it there, for a time slice of some milliseconds, although others are idle.
/// Measured with two workers on two processors: a program of 3 ms got no second worker in 5 of 10 runs.
inline constexpr std::chrono::microseconds wake_answered(100);

/// A strand that a worker has made ready is its own for so long; then it is anybody's. Longer than a change
/// of context, shorter than waking a sleeper.
inline constexpr std::chrono::microseconds kept_for_itself(2);
/// How long an idle worker sleeps at a time while another one goes from one kept strand to the next, and when
/// one is left lying. A look takes a heavy fence, some 10 microseconds.
inline constexpr std::chrono::microseconds kept_too_long(1'000), kept_and_left(50);
/// How many of them a worker executes before it looks for those that were ready earlier.
inline constexpr unsigned most_kept = 64;

}  // namespace weft::inline WEFT_ABI::sched::granularity
