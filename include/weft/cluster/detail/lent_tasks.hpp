// SPDX-License-Identifier: BSL-1.0
// The tasks of this process that are executed in others.
#pragma once

#include <weft/cluster/detail/code_address.hpp>
#include <weft/cluster/detail/keeper.hpp>
#include <weft/cluster/detail/message.hpp>
#include <weft/cluster/detail/parcels.hpp>
#include <weft/cluster/detail/sent_threads.hpp>
#include <weft/cluster/detail/sent_values.hpp>
#include <weft/cluster/detail/travel.hpp>
#include <weft/cluster/exceptions.hpp>
#include <weft/cluster/options.hpp>
#include <weft/sched/definitions.hpp>
#include <weft/sched/outside_thief.hpp>

#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// To the runtime they count as executed, until they have ended there or come back unbegun. Passes on what is
/// told of threads that have gone to other processes.
/// *Thread safety*: the thread that serves.
class lent_tasks {
 public:
  /// `kept`: who records tasks; null: nobody.
  lent_tasks(sched::outside_thief& thief, transport& by, const cluster_options& options,
             cluster_counters& counters, keeper* kept)
      : thief_(thief),
        largest_(options.largest_task),
        counters_(counters),
        keeper_(kept),
        values_(by.size(), options, counters),
        threads_(by, options.largest_task, counters) {
    thief.carry_threads_by(threads_);
  }
  lent_tasks(const lent_tasks&) = delete;
  lent_tasks& operator=(const lent_tasks&) = delete;

  /// The threads that have gone.
  sent_threads& threads() noexcept { return threads_; }
  /// Whether this one may go.
  static bool may_go(const sched::closure& c) noexcept { return way_of(c) != nullptr; }

  /// Appends ready tasks to an answer, the oldest first: one, since it is the largest as a rule; and more of
  /// its frame, at most `wanted`, until half of what is ready there is taken or the answer has so many bytes.
  /// *Returns*: their numbers.
  task_range lend(writer& w, int to, unsigned wanted, std::size_t bytes_at_most) {
    const task_range all{last_id_ + 1, 0};
    if (values_.on()) w.values(&values_);
    const sched::strand* last = nullptr;
    unsigned lent = 0;
    for (int tries = 0; lent < wanted && tries < 4 && w.bytes().size() < bytes_at_most;) {
      sched::strand* const s = take_(last, lent, wanted);
      if (s == nullptr) break;
      if (send_(w, *s, to)) {
        last = s;
        ++lent;
      } else {
        ++tries;
      }
    }
    while (sched::strand* const s = thief_.next_taken()) keep_returned_(*s);
    return {all.first, last_id_};
  }
  /// Appends a ready task that is not shown to the keeper, for this process itself, where its end will be
  /// recorded. *Returns*: false if there is none.
  bool lend_to_self(writer& w, int self) {
    sched::strand* const s = thief_.steal(
        [](const sched::closure& c) noexcept { return c.what->untraced == nullptr && way_of(c) != nullptr; });
    return s != nullptr && send_(w, *s, self);
  }
  /// Tasks have ended elsewhere, of which these results were sent.
  void take_back_all(reader& r) {
    while (r.left() != 0) {
      reader result = r.part(r.get<std::uint64_t>());
      take_back(result);
    }
  }
  /// One of them.
  void take_back(reader& r) {
    std::uint64_t id = 0;
    bool well = false, stopped = false, results = false;
    r(id, well, stopped, results);
    if (is_thread(id)) return threads_.take_back(id, r, well, stopped, results);
    const away a = no_longer_away_(id);
    sched::closure& c = sched::outside_thief::task_of(*a.place);
    std::exception_ptr thrown;
    if (results && well && !stopped && !a.stopped) record_(a, r);
    try {
      if (!well) thrown = detail::unpack_exception(r);
      if (results)
        a.how->take_back(c, r, well);
      else
        a.how->lose(c);
    } catch (...) {
      thrown = std::current_exception();
      a.how->lose(c);
    }
    if (stopped) sched::outside_thief::request_stop(*a.place);
    thief_.end(*a.place, std::move(thrown));
  }
  /// A message of this kind has come.
  void declined(reader& r) {
    const auto id = r.get<std::uint64_t>();
    const bool stays = r.get<bool>();
    if (is_thread(id)) return threads_.refused(id);
    if (stays) values_.answered(id, r);
    declined(id, stays);
  }
  /// Another process has said what it keeps of the values of a task.
  void kept(reader& r) {
    const auto id = r.get<std::uint64_t>();
    values_.answered(id, r);
  }
  /// Whether all have.
  bool all_kept() const noexcept { return values_.all_answered(); }
  /// No process keeps anything any more.
  void forget_values() noexcept { values_.clear(); }
  /// A task has come back unbegun. `stays`: it is executed here.
  void declined(std::uint64_t id, bool stays) {
    if (!stays) returned_.reserve(returned_.size() + 1);
    sched::strand& s = *no_longer_away_(id).place;
    stays ? thief_.give_back(s) : returned_.push_back(&s);
  }
  /// So have those that were in a message for which the receiver had no memory.
  void refused(task_range r) {
    if (is_thread(r.first)) return threads_.refused(r.first);
    for (std::uint64_t id = r.first; id <= r.last; ++id)
      if (away_.contains(id)) {
        values_.lost(id);
        declined(id, true);
      }
  }
  /// A task has ended elsewhere, and there is no memory for what is told of that.
  void end_without_memory(std::uint64_t id) {
    if (is_thread(id)) return threads_.end_without_memory(id);
    const away a = no_longer_away_(id);
    a.how->lose(sched::outside_thief::task_of(*a.place));
    thief_.end(*a.place, std::make_exception_ptr(std::bad_alloc()));
  }
  /// Tasks that have come back go to whoever has a worker first: this process, or one that asks. *Returns*:
  /// whether one has gone to a worker of this process.
  bool execute_returned() {
    if (returned_.empty() || !(thief_.workers_idle() || sched::outside_thief::stopped(*returned_.back())))
      return false;
    thief_.give_back(*returned_.back());
    returned_.pop_back();
    return true;
  }

