// SPDX-License-Identifier: BSL-1.0
// The threads of this process that have gone on in others.
#pragma once

#include <weft/blocking/definitions.hpp>
#include <weft/cluster/detail/keeper.hpp>
#include <weft/cluster/detail/message.hpp>
#include <weft/cluster/detail/neighbours.hpp>
#include <weft/cluster/detail/parcels.hpp>
#include <weft/cluster/detail/thread_carrier.hpp>
#include <weft/cluster/exceptions.hpp>
#include <weft/cluster/options.hpp>
#include <weft/sched/sync.hpp>

#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

namespace weft::inline WEFT_ABI::remote {

/// To the other process a thread is a guest, the call of its body: that ends, or tells where the thread wants
/// to go next, which comes back here as the result. Here its body waits for that.
///
/// Who may touch it when: what stands behind the mutex under it; all else the thread that serves.
class sent_threads final : public sched::thread_carrier {
 public:
  sent_threads(transport& by, std::size_t largest, cluster_counters& counters) noexcept
      : by_(by), largest_(largest), counters_(counters) {}
  sent_threads(const sent_threads&) = delete;
  sent_threads& operator=(const sent_threads&) = delete;
  ~sent_threads() = default;

  int process() const noexcept override { return by_.rank(); }
  int processes() const noexcept override { return by_.size(); }
  bool serves() const noexcept override {
    return serves_.load(
        base::memory_order_acquire);  // pairs with serving; tasks of the run come after it anyway
  }
  /// While it lives, a run of the cluster is going on.
  class serving {
   public:
    explicit serving(sent_threads& of) noexcept : of_(of) {
      of_.serves_.store(true, base::memory_order_release);
    }
    serving(const serving&) = delete;
    serving& operator=(const serving&) = delete;
    ~serving() { of_.serves_.store(false, base::memory_order_release); }

   private:
    sent_threads& of_;
  };
  void take(sched::leaving_thread& t) noexcept override {
    std::exception_ptr broken;
    {
      const std::lock_guard hold(mutex_);
      if (!(broken = broken_)) t.next = std::exchange(leaving_, &t);
    }
    if (broken)
      lose_(t, std::move(broken));
    else
      by_.wake();
  }

  /// Sends those that want to leave. *Returns*: whether there were some. *Throws*: weft::error,
  /// std::bad_alloc.
  bool send(parcels& post, neighbours& near, std::uint32_t run) {
    bool some = false;
    for (sched::leaving_thread* t = next_(); t != nullptr; t = next_()) {
      send_(*t, post, near, run);
      some = true;
    }
    return some;
  }
  /// One of them has ended there, or wants to go on; what stands in a result before the values was read.
  void take_back(std::uint64_t id, reader& r, bool well, bool stopped, bool results) {
    sched::leaving_thread& t = no_longer_away_(id);
    const sched::travel& how = *(*t.call->what->travels)();
    std::exception_ptr thrown;
    try {
      if (!well) thrown = detail::unpack_exception(r);
      if (results)
        how.take_back(*t.call, r, well);
      else
        how.lose(*t.call);
    } catch (...) {
      thrown = std::current_exception();
      how.lose(*t.call);
    }
    if (stopped) sched::outside_thief::request_stop(*t.place);
    end_(t, std::move(thrown));
  }
  /// The other process has no memory for it.
  void refused(std::uint64_t id) { refuse_(no_longer_away_(id)); }
  /// It has ended there, and here is no memory for what is told of that.
  void end_without_memory(std::uint64_t id) {
    lose_(no_longer_away_(id), std::make_exception_ptr(std::bad_alloc()));
  }
  /// As lent_tasks::tell_stops.
  template <class Tell>
  bool tell_stops(Tell& tell) {
    bool some = false;
    for (auto& [id, a] : away_) {
      if (a.stopped || !sched::outside_thief::stopped(*a.of->place)) continue;
      a.stopped = some = true;
      tell(a.of->to, id);
    }
    return some;
  }
  /// One of them has requested a stop of its run.
  void request_stop(std::uint64_t id) {
    const auto found = away_.find(id);
    if (found != away_.end()) sched::outside_thief::request_stop(*found->second.of->place);
  }
  /// Nobody can tell any more how they have ended, nor how others will.
  void lose_all(const std::string& why) {
    {
      const std::lock_guard hold(mutex_);
      broken_ = std::make_exception_ptr(error(why));
    }
    for (auto& [id, a] : std::exchange(away_, {})) lose_(*a.of, broken_);
    while (sched::leaving_thread* const t = next_()) lose_(*t, broken_);
  }

 private:
  struct away {
    sched::leaving_thread* of;
    bool stopped = false;  // and the other process was told
  };

  sched::leaving_thread* next_() noexcept {
    const std::lock_guard hold(mutex_);
    return leaving_ != nullptr ? std::exchange(leaving_, leaving_->next) : nullptr;
  }
  void send_(sched::leaving_thread& t, parcels& post, neighbours& near, std::uint32_t run) {
    if (sched::outside_thief::stopped(*t.place)) return lose_(t, sched::cancellation());
    const std::uint64_t id = ++last_id_ | thread_bit;
    bytes message;
    try {
      outgoing m(kind::thread, run);
      writer& w = m.body();
      const item_frame whole(w);
      const std::size_t begin = w.bytes().size();
      w.limit(largest_ <= SIZE_MAX - begin ? begin + largest_ : SIZE_MAX);
      const code_address type = type_of(*t.call);
      w(id, type.module, type.offset);
      (*t.call->what->travels)()->pack(*t.call, w);
      w.limit(SIZE_MAX);
      w(false);  // there are no records of it
      whole.close(w);
      message = m.seal();
      away_.emplace(id, away{&t});
    } catch (...) {  // it is too long, or there is no memory
      return refuse_(t);
    }
    ++counters_.threads_sent;
    near.sent(t.to);
    post.send(t.to, kind::thread, std::move(message), {id, id});
  }
  sched::leaving_thread& no_longer_away_(std::uint64_t id) {
    const auto found = away_.find(id);
    if (found == away_.end()) throw error("weft: a process of the cluster has ended a thread twice");
    sched::leaving_thread& t = *found->second.of;
    away_.erase(found);
    return t;
  }
  static void refuse_(sched::leaving_thread& t) noexcept {
    t.refused = true;
    end_(t, nullptr);
  }
  static void lose_(sched::leaving_thread& t, std::exception_ptr why) noexcept {
    (*t.call->what->travels)()->lose(*t.call);
    end_(t, std::move(why));
  }
  /// The body goes on; then it is gone.
  static void end_(sched::leaving_thread& t, std::exception_ptr thrown) noexcept {
    sched::end_external(*t.home, *t.place, *t.event, std::move(thrown));
  }

  transport& by_;
  const std::size_t largest_;
  cluster_counters& counters_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, away> away_;
  base::atomic<bool> serves_{false};
  base::mutex mutex_;
  sched::leaving_thread* leaving_ = nullptr;
  std::exception_ptr broken_;  // not null: no thread can go any more
};

}  // namespace weft::inline WEFT_ABI::remote
