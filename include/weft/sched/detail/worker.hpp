// SPDX-License-Identifier: BSL-1.0
// A worker: one kernel thread that executes strands, waits without blocking, and steals when it has nothing.
#pragma once

#include <weft/base/thread.hpp>
#include <weft/graph/graph_fold.hpp>
#include <weft/graph/graph_hints.hpp>
#include <weft/graph/graph_visit.hpp>
#include <weft/observe/counters.hpp>
#include <weft/observe/trace_slices.hpp>
#include <weft/sched/detail/context_pool.hpp>
#include <weft/sched/detail/drain.hpp>
#include <weft/sched/detail/readiness.hpp>
#include <weft/sched/detail/strand_list.hpp>
#include <weft/sched/detail/vain_visits.hpp>
#include <weft/sched/worker_number.hpp>

#include <string>
#include <system_error>
#include <vector>

namespace weft::inline WEFT_ABI::sched {

class engine;
class outside_thief;
class steal_entry;
class worker_share;

/// Who may touch it when:
///  1. `running` is written by the worker; thieves read it, then check strand::status under strand::mutex.
///     `asleep` is written by the worker, for reports.
///  2. `waiting` is locked by its own lock, which is taken before a strand's lock, never after.
///  3. `kept` is set by the worker and emptied by whoever executes the strand; `kept_number` is written by
///  the
///     worker.
///  4. Everything else belongs to the worker's thread; counters may be read by anybody.
class worker {
 public:
  worker(engine& home, unsigned index, observe::trace_row* row)
      : index_(index), home_(&home), row_(row), random_(index * 0x9E3779B97F4A7C15ull + 1) {
    idle_.executor = this;
    idle_.worker_number = number_.value();
  }
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  engine& home() const noexcept { return *home_; }
  void count(observe::worker_counters::event e, std::uint64_t n = 1) noexcept { counters_.add(e, n); }
  const observe::worker_counters& counters() const noexcept { return counters_; }
  /// The strand that it executes, or null, and whether it sleeps; for any thread.
  strand* executed() const noexcept { return running_.load(base::memory_order_acquire); }  // pairs with adopt
  bool asleep() const noexcept { return asleep_.load(base::memory_order_relaxed); }        // a hint

  /// Starts the kernel thread. *Throws*: std::system_error, std::bad_alloc.
  void start();
  /// Keeps the kernel thread on one processor. *Requires*: it was started. *Throws*: std::system_error if the
  /// process may not use the processor, std::bad_alloc.
  void pin(unsigned processor) {
    if (const int refused = base::pin(thread_, processor))
      throw std::system_error(refused, std::generic_category(),
                              "weft: worker " + std::to_string(index_) + " cannot be pinned to processor " +
                                  std::to_string(processor));
  }
  bool is_pinned(unsigned processor) { return base::is_pinned(thread_, processor); }
  /// Lets the kernel thread go on elsewhere if it waits for the caller's processor.
  void move_away() noexcept;
  /// Waits for the thread. *Requires*: the engine is shutting down.
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  /// Waits until nobody is inside the strand.
  WEFT_COLD static void let_leave(strand& s) noexcept { const std::lock_guard passed(s.mutex); }
  /// Makes the strand this worker's own and runs on with it.
  void adopt(strand& s) noexcept {
    const strand_status before = s.status.load(base::memory_order_relaxed);  // nobody else changes it
    if (is_waiting(before)) base::probe::wait_end(index_, &s);
    if (before == strand_status::waiting_alone) {
      base::owner_store(s.status, strand_status::running);
      // Either this sees a visitor, or that sees that the strand is executed.
      if ((base::owner_load(s.attention) & thief_inside) != 0) [[unlikely]]
        let_leave(s);
    } else {
      s.mutex.lock();
      s.status.store(strand_status::running, base::memory_order_relaxed);  // ordered by the lock
      s.mutex.unlock();
    }
    s.executor = this;
    s.worker_number = number_.value();
    if (row_ != nullptr) [[unlikely]] {
      row_->note_adoption();
      if (s.waits_since != 0) observe::resume_slices(s, *row_);
      s.row = row_;
    }
    running_.store(&s, base::memory_order_release);  // pairs with the acquire of thieves
    set_current(s);
    // Whoever looked for the last time while the strand waited sleeps without a time: somebody has to come
    // back when the cooldown is over, as in attend.
    if (s.is_left_alone() && sleepers_near(s)) [[unlikely]]
      offer(s, true);
  }
  /// Where every context begins.
  static void loop_on_context(void*) noexcept;
  /// Takes a strand that waited, and whose awaited closure has ended, out of its list; it is the caller's
  /// then.
  static void take_from_waiting(strand& s) noexcept {
    if (s.waiting_at != nullptr) s.waiting_at->waiting_.remove(s);
  }
  /// Executes a strand that goes on before anything else, when the running body ends or waits. If that takes
  /// long, another worker executes it. *Requires*: called by this worker's thread.
  void keep(strand& s) noexcept;
  /// A context as from the pool, from the thread's own reserve if possible; and back. *Requires*: called by
  /// this worker's thread. *Throws*: as context_pool::take.
  context_slot& take_context();
  void put_context(context_slot& c) noexcept;
  static strand* finish_noted(strand& victim, closure& c) noexcept;

  /// Waits in the strand that it executes: with its stack, or `as_data`, where no body is on that. *Returns*:
  /// false if the strand was put aside as data, and belongs to somebody else; else that it may look for what
  /// it needs again.
  bool await(strand& s, const wait_reason& what, bool as_data);
  /// Waits in a body for a signal of which the strand is the waiter; the worker runs on with `meanwhile`.
  void await_signal(strand& s, signal& g, context_slot& meanwhile) noexcept;

