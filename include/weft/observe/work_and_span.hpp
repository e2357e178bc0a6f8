// SPDX-License-Identifier: BSL-1.0
// work_and_span: from one serial run, how long it would take with more workers, and what stands in the way.
#pragma once

#include <weft/observe/critical_path.hpp>
#include <weft/observe/object_history.hpp>
#include <weft/observe/running_clock.hpp>
#include <weft/task/closure.hpp>
#include <weft/task/run_recorder.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <iomanip>
#include <map>
#include <new>
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
/// work. With p workers the run cannot be faster than work / p, nor than the span. Where the record lacks
/// memory, the run throws std::bad_alloc, at the next fork or at its end, and all figures are 0.
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

  /// Time of all bodies, in seconds; 0 before a run has ended or where its record lacked memory, as all that
  /// follows.
  double work() const noexcept { return seconds_(work_); }
  /// Time of the longest chain of bodies of which each must wait for the one before, in seconds.
  double span() const noexcept { return seconds_(last_.span); }
  /// The same, if each task is stolen and each wait costs as much, in seconds.
  double burdened_span() const noexcept { return seconds_(last_.span + last_.burden); }
  /// Both in ticks of the clock.
  std::uint64_t work_ticks() const noexcept { return work_ / parts_of_tick; }
  /// See above.
  std::uint64_t span_ticks() const noexcept { return last_.span / parts_of_tick; }
  /// How many workers the run can use on average.
  double parallelism() const noexcept { return ratio_(work(), span()); }
  /// How many tasks there were, the first one not counted.
  std::uint64_t tasks() const noexcept {
    std::uint64_t all = 0;
    for (const type& t : types_) all += t.tasks;
    return all != 0 ? all - 1 : 0;
  }
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
    std::uint64_t end = last_.span;
    for (const path_piece* p = last_.way.end(); p != nullptr; end = p->begin, p = p->before)
      all[p->type].on_path += seconds_(end - p->begin);
    std::sort(all.begin(), all.end(), [](const task_share& a, const task_share& b) {
      return a.on_path != b.on_path ? a.on_path > b.on_path : a.name < b.name;
    });
    return all;
  }
  /// Prints all that as a table. *Throws*: what the stream throws.
  void print(std::ostream& out) const {
    const auto flags = out.flags();
    const auto precision = out.precision();
    out << std::fixed << std::setprecision(3) << "tasks          " << tasks() << "\nwork           "
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

 private:
  void begin_run() override {
    clock_ = moment();
    {
      moment later;
      while (later.time - clock_.time < std::chrono::microseconds(200)) later = moment();
      nanoseconds_ = nanoseconds_per_tick(clock_, later);
      burden_ = static_cast<std::uint64_t>(parts_of_tick * static_cast<double>(options_.steal.count()) /
                                           nanoseconds_);
    }
    forget_figures_();
    failed_ = false;
    history_.clear();
    accesses_.clear();
    results_.assign(64, {});
    result_end_ = results_.data();
    last_result_ = &results_.back();
    bodies_.assign(64, {});
    here_ = bodies_.data();
    last_body_ = &bodies_.back();
    here_->of = &type_("run");
    ++here_->of->tasks;
    time_.start(nanoseconds_);
    time_.go_on(here_->of->begun);
  }
  void begin_task(const char* name) override {
    keep_results_();
    begin_(name);
    here_->first_object = UINT32_MAX;
  }
  void add_access(const sched::access& a, sched::recorded_use use) override {
    const known_access known = or_fail_([&] {
      const known_access met = history_.meet(a);
      if (use == sched::recorded_use::own && !met.is_empty()) accesses_.push_back(met), ++here_->accesses;
      return met;
    });
    if (use == sched::recorded_use::weak || known.is_empty()) return;
    history_.each_before(known, [this](const auto& group) { here_->now.wait_for(group.members, burden_); });
  }
  void begin_body() override {
    // What was met until here belongs to the body around; what follows, to this one.
    here_->first_object = history_.size();
    time_.go_on(here_->of->begun);
  }
  void begin_plain_body(const char* name, const void* result) override {
    begin_(name);
    here_->result = result;
    here_->first_object = history_.size();
    time_.go_on(here_->of->begun);
  }
  void end_body() noexcept override {
    end_piece_();
    body& ended = *here_--;
    if (ended.results != 0) [[unlikely]]
      forget_results_(ended);
    history_.forget_from(ended.first_object);
    if (ended.children.span != 0) ended.now.wait_for(std::move(ended.children));
    if (ended.accesses != 0) end_accesses_(ended);
    here_->children.wait_for(ended.now);
    if (ended.result != nullptr)
      add_result_(ended);
    else
      ended.now.clear();
    time_.go_on(here_->of->after_child);
  }
  void end_object(const void* object) noexcept override {
    if (here_->results != 0 && result_end_[-1].place == object) [[likely]] {
      --here_->results;
      (--result_end_)->when.way.clear();
    } else {
      end_known_object_(object);
    }
  }
  void sync() noexcept override {
    end_piece_();
    if (here_->children.span != 0) here_->now.wait_for(std::move(here_->children), burden_);
    time_.go_on(here_->of->after_sync);
  }
  void end_run() override {
    end_piece_();
    const moment end;
    nanoseconds_ = nanoseconds_per_tick(clock_, end);
    body& first = bodies_.front();
    first.now.wait_for(first.children);
    last_ = std::move(first.now);
    for (const type& t : types_) work_ += t.work;
    bodies_.clear();
    history_.clear();
    results_.clear();
    if (!failed_) return;
    forget_figures_();
    throw std::bad_alloc();
  }

  struct type {
    type(std::string n, std::uint32_t i) : name(std::move(n)), number(i) {}

    std::string name;
    std::uint32_t number;
    std::uint64_t tasks = 0, work = 0;
    pace begun, after_child, after_sync;  ///< of the pieces of its bodies, by what comes before them
  };
  struct body {
    type* of = nullptr;
    instant now;                     ///< where it has come to
    instant children;                ///< when the last of them ends
    const void* result = nullptr;    ///< its only access; null: it has others, or none
    std::uint32_t accesses = 0;      ///< how many it has, the last of those of all that run
    std::uint32_t results = 0;       ///< of its children, likewise
    std::uint32_t first_object = 0;  ///< what it has met first lies behind so many; UINT32_MAX: nothing yet
  };
  /// The result of a child of which the history does not know yet.
  struct made_result {
    const void* place;
    instant when;
  };

  /// There is no memory: what follows is recorded as well as it can be, until a function that may throw says
  /// so. All of these but add_access come to type_ then, since no type is known to be that of tasks without a
  /// name.
  WEFT_COLD void fail_() noexcept {
    failed_ = true;
    unnamed_ = nullptr;
  }
  /// Calls `f`. *Throws*: what that throws, which the record does not outlive.
  template <class F>
  WEFT_ALWAYS_INLINE decltype(auto) or_fail_(F f) {
    try {
      return f();
    } catch (...) {
      fail_();
      throw;
    }
  }
  void forget_figures_() noexcept {
    types_.clear();
    by_name_.clear();
    unnamed_ = latest_ = nullptr;
    work_ = 0;
    last_.clear();
  }

  /// The running body has worked since the last piece ended.
  WEFT_ALWAYS_INLINE void end_piece_() noexcept {
    const std::uint64_t length = time_.pass();
    try {
      here_->now.add(paths_, length, here_->of->number);
    } catch (const std::bad_alloc&) {
      fail_();
    }
    here_->of->work += length;
  }
  WEFT_ALWAYS_INLINE void begin_(const char* name) {
    end_piece_();
    type* t = unnamed_;
    if (name != sched::default_options.name || t == nullptr) [[unlikely]]
      t = &type_(name);
    ++t->tasks;
    if (here_ == last_body_) [[unlikely]]
      make_bodies_();
    const body& outer = *here_++;
    here_->of = t;
    here_->now.span = outer.now.span;
    here_->now.burden = outer.now.burden + burden_;
    here_->now.way.begin_with(outer.now.way);
  }
  WEFT_NOINLINE void end_accesses_(body& ended) noexcept {
    const std::size_t first = accesses_.size() - std::exchange(ended.accesses, 0);
    for (std::size_t i = first; i < accesses_.size(); ++i) {
      // One that commutes excludes the others: the next one waits for it, as for an update.
      known_access& a = accesses_[i];
      if (a.mode == sched::access_mode::commute) a.mode = sched::access_mode::update;
      try {
        history_.join(a).wait_for(ended.now);
      } catch (const std::bad_alloc&) {
        fail_();
      }
    }
    accesses_.resize(first);
  }
  /// The running body has a new object: the result of its child that has ended.
  WEFT_ALWAYS_INLINE void add_result_(body& ended) {
    if (result_end_ == last_result_ && !make_results_()) [[unlikely]] {
      ended.result = nullptr;
      return ended.now.clear();
    }
    made_result& r = *result_end_++;
    ++here_->results;
    r.place = std::exchange(ended.result, nullptr);
    r.when.span = ended.now.span;
    r.when.burden = ended.now.burden;
    r.when.way = std::move(ended.now.way);
  }
  WEFT_NOINLINE void forget_results_(body& b) noexcept {
    for (; b.results != 0; --b.results) (--result_end_)->when.way.clear();
  }
  /// The results of the running body become objects as others: somebody may have an access to them now.
  void keep_results_() noexcept {
    try {
      for (const made_result* r = result_end_ - here_->results; r != result_end_; ++r)
        history_.join(history_.meet({.object = r->place, .mode = sched::access_mode::write})) = r->when;
    } catch (const std::bad_alloc&) {
      fail_();
    }
    forget_results_(*here_);
  }
  WEFT_NOINLINE void end_known_object_(const void* object) noexcept {
    keep_results_();
    history_.end(object, here_->first_object);
  }
  WEFT_NOINLINE void make_bodies_() {
    const auto depth = here_ - bodies_.data();
    or_fail_([this] { bodies_.resize(2 * bodies_.size()); });
    here_ = bodies_.data() + depth;
    last_body_ = &bodies_.back();
  }
  /// *Returns*: whether there is memory for more.
  WEFT_NOINLINE bool make_results_() noexcept {
    const auto count = result_end_ - results_.data();
    try {
      results_.resize(2 * results_.size());
    } catch (const std::bad_alloc&) {
      fail_();
      return false;
    }
    result_end_ = results_.data() + count;
    last_result_ = &results_.back();
    return true;
  }
  WEFT_NOINLINE type& type_(const char* name) {
    if (failed_) throw std::bad_alloc();
    return or_fail_([&]() -> type& { return known_type_(name); });
  }
  type& known_type_(const char* name) {
    if (name == nullptr) name = sched::default_options.name;
    if (latest_ == nullptr || std::strcmp(latest_->name.c_str(), name) != 0) {
      auto known = by_name_.find(name);
      if (known == by_name_.end()) {
        const auto number = static_cast<std::uint32_t>(types_.size());
        known = by_name_.emplace(name, &types_.emplace_back(name, number)).first;
      }
      latest_ = known->second;
    }
    if (name == sched::default_options.name) unnamed_ = latest_;
    return *latest_;
  }
  double seconds_(std::uint64_t t) const noexcept {
    return static_cast<double>(t) * nanoseconds_ * (1e-9 / parts_of_tick);
  }
  static double ratio_(double a, double b) noexcept { return b > 0 ? a / b : 0; }

  work_and_span_options options_;
  moment clock_;
  double nanoseconds_ = 0;
  std::uint64_t burden_ = 0;
  Clock time_;  ///< of the running body
  std::uint64_t work_ = 0;
  path_memory paths_;  // before all that has paths
  object_history<instant> history_;
  std::vector<known_access> accesses_;  ///< of all bodies that run, the innermost last
  std::vector<made_result> results_;    ///< likewise, and memory for more
  made_result* result_end_ = nullptr;   ///< behind those that there are
  made_result* last_result_ = nullptr;  ///< the last for which there is memory
  std::vector<body> bodies_;            ///< those that run, the innermost last, and memory for deeper ones
  body* here_ = nullptr;                ///< the innermost that runs
  body* last_body_ = nullptr;           ///< the last for which there is memory
  std::deque<type> types_;
  std::map<std::string, type*, std::less<>> by_name_;
  type* unnamed_ = nullptr;  ///< that of tasks without a name, if there were any
  type* latest_ = nullptr;   ///< the named type that was asked for last
  bool failed_ = false;      ///< there was no memory for something: the record is of no use
  instant last_;
};

/// See basic_work_and_span; by the time that bodies take.
using work_and_span = basic_work_and_span<running_clock>;

}  // namespace weft::inline WEFT_ABI::observe
