// SPDX-License-Identifier: BSL-1.0
// The tasks of other processes that are executed in this one.
#pragma once

#include <weft/cluster/detail/code_address.hpp>
#include <weft/cluster/detail/keeper.hpp>
#include <weft/cluster/detail/kept_values.hpp>
#include <weft/cluster/detail/message.hpp>
#include <weft/cluster/detail/pace.hpp>
#include <weft/cluster/detail/parcels.hpp>
#include <weft/cluster/detail/travel.hpp>
#include <weft/cluster/exceptions.hpp>
#include <weft/sched/definitions.hpp>
#include <weft/sched/outside_thief.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// Each of them is a run of its own to the runtime: it can be stopped, and has waits of its own.
///
/// Who may touch it when: what stands behind the mutex under it; the number of guests by anybody; all else by
/// the thread that serves.
class guests {
 public:
  using clock = base::clock;
  using key = std::pair<int, std::uint64_t>;  ///< the process that has sent it, and its number there

  /// A message for the process from which guests have come.
  struct report {
    int to;
    kind of;
    bytes message;
    task_range about{};  ///< of a long result
  };
  /// How many guests have ended lately, and how long each took after the one before, in all.
  struct ends {
    unsigned count = 0;
    clock::duration took{};
  };

  /// `batch`: from how many bytes on nothing is added to a message; `cache`: of how many bytes values are
  /// kept; `kept`: who records tasks; null: nobody.
  guests(transport& by, sched::outside_thief& thief, std::size_t batch, std::size_t cache,
         keeper* kept) noexcept
      : by_(by), thief_(thief), batch_(batch), keeper_(kept), values_(cache) {}
  guests(const guests&) = delete;
  guests& operator=(const guests&) = delete;
  ~guests() { wait(); }

  /// A run begins.
  void begin(std::uint32_t run) noexcept {
    wait();
    run_ = run;
    early_stops_.clear();
    results_.clear();
    ends_ = {};
  }
  /// Waits until all have ended. Their reports are still there.
  void wait() const noexcept {
    // Acquire pairs with the last touch of end_.
    for (base::backoff wait; count_.load(base::memory_order_acquire) != 0;) wait.wait();
  }

