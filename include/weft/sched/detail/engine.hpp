// SPDX-License-Identifier: BSL-1.0
// What the workers of one runtime share: strands, contexts, submitted work, and the bell that wakes sleepers.
#pragma once

#include <weft/context/overflow.hpp>
#include <weft/observe/trace_abort.hpp>
#include <weft/options.hpp>
#include <weft/sched/detail/context_pool.hpp>
#include <weft/sched/detail/ready_strands.hpp>
#include <weft/sched/detail/spare_threads.hpp>
#include <weft/sched/detail/worker.hpp>
#include <weft/sched/detail/worker_share.hpp>
#include <weft/sched/timers.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

namespace weft::inline WEFT_ABI::sched {

struct thread_carrier;

/// Memory for the exceptions of strands that have no other left.
/// *Thread safety*: any thread, any member.
class last_memory_pool {
 public:
  /// *Returns*: room for a frame and a closure; null if all of it is lent.
  std::byte* take() noexcept {
    const std::lock_guard hold(mutex_);
    for (part& p : parts_)
      if (!std::exchange(p.lent, true)) return p.room;
    return nullptr;
  }
  void put(std::byte& room) noexcept {
    const std::lock_guard hold(mutex_);
    for (part& p : parts_)
      if (p.room == &room) p.lent = false;
  }

 private:
  struct part {
    alignas(frame) std::byte room[sizeof(frame) + sizeof(closure)];
    bool lent = false;
  };
  base::spin_lock mutex_;
  part parts_[16];
};

/// The scheduler of one runtime. Knows nothing of types, results or data beyond access tables.
/// *Thread safety*: any thread, any member but constructor and destructor.
class engine {
 public:
  /// *Requires*: `o.workers` > 0. *Throws*: std::system_error if a thread is refused; nothing is left behind.
  explicit engine(const runtime_options& o)
      : options(o),
        wanted_surplus(o.workers > 1 ? std::max(o.surplus, 1u) : 0),
        trace(o.trace.empty() ? nullptr : new observe::watched_trace(o.trace, o.workers, o.trace_mb << 20)),
        contexts(o.stack_size, &worker::loop_on_context) {
    if (!base::heavy_fence_works())
      throw error("weft: this kernel offers no membarrier, which the runtime needs here");
    context::install_overflow_handler();
    context::set_task_name_hook(&current_task_name);
    workers.reserve(o.workers);
    for (unsigned i = 0; i < o.workers; ++i)
      workers.push_back(std::make_unique<worker>(*this, i, trace ? &trace->row(i) : nullptr));
    try {
      for (unsigned i = 0; i < o.workers; ++i) {
        workers[i]->start();
        if (const auto processor = processor_of(i)) workers[i]->pin(*processor);
      }
    } catch (...) {
      close();
      throw;
    }
  }
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  /// Writes the trace, if there is one. *Requires*: no run is going on.
  ~engine() {
    close();
    while (shares_ != nullptr) delete std::exchange(shares_, shares_->next_of_engine);
  }

  /// Where a worker is to run; nothing if the kernel chooses.
  std::optional<unsigned> processor_of(unsigned worker) const noexcept {
    const auto& all = options.pinning.processors();
    return all.empty() ? std::nullopt : std::optional(all[worker % all.size()]);
  }

  /// A strand has become ready. *Returns*: whether its run has a worker left for it; else it waits for that,
  /// and is no longer the caller's.
  static bool admit(strand& s) noexcept {
    worker_share* const share = s.share.load(base::memory_order_relaxed);  // constant while it is in use
    return likely(share == nullptr) || share->admit(s);
  }
  /// Whether a thief should pass by the strand, as all workers that its run may have are there. A hint.
  static bool is_full(const strand& s) noexcept {
    const worker_share* const share = s.share.load(base::memory_order_relaxed);
    return !likely(share == nullptr) && share->full();
  }
  /// Takes a place for what a thief is about to take. *Requires*: the run of the strand cannot end meanwhile.
  static bool take_place(const strand& s) noexcept {
    worker_share* const share = s.share.load(base::memory_order_relaxed);
    return likely(share == nullptr) || share->try_take();
  }
  /// Lets a sleeper look again: the run of a strand was full, or a task has become ready.
  void tell_sleepers() noexcept {
    base::fence();  // that before the look at sleepers, who look at it behind a fence
    // Relaxed: who searches looks again behind a full fence before it sleeps.
    if (searching.load(base::memory_order_relaxed) == 0 && bell.any_waiting()) bell.notify_one();
  }

  /// Whether a worker has nothing to do. A hint.
  bool any_idle() const noexcept {
    return searching.load(base::memory_order_relaxed) != 0 || bell.any_waiting();
  }

  /// Hands a strand to whichever worker comes first: a new run, or a body whose nested run has ended.
  void submit(strand& s) noexcept {
    if (admit(s)) enqueue(s);
  }
  /// The same. *Requires*: it is admitted.
  void enqueue(strand& s) noexcept {
    submitted.push_back(s);
    base::fence();  // the submission before the look at sleepers
    if (bell.any_waiting()) bell.notify_one();
  }

