// SPDX-License-Identifier: BSL-1.0
// The tasks that a process executes in each iteration: its own of the step, and those that send and receive.
#pragma once

#include <weft/cluster/detail/step_mail.hpp>
#include <weft/cluster/detail/step_plan.hpp>
#include <weft/flow/recorded.hpp>
#include <weft/flow/this_task.hpp>
#include <weft/observe/traced_body.hpp>

#include <algorithm>
#include <climits>
#include <memory>
#include <optional>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// One of them. A closure of it is followed by the objects, the address of this, the iteration, and its
/// options.
///
/// Who may touch it when: the counts by whoever executes it, the rest is constant while tasks run.
class step_task {
 public:
  using mode = sched::access_mode;
  struct use {
    void* object;
    mode how;
  };

  /// `transfers`: it sends or receives.
  step_task(const sched::task_options& options, const std::vector<use>& uses, bool transfers)
      : options_(options), transfers_(transfers) {
    for (const use& u : uses) {
      objects_.push_back(u.object);
      modes_.push_back(u.how);
    }
    what_ = {.run = &run_,
             .drop = [](sched::closure&) noexcept {},
             .modes = modes_.data(),
             .objects = objects_.size(),
             .options = &options_of_};
    traced_ = observe::traced(what_);
  }
  step_task(const step_task&) = delete;
  step_task& operator=(const step_task&) = delete;
  virtual ~step_task() = default;

  /// Appends a closure to the running body's frame. A task of the step is by `lower` less urgent than its
  /// options say. *Returns*: false if it is dropped: something before it
  /// has failed, or the run was stopped. *Throws*: std::bad_alloc.
  bool fork(sched::strand& s, std::uint64_t iteration, int lower) {
    const sched::fork_action how = sched::classify_fork(s);
    if (how == sched::fork_action::drop) return false;
    if (!s.pending()) sched::open_frame(s);
    const bool traced = how == sched::fork_action::defer_traced || how == sched::fork_action::run_traced;
    const std::size_t size = sizeof(sched::closure) + objects_.size() * sizeof(void*) + sizeof(tail);
    auto& c = *::new (s.closures.allocate(size)) sched::closure(traced ? traced_ : what_);
    auto* const objects = reinterpret_cast<void**>(&c + 1);
    std::copy(objects_.begin(), objects_.end(), objects);
    ::new (static_cast<void*>(objects + objects_.size()))
        tail{this,
             iteration,
             {options_.name, options_.priority - (transfers_ ? 0 : lower), options_.local, options_.event}};
    c.local = options_.local;
    if (traced) c.set_stamp(observe::stamp_fork(s));
    sched::defer(s, c);
    return true;
  }

  /// How long it has taken since this was last asked for, and how often it was executed.
  std::pair<double, std::uint64_t> take_cost() noexcept {
    // Relaxed: no task runs meanwhile.
    const std::uint64_t times = times_.exchange(0, base::memory_order_relaxed);
    return {static_cast<double>(nanoseconds_.exchange(0, base::memory_order_relaxed)) * 1e-9, times};
  }

 protected:
  virtual void execute(std::uint64_t iteration) = 0;
  void count(std::uint64_t nanoseconds) noexcept {
    // Relaxed: sums that are read when no task runs.
    nanoseconds_.fetch_add(nanoseconds, base::memory_order_relaxed);
    times_.fetch_add(1, base::memory_order_relaxed);
  }

 private:
  struct tail {
    step_task* of;
    std::uint64_t iteration;
    sched::task_options options;
  };
  static const tail& tail_of_(const sched::closure& c) noexcept {
    return *reinterpret_cast<const tail*>(c.objects() + c.what->objects);
  }
  static void run_(sched::closure& c) {
    const tail t = tail_of_(c);
    t.of->execute(t.iteration);
  }
  static const sched::task_options& options_of_(const sched::closure& c) noexcept {
    return tail_of_(c).options;
  }

  const sched::task_options options_;
  const bool transfers_;
  std::vector<void*> objects_;
  std::vector<mode> modes_;
  sched::descriptor what_, traced_;
  base::atomic<std::uint64_t> nanoseconds_{0}, times_{0};
};

/// A task of the step.
class own_task final : public step_task {
 public:
  own_task(const step_record& of, std::uint32_t number, const sched::task_options& options, step_mail& mail)
      : step_task(options, uses_(of, number), false),
        body_(*of.tasks()[number].body),
        number_(number),
        mail_(mail) {}
  std::uint32_t number() const noexcept { return number_; }