  /// Executes the task of which another process has sent this. `unasked`: it is given up soon if no worker
  /// has use for it. *Throws*: weft::error, std::bad_alloc, what constructors of values throw.
  void execute(reader& packed, int from, bool unasked) {
    values_.begin_task(from);  // first: what was kept for the last one is not told again
    auto h = std::make_unique<host>();
    h->at = this;
    h->come = clock::now();
    code_address type;
    std::uint64_t id = 0;
    packed(id, type.module, type.offset);
    packed.values(&values_);
    h->name = {from, id};
    const auto travels =
        reinterpret_cast<sched::travel_function>(const_cast<void*>(loaded_code::at_start().at(type)));
    h->task = travels()->unpack(packed);
    if (packed.get<bool>()) {
      task_name name;
      unsigned level = 0;
      packed(name.high, name.low, level);
      if (keeper_ != nullptr && keeper_->is_on()) {
        keeper_->enter(h->unit, name, level);
        h->run.unit = &h->unit;
      }
    }
    h->task->of = h.get();
    h->task->ended = &end_;
    h->stopping.emplace(h->run.source.get_token(), on_stop{h.get()});
    std::optional<report> news;
    try {
      if (values_.has_news()) {
        answers_.reserve(answers_.size() + 1);
        outgoing m(kind::kept, run_);
        m.body()(id);
        pack_news(m.body());
        news = report{from, kind::kept, m.seal()};
      }
      const std::lock_guard hold(mutex_);
      h->ahead =
          from != by_.rank() && !is_thread(id) && (unasked || active_(thief_.workers()) == thief_.workers());
      h->unasked = unasked;
      running_.emplace(h->name, entry{h->run.source, h.get()});
    } catch (...) {
      drop_(*h);
      throw;
    }
    if (early_stops_.erase(h->name) != 0) stop(h->name);
    count_.fetch_add(1, base::memory_order_relaxed);  // by the thread that waits for zero
    const key name = h->name;
    host* const kept = h.release();  // end_ takes it over
    try {
      sched::strand& place = thief_.execute(*kept->task, kept->run);
      const std::lock_guard hold(mutex_);
      if (const auto found = running_.find(name); found != running_.end()) found->second.place = &place;
    } catch (...) {
      h.reset(kept);
      forget_(name);
      drop_(*h);
      count_.fetch_sub(1, base::memory_order_relaxed);
      throw;
    }
    if (news) answers_.push_back(*std::move(news));
  }
  /// Appends what was kept of the values of the last task, and given up for them.
  void pack_news(writer& w) const { values_.pack_news(w); }
  /// Keeps no values any more. *Requires*: no guest is there.
  void forget_values() noexcept { values_.clear(); }
  /// How many have a worker, or wait for one, as a hint.
  unsigned active() const {
    const std::lock_guard hold(mutex_);
    return active_(pace::most_at_once);
  }
  /// Gives up a guest that came while all workers had something to do, and has waited for one for so long, or
  /// was not asked for: another process may have one. *Returns*: it; nothing if there is none.
  std::optional<key> give_up(clock::duration at_least) {
    const auto now = clock::now();
    return withdraw_([&](const host& h) { return h.ahead && (h.unasked || now - h.come >= at_least); });
  }
  /// The same of one that has come from this process itself.
  std::optional<key> give_up_own() {
    return withdraw_([this](const host& h) { return h.name.first == by_.rank(); });
  }
  /// The run of a guest was stopped where it comes from. It may have ended, or not have come yet.
  void stop(const key& name) {
    std::optional<std::stop_source> source;
    {
      const std::lock_guard hold(mutex_);
      if (const auto found = running_.find(name); found != running_.end()) source = found->second.stop;
    }
    if (source)
      source->request_stop();  // without the lock: it calls what users have registered
    else
      early_stops_.insert(name);
  }
  /// Takes out what is to be sent: results that nobody else will go with, or that have waited for so long,
  /// and all that is no result.
  std::vector<report> reports(clock::duration patience) {
    std::vector<report> all;
    const std::lock_guard hold(mutex_);
    patience_ = patience;
    all.reserve(reports_.size() + results_.size() + answers_.size());
    all.swap(reports_);
    std::move(answers_.begin(), answers_.end(), std::back_inserter(all));
    answers_.clear();
    const bool due = !results_.empty() && are_due_(clock::now());
    for (auto r = results_.begin(); r != results_.end();) {
      if (!due && r->second.size() < batch_) {
        ++r;
        continue;
      }
      all.push_back({r->first, kind::ended, r->second.seal()});
      r = results_.erase(r);
    }
    return all;
  }
  /// What has become known since the last call.
  ends ended_lately() {
    const std::lock_guard hold(mutex_);
    return std::exchange(ends_, {});
  }

 private:
  struct host;
  /// One that has not ended.
  struct entry {
    std::stop_source stop;
    host* of;
    sched::strand* place = nullptr;
  };
  /// Called where the stop is requested: by a body of the guest, or by the thread that serves.
  struct on_stop {
    host* of;
    void operator()() const noexcept {
      guests& self = *of->at;
      self.thief_.stop(of->run);
      try {
        self.report_({of->name.first, kind::stopped, about_task(kind::stopped, of->name.second, self.run_)});
      } catch (...) {  // no memory: its end tells it, too
      }
    }
  };
  struct host {
    guests* at = nullptr;
    key name;
    std::unique_ptr<guest> task;
    clock::time_point come;
    bool ahead = false, unasked = false;
    recorded_unit unit;  // unless its keeper is null
    sched::run_state run;
    std::optional<std::stop_callback<on_stop>> stopping;
  };