  /// Lets a timer expire, soon after its time if a worker has nothing else to do.
  void add_timer(timer& t) noexcept {
    if (!timers.add(t)) return;
    base::fence();  // the new time before the look at sleepers, who read it behind a fence
    if (bell.any_waiting()) bell.notify_one();
  }

  /// *Throws*: std::bad_alloc.
  strand& take_strand() {
    strand& s = take_bare_strand();
    try {
      s.closures.prepare();
    } catch (...) {
      put_strand(s);
      throw;
    }
    return s;
  }
  /// The same, without memory for closures yet.
  strand& take_bare_strand() {
    if (strand* s = idle.pop_front()) return *s;
    const std::lock_guard hold(registry_mutex_);
    if (made_ % strands_at_once == 0) registry_.push_back(std::make_unique<strand[]>(strands_at_once));
    return registry_.back()[made_++ % strands_at_once];
  }
  void put_strand(strand& s) noexcept { idle.push_back(s); }

  /// From now on a thief outside comes, too. *Requires*: no run is going on.
  void expect_outside_thief() noexcept {
    outside_thieves_ = 1;
    wanted_surplus = std::max(options.surplus, 1u);
  }
  /// How many may take tasks of a graph.
  unsigned takers() const noexcept { return static_cast<unsigned>(workers.size()) + outside_thieves_; }

  /// The share of a run that may have so many workers, fewer than there are. *Throws*: std::bad_alloc.
  worker_share& take_share(unsigned places, worker_share* outer) {
    const std::lock_guard hold(shares_mutex_);
    worker_share** found = &shares_;
    while (*found != nullptr && !(*found)->over()) found = &(*found)->next_of_engine;
    if (*found == nullptr) *found = new worker_share;
    (*found)->begin(places, outer);
    return **found;
  }

  /// *Throws*: std::bad_alloc.
  graph& take_graph() {
    const std::lock_guard hold(graphs_mutex_);
    if (!idle_graphs_.empty()) {
      graph& g = *idle_graphs_.back();
      idle_graphs_.pop_back();
      return g;
    }
    idle_graphs_.reserve(graphs_.size() + 1);  // so that put_graph cannot fail
    graphs_.push_back(std::make_unique<graph>());
    return *graphs_.back();
  }
  void put_graph(graph& g) noexcept {
    const std::lock_guard hold(graphs_mutex_);
    idle_graphs_.push_back(&g);
  }

  /// Calls `see` on each strand. *Requires*: it takes no lock. *Returns*: false if they are locked for so
  /// many rounds of waiting.
  template <class See>
  bool each_strand(unsigned rounds, See see) {
    if (!base::lock_within(registry_mutex_, rounds)) return false;
    const std::lock_guard hold(registry_mutex_, std::adopt_lock);
    for (std::size_t i = 0; i < made_; ++i) see(registry_[i / strands_at_once][i % strands_at_once], i);
    return true;
  }

  /// Calls `see` on each strand that is ready and waits for a worker: any, or one that its run may have.
  /// *Requires*, *Returns*: as each_strand.
  template <class See>
  bool each_ready(unsigned rounds, See see) {
    bool all = submitted.each(rounds, see);
    if (!base::lock_within(shares_mutex_, rounds)) return false;
    const std::lock_guard hold(shares_mutex_, std::adopt_lock);
    for (worker_share* s = shares_; s != nullptr; s = s->next_of_engine) all &= s->each(rounds, see);
    return all;
  }

  /// Makes the strand part of a run. *Requires*: it is idle.
  static void join_run(strand& s, run_state& run) noexcept {
    s.attention.exchange(run.observed ? std::uint8_t{observed} : std::uint8_t{0},
                         base::memory_order_acq_rel);  // acquire pairs with begin_
    // Sequentially consistent, with stop(): either this sees the flag, or stop sees the strand's run.
    s.run.store(&run, base::memory_order_seq_cst);
    s.share.store(run.share, base::memory_order_relaxed);  // published with the strand
    s.unit = nullptr;
    if (run.stopped.load(base::memory_order_seq_cst))
      s.attention.fetch_or(stop_asked, base::memory_order_seq_cst);
  }

  /// Stops a run: what has not started is dropped. *Requires*: the run has not ended.
  void stop(run_state& run) {
    // Sequentially consistent, with begin(): either join_run sees the flag, or this loop sees the strand's
    // run.
    run.stopped.store(true, base::memory_order_seq_cst);
    end_waits(run);
    const std::lock_guard hold(registry_mutex_);
    for (std::size_t i = 0; i < made_; ++i)
      if (strand& s = registry_[i / strands_at_once][i % strands_at_once];
          s.run.load(base::memory_order_seq_cst) == &run)
        s.attention.fetch_or(stop_asked, base::memory_order_seq_cst);
  }

