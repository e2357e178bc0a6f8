// SPDX-License-Identifier: BSL-1.0
// The tasks of other processes that are executed in this one.
#pragma once

#include <weft/cluster/detail/code_address.hpp>
#include <weft/cluster/detail/message.hpp>
#include <weft/cluster/detail/travel.hpp>
#include <weft/cluster/exceptions.hpp>
#include <weft/sched/definitions.hpp>
#include <weft/sched/outside_thief.hpp>

#include <algorithm>
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
/// Who may touch it when: `reports_` and `running_` under the mutex; the number of guests by anybody; all
/// else by the thread that serves.
class guests {
 public:
  using clock = base::clock;
  using key = std::pair<int, std::uint64_t>;  ///< the process that has sent it, and its number there

  /// A message for the process from which a guest has come.
  struct report {
    int to;
    bytes message;
    std::optional<clock::duration> took;  ///< of a guest that has ended
  };

  guests(transport& by, sched::outside_thief& thief) noexcept : by_(by), thief_(thief) {}
  guests(const guests&) = delete;
  guests& operator=(const guests&) = delete;
  ~guests() { wait(); }

  /// A run begins.
  void begin(std::uint32_t run) noexcept {
    wait();
    run_ = run;
    early_stops_.clear();
  }
  /// Waits until all have ended. Their reports are still there.
  void wait() const noexcept {
    // Acquire pairs with the last touch of end_.
    for (base::backoff wait; count_.load(base::memory_order_acquire) != 0;) wait.wait();
  }

  /// Executes the task of which another process has sent this. *Throws*: weft::error, std::bad_alloc, what
  /// constructors of values throw.
  void execute(reader& packed, int from) {
    auto h = std::make_unique<host>();
    h->at = this;
    h->begun = clock::now();
    code_address type;
    std::uint64_t id = 0;
    packed(id, type.module, type.offset);
    h->name = {from, id};
    const auto travels =
        reinterpret_cast<sched::travel_function>(const_cast<void*>(loaded_code::at_start().at(type)));
    h->task = travels()->unpack(packed);
    h->task->of = h.get();
    h->task->ended = &end_;
    h->stopping.emplace(h->run.source.get_token(), on_stop{h.get()});
    {
      const std::lock_guard hold(mutex_);
      running_.emplace(h->name, entry{h->run.source, h.get()});
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
      count_.fetch_sub(1, base::memory_order_relaxed);
      throw;
    }
  }
  /// How many workers they have, or will have at once, as a hint.
  unsigned workers() const {
    const std::lock_guard hold(mutex_);
    return static_cast<unsigned>(std::count_if(running_.begin(), running_.end(), [](const auto& g) {
      return g.second.place == nullptr || sched::outside_thief::occupies_worker(*g.second.place);
    }));
  }
  /// Gives up a guest that has waited for its worker for so long: another process may have one. *Returns*:
  /// it; nothing if there is none.
  std::optional<key> give_up(clock::duration at_least) {
    std::unique_ptr<host> over;
    {
      const std::lock_guard hold(mutex_);
      const auto now = clock::now();
      const auto found = std::find_if(running_.begin(), running_.end(), [&](const auto& g) {
        return g.second.place != nullptr && now - g.second.of->begun >= at_least &&
               thief_.withdraw(*g.second.place);
      });
      if (found == running_.end()) return {};
      over.reset(found->second.of);
      running_.erase(found);
    }
    over->task->root->what->drop(*over->task->root);
    count_.fetch_sub(1, base::memory_order_relaxed);  // by the thread that waits for zero
    return over->name;
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
  /// Takes out what is to be sent.
  std::vector<report> reports() {
    const std::lock_guard hold(mutex_);
    return std::exchange(reports_, {});
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
        outgoing m(kind::stopped, self.run_);
        m.body()(of->name.second);
        self.report_({of->name.first, m.seal(), {}});
      } catch (...) {  // no memory: its end tells it, too
      }
    }
  };
  struct host {
    guests* at = nullptr;
    key name;
    std::unique_ptr<guest> task;
    clock::time_point begun;
    sched::run_state run;
    std::optional<std::stop_callback<on_stop>> stopping;
  };

  /// A guest has ended; called by a worker.
  static void end_(sched::outside_task& ended, std::exception_ptr thrown) noexcept {
    const std::exception_ptr failure = std::move(thrown);
    std::unique_ptr<host> h(static_cast<host*>(static_cast<guest&>(ended).of));
    guests& self = *h->at;
    report r{h->name.first, {}, clock::now() - h->begun};
    self.forget_(h->name);
    h->stopping.reset();
    // Acquire pairs with stop().
    const bool stopped = h->run.stopped.load(base::memory_order_acquire);
    try {
      try {
        // What was stopped and has not ended well may never have begun, so nothing was written.
        r.message = self.pack_end_(*h, failure, stopped, !stopped || failure == nullptr);
      } catch (...) {  // what it has written cannot be packed
        r.message = self.pack_end_(*h, failure ? failure : std::current_exception(), stopped, false);
      }
      h.reset();
      self.report_(std::move(r));
    } catch (...) {
      base::fail("no memory left to tell another process how its task has ended");
    }
    self.count_.fetch_sub(1, base::memory_order_release);  // the last touch: see wait
  }
  bytes pack_end_(const host& h, const std::exception_ptr& thrown, bool stopped, bool results) const {
    outgoing m(kind::ended, run_);
    m.body()(h.name.second, thrown == nullptr, stopped, results);
    if (thrown) detail::pack_exception(m.body(), thrown);
    if (results) h.task->pack_results(m.body(), thrown == nullptr);
    return m.seal();
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
  std::uint32_t run_ = 0;  // constant while there are guests
  std::set<key> early_stops_;
  mutable std::mutex mutex_;
  std::vector<report> reports_;
  std::map<key, entry> running_;
  base::atomic<unsigned> count_{0};
};

}  // namespace weft::inline WEFT_ABI::remote
