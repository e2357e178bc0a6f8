// SPDX-License-Identifier: BSL-1.0
// Operations on windows that end a task when they are complete; no worker waits for them.
#pragma once

#include <weft/flow/completion.hpp>
#include <weft/flow/definitions.hpp>
#include <weft/rma/window.hpp>

#include <concepts>
#include <condition_variable>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace weft::inline WEFT_ABI::rma {

/// Whom an operation of a transfer_queue tells that it is complete, or has failed: a task that was forked
/// with the option `event`, or whoever waits for the future of a promise.
class ending {
 public:
  /// A task.
  ending(completion&& task) noexcept : whom_(std::move(task)) {}
  /// Whoever waits for the future.
  ending(std::promise<void>&& promise) noexcept : whom_(std::move(promise)) {}
  /// It is complete.
  void complete() {
    if (auto* const task = std::get_if<completion>(&whom_))
      task->complete();
    else
      std::get<std::promise<void>>(whom_).set_value();
  }
  /// It has failed. *Requires*: not null.
  void fail(const std::exception_ptr& why) {
    if (auto* const task = std::get_if<completion>(&whom_))
      task->fail(why);
    else
      std::get<std::promise<void>>(whom_).set_exception(why);
  }

 private:
  std::variant<completion, std::promise<void>> whom_;
};

/// A thread that carries out operations on windows for tasks that were forked with the option `event`: the
/// task ends when its operation is complete, and its worker does other things meanwhile. Other threads give a
/// promise instead. What was submitted while the thread was busy is begun together, and then finished. Memory
/// with an address here is used at once, by the caller. *Requires*: window and memory live until the
/// operation is complete. *Throws*: from the functions, std::out_of_range and weft::error, as the window
/// does; then the completion ends with the caller's exception. Failures of MPI fail the completion. *Thread
/// safety*: any thread. *Example*: `weft::fork({.event = true}, [&](std::vector<double>& v) {
/// queue.get(window, target, 0, std::span(v), weft::this_task::hold()); }, weft::update(values));`
class transfer_queue {
 public:
  /// Starts the thread.
  transfer_queue() : thread_([this] { work_(); }) {}
  transfer_queue(const transfer_queue&) = delete;
  transfer_queue& operator=(const transfer_queue&) = delete;
  /// Waits for the operations that are on their way.
  ~transfer_queue() {
    {
      const std::lock_guard hold(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  /// Reads elements.
  template <class T, class Group>
  void get(window<T, Group>& w, process target, std::size_t index, std::span<T> to, ending done) {
    w.check(target, index, to.size());
    submit_(w, target, std::move(done), [&w, target, index, to] { w.start_get(target, index, to); });
  }
  /// Writes elements.
  template <class T, class Group>
  void put(window<T, Group>& w, process target, std::size_t index, std::span<const T> from, ending done) {
    w.check(target, index, from.size());
    submit_(w, target, std::move(done), [&w, target, index, from] { w.start_put(target, index, from); });
  }
  /// Combines elements, each atomically.
  template <number T, class Group>
  void accumulate(window<T, Group>& w, process target, std::size_t index, std::span<const T> with,
                  combine how, ending done) {
    w.check(target, index, with.size());
    window<T, Group>::check(how);
    submit_(w, target, std::move(done),
            [&w, target, index, with, how] { w.start_accumulate(target, index, with, how); });
  }
  /// Adds to an element, and stores what it was; so do the next three.
  template <std::integral T, class Group>
  void fetch_add(window<T, Group>& w, process target, std::size_t index, T value, T& was, ending done) {
    w.check(target, index, 1);
    submit_(w, target, std::move(done),
            [&w, target, index, value, &was] { was = w.fetch_add(target, index, value); });
  }
  /// Sets bits of an element.
  template <std::integral T, class Group>
  void fetch_or(window<T, Group>& w, process target, std::size_t index, T value, T& was, ending done) {
    w.check(target, index, 1);
    submit_(w, target, std::move(done),
            [&w, target, index, value, &was] { was = w.fetch_or(target, index, value); });
  }
  /// Replaces an element.
  template <std::integral T, class Group>
  void exchange(window<T, Group>& w, process target, std::size_t index, T value, T& was, ending done) {
    w.check(target, index, 1);
    submit_(w, target, std::move(done),
            [&w, target, index, value, &was] { was = w.exchange(target, index, value); });
  }
  /// Replaces an element by `wanted` if it is `expected`.
  template <std::integral T, class Group>
  void compare_exchange(window<T, Group>& w, process target, std::size_t index, T expected, T wanted, T& was,
                        ending done) {
    w.check(target, index, 1);
    submit_(w, target, std::move(done), [&w, target, index, expected, wanted, &was] {
      was = w.compare_exchange(target, index, expected, wanted);
    });
  }

 private:
  struct job {
    explicit job(ending&& d) noexcept : done(std::move(d)) {}
    virtual ~job() = default;
    virtual void start() = 0;
    virtual void finish() = 0;
    ending done;
    std::exception_ptr failure;
  };
  template <class Window, class Start>
  struct job_on final : job {
    job_on(const Window& of, process t, ending&& d, Start s) noexcept
        : job(std::move(d)), target(t), w(of), begin(std::move(s)) {}
    void start() override { begin(); }
    void finish() override { w.finish(target); }
    process target;
    const Window& w;
    Start begin;
  };

  template <class Window, class Start>
  void submit_(Window& w, process target, ending done, Start start) {
    if (w.direct(target) != nullptr) {
      start();
      return done.complete();
    }
    auto made = std::make_unique<job_on<Window, Start>>(w, target, std::move(done), std::move(start));
    {
      const std::lock_guard hold(mutex_);
      waiting_.push_back(std::move(made));
    }
    changed_.notify_one();
  }
  template <class F>
  static void attempt_(job& j, F&& f) noexcept {
    try {
      if (j.failure == nullptr) f();
    } catch (...) {
      j.failure = std::current_exception();
    }
  }
  void work_() {
    std::unique_lock hold(mutex_);
    for (;;) {
      changed_.wait(hold, [this] { return stop_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      std::vector<std::unique_ptr<job>> batch;
      batch.swap(waiting_);
      hold.unlock();
      for (const auto& j : batch) attempt_(*j, [&j] { j->start(); });
      for (const auto& j : batch) {
        attempt_(*j, [&j] { j->finish(); });
        j->failure != nullptr ? j->done.fail(j->failure) : j->done.complete();
      }
      batch.clear();
      hold.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<job>> waiting_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace weft::inline WEFT_ABI::rma
