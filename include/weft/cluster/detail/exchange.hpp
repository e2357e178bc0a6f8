// SPDX-License-Identifier: BSL-1.0
// What a process of a cluster does during a run: asks others for tasks when it has none, gives them some of
// its own.
#pragma once

#include <weft/cluster/detail/code_address.hpp>
#include <weft/cluster/detail/guests.hpp>
#include <weft/cluster/detail/message.hpp>
#include <weft/cluster/detail/travel.hpp>
#include <weft/cluster/exceptions.hpp>
#include <weft/cluster/options.hpp>
#include <weft/sched/definitions.hpp>
#include <weft/sched/outside_thief.hpp>

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// The protocol of one process. A process without work asks others in turn, chosen at random. Whoever is
/// asked takes a ready task out of its runtime, as any thief does, and sends it with what it reads; until the
/// answer comes that task counts as executed. The run is over when its root has ended, which waits for all of
/// that.
///
/// A stop of the run goes to whoever executes tasks of it, and from there on; one that is requested there
/// comes back to where the task is from.
///
/// *Thread safety*: the thread that calls lead() or follow().
class exchange {
 public:
  exchange(transport& by, sched::engine& of, const cluster_options& options)
      : by_(by),
        options_(options),
        thief_(of, &may_take_),
        guests_(by, thief_),
        random_(static_cast<std::uint64_t>(by.rank()) * 0x9E3779B97F4A7C15ull + 1) {}
  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;

  /// Process 0: serves the others until `root_ended`, then tells them the outcome, and returns when nothing
  /// is under way any more. Whoever sets the flag calls transport::wake(). *Throws*: weft::error; the root
  /// has ended then, too.
  void lead(const base::atomic<bool>& root_ended, const std::function<void(writer&)>& pack_outcome) {
    guarded_(
        [&] {
          begin_();
          // Acquire pairs with the store of whoever runs the root.
          while (!root_ended.load(base::memory_order_acquire)) step_(true);
          outgoing outcome(kind::finish, run_);
          pack_outcome(outcome.body());
          const bytes sealed = outcome.seal();
          for (int to = 1; to < by_.size(); ++to) send_(to, sealed);
          while (asked_ || told_stops_ != 0 || finished_processes_ != by_.size() - 1) step_(false);
          for (int to = 1; to < by_.size(); ++to) send_(to, outgoing(kind::leave, run_).seal());
        },
        [&] { return root_ended.load(base::memory_order_acquire); });
  }
  /// The other processes: serve until process 0 tells the outcome. *Returns*: that. *Throws*: weft::error.
  bytes follow() {
    guarded_(
        [&] {
          begin_();
          while (!over_) step_(true);
          while (asked_ || told_stops_ != 0) step_(false);
          send_(0, outgoing(kind::finished, run_).seal());
          while (!may_leave_) step_(false);
        },
        [] { return true; });
    return std::move(outcome_);
  }

  /// *Thread safety*: the thread that serves, or between runs.
  const cluster_counters& counters() const noexcept { return counters_; }

 private:
  using clock = base::clock;
  using microseconds = std::chrono::microseconds;

  /// How long a task that has come ahead waits for a worker; and how long guests are for which that pays.
  /// Those of a microsecond are done sooner by the process that forks them.
  static constexpr microseconds ahead_at_most{2000}, long_enough{5}, short_enough{1000};

  /// A task of this process that is executed in another one.
  struct away {
    sched::strand* place;
    const sched::travel* how;
    int to;
    bool stopped = false;  // and the other process was told
  };

  static bool may_take_(const sched::closure& c) noexcept {
    if (c.what->travels == nullptr || *c.what->travels == nullptr) return false;
    const sched::travel* const how = (*c.what->travels)();
    return how != nullptr && how->may_go(c);
  }

  void begin_() {
    guests_.begin(++run_);
    asked_ = ahead_ = may_ask_ahead_ = came_ahead_ = over_ = may_leave_ = false;
    finished_processes_ = told_stops_ = 0;
    misses_ = 0;
    next_request_ = last_event_ = clock::now();
    for (auto& [from, message] : std::exchange(early_, {})) receive_(std::move(message), from);
  }

