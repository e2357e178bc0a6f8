// SPDX-License-Identifier: BSL-1.0
// The answers of a process to those who ask it for tasks, at once or when it has some.
#pragma once

#include <weft/cluster/detail/guests.hpp>
#include <weft/cluster/detail/lent_tasks.hpp>
#include <weft/cluster/detail/lifelines.hpp>
#include <weft/cluster/detail/message.hpp>
#include <weft/cluster/detail/parcels.hpp>
#include <weft/cluster/options.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace weft::inline WEFT_ABI::remote {

/// Each request and each lifeline gets one answer: tasks, or that there are none; then, to a lifeline, who
/// may have some. Messages go by `send(to, kind, bytes, tasks)`. *Thread safety*: the thread that serves.
class answers {
 public:
  /// `batch`: from how many bytes on nothing is added to a message.
  answers(lent_tasks& lent, guests& here, lifelines& lines, std::size_t batch,
          cluster_counters& counters) noexcept
      : lent_(lent), guests_(here), lines_(lines), batch_(batch), counters_(counters) {}
  answers(const answers&) = delete;
  answers& operator=(const answers&) = delete;

  /// A run begins.
  void begin(std::uint32_t run) noexcept {
    run_ = run;
    over_ = false;
  }
  /// A process asks, in whatever run. `lends`: it may have tasks now. *Throws*: weft::error, std::bad_alloc.
  template <class Send>
  void answer(incoming& m, bool lends, Send send) {
    const lifelines::waiter to{m.from(), m.run(), m.body().get<unsigned>()};
    const bool now = to.run == run_ && !over_;
    if (m.kind() == kind::lifeline) {
      if (now ? !lends || !push_(to, send) : to.run > run_) return lines_.add(to);
      if (!now) refuse_(to, lifelines::nobody, send);
      return;
    }
    outgoing answer(kind::tasks, to.run);
    task_range lent;
    const std::uint64_t before = counters_.closures_sent;
    if (now && lends) lent = lend_(answer.body(), to);
    send(to.process, kind::tasks, answer.seal(), lent);
    // Who has some waits no longer; else the next ones would go with values that it is about to have.
    if (counters_.closures_sent == before) return;
    if (const lifelines::waiter* const w = lines_.find(to.process, to.run)) {
      refuse_(*w, lifelines::nobody, send);
      lines_.remove(w);
    }
  }
  /// Sends to those who wait at this process tasks, if there are some to spare, or who may have some. To be
  /// called again and again while no worker is idle. *Returns*: whether there was something to send.
  template <class Send>
  bool serve_waiters(base::clock::time_point now, Send send) {
    bool some = false;
    const lifelines::waiter* w = lines_.first(run_);
    for (; w != nullptr && push_(*w, send); w = lines_.first(run_)) {
      lines_.remove(w);
      some = true;
    }
    if (w == nullptr) return some;
    const int giver = lines_.name_giver(now);
    return (giver != lifelines::nobody && refuse_waiters_(giver, send)) || some;
  }
  /// The run is over: nobody gets tasks any more.
  template <class Send>
  void end(Send send) {
    over_ = true;
    refuse_waiters_(lifelines::nobody, send);
  }

 private:
  task_range lend_(writer& w, const lifelines::waiter& to) {
    if (const auto own = guests_.give_up_own()) lent_.declined(own->second, false);
    return lent_.lend(w, to.process, to.wanted, batch_);
  }
  /// *Returns*: false if there are no tasks to spare.
  template <class Send>
  bool push_(const lifelines::waiter& to, Send send) {
    outgoing m(kind::pushed, run_);
    m.body()(lifelines::nobody);
    const std::size_t empty = m.size();
    const std::uint64_t before = counters_.closures_sent;
    const task_range lent = lend_(m.body(), to);
    if (m.size() == empty) return false;
    counters_.closures_pushed += counters_.closures_sent - before;
    send(to.process, kind::pushed, m.seal(), lent);
    return true;
  }
  template <class Send>
  void refuse_(const lifelines::waiter& to, int who_may_have_some, Send send) {
    outgoing m(kind::pushed, to.run);
    m.body()(who_may_have_some);
    send(to.process, kind::pushed, m.seal(), task_range{});
  }
  template <class Send>
  bool refuse_waiters_(int who_may_have_some, Send send) {
    bool some = false;
    for (const lifelines::waiter* w; (w = lines_.first(run_)) != nullptr; some = true) {
      refuse_(*w, w->process == who_may_have_some ? lifelines::nobody : who_may_have_some, send);
      lines_.remove(w);
    }
    return some;
  }

  lent_tasks& lent_;
  guests& guests_;
  lifelines& lines_;
  const std::size_t batch_;
  cluster_counters& counters_;
  std::uint32_t run_ = 0;
  bool over_ = false;
};

}  // namespace weft::inline WEFT_ABI::remote
