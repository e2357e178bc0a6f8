// SPDX-License-Identifier: BSL-1.0
// One sequential flow of tasks: its stack of frames, its memory, and the lock by which thieves enter.
#pragma once

#include <weft/base/contract.hpp>
#include <weft/base/lock.hpp>
#include <weft/context/stack_pointer.hpp>
#include <weft/memory/deferred_release.hpp>
#include <weft/task/delegated_rights.hpp>
#include <weft/task/exposure.hpp>
#include <weft/task/frame.hpp>
#include <weft/task/held_lock.hpp>
#include <weft/task/node_batch.hpp>
#include <weft/task/races.hpp>
#include <weft/task/steal_cooldown.hpp>
#include <weft/task/task_lifetime.hpp>

#include <chrono>
#include <cstdint>

namespace weft::inline WEFT_ABI::sched {

class worker;
struct run_state;
struct signal;
struct abandonable;
struct context_slot;
struct strand;
class graph;
struct graph_node;
struct recorded_call;
class divisible_body;
class worker_share;
class run_recorder;
struct kept_unit;
struct migratable_body;
}  // namespace weft::inline WEFT_ABI::sched
namespace weft::inline WEFT_ABI::observe {
class trace_row;
struct open_slice;
}  // namespace weft::inline WEFT_ABI::observe
namespace weft::inline WEFT_ABI::sched {

/// Looks of the owner at strand::attention end here. Any bit sends the owner off its fast path.
enum attention_bits : std::uint8_t {
  thief_inside = 1,       ///< a thief is in, or coming in: wait until it has left
  hungry = 2,             ///< a thief found nothing: make stealable closures
  took = 4,               ///< a thief took a closure that was counted as surplus
  stop_asked = 8,         ///< the run of this strand was stopped
  watched = 16,           ///< somebody wants to know whether the owner still looks (watchdog.hpp)
  inlining_changed = 32,  ///< tasks may not run inside fork any more, or may again (inlining.hpp)
  observed = 64,          ///< its tasks are traced or recorded, or shown to a keeper (task_keeper.hpp)
  left_alone = 128,       ///< tasks are too short to be stolen: thieves stay away for some time
};

/// idle: in the pool. running: a worker executes it. waiting: it needs something to happen first.
/// waiting_alone: the same, for a signal, and there is nothing in it for thieves.
enum class strand_status : std::uint8_t { idle, running, waiting, waiting_alone };

/// Whether a strand with this status waits.
inline bool is_waiting(strand_status s) noexcept {
  return s == strand_status::waiting || s == strand_status::waiting_alone;
}

/// What a waiting strand waits for: one of these.
struct wait_reason {
  closure* task = nullptr;    ///< in its innermost frame: stolen, or an event outside the runtime
  signal* happens = nullptr;  ///< a run that its body has called, or another signal
  graph* large = nullptr;     ///< something ready in this, the graph of its innermost frame
};

/// While this is not zero, no task of this process runs inside fork: how many handles may make a body wait
/// for another one (inlining.hpp).
WEFT_PER_PROCESS inline base::atomic<std::uint32_t> inlining_disablers{0};

/// Values of strand::surplus while thieves leave the strand alone: more than is ever wanted or taken. With
/// the larger one, the owner has not tried yet to run what is pending.
inline constexpr std::uint32_t left_alone_surplus = 1u << 30, left_alone_untried = 1u << 31;

/// Stronger than [[likely]], which loses against the compiler's belief that recursive calls are rare.
WEFT_ALWAYS_INLINE bool likely(bool b) noexcept { return __builtin_expect_with_probability(b, 1, 0.99999); }

/// The value of strand::limit that sends every fork and sync off the fast path: no address of a stack is less
/// than `widest` above it (modulo 2^64). Fits into an instruction, as a negative number of 32 bits.
inline constexpr std::uintptr_t no_inlining = static_cast<std::uintptr_t>(INT32_MIN);

/// The widest strand::window. Of longer stacks, forks near the beginning leave the fast path.
inline constexpr std::uintptr_t widest = std::uintptr_t{1} << 29;

/// A body with weak rights only while it runs inside fork. Its children join the frame of the body around it,
/// behind older ones that may be pending there; what those throw is not the business of its sync.
struct weak_body {
  weak_body* outer;                    ///< the one that runs around it, with whatever between
  const frame* floor;                  ///< strand::floor while it runs
  base::atomic<closure*>* first_link;  ///< in the frame: what stands before it is older; null: nothing is
  bool older_failed = false;           ///< the frame was closed by one of the older ones
};

/// A strand (KAAPI's thread). Never freed before its engine, so stale pointers to it are harmless.
///
/// Who may touch it when:
///  1. The first group belongs to the owner: the worker that executes it or, while it waits, whoever ends the
///     awaited closure.
///  2. `attention` is set by anybody, cleared by the owner (and `thief_inside` by the thief that set it).
///  3. `status` and what follows change under `mutex`; a thief holds `mutex` as long as it is inside. But its
///     owner alone makes a running strand wait alone, and go on: then it looks whether a visitor is inside,
///     who reads `awaits` and `waits` only if a heavy fence lies between its bit and its look at the status.
///  4. A thief inside a running strand has moreover made sure that the owner sees `thief_inside` at its
///     next look: the owner answered (`answer` equals `entry`), or a heavy fence lies between. Owners look
///     after claiming a closure and after popping a frame, before they rely on the one or reuse the other
///     (sched/README.md).
///  5. `stoppable` is set by its body; engine::end_waits reads it behind a heavy fence.
struct alignas(64) strand {
  constexpr strand() noexcept : attention(0) {}
  /// What threads find that are no workers (current.hpp).
  constexpr explicit strand(std::uint8_t bits) noexcept : attention(bits), outside(true) {}