  /// An error here concerns all processes: they cannot go on without this one.
  template <class Go, class Ended>
  void guarded_(Go go, Ended root_ended) {
    try {
      go();
    } catch (...) {
      const std::string why = detail::look_at(std::current_exception()).text;
      by_.fail(why);
      for (auto& [id, a] : away_) {
        a.how->lose(thief_.task_of(*a.place));
        thief_.end(*a.place, std::make_exception_ptr(error(why)));
      }
      away_.clear();
      for (sched::strand* const s : std::exchange(returned_, {})) thief_.give_back(*s);
      while (!root_ended()) by_.wait(microseconds(1000));
      guests_.wait();
      throw error(why);
    }
  }
  /// Does what there is to do, or waits a moment.
  void step_(bool working) {
    bool some = false;
    bytes message;
    for (int from = by_.receive(message); from >= 0; from = by_.receive(message)) {
      receive_(std::move(message), from);
      some = true;
    }
    some |= send_reports_();
    some |= tell_stops_();
    const auto now = clock::now();
    some |= decline_();
    some |= execute_returned_();
    const bool hungry = working && by_.size() > 1 && thief_.workers_idle();
    if (working && by_.size() > 1 && !asked_) some |= ask_if_it_helps_(now, hungry);
    if (some)
      last_event_ = now;
    else
      pause_(now, hungry);
  }

  /// Waits for the next message: with little delay at first, and as long as this process has nothing else to
  /// do.
  void pause_(clock::time_point now, bool hungry) {
    const auto quiet = now - last_event_;
    if (quiet < (hungry ? microseconds(200) : microseconds(20))) return base::yield();
    by_.wait(std::min<std::chrono::nanoseconds>(quiet / 4, microseconds(hungry ? 100 : 200)));
  }

  void receive_(bytes message, int from) {
    incoming m(message, from);
    if (m.kind() == kind::request) return answer_(m);
    if (m.run() == run_) return handle_(m);
    if (m.kind() == kind::stopped) return;  // of a run that is over
    // Process 0 may have begun the next run already.
    if (m.run() != run_ + 1) throw error("weft: processes of a cluster call run() differently often");
    early_.emplace_back(from, std::move(message));
  }
  void handle_(incoming& m) {
    switch (m.kind()) {
      case kind::tasks:
        return take_in_(m);
      case kind::ended:
        return take_back_(m);
      case kind::declined:
        returned_.reserve(returned_.size() + 1);
        return returned_.push_back(no_longer_away_(m.body().get<std::uint64_t>()).place);
      case kind::stop: {
        const auto id = m.body().get<std::uint64_t>();
        guests_.stop({m.from(), id});
        return send_(m.from(), outgoing(kind::stop_seen, run_).seal());
      }
      case kind::stop_seen:
        --told_stops_;
        return;
      case kind::stopped: {
        const auto found = away_.find(m.body().get<std::uint64_t>());
        if (found != away_.end()) sched::outside_thief::request_stop(*found->second.place);
        return;
      }
      case kind::finish: {
        over_ = true;
        const std::size_t size = m.body().left();
        outcome_.resize(size);
        return m.body().take(outcome_.data(), size);
      }
      case kind::finished:
        ++finished_processes_;
        return;
      case kind::leave:
        may_leave_ = true;
        return;
      case kind::request:
        return;
    }
  }

  /// Asks if a worker has nothing to do. A task that came behind another one would wait here, while another
  /// process may have a worker for it; so this process asks ahead only once for each guest, where guests are
  /// short.
  bool ask_if_it_helps_(clock::time_point now, bool hungry) {
    const unsigned occupied = guests_.workers(), all = thief_.workers();
    const bool ahead = occupied >= all;
    if (ahead ? !may_ask_ahead_ || occupied > all : !hungry || now < next_request_) return false;
    ahead_ = ahead;
    may_ask_ahead_ = may_ask_ahead_ && !ahead;
    ask_();
    return true;
  }
  /// Gives a task that has come ahead back to where it is from, if it has waited for a worker too long.
  bool decline_() {
    if (!came_ahead_) return false;
    const std::optional<guests::key> given_up = guests_.give_up(ahead_at_most);
    if (!given_up) return false;
    came_ahead_ = false;
    outgoing m(kind::declined, run_);
    m.body()(given_up->second);
    send_(given_up->first, m.seal());
    return true;
  }

  /// Tasks that have come back go to whoever has a worker first: this process, or one that asks.
  bool execute_returned_() {
    if (returned_.empty() || !(thief_.workers_idle() || sched::outside_thief::stopped(*returned_.back())))
      return false;
    thief_.give_back(*returned_.back());
    returned_.pop_back();
    return true;
  }
  sched::strand* take_ready_() {
    if (returned_.empty()) return thief_.steal();
    sched::strand* const s = returned_.back();
    returned_.pop_back();
    return s;
  }

  /// Asks another process for a task: the same one again while it gives some, else one chosen at random.
  void ask_() {
    const int others = by_.size() - 1;
    if (victim_ < 0 || misses_ != 0)
      victim_ = static_cast<int>(next_random_() % static_cast<unsigned>(others));
    const int to = victim_ < by_.rank() ? victim_ : victim_ + 1;
    outgoing m(kind::request, run_);
    asked_ = true;
    ++counters_.requests;
    send_(to, m.seal());
  }

