// SPDX-License-Identifier: BSL-1.0
// The runtime: a set of workers, and run, by which a program gives them its first task.
#pragma once

#include <weft/flow/fork.hpp>
#include <weft/inspect/definitions.hpp>
#include <weft/inspect/runtime_state.hpp>
#include <weft/sched/run.hpp>

#include <optional>
#include <string>
#include <vector>

namespace weft::inline WEFT_ABI {

namespace flow {
struct runtime_key;
}

/// Options of one run.
struct run_options {
  /// Stops the run: tasks that have not started are dropped, and run throws weft::cancelled.
  std::stop_token stop = {};
  /// At most so many workers of the runtime work on the run at once, with all that it forks, spawns and runs
  /// in turn; 0, or more than there are: all of them. Bodies that wait do not count, nor do calls of
  /// this_task::blocking. With one, the run goes on as in a runtime with one worker.
  unsigned workers = 0;
  /// Who records the run (weft/observe.hpp), which is then executed serially.
  sched::run_recorder* record = nullptr;
};

/// A set of workers that execute tasks. A program may have several; an idle one uses no processor time.
/// *Thread safety*: run and the observers from any thread at once, also from inside tasks; resize alone.
class runtime {
 public:
  /// Starts the workers.
  /// *Effects*: WEFT_* environment variables override `options`.
  /// *Throws*: weft::option_error naming the member or variable; std::system_error if a thread is refused, or
  /// its processor, or the file of the trace; std::bad_alloc; nothing is left.
  explicit runtime(const runtime_options& options = {}) : state_(options) {}
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;
  /// Ends the workers. In a forked child process, where they do not exist, only releases memory.
  /// *Requires*: no call of run is active.
  ~runtime() = default;

  /// Runs `f` with the arguments as a task, as fork does, and returns when this task and all its descendants
  /// have ended. Inside a task, if it passes rights on objects, it first waits for that task's children, as
  /// sync does. *Returns*: what `f` returns. *Throws*: what the serial program would have thrown first;
  /// weft::cancelled; weft::error in a forked child; std::bad_alloc, std::system_error where the run cannot
  /// start. *Suspends*: inside a task yes, the task's context; elsewhere it blocks the calling thread.
  /// *Cost*: two hand-overs between kernel threads.
  template <class F, class... A>
    requires(!std::is_same_v<std::remove_cvref_t<F>, run_options>)
  auto run(F&& f, A&&... arguments) {
    return run_(std::index_sequence_for<A...>{}, {}, std::forward<F>(f), std::forward<A>(arguments)...);
  }
  /// The same, with options: `rt.run({.stop = source.get_token()}, f)`, `rt.run({.workers = 2}, f)`.
  template <class F, class... A>
  auto run(const run_options& options, F&& f, A&&... arguments) {
    return run_(std::index_sequence_for<A...>{}, options, std::forward<F>(f), std::forward<A>(arguments)...);
  }

  /// The number of workers.
  unsigned workers() const noexcept { return state_.workers(); }
  /// Ends the workers and starts `workers` others; 0: as many as affinity mask and CPU quota allow now, or as
  /// `pinning` lists. Mask and quota are read anew, and so are the environment variables, of which
  /// WEFT_WORKERS wins. Totals of counters() go on. *Requires*: no run is active, and no other thread uses
  /// the runtime meanwhile. *Throws*: weft::error if a run is active or in a forked child, else as the
  /// constructor; the runtime is then as before.
  /// *Suspends*: no; it waits for threads to end. *Cost*: as the destructor and the constructor.
  void resize(unsigned workers) { state_.resize(workers); }
  /// The processor to which each worker is pinned; -1: none, or the kernel has meanwhile taken it away, and
  /// the worker runs on others. *Throws*: std::bad_alloc; weft::error in a forked child. *Cost*: a system
  /// call for each worker.
  std::vector<int> processors() const { return state_.processors(); }
  /// Totals of what has happened so far.
  /// *Cost*: reads every worker's counters and every stack's extent.
  weft::counters counters() const { return state_.counters(); }

