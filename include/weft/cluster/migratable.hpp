// SPDX-License-Identifier: BSL-1.0
// Threads that go to other processes at points that they name.
#pragma once

#include <weft/cluster/detail/task_travel.hpp>
#include <weft/cluster/detail/thread_carrier.hpp>
#include <weft/threads/spawn.hpp>

#include <concepts>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

namespace weft::inline WEFT_ABI {

/// Says of a body that is spawned that it may go to another process: `weft::spawn(weft::migratable, body);`
struct migratable_t {
  explicit migratable_t() = default;
};
inline constexpr migratable_t migratable{};

namespace remote {

/// What leaves the call of a body that goes to another process.
struct departure {};

/// How such a call has ended.
template <class B>
struct call_end {
  B body{};
  int to = -1;  ///< the process where the thread wants to go on; -1: it has ended

  template <class Archive>
  void serialize(Archive& a) {
    a(body, to);
  }
};

/// While it lives, the body of the strand may call this_thread::migrate().
class migratable_scope {
 public:
  explicit migratable_scope(sched::strand& s) noexcept : strand_(s), outer_(s.migratable != nullptr) {
    if (!outer_) s.migratable = &own_;
  }
  migratable_scope(const migratable_scope&) = delete;
  migratable_scope& operator=(const migratable_scope&) = delete;
  ~migratable_scope() {
    if (!outer_) strand_.migratable = nullptr;
  }
  sched::migratable_body& body() const noexcept { return *strand_.migratable; }

 private:
  sched::strand& strand_;
  const bool outer_;  // one that lives longer
  sched::migratable_body own_;
};

/// The strand of the calling task; an error of the program outside tasks.
inline sched::strand& strand_in_process() {
  sched::strand& s = sched::current();
  if (is_outside(s)) sched::fail_outside("weft::this_thread was asked for its process outside a task");
  return s;
}

}  // namespace remote

namespace this_thread {

/// How many processes the cluster has in which this task runs; 1 outside clusters. They are numbered from 0.
/// *Requires*: called in a task.
inline int processes() {
  const sched::thread_carrier* const c = sched::carrier_of(remote::strand_in_process());
  return c != nullptr ? c->processes() : 1;
}
/// The number of the process that executes this task; 0 outside clusters. *Requires*: called in a task.
inline int process() {
  const sched::thread_carrier* const c = sched::carrier_of(remote::strand_in_process());
  return c != nullptr ? c->process() : 0;
}

/// The thread goes on in another process: the object that was spawned goes there as its archive sends it, and
/// its call operator begins there anew. Where `process` is this one, it begins anew here.
///
/// *Requires*: called by the body that was spawned as weft::migratable, not by a task that it has forked; of
/// what lives on its stack, nothing is needed any more. Only what its archive sends goes with it: no shared
/// object, and nothing that it refers to.
///
/// *Effects*: waits for all tasks that the body has forked, leaves its call by an exception of a type of its
/// own, so that destructors run, and sends the object. `catch (...)` has to rethrow that: a body that returns
/// after it has caught it ends by weft::error. *Returns*: never.
///
/// *Throws*: what the tasks have thrown; weft::cancelled if the run was stopped; weft::error where it is
/// called outside such a body, if there is no such process, and for another process outside of
/// cluster::run, as in a partitioned step. A process that has no memory for the thread
/// refuses it, and so does this one if it is longer than cluster_options::largest_task: then the call
/// operator begins anew in the process that has spawned the thread, and there a call of migrate() with the
/// same number throws weft::error, until the thread has been elsewhere. Where there is no memory to leave a
/// process, the thread ends by std::bad_alloc.
///
/// *Suspends*: yes. *Cost*: the archive and a message; two where neither process is the one that has spawned
/// the thread, since it goes by way of that. *Thread safety*: each thread its own.
[[noreturn]] inline void migrate(int process) {
  sched::strand& s = sched::current();
  if (is_outside(s) || s.migratable == nullptr || s.floor != &s.root || s.inline_name != nullptr)
    throw error(
        "weft: this_thread::migrate() was called outside a body that was spawned as weft::migratable");
  if (process < 0 || process >= processes())
    throw error("weft: a thread cannot go to process " + std::to_string(process) +
                ": they are numbered from 0, and there are " + std::to_string(processes()));
  if (process != this_thread::process() && !sched::carrier_of(s)->serves())
    throw error(
        "weft: a thread can go to another process during cluster::run only, not in a partitioned step");
  if (process == s.migratable->refused_by)
    throw error("weft: process " + std::to_string(process) +
                " cannot take the thread: there is no memory for it, or it is longer than "
                "cluster_options::largest_task");
  weft::sync();
  if (sched::look(s)) throw cancelled();
  s.migratable->wish = process;
  throw remote::departure();
}

}  // namespace this_thread

namespace remote {

/// A call of a body, in whatever process: the task that goes there.
template <class B>
struct body_call {
  B body{};

