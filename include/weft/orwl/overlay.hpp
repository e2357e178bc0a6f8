// SPDX-License-Identifier: BSL-1.0
// An overlay: recurrent tasks on locations, whose first requests decide the order of all their turns.
#pragma once

#include <weft/flow/runtime.hpp>
#include <weft/orwl/access.hpp>
#include <weft/orwl/detail/order.hpp>
#include <weft/orwl/detail/turns.hpp>

#include <string>
#include <tuple>

namespace weft::inline WEFT_ABI::orwl {

/// The order requested from schedule() would deadlock; the text names the tasks and locations of the cycle.
class WEFT_CROSSES_MODULES cyclic_overlay : public error {
 public:
  using error::error;
};

namespace detail {

template <class Request>
using passed_location = std::conditional_t<Request::exclusive, location<typename Request::value_type>,
                                           const location<typename Request::value_type>>;
template <class Request>
using passed = decltype(std::declval<passed_location<Request>&>().get());

/// A callable with the locations that it is called with.
template <class F, class... Requests>
class typed_body final : public body {
 public:
  explicit typed_body(F f, const Requests&... requests) : f_(std::move(f)), where_(requests.where...) {}

  void call(turn& t) override {
    for (const copying& c : before) c.now();
    std::apply(
        [&](auto*... where) {
          if constexpr (std::is_invocable_v<F&, turn&, passed<Requests>...>)
            base::call(f_, t, where->get()...);
          else
            base::call(f_, where->get()...);
        },
        where_);
  }

  void redirect(std::size_t request, any_location& to) noexcept override {
    std::size_t i = 0;
    std::apply(
        [&](auto*&... where) {
          ((i++ == request ? void(where = static_cast<std::remove_reference_t<decltype(where)>>(&to))
                           : void()),
           ...);
        },
        where_);
  }

 private:
  F f_;
  std::tuple<passed_location<Requests>*...> where_;
};

}  // namespace detail

/// Recurrent tasks on locations. In every iteration a task requests its locations, waits until it holds them
/// all, calls its body, and releases them, having posted its next requests. So neighbours, which share a
/// location that one of them writes, are never more than one iteration apart, and the values of all locations
/// are those of the serial program that repeatedly calls the bodies in the order of their first requests, for
/// every number of workers.
/// *Thread safety*: one thread at a time. The locations must outlive it.
/// *Example*: docs/tutorial/ordered-locks.md.
/// *Source*: Clauss and Gustedt; the order of the first requests follows the two-stage start of their
/// library: all are posted before any is acquired.
///
/// A template only so that programs without overlays need not compile it.
template <class = void>
class basic_overlay {
 public:
  /// Declares a task that calls `f` with T& for each location that it writes and const T& for each that it
  /// reads, preceded by a turn& if `f` takes one.
  /// *Returns*: its number, from 0.
  /// *Throws*: usage_error if it names a location twice; std::bad_alloc, and what copying `f` throws.
  template <class F, class T, bool E, class... Requests>
  std::size_t task(const task_options& options, F&& f, recurrent_request<T, E> first, Requests... more) {
    return task_<std::decay_t<F>>(options, std::forward<F>(f), first, more...);
  }
  /// The same without options.
  template <class F, class T, bool E, class... Requests>
    requires(!std::is_same_v<std::remove_cvref_t<F>, task_options>)
  std::size_t task(F&& f, recurrent_request<T, E> first, Requests... more) {
    return task_<std::decay_t<F>>({}, std::forward<F>(f), first, more...);
  }
  /// The number of declared tasks.
  std::size_t tasks() const noexcept { return tasks_.size(); }

  /// Posts the first requests of all tasks, in the order in which the tasks were declared.
  /// *Throws*: cyclic_overlay if the ranks lead to a deadlock; std::bad_alloc.
  /// *Cost*: O(n log n) for n requests.
  void schedule();
  /// The same in another order: tasks post in the order of `place[t]`, those with equal places in the order
  /// of declaration.
  /// *Throws*: also usage_error if there is not one place for each task.
  void schedule(std::span<const int> place) { schedule_(ranks_(place)); }

  /// Transforms the overlay to the canonical form of the papers, in which every task writes one location and
  /// every location has one writer: adds private copies of locations, and helper tasks that copy, behind the
  /// others. Writers then no longer exclude the readers of their locations. Neighbours in the new overlay are
  /// at most one iteration apart; those of the original one may be farther. `place`: as in schedule(); the
  /// order is final.
  /// *Requires*: the last task was declared.
  /// *Throws*: usage_error if a value cannot be copied, or if the overlay is in canonical form already; what
  /// copying throws. Afterwards it can only be destroyed.
  void make_canonical(std::span<const int> place);
  /// The same in the order of declaration.
  void make_canonical() { make_canonical(std::vector<int>(tasks_.size(), 0)); }
  /// Whether it was transformed.
  bool is_canonical();