  /// Calls `tell(to, id)` once for each task whose run was stopped.
  template <class Tell>
  bool tell_stops(Tell tell) {
    bool some = threads_.tell_stops(tell);
    for (auto& [id, a] : away_) {
      if (a.stopped || !sched::outside_thief::stopped(*a.place)) continue;
      a.stopped = some = true;
      tell(a.to, id);
    }
    return some;
  }
  /// The task has requested a stop of its run.
  void request_stop(std::uint64_t id) {
    if (is_thread(id)) return threads_.request_stop(id);
    const auto found = away_.find(id);
    if (found != away_.end()) sched::outside_thief::request_stop(*found->second.place);
  }
  /// Nobody can tell any more how they have ended.
  void lose_all(const std::string& why) {
    threads_.lose_all(why);
    for (auto& [id, a] : away_) {
      a.how->lose(sched::outside_thief::task_of(*a.place));
      thief_.end(*a.place, std::make_exception_ptr(error(why)));
    }
    away_.clear();
    for (sched::strand* const s : std::exchange(returned_, {})) thief_.give_back(*s);
  }

 private:
  struct away {
    sched::strand* place;
    const sched::travel* how;
    int to;
    bool stopped = false;  // and the other process was told
    // Where tasks are recorded:
    task_name name{};
    code_address type{};
    const recorded_unit* around = nullptr;  // null: it is not known
    base::clock::time_point gone{};
  };

