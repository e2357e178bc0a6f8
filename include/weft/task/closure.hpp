// SPDX-License-Identifier: BSL-1.0
// The record of a forked task: a static descriptor, a state, the objects it accesses, its arguments.
#pragma once

#include <weft/base/atomic.hpp>
#include <weft/task/access.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

namespace weft::inline WEFT_ABI::sched {

struct closure;
struct travel;
/// Tells how tasks of one type travel; null: they do not.
using travel_function = const travel* (*)() noexcept;

/// What a user may say of one task. An aggregate for designated initialisers.
struct task_options {
  const char* name = "task";  ///< shown by reports; must outlive the task (a string literal)
  int priority = 0;           ///< larger is more urgent, among the ready tasks of a large frame
  bool local = false;         ///< never stolen: runs in its parent's strand
  bool event = false;         ///< may call this_task::hold(); never runs inside fork
};

/// The options of tasks that were forked without any, and of closures that are no tasks.
inline constexpr task_options default_options{};
inline const task_options& options_by_default(const closure&) noexcept { return default_options; }

inline constexpr std::uint32_t all_parts = UINT32_MAX;

/// All that is known of a kind of task at compile time; one static object per fork site's types.
struct descriptor {
  void (*run)(closure&) =
      nullptr;  ///< calls the body and destroys the arguments; lets the body's exception out
  void (*drop)(closure&) noexcept = nullptr;  ///< destroys the arguments of a task that never runs
  const access_mode* modes = nullptr;         ///< rights on the objects, in the order of closure::objects()
  std::size_t objects = 0;                    ///< how many
  const task_options& (*options)(const closure&) noexcept = &options_by_default;
  bool plain = true;  ///< only read, write and update of whole objects, all of them in objects()
  /// Tells the accesses besides those on objects(), also while the task runs; null: there are none.
  void (*more)(closure&, access_visitor&) = nullptr;
  /// Folds a contribution that was made apart into its object; `all_parts`: destroys the arguments, after
  /// that. Null: there are no contributions.
  void (*fold)(closure&, std::uint32_t part) = nullptr;
  /// For each of the objects: how to rename it for this task; or null. Null: none of them is renamed.
  const version_kind* const* kinds = nullptr;
  bool part = false;    ///< of a loop: counts as ready wherever it stands
  bool marker = false;  ///< stands for a record, not for a task (recorded_call.hpp)
  bool fence = false;   ///< starts when all tasks before it in its frame have ended (fence.hpp); local
  /// Where a program that includes the room cluster has put how the task goes to another process. Null: it
  /// does not.
  const travel_function* travels = nullptr;
  /// Of tasks that are traced, or shown to a keeper: what they are otherwise.
  const descriptor* untraced = nullptr;
  bool at_home = false;  ///< finds its objects at their own place only: nowhere else where they are renamed

  /// The same for tasks that differ only in whether they are traced.
  const descriptor* kind() const noexcept { return untraced != nullptr ? untraced : this; }
};

/// created: nobody started it. stolen: a thief runs it. awaited: a thief runs it and a strand waits for that.
/// noted: a thief runs it and is to tell the graph of the frame.
/// done, failed: a thief ended it, or (failed) it stands for an exception at this place in reference order.
enum class closure_state : std::uint8_t { created, stolen, awaited, noted, done, failed };

/// A task's record, on the closure arena of the strand that forked it, followed by object pointers and
/// arguments.
///
/// Who may touch it when:
///  1. Until it is linked into its frame, the forking worker alone.
///  2. Afterwards `what`, `objects()` and the arguments are constant until the task is claimed (who
///     runs a node of a graph first puts addresses of versions there, see `object`); `next` is written
///     once, by the forking worker, with release, and read with acquire.
///  3. The owner of the strand claims it by storing frame::current; a thief, alone inside the strand,
///     by `state` created -> stolen. Whoever claimed it runs it, moves the arguments out and destroys
///     them.
///  4. stolen -> awaited by the strand that waits; stolen or awaited -> done or failed by the thief
///     that ran it: one exchange, so exactly one of the two continues the waiting strand.
///  5. `counted` belongs to the owner of the strand.
///  6. `may_wait_for_earlier` is constant once the closure is linked.
struct closure {
  const descriptor* what;
  base::atomic<closure*> next{nullptr};
  base::atomic<closure_state> state{closure_state::created};
  bool local = false;       ///< thieves leave it alone
  bool counted = false;     ///< part of the strand's surplus
  bool privatized = false;  ///< contributions are kept in the closure until they are folded
  std::uint16_t depth = 0;  ///< of the stack where it was forked (exposure.hpp); constant once it is linked
  bool may_wait_for_earlier =
      false;            ///< may wait for tasks before it with which it shares no object (graph_owner.hpp)
  bool unused = false;  ///< all these are set by one store

  explicit closure(const descriptor& d) noexcept : what(&d) {}
  closure(const closure&) = delete;
  closure& operator=(const closure&) = delete;
  ~closure() {}  // take_failure has been called, or there is none

  /// The addresses of the objects accessed; they identify the data for conflict detection. They follow the
  /// record.
  void* const* objects() const noexcept { return reinterpret_cast<void* const*>(this + 1); }

  /// One of them, where somebody may just be redirecting the closure to a version of it.
  const void* object(std::size_t i) const noexcept {
    return base::racy_load(static_cast<const void*>(objects() + i));
  }

  /// When and where it was forked, if it is traced (observe/trace.hpp); in which unit, if it is shown to a
  /// keeper (task_keeper.hpp). *Requires*: it has no failure yet.
  void set_stamp(std::uint64_t s) noexcept { stamp_ = s; }
  std::uint64_t stamp() const noexcept { return stamp_; }

  /// Stores the exception of a closure that is about to be failed.
  void set_failure(std::exception_ptr e) noexcept { std::construct_at(&failure_, std::move(e)); }
  /// *Requires*: state failed, not taken out.
  const std::exception_ptr& failure() const noexcept { return failure_; }
  /// Takes the exception out. *Requires*: state failed; called once.
  std::exception_ptr take_failure() noexcept {
    std::exception_ptr e = std::move(failure_);
    std::destroy_at(&failure_);
    return e;
  }

 private:
  struct nothing {};
  union {
    nothing no_failure_{};
    std::uint64_t stamp_;         // constant once the closure is linked
    std::exception_ptr failure_;  // belongs to whoever runs the task, until the state says failed
  };
};

/// Whether a thief has use for a closure; null: for every one.
using thief_filter = bool (*)(const closure&) noexcept;

}  // namespace weft::inline WEFT_ABI::sched
