// SPDX-License-Identifier: BSL-1.0
// work_and_span: from one serial run, how long it would take with more workers, and what stands in the way.
#pragma once

#include <weft/base/error.hpp>
#include <weft/observe/critical_path.hpp>
#include <weft/observe/object_history.hpp>
#include <weft/observe/tick_clock.hpp>
#include <weft/task/run_recorder.hpp>

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace weft::inline WEFT_ABI::observe {

/// Options of work_and_span.
struct work_and_span_options {
  std::chrono::nanoseconds steal{2000};  ///< how long a task waits for its thief; steal_cost() measures it
};

/// The part of one type of task, by name, in a run.
struct task_share {
  std::string name;         ///< of the tasks
  std::uint64_t tasks = 0;  ///< how many
  double work = 0;          ///< of their bodies, in seconds
  double on_path = 0;       ///< of it on the critical path, in seconds
};

/// Records one run: work is the time of all bodies, span that of the longest chain of tasks that wait for
/// each other. Time in which the kernel executes something else, or in which a body blocks its thread, is no
/// work. With p workers the run cannot be faster than work / p, nor than the span.
/// *Thread safety*: one thread at a time.
/// *Example*:
/// @code
/// weft::observe::work_and_span ws;
/// rt.run({.record = &ws}, program);
/// ws.print(std::cout);
/// @endcode
/// *Source*: Cilkview (He, Leiserson, Leiserson, SPAA'10), here with the accesses of tasks.
template <class Clock>
class basic_work_and_span final : public sched::run_recorder {
 public:
  /// Nothing is recorded yet.
  explicit basic_work_and_span(const work_and_span_options& options = {}) : options_(options) {}

  /// Time of all bodies, in seconds; 0 before a run has ended, as all that follows.
  double work() const noexcept { return seconds_(work_); }
  /// Time of the longest chain of bodies of which each must wait for the one before, in seconds.
  double span() const noexcept { return seconds_(last_.span); }
  /// The same, if each task is stolen and each wait costs as much, in seconds.
  double burdened_span() const noexcept { return seconds_(last_.burdened); }
  /// Both in ticks of the clock.
  std::uint64_t work_ticks() const noexcept { return work_; }
  /// See above.
  std::uint64_t span_ticks() const noexcept { return last_.span; }
  /// How many workers the run can use on average.
  double parallelism() const noexcept { return ratio_(work(), span()); }
  /// How many tasks there were, the first one not counted.
  std::uint64_t tasks() const noexcept { return tasks_; }
  /// How much faster than serially the run is to be expected with so many workers: a greedy schedule, in
  /// which each wait on the longest chain costs a steal; at least 1, since tiny tasks are not stolen.
  double speed_up(unsigned workers) const noexcept {
    const double w = work(), p = workers, s = std::min(span(), w);
    if (w == 0 || workers < 2) return w == 0 ? 0 : 1;
    return std::max(1.0, w / std::max(w / p, (w - s) / p + burdened_span()));
  }
  /// All types of tasks, those with the largest part of the critical path first. *Throws*: std::bad_alloc.
  std::vector<task_share> types() const {
    std::vector<task_share> all;
    for (const type& t : types_) all.push_back({t.name, t.tasks, seconds_(t.work), 0});
    for (const path_piece* p = last_.way.end(); p != nullptr; p = p->before)
      all[p->type].on_path += seconds_(p->length);
    std::sort(all.begin(), all.end(), [](const task_share& a, const task_share& b) {
      return a.on_path != b.on_path ? a.on_path > b.on_path : a.name < b.name;
    });
    return all;
  }
  /// Prints all that as a table. *Throws*: what the stream throws.
  void print(std::ostream& out) const {
    const auto flags = out.flags();
    const auto precision = out.precision();
    out << std::fixed << std::setprecision(3) << "tasks          " << tasks_ << "\nwork           "
        << work() * 1e3 << " ms\nspan           " << span() * 1e3 << " ms\nburdened span  "
        << burdened_span() * 1e3 << " ms\nparallelism    " << std::setprecision(2) << parallelism()
        << "\n\ncritical path          share        ms     tasks   ms of work\n";
    for (const task_share& t : types())
      out << std::left << std::setw(20) << t.name.substr(0, 20) << std::right << std::setw(7)
          << std::setprecision(1) << 100 * ratio_(t.on_path, span()) << " %" << std::setprecision(3)
          << std::setw(10) << t.on_path * 1e3 << std::setw(10) << t.tasks << std::setw(13) << t.work * 1e3
          << '\n';
    out << "\nworkers  speed-up\n" << std::setprecision(2);
    for (unsigned p = 1; p <= 1024; p *= 2) out << std::setw(7) << p << std::setw(10) << speed_up(p) << '\n';
    out.flags(flags);
    out.precision(precision);
  }
  /// Prints the expected speed-up as comma-separated values, `workers,speed_up`. *Throws*: what the stream
  /// throws.
  void print_csv(std::ostream& out) const {
    out << "workers,speed_up\n";
    for (unsigned p = 1; p <= 1024; p *= 2) out << p << ',' << speed_up(p) << '\n';
  }

  void begin_run() override {
    clock_ = moment();
    {
      moment later;
      while (later.time - clock_.time < std::chrono::microseconds(200)) later = moment();
      nanoseconds_ = nanoseconds_per_tick(clock_, later);
      burden_ = static_cast<std::uint64_t>(static_cast<double>(options_.steal.count()) / nanoseconds_);
    }
    history_.clear();
    bodies_.clear();
    open_ = 0;
    types_.clear();
    numbers_.clear();
    tasks_ = work_ = 0;
    last_ = {};
    push_(number_("run"), {});
    history_.begin_body();
    time_.start(nanoseconds_);
  }
  void begin_task(const char* name) override {
    account_();
    instant start = running_().now;
    start.burdened += burden_;
    push_(number_(name), std::move(start));
    ++tasks_;
  }
  void add_access(const sched::access& a, sched::recorded_use use) override {
    history_.meet(a.object);
    if (use == sched::recorded_use::weak || history_.is_empty(a)) return;
    body& here = running_();
    if (use == sched::recorded_use::own) here.accesses.push_back(a);
    history_.each_before(a, [&](const auto& group) {
      instant ready = group.members;
      ready.burdened += burden_;
      here.now.wait_for(ready);
    });
  }
  void begin_body() override {
    // What is met here for the first time belongs to the body around; what follows, to this one.
    history_.begin_body();
    time_.go_on();
  }
  void end_body() noexcept override {
    account_();
    body& ended = bodies_[--open_];
    history_.end_body();
    ended.now.wait_for(ended.children);
    // One that commutes excludes the others: the next one waits for it, as for an update.
    for (sched::access& a : ended.accesses) {
      if (a.mode == sched::access_mode::commute) a.mode = sched::access_mode::update;
      history_.join(a).wait_for(ended.now);
    }
    running_().children.wait_for(ended.now);
    ended.forget();
    time_.go_on();
  }
  void sync() noexcept override {
    account_();
    body& here = running_();
    if (here.children.span > 0) {
      instant children = here.children;
      children.burdened += burden_;
      here.now.wait_for(children);
    }
    time_.go_on();
  }
  void end_run() noexcept override {
    account_();
    const moment end;
    nanoseconds_ = nanoseconds_per_tick(clock_, end);
    body& first = bodies_.front();
    first.now.wait_for(first.children);
    last_ = std::move(first.now);
    bodies_.clear();
    open_ = 0;
    history_.clear();
  }

 private:
  struct type {
    std::string name;
    std::uint64_t tasks = 0, work = 0;
  };
  struct body {
    std::uint32_t type = 0;
    instant now;       ///< where it has come to
    instant children;  ///< when the last of them ends
    std::vector<sched::access> accesses;

    void forget() noexcept {
      now = {};
      children = {};
      accesses.clear();
    }
  };

  body& running_() noexcept { return bodies_[open_ - 1]; }
  void push_(std::uint32_t number, instant now) {
    if (open_ == bodies_.size()) bodies_.emplace_back();
    body& b = bodies_[open_++];
    b.type = number;
    b.now = std::move(now);
  }

  /// The running body has worked since the clock was read last.
  void account_() {
    const std::uint64_t length = time_.pass();
    body& here = running_();
    here.now.span += length;
    here.now.burdened += length;
    here.now.way.add(paths_, length, here.type);
    types_[here.type].work += length;
    work_ += length;
  }
  std::uint32_t number_(const char* name) {
    const std::string_view text = name != nullptr ? name : "task";
    if (latest_ >= types_.size() || types_[latest_].name != text) {
      const auto [found, fresh] =
          numbers_.try_emplace(std::string(text), static_cast<std::uint32_t>(types_.size()));
      if (fresh) types_.push_back({.name = found->first});
      latest_ = found->second;
    }
    ++types_[latest_].tasks;
    return latest_;
  }
  double seconds_(std::uint64_t t) const noexcept { return static_cast<double>(t) * nanoseconds_ * 1e-9; }
  static double ratio_(double a, double b) noexcept { return b > 0 ? a / b : 0; }

  work_and_span_options options_;
  moment clock_;
  double nanoseconds_ = 0;
  std::uint64_t burden_ = 0;
  Clock time_;  ///< of the running body
  std::uint64_t tasks_ = 0, work_ = 0;
  path_memory paths_;  // before all that has paths
  object_history<instant> history_;
  std::vector<body> bodies_;  ///< those that run, the innermost last, and memory for deeper ones
  std::size_t open_ = 0;      ///< how many run
  std::vector<type> types_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::uint32_t latest_ = 0;  ///< the type that was asked for last
  instant last_;
};

/// See basic_work_and_span; by the time that bodies take.
using work_and_span = basic_work_and_span<running_clock>;

}  // namespace weft::inline WEFT_ABI::observe