  /// Lets the bodies of a run that wait for one another, or will, give up ("Waits that a stop ends" in
  /// sched/README.md). *Requires*: the run has not ended.
  void end_waits(run_state& run) noexcept {
    if (run.waits_end.exchange(true, base::memory_order_seq_cst)) return;
    ending_waits_.fetch_add(1, base::memory_order_seq_cst);  // both before the fence: pair with the two below
    if (base::heavy_fence() == base::fenced::by_nothing) wait_for_stores_();
    for (std::size_t block = 0; strand* const first = block_(block); ++block) {
      const std::lock_guard hold(ending_mutex_);
      for (strand* s = first; s != first + strands_at_once; ++s) {
        // Acquire pairs with begin_stoppable: the run is that of this wait, which cannot be over meanwhile.
        abandonable* const a = s->stoppable.load(base::memory_order_acquire);
        if (a != nullptr && s->run.load(base::memory_order_relaxed) == &run) a->give_up(*a);
      }
    }
    ending_waits_.fetch_sub(1, base::memory_order_release);  // pairs with end_stoppable
  }
  /// The body of the strand begins to wait. *Returns*: whether it is to give up at once.
  static bool begin_stoppable(strand& s, abandonable& a) noexcept {
    base::owner_store(s.stoppable, &a);
    // Either this sees that waits end, or end_waits sees this one.
    return base::owner_load(s.run.load(base::memory_order_relaxed)->waits_end);  // constant while it waits
  }
  /// It has waited: nobody calls abandonable::give_up any more.
  void end_stoppable(strand& s) noexcept {
    base::owner_store(s.stoppable, static_cast<abandonable*>(nullptr));
    // Either this sees that waits end, and lets those who may have seen this one leave, or end_waits does not
    // see it.
    if (base::owner_load(ending_waits_) != 0) [[unlikely]] {
      const std::lock_guard passed(ending_mutex_);
    }
  }

  const runtime_options options;
  unsigned wanted_surplus;                              ///< constant while a run is going on
  kept_unit* unit = nullptr;                            ///< of runs called outside tasks; as constant
  const std::unique_ptr<observe::watched_trace> trace;  ///< may be null
  context_pool contexts;
  ready_strands submitted;
  strand_list idle;
  timer_queue timers;
  spare_threads spares;
  last_memory_pool last_memory;
  base::event_count bell;
  base::atomic<bool> closing{false};
  base::atomic<unsigned> active_runs{0};  ///< calls of run that have not returned
  alignas(64) base::atomic<unsigned> searching{
      0};                                    ///< workers awake without work; they make further wakes needless
  base::atomic<unsigned> timed_sleepers{0};  ///< workers that left tiny tasks alone and look again soon
  base::atomic<bool> kept_told{false};       ///< a sleeper was told of a kept strand and is on its way
  base::atomic<unsigned> wakes_in_vain{0};   ///< wakes in a row that found nothing
  base::atomic<bool> moves{false};           ///< somebody is in worker::move_away
  base::atomic<std::uint32_t> awoken{0};     ///< how often a worker has come back from sleep
  base::atomic<unsigned> visitors{0};        ///< workers of other engines that hand a caller back
  std::vector<std::unique_ptr<worker>> workers;
  thread_carrier* carrier = nullptr;  ///< of threads to other processes; constant while a run is going on

 private:
  /// Where no fence for others is to be had: what they have stored is seen by everybody long before this
  /// ends.
  static void wait_for_stores_() noexcept {
    base::atomic<std::uint32_t> never{0};
    const auto end = base::clock::now() + std::chrono::milliseconds(1);
    while (base::clock::now() < end) base::futex_wait_until(never, 0, end);
  }
  void close() noexcept {
    closing.store(true, base::memory_order_seq_cst);  // before the bell: pairs with the look in find_work
    bell.notify_all();
    for (auto& w : workers) w->join();
    // Acquire pairs with the release in raise_signal.
    for (base::backoff wait; visitors.load(base::memory_order_acquire) != 0;) wait.wait();
  }

  /// *Returns*: so many strands as are made at once, or null. Those made later see what the caller has
  /// written.
  strand* block_(std::size_t i) noexcept {
    const std::lock_guard hold(registry_mutex_);
    return i < registry_.size() ? registry_[i].get() : nullptr;
  }

  base::mutex shares_mutex_;
  worker_share* shares_ = nullptr;  ///< a list; freed with the engine
  base::mutex graphs_mutex_;
  std::vector<std::unique_ptr<graph>> graphs_;
  std::vector<graph*> idle_graphs_;
  base::mutex registry_mutex_;
  static constexpr std::size_t strands_at_once = 16;
  std::vector<std::unique_ptr<strand[]>> registry_;
  std::size_t made_ = 0;
  base::atomic<unsigned> ending_waits_{0};  ///< calls of end_waits under way,
  base::mutex ending_mutex_;                ///< which give up while they hold this
  unsigned outside_thieves_ = 0;
};

}  // namespace weft::inline WEFT_ABI::sched