 private:
  friend class outside_thief;

  /// What has to be done on the next stack, once the one before is left.
  struct switch_action {
    context_slot* retired = nullptr;  ///< a stack nobody needs now
    strand* waits = nullptr;          ///< a strand whose body waits on the stack just left,
    wait_reason what{};               ///< for this
    strand* next = nullptr;           ///< a strand to go on with
  };

  void main(context_slot* first);
  void run_switch_action() noexcept;
  void switch_to(context_slot& to, switch_action first) noexcept;
  void execute(strand& s);
  void leave_stack() noexcept;
  void begin(strand& s) noexcept;
  strand* end(strand& s) noexcept;
  strand* end_stolen(strand& s) noexcept;
  strand* set(signal* g) noexcept;
  strand* go_on_with(strand* next, worker_share* share) noexcept;
  void give_back(worker_share& share) noexcept;
  bool put_aside(strand& s, const wait_reason& what) noexcept;
  static void wait_in_place(strand& s, const wait_reason& what) noexcept;
  strand* end_graph_task(strand& s) noexcept;
  void give_back_batches(strand& s) noexcept;
  void give_back_batch(strand& s, graph& g, node_batch& batch) noexcept;
  graph_node* next_batch(strand& s, graph_node* for_all, base::clock::time_point end,
                         strand*& owner) noexcept;
  bool looks_unasked() noexcept;
  strand* take_from_graphs(strand& s, bool running) noexcept;
  void look_again_at(deadline::clock::time_point t) noexcept;
  strand* take_from_graph(graph& g, strand& s) noexcept;
  strand* take_beside(graph& g, strand& s, std::size_t taken) noexcept;
  strand* begin_batch(strand* batch) noexcept;
  findings look_into(strand& s) noexcept;
  bool promote(strand& s, frame& f) noexcept;

  strand* find_work();
  strand* take_kept() noexcept;
  strand* unless_urgent(strand& kept) noexcept;
  strand* take_kept_of_others() noexcept;
  strand* look_around();
  strand* sleep();
  void look_for_place() noexcept;
  strand* steal();
  strand* note_steal(std::uint64_t began, strand* got) noexcept;
  strand* steal_from_running(strand& s);
  strand* steal_from_waiting(worker& victim);
  strand* take_part(strand& s) noexcept;
  bool lock_for_theft(strand& s) noexcept;
  bool fence_for(steal_entry& entry) noexcept;
  strand* take_from(strand& s) noexcept;
  void take_closure(strand& s, closure& c, const frame* below) noexcept;
  void take_more(strand& s, const frame& f, const frame* below) noexcept;
  strand* spare() noexcept;
  void announce_hunger() noexcept;
  static void ask(strand& s) noexcept;
  void note_theft(strand& ended) noexcept;
  std::uint64_t next_random() noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    return random_ ^= random_ << 17;
  }

  const worker_number number_;
  const unsigned index_;
  engine* home_;
  observe::trace_row* const row_;   ///< of the trace; null: there is none
  context_slot* active_ = nullptr;  ///< the stack the thread is on
  context_slot native_;             ///< the kernel thread's own stack
  switch_action switch_action_;
  strand* next_ = nullptr;   ///< to be executed next
  strand* spare_ = nullptr;  ///< kept for the next steal
  context_slot* spare_context_ = nullptr;
  unsigned kept_in_a_row_ = 0;  ///< executed since others were looked for
  struct {
    const worker* of = nullptr;
    std::uint32_t number = 0;
    base::clock::time_point since{};
  } seen_;                            ///< a strand kept by another worker
  std::uint32_t kept_by_others_ = 0;  ///< how many there were at the last look, in all
  thief_filter may_take_ = nullptr;   ///< set where it is no thread, but the hand of a thief outside,
  vain_visits in_vain_;               ///< and what only that needs:
  std::size_t more_wanted_ = 0;       ///< how many closures of a small frame it takes beside the first one,
  std::vector<strand*> more_;         ///< those
  pending_rights rights_;
  std::uint64_t random_;
  strand* to_continue_ = nullptr;   ///< found while it searched: an owner that waits, and has to go on
  unsigned steal_backoff_ = 0;      ///< how many tasks in a row were too short to be stolen
  unsigned tiny_thefts_ = 0;        ///< how many in a row were far too short, from
  const frame* tiny_in_ = nullptr;  ///< the frame right above this one
  base::clock::time_point no_steal_before_{};
  base::clock::time_point next_unasked_{};  ///< at graphs of which it is not known that there is something
  bool thorough_ = false;  ///< this is the last look before sleep: wait for locks instead of passing by
  deadline::clock::time_point look_again_{};  ///< at tiny tasks that were left alone
  observe::worker_counters counters_;
  strand idle_;  ///< current() while no strand is executed
  base::thread thread_;

  alignas(64) base::atomic<strand*> running_{nullptr};
  base::atomic<bool> asleep_{false};
  base::atomic<int> kernel_thread_{0};          // that has slept last
  base::atomic<int> processor_{-1};             // on which it woke up last; negative: not known
  base::atomic<strand*> kept_{nullptr};         ///< ready to go on
  base::atomic<std::uint32_t> kept_number_{0};  ///< of the last one
  strand_list waiting_;
};

}  // namespace weft::inline WEFT_ABI::sched