  /// Describes what each worker executes and what each waiting task waits for, and names the cycle if tasks
  /// wait for each other. The text is for people who look for the cause of a stall; it may change between
  /// versions. *Throws*: std::bad_alloc. *Suspends*: no. *Cost*: visits every task stack in use, of all
  /// runtimes; each worker pauses for about a microsecond. *Thread safety*: any thread, also inside a task.
  std::string describe() const { return state_.describe(); }

  /// Writes the trace (runtime_options::trace) now, with what has happened so far, in place of what was
  /// written before. The end of the runtime writes it anyway. *Returns*: false if the runtime is not traced.
  /// *Throws*: std::system_error if the file cannot be written; weft::error in a forked child. *Suspends*:
  /// no. *Cost*: some hundred nanoseconds for each record. *Thread safety*: any thread, also inside a task.
  bool write_trace() const { return state_.write_trace(); }

 private:
  template <std::size_t... I, class F, class... A>
  auto run_(std::index_sequence<I...>, const run_options& options, F&& f, A&&... a) {
    using callable = std::decay_t<F>;
    return run_kept_<flow::argument_adaptor<typename flow::parameter_of<callable, I>::type, A>...>(
        options, std::forward<F>(f),
        flow::argument_adaptor<typename flow::parameter_of<callable, I>::type, A>::keep(
            std::forward<A>(a))...);
  }

  template <class... Adaptors, class F>
  auto run_kept_(const run_options& options, F&& f, typename Adaptors::kept... kept) {
    using callable = std::decay_t<F>;
    using R = std::remove_cvref_t<flow::called<callable, Adaptors...>>;
    using closure = flow::task<callable, void, false, std::index_sequence_for<Adaptors...>, Adaptors...>;
#if WEFT_CHECKED
    flow::check_rights<Adaptors...>(sched::task_options{}.name, kept...);
#endif
    if constexpr (((Adaptors::access || Adaptors::more) || ...)) wait_for_children_();
#if WEFT_CHECKED
    flow::check_results<Adaptors...>(sched::task_options{}.name, kept...);
#endif
    (begin_run_<Adaptors>(kept), ...);
    if constexpr (std::is_void_v<R>) {
      start_and_wait_<closure>(options, callable(std::forward<F>(f)), std::move(kept)...);
    } else {
      std::optional<R> value;
      auto keep = [&value, own = callable(std::forward<F>(f))](auto&&... passed) mutable {
        value.emplace(base::call(std::move(own), std::forward<decltype(passed)>(passed)...));
      };
      using keeper =
          flow::task<decltype(keep), void, false, std::index_sequence_for<Adaptors...>, Adaptors...>;
      start_and_wait_<keeper>(options, std::move(keep), std::move(kept)...);
      return R(*std::move(value));
    }
  }

  /// A run is not ordered against the children of the task that calls it, which may change what it has rights
  /// on.
  /// *Throws*: as sync.
  static void wait_for_children_() {
    sched::strand& s = sched::current();
    if (is_outside(s)) return;
#if WEFT_RACES
    const sched::races::synced at_end(s.racing);
#endif
    sched::sync(s);
  }

  template <class Adaptor>
  static void begin_run_([[maybe_unused]] typename Adaptor::kept& kept) {
    if constexpr (requires { Adaptor::begin_run(kept); }) Adaptor::begin_run(kept);
  }

  template <class Closure, class F, class... Kept>
  void start_and_wait_(const run_options& options, F&& f, Kept&&... kept) {
    sched::run_call call(state_.home(), options.workers);
    void* const place = call.memory().allocate(sizeof(Closure), alignof(Closure));
    call.execute(*::new (place) Closure(std::forward<F>(f), {}, nullptr, std::move(kept)...), options.stop,
                 options.record);
  }

  friend struct flow::runtime_key;
  sched::runtime_state state_;
};

/// Opens a runtime for rooms above.
struct flow::runtime_key {
  static sched::engine& engine(const runtime& r) { return r.state_.home(); }
  /// As sched::runtime_state::set_rank.
  static void set_rank(const runtime& r, unsigned rank, unsigned processes) {
    r.state_.set_rank(rank, processes);
  }
  /// As sched::runtime_state::set_unit, and is_traced.
  static void set_unit(const runtime& r, sched::kept_unit* unit) { r.state_.set_unit(unit); }
  static bool is_traced(const runtime& r) { return r.state_.is_traced(); }
};

}  // namespace weft::inline WEFT_ABI
