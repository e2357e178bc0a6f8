// SPDX-License-Identifier: BSL-1.0
// What process 0 decides for a step that is partitioned: whether all have the same one, where its tasks are,
// and how a run ends.
#pragma once

#include <weft/cluster/detail/checkpoint_schedule.hpp>
#include <weft/cluster/detail/step_mail.hpp>
#include <weft/cluster/detail/step_message.hpp>
#include <weft/cluster/detail/step_plan.hpp>
#include <weft/cluster/exceptions.hpp>
#include <weft/cluster/partition_options.hpp>
#include <weft/placement/repeated_length.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// Where tasks are, and when the method thinks they start.
struct placed_tasks {
  std::vector<unsigned> processor;
  std::vector<double> start;
};

/// Reads reports of all processes, and writes verdicts.
class step_leader {
 public:
  /// What a verdict orders: a round, the end, or the end by an exception of a process (-1: of none).
  enum class order : std::uint8_t { go, finish, throw_ };

  /// `files`: of this process; nothing if there are no checkpoints.
  step_leader(const step_record& step, const partition_options& options, int processes,
              std::optional<step_checkpoints>& files) noexcept
      : step_(step),
        options_(options),
        processes_(static_cast<unsigned>(processes)),
        files_(files),
        checkpoints_(files, options.checkpoint_seconds, processes_) {}

  /// Reads who has recorded what. *Effects*: writes whose exception it is, -1 if nobody's, -2 if this one's;
  /// and the exception.
  void compare(std::vector<bytes>& all, writer& w) const {
    std::vector<reader> of;
    of.reserve(all.size());
    for (const bytes& b : all) of.emplace_back(std::span<const std::byte>(b));
    std::optional<std::string> wrong;
    for (std::size_t p = 0; p < of.size(); ++p)
      if (!of[p].get<bool>()) {
        w(static_cast<std::int32_t>(p));
        return w.put(all[p].data() + all[p].size() - of[p].left(), of[p].left());
      }
    for (std::size_t p = 0; p < of.size() && !wrong; ++p) {
      const std::string process = "process " + std::to_string(p);
      const auto size = of[p].get<std::uint64_t>();
      if (size != step_.tasks().size())
        wrong = "weft: the partitioned step has " + std::to_string(size) + " tasks in " + process + ", and " +
                std::to_string(step_.tasks().size()) + " in process 0; it must be the same in all processes";
      for (std::uint32_t t = 0; t < step_.tasks().size() && !wrong; ++t)
        if (of[p].get<std::uint64_t>() != step_.tasks()[t].identity)
          wrong = "weft: " + step_.name_of(t) + " of the partitioned step is another function in " + process +
                  " than in process 0, or has rights on other objects";
    }
    w(std::int32_t{wrong ? -2 : -1});
    if (wrong) detail::pack_exception(w, std::make_exception_ptr(error(*wrong)));
  }
  /// Reads how often each runs the step, and writes what comes first.
  void begin_run(std::vector<bytes>& all, writer& w) {
    for (std::size_t p = 0; p < all.size(); ++p) {
      reader r{std::span<const std::byte>(all[p])};
      const auto n = r.get<std::uint64_t>();
      if (p == 0) left_ = n;
      if (n != left_)
        return throw_(
            w, std::make_exception_ptr(error("weft: process " + std::to_string(p) +
                                             " runs the partitioned step " + std::to_string(n) +
                                             " times, and process 0 " + std::to_string(left_) + " times")));
    }
    checkpoints_.begin_run();
    go_or_finish_(w);
  }
  /// Writes which checkpoint is the last whole one, if there is one; or the exception of reading that.
  void tell_last_checkpoint(writer& w) {
    checkpoints_.drop();  // files of it could be replaced meanwhile
    std::optional<checkpoint> last;
    try {
      last = files_->last();
      files_->tidy(last ? last->number : 0);
    } catch (...) {
      w(false);
      return detail::pack_exception(w, std::current_exception());
    }
    w(true, last);
  }
  /// Reads whether all could load it, and writes that, or the first exception.
  void end_loading(const std::vector<bytes>& all, const checkpoint& c, writer& w) {
    if (tell_failure_(all, w)) return checkpoints_.lose();
    w(true);
    checkpoints_.resume(c);
  }
  /// The run that has ended has thrown after all.
  void take_back_run() noexcept { checkpoints_.take_back_run(); }
  /// Writes the number of the checkpoint that all are to write now, 0 for none; or why there can be none.
  void begin_saving(writer& w) {
    std::uint64_t number = 0;
    try {
      if (is_placed_) number = checkpoints_.order_now();
    } catch (...) {
      w(false);
      return detail::pack_exception(w, std::current_exception());
    }
    w(true, number);
  }
  /// Reads what all have written, and writes whether it is a checkpoint, or the first exception.
  void end_saving(const std::vector<bytes>& all, writer& w) {
    if (tell_failure_(all, w)) return checkpoints_.drop();
    try {
      for (std::size_t p = 0; p < all.size(); ++p) {
        reader r{std::span(all[p])};
        r.get<bool>();
        const auto part = r.get<written_part>();
        checkpoints_.note(p, part.number, part.part);
      }
      checkpoints_.advance(true);
    } catch (...) {
      w(false);
      return detail::pack_exception(w, std::current_exception());
    }
    w(true);
  }
  /// Reads what each has done in a round, and writes what comes next.
  void end_round(std::vector<bytes>& all, writer& w) {
    std::uint64_t first = step_mail::none;
    std::optional<std::size_t> failed;
    bytes why;
    for (std::size_t p = 0; p < all.size(); ++p) {
      reader r{std::span<const std::byte>(all[p])};
      const auto place = r.get<std::uint64_t>();
      const auto exception = r.get<bytes>();
      if (place < first) first = place, failed = p, why = exception;
      for (auto n = r.get<std::uint64_t>(); n != 0; --n) {
        const auto task = r.get<std::uint32_t>();
        const auto cost = r.get<double>();
        if (task < costs_.size()) costs_[task] = cost;
      }
      for (auto n = r.get<std::uint64_t>(); n != 0; --n) {
        const auto object = r.get<std::uint32_t>();
        const auto size = r.get<double>();
        if (object < bytes_.size()) bytes_[object] = size;
      }
      if (r.get<bool>()) checkpoints_.drop();
      if (const auto part = r.get<std::optional<written_part>>())
        checkpoints_.note(p, part->number, part->part);
    }
    checkpoints_.end_round();
    if (failed) {
      w(order::throw_, static_cast<std::int32_t>(*failed));
      return w.put(why.data(), why.size());
    }
    measured_ = true;
    go_or_finish_(w);
  }