  /// Lets every task take `iterations` turns.
  /// *Requires*: schedule() after the last task.
  /// *Returns*: that number, or the number of iterations at which a turn has stopped it (turn::stop).
  /// *Throws*: the exception of a turn, of the first one by iteration and task, if several throw before all
  /// has ended; then some tasks have taken more turns than others. weft::cancelled; usage_error without
  /// schedule(), if a location is in use, or if one that tasks read has no value: it was made without one,
  /// and nobody writes it; what runtime::run throws.
  /// *Suspends*: as runtime::run.
  std::uint64_t run(runtime& rt, std::uint64_t iterations, const run_options& options = {}) {
    return run_(rt, iterations, options);
  }
  /// Lets every task take turns until one of them calls turn::stop.
  /// *Throws*: also usage_error if the overlay has parts that share no location, since a turn could stop only
  /// its own part.
  std::uint64_t run_until_stopped(runtime& rt, const run_options& options = {});

  /// Whether later runs record when each turn begins and ends.
  void record(bool on = true) noexcept { records_ = on; }
  /// The turns of a task in the last run that was recorded.
  std::span<const turn_times> times(std::size_t task) const noexcept {
    return task < times_.size() ? std::span<const turn_times>(times_[task]) : std::span<const turn_times>();
  }
  /// Writes the record of the last run to a std::ostream as comma-separated values, one line per turn: task,
  /// name, iteration, and nanoseconds of waiting (since the task's turn before), computing, and both.
  /// `first`: the number of the run's first iteration; unless 0, the lines continue a table that has its
  /// head.
  template <class Stream>
  void write_times(Stream& to, std::uint64_t first = 0) const {
    if (first == 0) to << "task,name,iteration,waiting_ns,computing_ns,total_ns\n";
    for (std::size_t t = 0; t < times_.size(); ++t) {
      std::int64_t before = 0;
      for (std::size_t k = 0; k < times_[t].size(); ++k) {
        const turn_times& now = times_[t][k];
        to << t << ',' << tasks_[t].options.name << ',' << first + k << ',' << now.begin - before << ','
           << now.end - now.begin << ',' << now.end - before << '\n';
        before = now.end;
      }
    }
  }

 private:
  /// Who posts when, from 0, without ties.
  std::vector<std::uint32_t> ranks_(std::span<const int> place) const;

  template <class F, class G, class... Requests>
  std::size_t task_(const task_options& options, G&& f, const Requests&... requests) {
    static_assert(
        std::is_invocable_v<F&, detail::passed<Requests>...> ||
            std::is_invocable_v<F&, turn&, detail::passed<Requests>...>,
        "weft: a recurrent task is called with T& for each location that it writes and const T& for each "
        "that it reads, in the order of its requests, and may take a weft::orwl::turn& before them");
    const detail::any_location* const named[] = {requests.where...};
    for (const auto* const& l : named)
      for (const auto* const* m = &l + 1; m != std::end(named); ++m)
        if (*m == l)
          throw usage_error(std::string("weft: the recurrent task '") + options.name +
                            "' names the same location twice");
    if (canonical_) throw usage_error("weft: a task is declared after overlay::make_canonical");
    const auto t = static_cast<std::uint32_t>(tasks_.size());
    tasks_.push_back(
        {std::make_unique<detail::typed_body<F, Requests...>>(F(std::forward<G>(f)), requests...), options});
    (claims_.push_back({t, 0, requests.rank, Requests::exclusive}), ...);
    (where_.push_back(requests.where), ...);
    scheduled_ = false;
    return t;
  }
  /// Numbers the locations of the claims, in the order in which they were named first.
  void number_locations_();

  void schedule_(std::span<const std::uint32_t> place);
  std::string task_name_(std::uint32_t t) const;
  std::string location_name_(std::uint32_t l) const;
  [[noreturn]] void refuse_(std::span<const detail::arc> cycle) const;
  void need_values_() const;
  /// How many groups of tasks there are that have nothing to do with each other.
  std::size_t count_parts_() const;

  std::uint64_t run_(runtime& rt, std::uint64_t iterations, const run_options& options);

  std::vector<detail::declared> tasks_;
  std::vector<detail::claim> claims_;
  std::vector<detail::any_location*> where_;  // of the claims as they were declared
  std::vector<detail::any_location*> locations_;
  std::vector<std::uint32_t> unwritten_;                      // the locations that tasks only read
  std::vector<std::unique_ptr<detail::any_location>> owned_;  // of the canonical form
  std::vector<detail::copying> at_start_;                     // of each run
  bool canonical_ = false;
  bool scheduled_ = false;
  bool records_ = false;
  std::size_t parts_ = 0;
  std::vector<detail::player> players_;
  std::vector<detail::player*> successors_;
  std::vector<std::uint32_t> marking_;  // how many each task waits for in the first iteration
  std::vector<std::vector<turn_times>> times_;
};

#if WEFT_COMPILED && !WEFT_DEFINITIONS
extern template class basic_overlay<>;
#endif
using overlay = basic_overlay<>;

}  // namespace weft::inline WEFT_ABI::orwl

#include <weft/orwl/definitions.hpp>
