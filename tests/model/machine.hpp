// SPDX-License-Identifier: BSL-1.0
// The real engine and its workers in a model: Relacy's threads call what the workers' own threads would.
#pragma once

#include "model/model.hpp"
//
#include <weft/blocking/detail/external_event.hpp>
#include <weft/sched/detail/run.hpp>

namespace model {

using weft::sched::access_mode;
using weft::sched::closure;
using weft::sched::context_slot;
using weft::sched::engine;
using weft::sched::run_state;
using weft::sched::signal;
using weft::sched::strand;
using weft::sched::worker;

/// Private members of workers, engines and runs.
struct execute_of {
  friend void (worker::* get(execute_of))(strand&);
};
struct steal_from_running_of {
  friend strand* (worker::* get(steal_from_running_of))(strand&);
};
struct find_work_of {
  friend strand* (worker::* get(find_work_of))();
};
struct next_of {
  friend strand* worker::* get(next_of);
};
struct active_of {
  friend context_slot* worker::* get(active_of);
};
struct native_of {
  friend context_slot worker::* get(native_of);
};
struct idle_of {
  friend strand worker::* get(idle_of);
};
struct spare_context_of {
  friend context_slot* worker::* get(spare_context_of);
};
struct arrive_of {
  friend void (worker::* get(arrive_of))() noexcept;
};
struct keep_of {
  friend void (worker::* get(keep_of))(strand&) noexcept;
};
struct take_kept_of {
  friend strand* (worker::* get(take_kept_of))() noexcept;
};
struct kept_of {
  friend weft::base::atomic<strand*> worker::* get(kept_of);
};
struct take_kept_of_others_of {
  friend strand* (worker::* get(take_kept_of_others_of))() noexcept;
};
struct sleep_of {
  friend strand* (worker::* get(sleep_of))();
};
struct close_of {
  friend void (engine::* get(close_of))() noexcept;
};
struct end_of_run {
  friend signal* (*get(end_of_run))(strand&) noexcept;
};
template struct reveal<execute_of, &worker::execute>;
template struct reveal<steal_from_running_of, &worker::steal_from_running>;
template struct reveal<find_work_of, &worker::find_work>;
template struct reveal<next_of, &worker::next_>;
template struct reveal<active_of, &worker::active_>;
template struct reveal<native_of, &worker::native_>;
template struct reveal<idle_of, &worker::idle_>;
template struct reveal<spare_context_of, &worker::spare_context_>;
template struct reveal<arrive_of, &worker::run_switch_action>;
template struct reveal<keep_of, &worker::keep>;
template struct reveal<take_kept_of, &worker::take_kept>;
template struct reveal<kept_of, &worker::kept_>;
template struct reveal<take_kept_of_others_of, &worker::take_kept_of_others>;
template struct reveal<sleep_of, &worker::sleep>;
template struct reveal<close_of, &engine::close>;
template struct reveal<end_of_run, &weft::sched::run_call::end_>;

struct right {
  const void* object;
  access_mode mode;
};
inline right reads(const auto& object) { return {&object, access_mode::read}; }
inline right writes(const auto& object) { return {&object, access_mode::write}; }

/// A closure whose body is a function of the model.
struct task : closure {
  using body_t = void (*)(void* model, strand& s, task& self);

  void* objects[2] = {};  // first: closure::objects() expects them right behind the closure
  access_mode modes[2] = {};
  const weft::sched::version_kind* kinds[2] = {};
  weft::sched::descriptor about{&run, &drop, modes, 0, &options};
  body_t body;
  void* of;
  bool may_be_dropped = false;
  data argument{17};  // whoever runs the task must see what the forker wrote

  task(void* m, body_t f, std::initializer_list<right> rights) : closure(about), body(f), of(m) {
    for (const right& r : rights) {
      objects[about.objects] = const_cast<void*>(r.object);
      modes[about.objects++] = r.mode;
    }
  }

 private:
  static void run(closure& c);
  static void drop(closure& c) noexcept {
    require(static_cast<task&>(c).may_be_dropped, "nothing is dropped");
  }
  static const weft::sched::task_options& options(const closure&) noexcept {
    static constexpr weft::sched::task_options defaults{};
    return defaults;
  }
};

/// How often a task ran.
class runs {
 public:
  void note() { count_.set(count_.get() + 1); }
  bool once() const { return count_.get() == 1; }

 private:
  data count_{0};
};

/// An engine whose workers are driven by the threads of the model.
class machine {
 public:
  explicit machine(unsigned workers, unsigned versions = 1) : e(options(versions)) {
    for (unsigned i = 0; i < workers; ++i) {
      e.workers.push_back(std::make_unique<worker>(e, i, nullptr));
      worker& w = *e.workers.back();
      w.*get(active_of()) = &(w.*get(native_of()));
    }
  }
  ~machine() { weft::sched::set_current(weft::context::outside); }