  std::uintptr_t limit = no_inlining;  ///< stack address above which fork may still run the task at once,
  std::uintptr_t window = 0;           ///< and how many addresses from there on: above, `exposed` is asked
  base::atomic<std::uint8_t> attention;
  bool started = false;              ///< its own closure has begun
  const bool outside = false;        ///< of every task: nothing else of it means anything
  std::uint32_t surplus = 0;         ///< stealable closures left for thieves, as far as the owner knows
  std::uint32_t wanted_surplus = 0;  ///< 0: there is no other worker
  exposure exposed;                  ///< which forks leave their tasks to thieves
  std::uintptr_t inline_limit = no_inlining;  ///< `limit` while inlining is allowed, on this context's stack
  std::uintptr_t stack_limit =
      0;  ///< below this address of its context's stack bodies are not nested any more
  arena objects;
  cleanup* cleanups = nullptr;
  frame* floor = nullptr;  ///< the frame that contains the running body's own closure
  frame* top = nullptr;    ///< the innermost frame; equal to floor if the running body has deferred nothing
  arena closures;
  worker* executor = nullptr;
  std::uint32_t drains =
      0;                   ///< counts: a running body has run its children to their end, or a new life begins
  std::uint32_t live = 0;  ///< closures in its frames
  std::uint32_t cap = 0;   ///< how many of them there may be before fork runs some
  std::uint32_t worker_number = 0;  ///< of the executor (worker_number.hpp); 0: the thread is no worker
  std::uint64_t deferred = 0;       ///< closures of popped frames since the worker last counted them
  deferred_release left;  ///< of the running body; if any, tasks run inside fork clean up behind themselves
  const char* inline_name = nullptr;       ///< name of the innermost named task that runs inside fork
  weak_body* weak = nullptr;               ///< the innermost one on the stack
  bool had_children = false;               ///< what it executes has had some that were deferred
  std::uint32_t no_suspends = 0;           ///< scopes in which its bodies must not wait
  std::chrono::nanoseconds last_offer{0};  ///< when sleepers were last told of this strand
  std::chrono::nanoseconds unanswered{0};  ///< since when that has brought nobody; 0: nobody is expected
  std::uint32_t awoken = 0;                ///< engine::awoken at that time
  unsigned moved_sleepers = 0;             ///< how often they were moved meanwhile, at most five times
  std::chrono::nanoseconds last_look{0};   ///< when that was last considered
  unsigned quiet_tasks = 0;                ///< how many may pass until then, if there is little to tell,
  unsigned quiet_length = 0;               ///< and how many they were at first
#if WEFT_RACES
  std::shared_ptr<races::task> racing;  ///< the running task
#endif
#if WEFT_CHECKED
  delegated_rights delegated;  ///< what the running body has delegated
  task_lives lives;
  held_lock* holds = nullptr;  ///< the innermost scope in which its bodies must not wait
#endif
  recorded_call* recorded = nullptr;  ///< what the running body calls for a record; null: nothing
  late_exception thrown;              ///< what a drained frame leaves to the sync or the strand's end