  /// Takes back one for which `may` is true, unless all of these have begun.
  template <class May>
  std::optional<key> withdraw_(May may) {
    std::unique_ptr<host> over;
    {
      const std::lock_guard hold(mutex_);
      const auto found = std::find_if(running_.begin(), running_.end(), [&](const auto& g) {
        return g.second.place != nullptr && may(*g.second.of) && thief_.withdraw(*g.second.place);
      });
      if (found == running_.end()) return {};
      over.reset(found->second.of);
      running_.erase(found);
    }
    drop_(*over);
    count_.fetch_sub(1, base::memory_order_relaxed);  // by the thread that waits for zero
    return over->name;
  }
  /// It will not begin.
  static void drop_(const host& h) noexcept { h.task->root->what->drop(*h.task->root); }
  /// A guest has ended; called by a worker.
  static void end_(sched::outside_task& ended, std::exception_ptr thrown) noexcept {
    const std::exception_ptr failure = std::move(thrown);
    std::unique_ptr<host> h(static_cast<host*>(static_cast<guest&>(ended).of));
    guests& self = *h->at;
    self.forget_(h->name);
    h->stopping.reset();
    // Acquire pairs with stop().
    const bool stopped = h->run.stopped.load(base::memory_order_acquire) || h->run.source.stop_requested();
    const task_name unit = h->unit.name;
    bool recorded =
        h->unit.keeper != nullptr && h->name.first != self.by_.rank() && failure == nullptr && !stopped;
    const key name = h->name;
    const clock::time_point come = h->come;
    try {
      outgoing result(kind::ended, self.run_);
      try {
        // What was stopped and has not ended well may never have begun, so nothing was written.
        pack_end_(result.body(), *h, failure, stopped, !stopped || failure == nullptr);
      } catch (...) {  // what it has written cannot be packed
        recorded = false;
        result = outgoing(kind::ended, self.run_);
        const std::exception_ptr why = std::current_exception();
        try {
          pack_end_(result.body(), *h, failure ? failure : why, stopped, false);
        } catch (...) {  // nor can its exception
          result = outgoing(kind::ended, self.run_);
          pack_end_(result.body(), *h, std::current_exception(), stopped, false);
        }
      }
      h.reset();
      if (recorded) self.keeper_->ended_for_other(unit, result.size());
      self.add_result_(name, come, result);
    } catch (...) {
      base::fail("no memory left to tell another process how its task has ended");
    }
    self.count_.fetch_sub(1, base::memory_order_release);  // the last touch: see wait
  }
  static void pack_end_(writer& w, const host& h, const std::exception_ptr& thrown, bool stopped,
                        bool results) {
    const item_frame whole(w);
    w(h.name.second, thrown == nullptr, stopped, results);
    if (thrown) detail::pack_exception(w, thrown);
    if (results) h.task->pack_results(w, thrown == nullptr);
    whole.close(w);
  }
  /// Puts a result beside others for the same process. A long one goes alone, and so does a thread: it is
  /// not to wait, and says nothing of how long tasks take.
  void add_result_(const key& of, clock::time_point come, outgoing& result) {
    const bool thread = is_thread(of.second), alone = thread || result.size() >= batch_ / 2;
    bool due = alone;
    {
      const std::lock_guard hold(mutex_);
      const auto now = clock::now(), begun = std::max(come, last_end_);
      if (!thread) {
        ends_.took += now - begun;
        ++ends_.count;
        last_end_ = now;
      }
      if (alone) {
        reports_.push_back({of.first, kind::ended, result.seal(), {of.second, of.second}});
      } else {
        if (results_.empty()) oldest_result_ = begun;
        const auto [found, fresh] = results_.try_emplace(of.first, kind::ended, run_);
        found->second.body().put(result.content().data(), result.content().size());
        const bool full = found->second.size() >= batch_;
        due = full || are_due_(now);
        if (full) {  // no message of several results is longer than a part
          reports_.push_back({of.first, kind::ended, found->second.seal()});
          results_.erase(found);
        }
      }
    }
    if (due) by_.wake();
  }
  /// Whether results are to be sent that are not long. *Requires*: the mutex is held.
  bool are_due_(clock::time_point now) const {
    return now - oldest_result_ >= patience_ || active_(thief_.workers()) < thief_.workers();
  }
  /// How many have a worker, or wait for one, if these are not more than `most`.
  unsigned active_(unsigned most) const {
    unsigned n = 0;
    for (auto g = running_.begin(); n < most && g != running_.end(); ++g)
      n += g->second.place == nullptr || sched::outside_thief::occupies_worker(*g->second.place);
    return n;
  }
  void report_(report r) {
    {
      const std::lock_guard hold(mutex_);
      reports_.push_back(std::move(r));
    }
    by_.wake();
  }
  void forget_(const key& name) noexcept {
    const std::lock_guard hold(mutex_);
    running_.erase(name);
  }

  transport& by_;
  sched::outside_thief& thief_;
  const std::size_t batch_;
  keeper* const keeper_;
  kept_values values_;
  std::vector<report> answers_;  // about these, for who has sent them
  std::uint32_t run_ = 0;        // constant while there are guests
  std::set<key> early_stops_;
  mutable base::mutex mutex_;
  std::vector<report> reports_;
  std::map<int, outgoing> results_;  // by the process that they go to
  clock::time_point oldest_result_{};
  clock::duration patience_{};
  ends ends_;
  clock::time_point last_end_{};
  std::map<key, entry> running_;
  base::atomic<unsigned> count_{0};
};

}  // namespace weft::inline WEFT_ABI::remote
