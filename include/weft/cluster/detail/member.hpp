// SPDX-License-Identifier: BSL-1.0
// One process of a cluster: a runtime, and its part in each run.
#pragma once

#include <weft/base/thread.hpp>
#include <weft/cluster/detail/exchange.hpp>
#include <weft/cluster/detail/finished_tasks.hpp>
#include <weft/cluster/detail/keeper.hpp>
#include <weft/cluster/detail/run_checkpoints.hpp>
#include <weft/cluster/detail/step_message.hpp>
#include <weft/cluster/detail/task_travel.hpp>
#include <weft/flow/runtime.hpp>
#include <weft/system/prompt_thread.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace weft::inline WEFT_ABI::remote {

/// How a run has ended: with a value, or with an exception.
template <class R>
class outcome {
 public:
  template <class Run>
  void capture(Run run) noexcept {
    try {
      if constexpr (std::is_void_v<R>)
        run();
      else
        value_.emplace(run());
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }
  void pack(writer& w) const {
    w(thrown_ == nullptr);
    if (thrown_)
      detail::pack_exception(w, thrown_);
    else if constexpr (!std::is_void_v<R>)
      w(*value_);
  }
  void unpack(reader& r) {
    if (!r.get<bool>())
      thrown_ = detail::unpack_exception(r);
    else if constexpr (!std::is_void_v<R>)
      value_.emplace(r.get<R>());
  }
  bool well() const noexcept { return thrown_ == nullptr; }
  R get() {
    if (thrown_) std::rethrow_exception(thrown_);
    if constexpr (!std::is_void_v<R>) return *std::move(value_);
  }

 private:
  std::optional<std::conditional_t<std::is_void_v<R>, char, R>> value_;
  std::exception_ptr thrown_;
};

/// *Thread safety*: one thread; counters() of the runtime from any.
class member {
 public:
  /// `options.runtime.workers` is the number of workers. *Throws*: as weft::runtime.
  member(transport& by, const cluster_options& options)
      : by_(by),
        options_(options),
        runtime_(options.runtime),
        keeper_(options.largest_task, runtime_.workers()) {
    if (options.part_bytes < 1 << 10 || options.part_bytes > 1 << 30)
      throw option_error(
          "weft: cluster_options::part_bytes is invalid; expected from 1024 to 1073741824 bytes");
    if (!(options.checkpoint_seconds >= 0))
      throw option_error(
          "weft: cluster_options::checkpoint_seconds is invalid; expected seconds, or 0 for none");
    if (options.silence.count() != 0 &&
        (options.silence < std::chrono::milliseconds(10) || options.silence > std::chrono::hours(24)))
      throw option_error(
          "weft: cluster_options::silence is invalid; expected from 10 ms to 24 h, or 0 for no limit");
    if (!options.checkpoint.empty() && options.checkpoint_seconds > 0)
      checkpoints_.emplace(by.rank(), by.size()).write_to(options.checkpoint, options.checkpoint_seconds);
    if (by.size() == 1) return;
    flow::runtime_key::set_rank(runtime_, static_cast<unsigned>(by.rank()), static_cast<unsigned>(by.size()));
    exchange_.emplace(by, flow::runtime_key::engine(runtime_), options, &keeper_);
  }

  /// For tests: from now on tasks of runs are recorded there, and looked for; null: nowhere. *Requires*:
  /// there are no files, and no run is going on.
  void record_in(finished_tasks* records) noexcept { records_ = records; }

  /// What all processes call with the same `f`, which process 0 runs. *Throws*: what `f` throws, weft::error.
  template <class F, class... A>
  auto run(F&& f, A&&... arguments) {
    using R = decltype(runtime_.run(std::forward<F>(f), std::forward<A>(arguments)...));
    static_assert(
        std::is_void_v<R> || travels<std::conditional_t<std::is_void_v<R>, char, R>>,
        "weft: cluster::run returns the same in all processes, so the type of the result must be one that "
        "can be sent: a number, a container or an aggregate of such, or a type with serialize");
    outcome<R> end;
    recorded_run recorded(checkpoints_);
    const shown_run shown(*this);
    if (!exchange_) {
      end.capture([&] { return runtime_.run(std::forward<F>(f), std::forward<A>(arguments)...); });
    } else if (by_.rank() == 0) {
      const sent_threads::serving threads(exchange_->threads());
      base::atomic<bool> ended{false};
      base::thread root([&] {
        end.capture([&] { return runtime_.run(std::forward<F>(f), std::forward<A>(arguments)...); });
        ended.store(true, base::memory_order_release);  // pairs with lead
        by_.wake();
      });
      std::exception_ptr broken;
      try {
        const base::prompt_thread serves;
        exchange_->lead(ended, [&end](writer& w) { end.pack(w); });
      } catch (...) {
        broken = std::current_exception();
      }
      root.join();
      if (broken) std::rethrow_exception(broken);
    } else {
      const bytes told = [&] {
        const sent_threads::serving threads(exchange_->threads());
        const base::prompt_thread serves;
        return exchange_->follow();
      }();
      reader r{std::span<const std::byte>(told)};
      end.unpack(r);
    }
    recorded.end(end.well());
    return end.get();
  }
  /// As neighbours::leave.
  void leave() {
    if (exchange_) exchange_->leave();
  }
  /// As run_checkpoints::resume.
  std::size_t resume(const std::string& path) {
    if (!checkpoints_) checkpoints_.emplace(by_.rank(), by_.size());
    return checkpoints_->resume(path);
  }

  /// What a step needs, with a transport of its own.
  step_place place_for_steps(std::unique_ptr<transport> by) { return {runtime_, std::move(by), options_}; }

  weft::runtime& runtime() noexcept { return runtime_; }
  cluster_counters counters() const noexcept {
    cluster_counters all = exchange_ ? exchange_->counters() : cluster_counters{};
    all.tasks_recorded = keeper_.recorded();
    all.tasks_found = keeper_.found();
    if (checkpoints_) {
      all.checkpoints = checkpoints_->written();
      all.checkpoints_failed = checkpoints_->failed();
    }
    return all;
  }

 private:
  /// While it lives, tasks are shown to the keeper, if they are to be recorded.
  class shown_run {
   public:
    explicit shown_run(member& of) : of_(of) {
      const auto& files = of_.checkpoints_;
      finished_tasks* const in = files ? &of_.checkpoints_->tasks() : of_.records_;
      if (in == nullptr || flow::runtime_key::is_traced(of_.runtime_)) return;
      of_.keeper_.begin(in, !files || files->writes());
      of_.keeper_.enter(of_.root_, {}, 0);
      flow::runtime_key::set_unit(of_.runtime_, &of_.root_);
    }
    shown_run(const shown_run&) = delete;
    shown_run& operator=(const shown_run&) = delete;
    ~shown_run() {
      if (!of_.keeper_.is_on()) return;
      try {
        flow::runtime_key::set_unit(of_.runtime_, nullptr);
      } catch (...) {  // after fork(): the runtime has no workers here
      }
      of_.keeper_.begin(nullptr, false);
    }

   private:
    member& of_;
  };

  transport& by_;
  const cluster_options options_;
  weft::runtime runtime_;
  keeper keeper_;
  recorded_unit root_;
  finished_tasks* records_ = nullptr;
  std::optional<run_checkpoints> checkpoints_;
  std::optional<exchange> exchange_;  // ends before the runtime that it steals from
};

}  // namespace weft::inline WEFT_ABI::remote