  /// The next one to go, behind `last`, if there was one, and so many in all.
  sched::strand* take_(const sched::strand* last, unsigned lent, unsigned wanted) {
    if (!returned_.empty()) {
      sched::strand* const s = returned_.back();
      returned_.pop_back();
      return s;
    }
    if (sched::strand* const s = thief_.next_taken()) return s;
    return last == nullptr ? thief_.steal(wanted) : thief_.steal_beside(*last, lent);
  }
  /// The task goes to whoever has a worker first.
  void keep_returned_(sched::strand& s) noexcept {
    try {
      returned_.push_back(&s);
    } catch (const std::bad_alloc&) {
      thief_.give_back(s);
    }
  }
  /// *Returns*: false if it does not travel after all.
  bool send_(writer& w, sched::strand& s, int to) {
    if (sched::outside_thief::stopped(s)) {
      thief_.give_back(s);
      return false;
    }
    sched::closure& c = sched::outside_thief::task_of(s);
    const std::size_t before = w.bytes().size();
    values_.begin_task(to, last_id_ + 1);
    std::optional<bytes> known;
    try {
      const item_frame whole(w);
      const std::size_t begin = w.bytes().size();
      w.limit(largest_ <= SIZE_MAX - begin ? begin + largest_ : SIZE_MAX);
      away a{.place = &s, .how = way_of(c), .to = to, .type = type_of(c)};
      w(++last_id_, a.type.module, a.type.offset);
      const std::size_t packed = w.bytes().size();
      a.how->pack(c, w);
      w.limit(SIZE_MAX);
      w(records_());
      if (records_()) known = prepare_record_(a, w, packed);
      whole.close(w);
      if (!known) away_.emplace(last_id_, a);
    } catch (...) {  // it is too long, or there is no memory: then it is executed here
      w.bytes().resize(before);
      w.limit(SIZE_MAX);
      values_.abandon_task();
      ++counters_.closures_kept;
      thief_.give_back(s);
      return false;
    }
    if (known) {
      w.bytes().resize(before);
      values_.abandon_task();
      end_as_known_(s, *known);
      return false;
    }
    counters_.closures_sent += to != threads_.process();
    return true;
  }
  bool records_() const noexcept { return keeper_ != nullptr && keeper_->is_on(); }
  /// Adds what a process that records tasks is to know of one that is packed from there on. *Returns*: how it
  /// has ended in an earlier job, if that is known.
  std::optional<bytes> prepare_record_(away& a, writer& w, std::size_t packed) {
    const sched::closure& c = sched::outside_thief::task_of(*a.place);
    if (values_.stand_for_some()) {  // then the name is that of the task as it is packed without them
      try {
        writer plain;
        plain.limit(largest_);
        a.how->pack(c, plain);
        a.name = name_of(plain.bytes().data(), plain.bytes().size(), a.type.module, a.type.offset);
      } catch (const error&) {  // it is too long for a record
        w(a.name.high, a.name.low, unit_lengths::levels);
        return std::nullopt;
      }
    } else {  // but for the mark behind it
      a.name =
          name_of(w.bytes().data() + packed, w.bytes().size() - packed - 1, a.type.module, a.type.offset);
    }
    const bool shown = c.what->untraced != nullptr;
    // Where another one is not shown, only the outermost unit around it is known.
    a.around = static_cast<recorded_unit*>(shown ? &sched::unit_around(c)
                                                 : sched::outside_thief::unit_of_run(*a.place));
    a.gone = base::clock::now();
    w(a.name.high, a.name.low, shown ? a.around->level + 1 : unit_lengths::levels);
    return keeper_->find(a.name, a.type);
  }
  void end_as_known_(sched::strand& s, const bytes& results) {
    sched::closure& c = sched::outside_thief::task_of(s);
    const sched::travel* const how = (*c.what->travels)();
    std::exception_ptr thrown;
    try {
      reader r{std::span<const std::byte>(results)};
      how->take_back(c, r, true);
    } catch (...) {
      thrown = std::current_exception();
      how->lose(c);
    }
    thief_.end(s, std::move(thrown));
  }
  /// It has ended well, and its results come next.
  void record_(const away& a, reader results) {
    if (!records_() || a.around == nullptr || sched::outside_thief::stopped(*a.place)) return;
    try {
      bytes all(results.left());
      results.take(all.data(), all.size());
      keeper_->add(a.name, a.around, a.type, std::move(all), base::clock::now() - a.gone);
    } catch (const std::bad_alloc&) {  // it may be executed again
    }
  }
  away no_longer_away_(std::uint64_t id) {
    const auto found = away_.find(id);
    if (found == away_.end()) throw error("weft: a process of the cluster has ended a task twice");
    const away a = found->second;
    away_.erase(found);
    values_.ended(id);
    return a;
  }

  sched::outside_thief& thief_;
  const std::size_t largest_;
  cluster_counters& counters_;
  keeper* const keeper_;
  sent_values values_;
  sent_threads threads_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, away> away_;
  std::vector<sched::strand*> returned_;  // which others have declined
};

}  // namespace weft::inline WEFT_ABI::remote
