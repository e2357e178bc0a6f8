// SPDX-License-Identifier: BSL-1.0
// The requests of a process for tasks: which are to be sent, and what their answers mean for the next ones.
#pragma once

#include <weft/cluster/detail/lifelines.hpp>
#include <weft/cluster/detail/message.hpp>
#include <weft/cluster/detail/pace.hpp>
#include <weft/cluster/detail/victims.hpp>
#include <weft/cluster/options.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// One request at a time is answered at once, with tasks or without. After some answers without tasks the
/// process waits at its lifelines, and asks others rarely. *Thread safety*: the thread that serves.
class requests {
 public:
  using time_point = base::clock::time_point;
  /// A process that waits at its lifelines asks others this many times less often.
  static constexpr int rarely = 32;

  /// `machines`: that of each process. *Throws*: std::bad_alloc.
  requests(int rank, const std::vector<int>& machines, std::chrono::microseconds longest_pause, pace& learned,
           lifelines& lines, cluster_counters& counters)
      : longest_pause_(std::min<std::chrono::microseconds>(longest_pause, std::chrono::hours(1)) * rarely),
        pace_(learned),
        lines_(lines),
        counters_(counters),
        victims_(rank, machines),
        first_(rank == 0) {}
  requests(const requests&) = delete;
  requests& operator=(const requests&) = delete;

  /// A run begins. *Requires*: all are answered.
  void begin(time_point now) noexcept {
    asked_ = ahead_ = false;
    sent_before_ = sent_();
    victims_.begin();
    next_request_ = next_ahead_ = now;
  }
  /// Whether others may have tasks: what they have, process 0 has sent.
  bool may_find() const noexcept { return !first_ || sent_() != sent_before_; }
  /// Whether no answer is on its way any more, and nobody is waited at.
  bool all_answered() const noexcept { return !asked_ && !lines_.waits(); }

  /// Asks if a worker has nothing to do (`hungry`), or soon will: calls `send(kind, to, number)` for each
  /// message, so that `number` tasks come at most. `active`: how many guests have a worker or wait for one,
  /// of so many `workers`. *Returns*: whether there was something to send.
  template <class Send>
  bool ask(time_point now, bool hungry, unsigned active, unsigned workers, Send send) {
    if (asked_) return false;
    const bool ahead = active >= workers;
    if (ahead ? now < next_ahead_ || !pace_.asks_ahead(active - workers, now) : !hungry) return false;
    bool some = false;
    if (!ahead && victims_.many_in_vain())
      lines_.wait_at_all([&, number = pace_.number()](int to) {
        ++counters_.lifelines;
        send(kind::lifeline, to, number);
        some = true;
      });
    if (!ahead && now < next_request_) return some;
    asked_ = true;
    ahead_ = ahead;
    pace_.asked(now, ahead);
    ++counters_.requests;
    const unsigned number = pace_.number();
    send(kind::request, asked_last_ = victims_.next(), number);
    return true;
  }
  /// The answer has come, with `some` tasks or none.
  void answered(bool some, time_point now) noexcept {
    asked_ = false;
    pace_.answered(now, some);
    if (some) {
      lines_.has_given(asked_last_, now);
      return victims_.has_given();
    }
    lines_.has_nothing(asked_last_);
    ++counters_.requests_in_vain;
    next_ahead_ = now + pace_.pause();
    if (!ahead_) next_request_ = now + victims_.has_nothing(longest_pause_);
  }
  /// A process at which this one has waited has answered.
  void pushed(int from, bool some, time_point now) noexcept {
    lines_.answered(from);
    if (!some) return;
    lines_.has_given(from, now);
    victims_.has_given(from);
    next_request_ = now;
  }
  /// That process has named one that may have tasks.
  void hear_of(int process, time_point now) noexcept {
    victims_.hear_of(process);
    next_request_ = now;
  }

 private:
  std::uint64_t sent_() const noexcept { return counters_.closures_sent + counters_.threads_sent; }

  const std::chrono::microseconds longest_pause_;
  pace& pace_;
  lifelines& lines_;
  cluster_counters& counters_;
  victims victims_;
  const bool first_;               // this is process 0
  std::uint64_t sent_before_ = 0;  // this run
  bool asked_ = false;             // a request has no answer yet
  bool ahead_ = false;             // it was sent while guests had all workers
  int asked_last_ = -1;
  time_point next_request_{}, next_ahead_{};
};

}  // namespace weft::inline WEFT_ABI::remote
