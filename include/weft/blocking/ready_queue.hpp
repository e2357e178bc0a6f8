// SPDX-License-Identifier: BSL-1.0
// Work that becomes ready while it is done: those who do it, and those who are sent for when there is more.
#pragma once

#include <weft/blocking/helper_team.hpp>
#include <weft/blocking/wait.hpp>
#include <weft/task/run_state.hpp>

#include <concepts>

namespace weft::inline WEFT_ABI::sched {

/// Calls user code in the middle of a task, as a task of its own with a name: what it forks has ended when
/// this returns.
/// *Returns*: what left it or its children first, in reference order; null if nothing did.
/// *Requires*: where races are looked for, called within `unseen`.
/// *Suspends*: yes, as the code does.
template <class F>
std::exception_ptr call_as_task(strand& s, const char* name, F&& f) noexcept {
  interruption around;
  interrupt(s, around);
  s.inline_name = name;
  const auto run = [&s, &f] {
    try {
      f();
    } catch (...) {
      [[maybe_unused]] const races::unseen library;
      raise(s, std::current_exception());
    }
  };
#if WEFT_RACES
  context::races::show();
  const races::token start = races::begin_task();
  context::races::hide();
  races::run_apart(s.racing, {}, start, run);
#else
  run();
#endif
  if (s.pending()) [[unlikely]]
    drain_children(s);
  go_on(s, around);
  if (!s.thrown) [[likely]]
    return nullptr;
  return *std::exchange(s.thrown, std::nullopt);
}

/// Nodes that are ready, in the order in which they became so, and the team that takes them: the task that
/// begins (the founder), and as many workers as have nothing else to do. Whoever has done a node keeps one of
/// those that this has made ready, and offers the others. `Node` has a member `next`, for this queue.
///
/// Who may touch it when:
///  1. The founder calls take_all, once.
///  2. The rest is for members, within `Work`, and under the lock.
template <class Node>
class ready_queue {
 public:
  ready_queue() = default;
  ready_queue(const ready_queue&) = delete;
  ready_queue& operator=(const ready_queue&) = delete;

  /// Puts a node there before anybody works.
  void begin_with(Node& n) noexcept { append(n); }
  /// Calls `work(strand, node)` for nodes until there are none: it returns another node, which nobody else
  /// knows, or null. `options` are those of the helpers; `what` they do, in words.
  /// *Requires*: called in a task.
  /// *Throws*: std::bad_alloc, std::system_error before anything is done; after that, what was given to
  /// fail().
  /// *Suspends*: yes.
  template <class Work>
    requires std::same_as<std::invoke_result_t<Work&, strand&, Node&>, Node*>
  void take_all(const task_options& options, const char* what, Work work) {
    struct job {
      ready_queue& queue;
      Work& work;
      static void help(void* self) noexcept {
        auto& j = *static_cast<job*>(self);
#if WEFT_RACES
        context::races::acquire(&j.queue.team_);
#endif
        j.queue.members_work(j.work, true);
      }
    } mine{*this, work};
    helper_team all(current(), &job::help, &mine, options, what);
    team_ = &all;
#if WEFT_RACES
    context::races::release(&team_);
#endif
    members_work(work, false);
    all.wait();
#if WEFT_RACES
    context::races::acquire(&mutex_);
#endif
    if (error_) std::rethrow_exception(error_);
  }

  /// The same without helpers.
  template <class Work>
  void take_all_alone(Work work) {
    members_work(work, false);
    if (error_) std::rethrow_exception(error_);
  }

  /// Offers a node to others.
  void offer(Node& n) noexcept {
    bool call = false;
    {
      const std::lock_guard hold(mutex_);
      append(n);
      call = !std::exchange(called_, true);
    }
    if (call) send_for_help();
  }
  /// Nothing begins any more.
  void end_early() noexcept {
    const std::lock_guard hold(mutex_);
    over_.store(true, base::memory_order_relaxed);
  }
  /// The same, with an exception for the founder: of several that with the least `place`, but for what
  /// another one has cancelled. Bodies of the run wait for no lock any more.
  void fail(strand& s, std::exception_ptr e, std::pair<std::uint64_t, std::uint64_t> place) noexcept {
    {
      const std::lock_guard hold(mutex_);
      over_.store(true, base::memory_order_relaxed);
      if (!error_ || (!is_cancelled(e) && (place < failed_ || is_cancelled(error_)))) {
        error_ = std::move(e);
        failed_ = place;
      }
    }
    end_waits_of_run(s);
  }
#if WEFT_RACES
  /// The founder sees what the caller has done, when all have left.
  void let_see() noexcept { context::races::release(&mutex_); }
#endif
  /// Whether it was ended early. A hint for members, exact for the founder in the end.
  bool over() const noexcept { return over_.load(base::memory_order_relaxed); }

 private:
  template <class Work>
  void members_work(Work& work, bool was_called) noexcept {
    [[maybe_unused]] const races::unseen library;
    strand& s = current();
    for (Node* n = take(was_called); n != nullptr;) {
      n = work(s, *n);
      if (look(s)) [[unlikely]]
        end_early();
      if (n == nullptr || over()) n = take(false);
    }
  }
  void append(Node& n) noexcept {
    n.next = nullptr;
    (last_ != nullptr ? last_->next : first_) = &n;
    last_ = &n;
  }
  Node* take(bool was_called) noexcept {
    bool call = false;
    Node* n = nullptr;
    {
      const std::lock_guard hold(mutex_);
      if (was_called) called_ = false;
      if (over() || first_ == nullptr) return nullptr;
      n = first_;
      first_ = n->next;
      if (first_ == nullptr)
        last_ = nullptr;
      else
        call = !std::exchange(called_, true);
    }
    if (call) send_for_help();
    return n;
  }
  void send_for_help() noexcept {
    if (team_ == nullptr || team_->add_helper()) return;
    const std::lock_guard hold(mutex_);
    called_ = false;
  }
  static bool is_cancelled(const std::exception_ptr& e) noexcept {
    try {
      std::rethrow_exception(e);
    } catch (const cancelled&) {
      return true;
    } catch (...) {
      return false;
    }
  }

  helper_team* team_ = nullptr;
  alignas(64) base::spin_lock mutex_;  // of what follows
  Node* first_ = nullptr;
  Node* last_ = nullptr;
  bool called_ = false;             // somebody will come
  base::atomic<bool> over_{false};  // set under the lock; a hint for others
  std::exception_ptr error_;
  std::pair<std::uint64_t, std::uint64_t> failed_{};
};

}  // namespace weft::inline WEFT_ABI::sched