 private:
  void go_or_finish_(writer& w) {
    try {
      checkpoints_.advance(false);
    } catch (...) {
      return throw_(w, std::current_exception());
    }
    if (left_ == 0) {
      checkpoints_.end_run();
      return static_cast<void>(w(order::finish));
    }
    const std::uint64_t n = std::min({left_, round_length_, checkpoints_.longest_round()});
    left_ -= n;
    round_length_ = std::min<std::uint64_t>(4 * round_length_, longest_round);
    const std::uint64_t number = is_placed_ ? checkpoints_.order() : 0;
    std::optional<placed_tasks> next;
    try {
      next = replace_();
    } catch (const std::exception& e) {  // of the method
      return throw_(w, std::make_exception_ptr(error(e.what())));
    }
    w(order::go, n, number, next.has_value());
    if (next) w(next->processor, next->start);
    checkpoints_.begin_round(n);
  }
  /// Writes the first exception that is reported, behind false. *Returns*: whether there is one.
  static bool tell_failure_(const std::vector<bytes>& all, writer& w) {
    for (const bytes& b : all)
      if (!reader{std::span(b)}.get<bool>()) {
        w.put(b.data(), b.size());
        return true;
      }
    return false;
  }
  /// An exception of nobody's tasks.
  static void throw_(writer& w, const std::exception_ptr& e) {
    w(order::throw_, std::int32_t{-1});
    detail::pack_exception(w, e);
  }
  /// Places the tasks where they are not yet, or could be better.
  std::optional<placed_tasks> replace_() {
    const placement::machine m{processes_, options_.latency, options_.bandwidth};
    if (!is_placed_) {
      estimate_();
      placed_tasks first = place_by_method_(graph_of(step_, costs_, bytes_), m).first;
      is_placed_ = true;
      placed_ = first.processor;
      return first;
    }
    if (!measured_ || options_.threshold >= 1) return {};
    measured_ = false;
    const placement::task_graph g = graph_of(step_, costs_, bytes_);
    const double now = placement::repeated_length(g, m, placed_);
    if (!may_be_better_(now, m.processors)) return {};
    auto [next, length] = place_by_method_(g, m);
    if (next.processor == placed_ || length >= now * (1 - options_.threshold)) return {};
    placed_ = next.processor;
    return std::move(next);
  }
  /// Whether it is worth asking the method again: the work is not spread already, and has changed.
  bool may_be_better_(double now, unsigned processors) {
    double work = 0, change = 0;
    for (std::size_t t = 0; t < costs_.size(); ++t) {
      work += costs_[t];
      change += std::abs(costs_[t] - considered_[t]);
    }
    if (now * (1 - options_.threshold) <= work / processors || change <= options_.threshold / 2 * work)
      return false;
    considered_ = costs_;
    return true;
  }
  std::pair<placed_tasks, double> place_by_method_(const placement::task_graph& g,
                                                   const placement::machine& m) {
    placement::schedule s = options_.method(g, m);
    if (s.processor.size() != step_.tasks().size() || s.start.size() != s.processor.size())
      throw error("weft: the method of a partitioned step has not placed all tasks");
    for (const unsigned p : s.processor)
      if (p >= m.processors) throw error("weft: the method of a partitioned step has placed a task nowhere");
    const double length = placement::repeated_length(g, m, s.processor);
    return {placed_tasks{std::move(s.processor), std::move(s.start)}, length};
  }
  /// What is not measured yet.
  void estimate_() {
    costs_ = options_.costs;
    if (costs_.size() != step_.tasks().size() && !costs_.empty())
      throw error("weft: partition_options::costs has " + std::to_string(costs_.size()) + " costs for " +
                  std::to_string(step_.tasks().size()) + " tasks");
    if (costs_.empty()) costs_.assign(step_.tasks().size(), 1e-4);
    considered_ = costs_;
    bytes_.clear();
    for (const auto& o : step_.objects()) {
      writer w;
      if (o.written) o.kind->pack(o.at, w);
      bytes_.push_back(static_cast<double>(w.bytes().size()));
    }
  }

  const step_record& step_;
  const partition_options& options_;
  const unsigned processes_;
  const std::optional<step_checkpoints>& files_;
  checkpoint_schedule checkpoints_;
  bool is_placed_ = false;
  std::vector<unsigned> placed_;
  std::uint64_t left_ = 0, round_length_ = 1;
  std::vector<double> costs_, bytes_;
  std::vector<double> considered_;  // the costs when the method was asked last
  bool measured_ = false;           // since the last look at where tasks are
};

}  // namespace weft::inline WEFT_ABI::remote