 private:
  static std::vector<use> uses_(const step_record& of, std::uint32_t number) {
    std::vector<use> all;
    for (const auto& u : of.tasks()[number].uses) all.push_back({of.objects()[u.object].at, u.how});
    return all;
  }
  void execute(std::uint64_t iteration) override {
    const auto begun = base::clock::now();
    try {
      sched::strand& s = sched::current();
      try {
        body_.run();
      } catch (...) {
        if (!s.pending()) throw;
        sched::raise(s, std::current_exception());  // behind its children
      }
      // What its children throw is its exception, too.
      if (s.pending()) sched::sync(s);
    } catch (...) {
      mail_.fail(mail_.place(iteration, number_), std::current_exception());
      throw;
    }
    count(static_cast<std::uint64_t>(std::chrono::nanoseconds(base::clock::now() - begun).count()));
  }

  const repeatable& body_;
  const std::uint32_t number_;
  step_mail& mail_;
};

/// Sends a value as soon as it is written; it has not ended before there is room for that.
class sending_task final : public step_task {
 public:
  sending_task(const step_record& of, std::uint32_t object, std::uint32_t writer, int priority,
               step_mail& mail)
      : step_task({.name = "send", .priority = priority, .event = true},
                  {{of.objects()[object].at, mode::read}}, true),
        of_(of.objects()[object]),
        object_(object),
        writer_(writer),
        mail_(mail) {}
  void add(const step_mail::target& t) { targets_.push_back(t); }
  std::uint32_t object() const noexcept { return object_; }
  /// Of the value that was sent last, in bytes. Relaxed: no task runs.
  std::size_t last_size() const noexcept { return size_.load(base::memory_order_relaxed); }

 private:
  void execute(std::uint64_t iteration) override {
    const std::uint64_t place = mail_.place(iteration, writer_);
    try {
      // Relaxed: read when no task runs.
      size_.store(mail_.send(iteration, place, targets_, of_.at, *of_.kind), base::memory_order_relaxed);
    } catch (const abandoned&) {
      throw;
    } catch (...) {
      mail_.fail(place, std::current_exception());
      throw;
    }
  }

  const step_record::object& of_;
  const std::uint32_t object_, writer_;
  step_mail& mail_;
  std::vector<step_mail::target> targets_;
  base::atomic<std::size_t> size_{0};
};

/// Puts a value of another process into an object; it has not ended before that has come.
class receiving_task final : public step_task {
 public:
  receiving_task(const step_record& of, const step_channel& by, std::uint32_t number, int priority,
                 step_mail& mail)
      : step_task({.name = "receive", .priority = priority, .event = true},
                  {{of.objects()[by.object].at, mode::write}}, true),
        of_(of.objects()[by.object]),
        by_(by),
        number_(number),
        mail_(mail) {}

 private:
  void execute(std::uint64_t iteration) override {
    const std::uint64_t reader = mail_.place(iteration, by_.before);
    try {
      mail_.receive(iteration, number_, {of_.at, of_.kind, mail_.place(iteration, by_.writer), reader});
    } catch (const abandoned&) {
      throw;
    } catch (...) {
      mail_.fail(reader, std::current_exception());
      throw;
    }
  }

  const step_record::object& of_;
  const step_channel by_;
  const std::uint32_t number_;  // of the channel
  step_mail& mail_;
};