  engine e;

  worker& at(unsigned i) { return *e.workers[i]; }
  /// Makes the strand of a run, whose first task is `body`.
  strand& make_run(run_state& run, void* m, task::body_t body, bool may_be_dropped = false) {
    strand& s = e.take_strand();
    auto* const root = ::new (s.closures.allocate(sizeof(task))) task(m, body, {});
    root->may_be_dropped = may_be_dropped;
    s.victim = nullptr;
    s.at_end = get(end_of_run());
    s.root.current.store(root, weft::base::memory_order_relaxed);
    engine::join_run(s, run);
    return s;
  }
  /// Executes a strand, and what its end has to be continued with.
  void execute(worker& w, strand& s) {
    for (strand* n = &s; n != nullptr; n = std::exchange(w.*get(next_of()), nullptr)) {
      weft::sched::set_current(*n);  // another thread of the model may have begun it
      (w.*get(execute_of()))(*n);
    }
  }
  /// The strand of a run that a worker has just found, and that has forked nothing yet.
  strand& begin_run(worker& w, run_state& run, void* m, task::body_t body = nullptr) {
    strand& s = make_run(run, m, body);
    e.submit(s);
    require(find_work(w) == &s, "the strand submitted");
    s.started = body == nullptr;  // then the model forks the first tasks
    return s;
  }
  /// *Returns*: the strand of a stolen task, or null.
  strand* steal(worker& w, strand& victim) { return (w.*get(steal_from_running_of()))(victim); }
  /// Searches, sleeps. *Returns*: null when the engine closes.
  strand* find_work(worker& w) { return (w.*get(find_work_of()))(); }
  /// What a worker does with a strand that goes on, and whether it is still there.
  void keep(worker& w, strand& s) { (w.*get(keep_of()))(s); }
  strand* take_kept(worker& w) { return (w.*get(take_kept_of()))(); }
  bool has_kept(worker& w) { return (w.*get(kept_of())).load(weft::base::memory_order_relaxed) != nullptr; }
  /// What a worker does that finds nothing but what others have kept.
  void sleep_until_kept(worker& w) {
    e.searching.fetch_add(1, weft::base::memory_order_relaxed);
    while ((w.*get(take_kept_of_others_of()))() == nullptr && (w.*get(sleep_of()))() == nullptr) {
    }
    e.searching.fetch_sub(1, weft::base::memory_order_relaxed);
  }
  /// All that a worker's thread does, with stacks for bodies that wait, until the engine closes.
  void live(worker& w) {
    context_slot& first = e.contexts.take();
    context_slot& native = w.*get(native_of());
    weft::sched::set_current(w.*get(idle_of()));
    native.fiber.emplace();
    w.*get(active_of()) = &first;
    weft::context::fiber::switch_to(*native.fiber, *first.fiber);
    (w.*get(arrive_of()))();
    native.fiber.reset();
    if (context_slot* const spare = std::exchange(w.*get(spare_context_of()), nullptr))
      e.contexts.put(*spare);
    weft::sched::set_current(weft::context::outside);
  }
  void close() { (e.*get(close_of()))(); }
  /// Adds to a tally what all workers have counted.
  void add_to(tally& t, weft::observe::worker_counters::event what) {
    for (const auto& w : e.workers) t.count += w->counters().of[what].newest();
  }

 private:
  static weft::runtime_options options(unsigned versions) {
    weft::runtime_options o;
    o.workers = 0;  // no threads of their own
    o.spin = std::chrono::microseconds(0);
    o.versions = versions;
    return o;
  }
};

inline void task::run(closure& c) {
  task& t = static_cast<task&>(c);
  require(t.argument.get() == 17, "the task has its argument");
  t.argument.set(0);  // as moved out: a second run would be a fault
  t.body(t.of, weft::sched::current(), t);
}

/// Forks a task of the running body, which is always deferred. Its writes may be renamed if `kind` is known.
inline task& fork(strand& s, void* m, task::body_t body, std::initializer_list<right> rights,
                  const weft::sched::version_kind* kind = nullptr) {
  if (!s.pending()) open_frame(s);
  auto* const t = ::new (s.closures.allocate(sizeof(task))) task(m, body, rights);
  for (std::size_t i = 0; kind != nullptr && i < t->about.objects; ++i) {
    if (t->modes[i] == access_mode::write) t->kinds[i] = kind;
    t->about.kinds = t->kinds;
  }
  defer(s, *t);
  return *t;
}

}  // namespace model