  /// Gives as much as is ready, of what travels: one task, since the oldest is the largest.
  void answer_(incoming& m) {
    outgoing answer(kind::tasks, m.run());
    if (m.run() == run_ && !over_)
      for (int tries = 0; tries < 4; ++tries)
        if (sched::strand* const s = take_ready_(); s == nullptr || send_task_(answer.body(), *s, m.from()))
          break;
    send_(m.from(), answer.seal());
  }
  /// *Returns*: false if it does not travel after all.
  bool send_task_(writer& w, sched::strand& s, int to) {
    if (sched::outside_thief::stopped(s)) {
      thief_.give_back(s);
      return false;
    }
    sched::closure& c = sched::outside_thief::task_of(s);
    const std::size_t before = w.bytes().size();
    try {
      const code_address type = loaded_code::at_start().find(reinterpret_cast<const void*>(*c.what->travels));
      const sched::travel* const how = (*c.what->travels)();
      w(++last_id_, type.module, type.offset);
      how->pack(c, w);
      away_.emplace(last_id_, away{&s, how, to});
    } catch (...) {  // then it is executed here
      w.bytes().resize(before);
      ++counters_.closures_kept;
      thief_.give_back(s);
      return false;
    }
    ++counters_.closures_sent;
    return true;
  }

  /// An answer has come.
  void take_in_(incoming& m) {
    asked_ = false;
    if (m.body().left() == 0) {
      ++counters_.requests_in_vain;
      if (ahead_) return;
      ++misses_;
      // As many requests as there are others, without a pause.
      const int rounds = misses_ / std::max(by_.size() - 1, 1);
      const microseconds pause(rounds == 0 ? 0 : 5 << std::min(rounds, 12));
      next_request_ = clock::now() + std::min(pause, options_.longest_pause);
      return;
    }
    misses_ = 0;
    ++counters_.closures_received;
    came_ahead_ = guests_.workers() >= thief_.workers();
    guests_.execute(m.body(), m.from());
  }
  bool send_reports_() {
    std::vector<guests::report> all = guests_.reports();
    for (guests::report& r : all) {
      if (r.took) may_ask_ahead_ = *r.took >= long_enough && *r.took < short_enough;
      send_(r.to, std::move(r.message));
    }
    return !all.empty();
  }
  /// Tells those who execute tasks of a run that it was stopped.
  bool tell_stops_() {
    bool some = false;
    for (auto& [id, a] : away_) {
      if (a.stopped || !sched::outside_thief::stopped(*a.place)) continue;
      a.stopped = some = true;
      outgoing m(kind::stop, run_);
      m.body()(id);
      send_(a.to, m.seal());
      ++told_stops_;
    }
    return some;
  }

  away no_longer_away_(std::uint64_t id) {
    const auto found = away_.find(id);
    if (found == away_.end()) throw error("weft: a process of the cluster has ended a task twice");
    const away a = found->second;
    away_.erase(found);
    return a;
  }
  /// A task of this process has ended in another one.
  void take_back_(incoming& m) {
    std::uint64_t id = 0;
    bool well = false, stopped = false, results = false;
    m.body()(id, well, stopped, results);
    const away a = no_longer_away_(id);
    sched::closure& c = sched::outside_thief::task_of(*a.place);
    std::exception_ptr thrown;
    try {
      if (!well) thrown = detail::unpack_exception(m.body());
      if (results)
        a.how->take_back(c, m.body(), well);
      else
        a.how->lose(c);
    } catch (...) {
      thrown = std::current_exception();
      a.how->lose(c);
    }
    if (stopped) sched::outside_thief::request_stop(*a.place);
    thief_.end(*a.place, std::move(thrown));
  }

  void send_(int to, bytes message) {
    ++counters_.messages;
    counters_.bytes += message.size();
    by_.send(to, std::move(message));
  }
  std::uint64_t next_random_() noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    return random_ ^= random_ << 17;
  }

  transport& by_;
  const cluster_options options_;
  sched::outside_thief thief_;
  guests guests_;
  cluster_counters counters_;
  std::uint64_t random_;
  std::uint32_t run_ = 0;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, away> away_;
  std::vector<sched::strand*> returned_;  // tasks of this process that others have declined
  bool asked_ = false;                    // a request has no answer yet
  bool ahead_ = false;                    // it was sent while guests occupied all workers
  bool may_ask_ahead_ = false;            // the last guest was short, and it has not asked ahead since
  bool came_ahead_ = false;               // a guest, when all workers were occupied
  bool over_ = false, may_leave_ = false;
  int finished_processes_ = 0;
  int told_stops_ = 0;  // that others have not seen yet
  bytes outcome_;
  std::vector<std::pair<int, bytes>> early_;  // messages of the next run
  int victim_ = -1;                           // whom it has asked, not counting itself
  int misses_ = 0;                            // answers without a task in a row
  clock::time_point next_request_{}, last_event_{};
};

}  // namespace weft::inline WEFT_ABI::remote