  alignas(64) frame root;  ///< holds the one closure this strand was made for; thieves watch it

  alignas(64) base::spin_lock mutex;
  base::atomic<strand_status> status{strand_status::idle};
  wait_reason awaits;                     ///< while it waits
  base::atomic<std::uint32_t> waits{0};   ///< how often it has waited
  base::atomic<std::uint32_t> entry{0};   ///< number of the thief's visit
  base::atomic<std::uint32_t> answer{0};  ///< number of the visit the owner knows of
  base::atomic<std::uint32_t> taken{0};   ///< surplus closures taken since the owner looked
  base::atomic<run_state*> run{nullptr};
  base::atomic<abandonable*> stoppable{nullptr};  ///< a wait of its body that ends with those of its run
  base::atomic<worker_share*> share{nullptr};     ///< of its run; null: it may have all workers
  base::atomic<graph*> graphs{nullptr};           ///< of its promoted frames, changed under
  base::spin_lock graphs_mutex;
  base::atomic<divisible_body*> divisible{nullptr};  ///< of its bodies, the outermost first, changed under
  base::spin_lock divisible_mutex;                   ///< which thieves hold while they call steal functions
  base::atomic<bool> earliest_first{false};     ///< thieves better take what comes soon in reference order
  steal_cooldown cooldown;                      ///< frames that thieves leave to the owner
  visit_pause visits;                           ///< whether thieves come in at all
  graph* source_graph = nullptr;                ///< whose nodes it executes, if it took them from a graph:
  graph_node* node = nullptr;                   ///< the one it executes,
  node_batch batch;                             ///< and its others. `start`: of any stolen task
  int priority = 0;                             ///< what its tasks inherit
  std::uint32_t deepest = exposure::unlimited;  ///< depth limit that its first task begins with
  strand* victim = nullptr;             ///< whose closure this strand executes; else null, and at_end is set,
  const frame* victim_below = nullptr;  ///< and the frame below the one it was in, if that was crowded
  base::clock::time_point victim_cooldown{};  ///< the end of the victim's last cooldown then
  base::clock::duration taking{};             ///< how long it took the thief to take its task, once found
  signal* (*at_end)(strand&) noexcept =
      nullptr;                        ///< called when it has ended; returns a signal to be set, or null,
  void* end_of = nullptr;             ///< for this
  context_slot* suspended = nullptr;  ///< the stack on which its body waits; null: it waits as data
  worker* waiting_at = nullptr;       ///< whose list of waiting strands it is in
  strand* next = nullptr;             ///< in that list, or in a pool or queue
  strand* previous = nullptr;
  strand* lower = nullptr;                ///< in a queue with priorities
  strand* last_of_equals = nullptr;       ///< the same
  kept_unit* unit = nullptr;              ///< in which its bodies run (task_keeper.hpp); null: in none
  run_recorder* recorder = nullptr;       ///< of the run, if it is recorded and this is its first strand
  observe::trace_row* row = nullptr;      ///< of the executor, if there is a trace,
  observe::open_slice* slices = nullptr;  ///< the bodies on its stack, the innermost first,
  const char* waits_for = nullptr;        ///< why it waits
  std::uint64_t waits_since = 0;          ///< and since when, in ticks; 0: it does not,
  std::uint64_t waits_on = 0;             ///< and where until then, and for which object: observe::wait_place
  std::byte* last_memory = nullptr;       ///< lent by the engine where none was left for an exception
  migratable_body* migratable = nullptr;  ///< what it executes, if that may go to another process; else null