/// An iteration of one process: in reference order; its schedule, if it is another one, becomes priorities. A
/// value is sent right behind the task that writes it, and received right before the first one that needs it.
/// What sends and receives goes before all other tasks. Where there is any of it, tasks of earlier iterations
/// go before those of later ones: other processes wait for them first.
class step_tasks {
 public:
  step_tasks(const step_record& of, const step_plan& plan, unsigned here, const std::vector<double>& start,
             step_mail& mail) {
    const auto size = static_cast<std::uint32_t>(of.tasks().size());
    std::vector<std::vector<std::uint32_t>> sends(size + 1), receives(size + 1);
    for (std::uint32_t c = 0; c < plan.channels().size(); ++c) {
      const step_channel& by = plan.channels()[c];
      if (by.from == here) sends[by.writer].push_back(c);
      if (by.to == here) receives[by.before].push_back(c);
    }
    const std::vector<int> priority = priorities_(of, plan, here, start);
    int transfers = 0;  // their priority
    for (const int p : priority) transfers = std::max(transfers, p > 0 && p < INT_MAX ? p + 1 : p);
    lower_ = lower_by_(priority, plan);
    if (lower_ != 0) transfers = std::max(transfers, 1);
    for (std::uint32_t t = 0; t <= size; ++t) {
      for (const std::uint32_t c : receives[t])
        all_.push_back(std::make_unique<receiving_task>(of, plan.channels()[c], c, transfers, mail));
      if (t == size) break;
      if (plan.processor()[t] == here) {
        sched::task_options options = of.tasks()[t].options;
        options.priority = priority[t];
        auto own = std::make_unique<own_task>(of, t, options, mail);
        own_.push_back(own.get());
        all_.push_back(std::move(own));
      }
      // One task for each object that is sent.
      std::optional<std::uint32_t> object;
      std::sort(sends[t].begin(), sends[t].end(), [&plan](std::uint32_t a, std::uint32_t b) {
        return plan.channels()[a].object < plan.channels()[b].object;
      });
      sending_task* sender = nullptr;
      for (const std::uint32_t c : sends[t]) {
        const step_channel& by = plan.channels()[c];
        if (object != by.object) {
          object = by.object;
          auto made = std::make_unique<sending_task>(of, by.object, t, transfers, mail);
          sender = made.get();
          senders_.push_back(sender);
          all_.push_back(std::move(made));
        }
        sender->add({static_cast<int>(by.to), c});
      }
    }
  }

  /// The body of a run: forks everything, and waits for it. *Throws*: what tasks throw.
  void run(std::uint64_t iterations, step_mail& mail) {
    sched::strand& s = sched::current();
    const std::stop_callback stopped(this_task::stop_token(), [&mail] {
      mail.fail(0, sched::cancellation());  // whatever is awaited may have been dropped
    });
    try {
      bool dropped = false;
      for (std::uint64_t i = 0; i < iterations && !dropped; ++i)
        record_([&] {
          for (auto t = all_.begin(); t != all_.end() && !dropped; ++t)
            dropped = !(*t)->fork(s, i, lower_ * static_cast<int>(i));
        });
    } catch (const std::bad_alloc&) {
      mail.fail(0, std::current_exception());
      throw;
    }
    sched::sync(s);
  }

  const std::vector<own_task*>& own() const noexcept { return own_; }
  const std::vector<sending_task*>& senders() const noexcept { return senders_; }

 private:
  /// Of each task, 0 if it is executed elsewhere: by the schedule in a few levels, if that is another order
  /// than the reference order; else its own.
  static std::vector<int> priorities_(const step_record& of, const step_plan& plan, unsigned here,
                                      const std::vector<double>& start) {
    std::vector<std::uint32_t> mine;
    for (std::uint32_t t = 0; t < of.tasks().size(); ++t)
      if (plan.processor()[t] == here) mine.push_back(t);
    const auto earlier = [&start](std::uint32_t a, std::uint32_t b) {
      return start[a] != start[b] ? start[a] < start[b] : a < b;
    };
    std::vector<int> priority(of.tasks().size());
    if (start.empty() || std::is_sorted(mine.begin(), mine.end(), earlier)) {
      for (const std::uint32_t t : mine) priority[t] = of.tasks()[t].options.priority;
      return priority;
    }
    std::sort(mine.begin(), mine.end(), earlier);
    constexpr std::size_t levels = 16;  // finding a place in a queue takes a step for each
    for (std::size_t i = 0; i < mine.size(); ++i)
      priority[mine[i]] = 1 + static_cast<int>((mine.size() - 1 - i) * levels / mine.size());
    return priority;
  }

  /// By how much a task is less urgent in each iteration than in the one before; 0 where nobody waits for
  /// others, so that a run may have any number of iterations, or where priorities leave no room.
  static int lower_by_(const std::vector<int>& priority, const step_plan& plan) {
    if (plan.channels().empty()) return 0;
    const auto [least, most] = std::minmax_element(priority.begin(), priority.end());
    const std::int64_t different = std::int64_t{*most} - *least + 1;
    const bool room = *most < INT_MAX && *least - different * std::int64_t{longest_round} > INT_MIN;
    return room ? static_cast<int>(different) : 0;
  }

  std::vector<std::unique_ptr<step_task>> all_;
  std::vector<own_task*> own_;
  std::vector<sending_task*> senders_;
  int lower_ = 0;  // the priority of a task, from one iteration to the next
  recorded record_;
};

}  // namespace weft::inline WEFT_ABI::remote