  template <class Archive>
  void serialize(Archive& a) {
    a(body);
  }
  call_end<B> operator()() {
    const migratable_scope here(sched::current());
    for (;;) {
      here.body().wish = -1;
      bool left = false;
      std::exception_ptr thrown;
      try {
        body();
      } catch (const departure&) {
        left = true;
      } catch (...) {
        thrown = std::current_exception();
      }
      try {
        weft::sync();  // for those who refer to the body. What they throw comes first in reference order
      } catch (const departure&) {
        left = true;
      }
      if (thrown) std::rethrow_exception(std::move(thrown));
      const int to = here.body().wish;
      if (to >= 0 && !left)
        throw error(
            "weft: the body of a thread has caught what this_thread::migrate() leaves it by; catch (...) has "
            "to rethrow it");
      if (to < 0 || to != this_thread::process()) return {std::move(body), to};
    }
  }
};

/// The body of a migratable thread in the process that has spawned it.
template <class B, class Ended>
class migratable_thread {
 public:
  migratable_thread(B&& body, Ended&& ended, const spawn_options& o)
      : next_{std::move(body)}, ended_(std::move(ended)), shown_{.name = o.name, .priority = o.priority} {}
  void operator()() {
    call_end<B> end = call_();
    ended_(end.body);
  }

 private:
  call_end<B> call_() {
    sched::strand& s = sched::current();
    const migratable_scope here(s);
    call_end<B> end = next_();
    while (end.to >= 0) {
      next_.body = std::move(end.body);
      end = go_on_(s, here, end.to);
    }
    return end;
  }
  call_end<B> go_on_(sched::strand& s, const migratable_scope& here, int to) {
    here.body().refused_by = -1;
    return to == this_thread::process() ? next_() : go_to_(s, here, to);
  }
  call_end<B> go_to_(sched::strand& s, const migratable_scope& here, int to) {
    using call = flow::task<body_call<B>, call_end<B>, true, std::index_sequence<>>;
    guest_result<call_end<B>> result;
    alignas(call) std::byte room[sizeof(call)];
    sched::closure& c = *::new (static_cast<void*>(room))
                            call(std::move(next_), result.target(), &shown_);  // ended by whom it goes to
    sched::leaving_thread t{.call = &c, .to = to, .place = &s, .home = &sched::home_of(s), .event = nullptr};
    try {
      t.event = &sched::begin_external(s);
      sched::carrier_of(s)->take(t);
      weft::sync();
    } catch (...) {
      if (t.event == nullptr || t.refused) c.what->drop(c);
      throw;
    }
    if (t.refused) {
      here.body().refused_by = to;
      c.what->run(c);
    }
    return std::move(*result.place());
  }

  body_call<B> next_;
  Ended ended_;
  sched::task_options shown_;
};

}  // namespace remote

/// Starts a body as spawn does, which may go to other processes: at points that it names by
/// this_thread::migrate(). It is an object of a class with a call operator. What it needs after such a point
/// is in its members; they go with it, in the bytes of the archive that tasks use, and registers and stack do
/// not. So the call operator finds out from the members where it is.
///
/// *Requires*: as spawn; the class travels (weft::remote::travels): it is an aggregate of what travels, or
/// has `serialize`. `ended` is as the body of spawn.
///
/// *Effects*: as spawn. When the thread has ended well, its object comes back here, and `ended(object)` is
/// called, which may refer to what is here. What waits for a spawned body waits for the thread wherever it
/// is, what it throws counts as if it had thrown it here, and a stop of the run reaches it; a stop that it
/// requests is one of the run. In other processes its stack has the usual size.
///
/// *Throws*, *Suspends*: as spawn. *Cost*: while the thread is elsewhere, its stack stays here.
///
/// *Example*:
/// @code
/// struct tour {  // adds up what each process knows
///   int next = 0;
///   long sum = 0;
///   void operator()() {
///     for (; next < weft::this_thread::processes(); ++next) {
///       if (weft::this_thread::process() != next) weft::this_thread::migrate(next);
///       sum += known_here();
///     }
///   }
/// };
/// weft::spawn(weft::migratable, tour{}, [](const tour& t) { std::printf("%ld\n", t.sum); });
/// @endcode
///
/// *Source*: the serialisation attribute of KAAPI's threads and kaapi_thread_migrate (PASCO'07, section 3.1),
/// which leave the registers to the user, too.
template <class B, class Ended>
void spawn(migratable_t, const spawn_options& options, B&& body, Ended&& ended) {
  using type = std::decay_t<B>;
  static_assert(remote::travels<type>,
                "weft: the body of a migratable thread cannot go to another process: it must be an object "
                "whose members travel, or with serialize; lambdas, pointers and references do not travel");
  static_assert(std::invocable<type&>, "weft: the body of a migratable thread is called without arguments");
  static_assert(std::invocable<std::decay_t<Ended>&, type&>,
                "weft: what is called when a migratable thread has ended gets its object");
  weft::spawn(options,
              remote::migratable_thread<type, std::decay_t<Ended>>(
                  type(std::forward<B>(body)), std::decay_t<Ended>(std::forward<Ended>(ended)), options));
}

/// The same with default options.
template <class B, class Ended>
  requires(!std::is_same_v<std::remove_cvref_t<B>, spawn_options>)
void spawn(migratable_t how, B&& body, Ended&& ended) {
  weft::spawn(how, spawn_options{}, std::forward<B>(body), std::forward<Ended>(ended));
}

/// The same, where nothing is called at the end.
template <class B>
void spawn(migratable_t how, const spawn_options& options, B&& body) {
  weft::spawn(how, options, std::forward<B>(body), [](const std::decay_t<B>&) {});
}

/// The same with default options.
template <class B>
void spawn(migratable_t how, B&& body) {
  weft::spawn(how, spawn_options{}, std::forward<B>(body));
}

}  // namespace weft::inline WEFT_ABI