  /// Whether a fork may run its task at once: nothing pending in the frame, stack left, no task to be
  /// exposed.
  WEFT_ALWAYS_INLINE bool may_inline() const noexcept {
    // Relaxed: whoever sets a bit needs only that it is seen soon; off the fast path it is read with acquire.
    return likely(attention.load(base::memory_order_relaxed) == 0) &&
           likely(context::stack_pointer() - limit < window);  // one comparison; no_inlining is above it
  }
  /// Whether thieves have left it alone since they were last hungry.
  bool is_left_alone() const noexcept { return surplus >= left_alone_surplus / 2; }
  /// Forgets what thieves have found and taken. Writes only what changes: thieves have it in their caches.
  /// *Requires*: none is inside.
  void forget_thieves() noexcept {
    cooldown.reset();
    visits.reset();
    if (earliest_first.load(base::memory_order_relaxed))
      earliest_first.store(false, base::memory_order_relaxed);
    if (taken.load(base::memory_order_relaxed) != 0) taken.store(0, base::memory_order_relaxed);
  }
  /// Whether the running body has deferred closures that have not all ended.
  bool pending() const noexcept { return top != floor; }
  bool pending_at_root() const noexcept { return top != &root; }
  /// Whether forks leave tasks to thieves at all.
  bool exposes() const noexcept { return wanted_surplus != 0 && !is_left_alone(); }
  /// Whether a fork of the running body leaves its task to thieves. *Requires*: nothing is pending.
  WEFT_ALWAYS_INLINE bool exposes_task() noexcept {
    if (!exposes()) return false;
    const std::uintptr_t here = context::stack_pointer();
    if (here < exposed.lowest_address() && !exposed.owes()) return false;
    if (!exposed.exposes(here, wanted_surplus)) {
      restore_window();
      return false;
    }
    visits.end();
    return true;
  }
  /// Sets `limit` for a body that has nothing pending.
  void restore_limit() noexcept { limit = !left.any() ? inline_limit : no_inlining; }
  /// Sets `window`, after a change of what it depends on: the stack, who exposes tasks, and how deep.
  void restore_window() noexcept {
    const std::uintptr_t end = exposes() ? exposed.lowest_address() : UINTPTR_MAX;
    window = end <= stack_limit ? 0 : end - stack_limit < widest ? end - stack_limit : widest;
  }
  object_mark mark() const noexcept { return {objects.mark(), cleanups}; }
  /// Releases what the running body has left, as far as possible. *Requires*: it has no children.
  WEFT_COLD void release_deferred() noexcept {
    left.release(objects, cleanups, floor->objects.cleanups);
    restore_limit();
  }
};

/// Whether the running body has forked a task with an access on the object that may not have ended.
WEFT_COLD inline bool may_be_accessed(const strand& s, const void* object) noexcept {
  if (!s.pending()) return false;
  // Relaxed: the owner reads links that it wrote itself.
  for (const closure* c = s.top->first.load(base::memory_order_relaxed); c != nullptr;
       c = c->next.load(base::memory_order_relaxed))
    for (std::size_t i = 0; i < c->what->objects; ++i)
      if (c->object(i) == object) return true;
  return false;
}

/// Checked builds: stops the program if a body that is about to wait holds something. `how`: as in "calls
/// sync()".
inline void check_nothing_held([[maybe_unused]] const strand& s,
                               [[maybe_unused]] const char* (*task)() noexcept,
                               [[maybe_unused]] const char* how) noexcept {
#if WEFT_CHECKED
  if (s.holds == nullptr) [[likely]]
    return;
  const char* const name = task();
  base::fail(
      "task '%s' %s while '%s' is held (no_suspend at %s:%u); a suspended task may resume on another "
      "kernel thread, so release it first",
      name != nullptr ? name : "task", how, s.holds->name, s.holds->where.file_name(),
      static_cast<unsigned>(s.holds->where.line()));
#endif
}

/// Checked builds: the tasks that have left children in the frame have ended with them.
WEFT_ALWAYS_INLINE void end_lives([[maybe_unused]] strand& s, [[maybe_unused]] const frame* f) noexcept {
#if WEFT_CHECKED
  s.lives.end_frame(f);
#endif
}

/// Destroys the objects registered since the mark was taken and releases their memory.
WEFT_COLD inline void run_cleanups(strand& s, cleanup* down_to) noexcept {
  while (s.cleanups != down_to) {
    cleanup* c = s.cleanups;
    s.cleanups = c->below;
    c->run();
  }
}

WEFT_ALWAYS_INLINE void release_objects(strand& s, const object_mark& m) noexcept {
  if (s.cleanups != m.cleanups) [[unlikely]]
    run_cleanups(s, m.cleanups);
  s.objects.release_to(m.memory);
}

}  // namespace weft::inline WEFT_ABI::sched
