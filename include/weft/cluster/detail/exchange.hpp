// SPDX-License-Identifier: BSL-1.0
// What a process of a cluster does during a run: asks others for tasks when it has none, gives them some of
// its own.
#pragma once

#include <weft/cluster/detail/guests.hpp>
#include <weft/cluster/detail/idle_wait.hpp>
#include <weft/cluster/detail/keeper.hpp>
#include <weft/cluster/detail/lent_tasks.hpp>
#include <weft/cluster/detail/message.hpp>
#include <weft/cluster/detail/neighbours.hpp>
#include <weft/cluster/detail/pace.hpp>
#include <weft/cluster/detail/parcels.hpp>
#include <weft/cluster/detail/process_tree.hpp>
#include <weft/cluster/detail/victims.hpp>
#include <weft/cluster/exceptions.hpp>
#include <weft/cluster/options.hpp>
#include <weft/sched/definitions.hpp>
#include <weft/sched/outside_thief.hpp>

#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// The protocol of one process. A process without work asks others in turn, chosen at random. Whoever is
/// asked takes ready tasks out of its runtime, as any thief does, and sends them with what they read; until
/// the results come those tasks count as executed. The run is over when its root has ended, which waits for
/// all of that.
///
/// A stop of the run goes to whoever executes tasks of it, and from there on; one that is requested there
/// comes back to where the task is from.
///
/// *Thread safety*: the thread that calls lead() or follow().
class exchange {
 public:
  /// `kept`: who records tasks; null: nobody.
  exchange(transport& by, sched::engine& of, const cluster_options& options, keeper* kept = nullptr)
      : by_(by),
        tree_{by.rank(), by.size()},
        options_(options),
        batch_(std::min<std::size_t>(options.part_bytes / 2, 64 << 10)),
        keeper_(kept),
        thief_(of, &lent_tasks::may_go),
        wait_(by, thief_.workers(), microseconds(200)),
        near_(by, options, counters_),
        post_(by, options.part_bytes, counters_),
        lent_(thief_, by.size(), options, counters_, kept),
        guests_(by, thief_, batch_, options.cache_bytes, kept),
        victims_(by.rank(), machines_of(by)) {}
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
          tell_outcome_(pack_outcome);
          end_all_();
          send_below_(kind::leave, outgoing(kind::leave, run_).seal());
        },
        [&] { return root_ended.load(base::memory_order_acquire); });
  }
  /// The other processes: serve until process 0 tells the outcome. *Returns*: that. *Throws*: weft::error.
  bytes follow() {
    guarded_(
        [&] {
          begin_();
          while (!over_) step_(true);
          end_all_();
          send_(tree_.above(), kind::finished, outgoing(kind::finished, run_).seal());
          while (!may_leave_) step_(false);
          send_below_(kind::leave, outgoing(kind::leave, run_).seal());
        },
        [] { return true; });
    return std::move(outcome_);
  }

  /// As neighbours::leave.
  void leave() { near_.leave(); }

  /// *Thread safety*: the thread that serves, or between runs.
  const cluster_counters& counters() const noexcept { return counters_; }

 private:
  using clock = base::clock;
  using microseconds = std::chrono::microseconds;

  void tell_outcome_(const std::function<void(writer&)>& pack) {
    try {
      outgoing outcome(kind::finish, run_);
      pack(outcome.body());
      send_below_(kind::finish, outcome.seal());
    } catch (const std::bad_alloc&) {
      throw error("weft: no memory to send the result of the run to the other processes of the cluster");
    }
  }

  /// Waits until nothing of this process, and of those below it, is under way any more.
  void end_all_() {
    while (asked_ || told_stops_ != 0 || !post_.all_settled() || !lent_.all_kept() ||
           finished_below_ != tree_.count_below())
      step_(false);
  }
  void send_below_(kind of, const bytes& message) {
    for (int to = tree_.first_below(); to != tree_.end_below(); ++to) send_(to, of, message);
  }

  void begin_() {
    guests_.begin(++run_);
    post_.begin(run_);
    near_.begin(run_);
    pace_.begin();
    asked_ = ahead_ = over_ = may_leave_ = false;
    finished_below_ = told_stops_ = 0;
    victims_.begin();
    next_request_ = next_ahead_ = next_look_ = last_event_ = clock::now();
    for (auto& [from, message] : std::exchange(early_, {})) receive_(std::move(message), from);
  }

  /// An error here concerns all processes: they cannot go on without this one.
  template <class Go, class Ended>
  void guarded_(Go go, Ended root_ended) {
    try {
      go();
      forget_values_();
    } catch (...) {
      const std::string why = detail::look_at(std::current_exception()).text;
      by_.fail(why);
      lent_.lose_all(why);
      while (!root_ended()) by_.wait(microseconds(1000));
      guests_.wait();
      forget_values_();
      throw error(why);
    }
  }
  /// Between runs nobody keeps any.
  void forget_values_() noexcept {
    lent_.forget_values();
    guests_.forget_values();
  }
  /// Does what there is to do, or waits a moment.
  void step_(bool working) {
    bool some = false;
    bytes message;
    for (int from = 0, left = 256; left != 0 && (from = by_.receive(message)) >= 0; --left) {
      receive_(std::move(message), from);
      some = true;
    }
    some |= settle_(post_.begin_next());
    some |= send_reports_();
    some |= lent_.execute_returned();
    const auto now = clock::now();
    if (now >= next_look_) {
      next_look_ = now + microseconds(50);
      near_.look(now);
      some |= tell_stops_();
      some |= decline_();
      if (working && keeper_ != nullptr && keeper_->is_on() && keeper_->wants_unit(now)) some |= take_unit_();
    }
    const bool hungry = working && by_.size() > 1 && thief_.workers_idle();
    if (working && by_.size() > 1 && !asked_) some |= ask_if_it_helps_(now, hungry);
    if (some)
      last_event_ = now;
    else
      wait_(now - last_event_, hungry);
  }

  void receive_(bytes message, int from) {
    incoming m(message, from);
    if (near_.take(m)) return;
    if (m.kind() == kind::request) return answer_(m);
    if (m.run() == run_) {
      handle_(m);
      return m.kind() == kind::finish ? pass_on_outcome_(message) : void();
    }
    if (m.kind() == kind::stopped) return;  // of a run that is over
    // Process 0 may have begun the next run already.
    if (m.run() != run_ + 1) throw error("weft: processes of a cluster call run() differently often");
    early_.emplace_back(from, std::move(message));
  }
  void pass_on_outcome_(const bytes& message) {
    try {
      send_below_(kind::finish, message);
    } catch (const std::bad_alloc&) {
      refuse_outcome_(message.size());
    }
  }
  [[noreturn]] void refuse_outcome_(std::uint64_t size) const {
    throw error("weft: no memory in process " + std::to_string(by_.rank()) +
                " of the cluster for the result of the run, which has " + std::to_string(size) + " bytes");
  }
  /// A long message is complete, or nobody has memory for it. *Returns*: whether there was something to do.
  bool settle_(parcels::outcome o) {
    using enum parcels::fate;
    switch (o.state) {
      case open:
        return false;
      case complete:
        receive_(std::move(o.message), o.from);
        return true;
      case refused_there:
        if (o.of == kind::tasks) lent_.refused(o.about);
        return true;
      case refused_here:
        break;
    }
    if (o.of == kind::finish) refuse_outcome_(o.size);
    o.of == kind::tasks ? note_answer_(false) : lent_.end_without_memory(o.about.first);
    return true;
  }
  void handle_(incoming& m) {
    if (parcels::is_one(m.kind())) return static_cast<void>(settle_(post_.handle(m)));
    switch (m.kind()) {
      case kind::tasks:
        return take_in_(m);
      case kind::ended:
        return lent_.take_back_all(m.body());
      case kind::declined:
        return lent_.declined(m.body());
      case kind::kept:
        return lent_.kept(m.body());
      case kind::stop: {
        const auto id = m.body().get<std::uint64_t>();
        guests_.stop({m.from(), id});
        return send_(m.from(), kind::stop_seen, outgoing(kind::stop_seen, run_).seal());
      }
      case kind::stop_seen:
        --told_stops_;
        return;
      case kind::stopped:
        return lent_.request_stop(m.body().get<std::uint64_t>());
      case kind::finish: {
        over_ = true;
        const std::size_t size = m.body().left();
        try {
          outcome_.resize(size);
        } catch (const std::bad_alloc&) {
          refuse_outcome_(size);
        }
        return m.body().take(outcome_.data(), size);
      }
      case kind::finished:
        ++finished_below_;
        return;
      case kind::leave:
        may_leave_ = true;
        return;
      default:
        return;
    }
  }

  /// Asks if a worker has nothing to do, or soon will.
  bool ask_if_it_helps_(clock::time_point now, bool hungry) {
    const unsigned active = guests_.active(), all = thief_.workers();
    ahead_ = active >= all;
    if (ahead_ ? now < next_ahead_ || !pace_.asks_ahead(active - all, now) : !hungry || now < next_request_)
      return false;
    ask_(now);
    return true;
  }
  /// Gives tasks back that have waited for a worker too long.
  bool decline_() {
    bool some = false;
    const auto most = pace_.longest_wait();
    for (auto g = guests_.give_up(most); g; g = guests_.give_up(most)) {
      give_back_(g->first, g->second, false);
      some = true;
    }
    return some;
  }
  void give_back_(int to, std::uint64_t id, bool stays) {
    outgoing m(kind::declined, run_);
    m.body()(id, stays);
    if (stays) guests_.pack_news(m.body());
    send_(to, kind::declined, m.seal());
  }

  /// Asks another process for tasks.
  void ask_(clock::time_point now) {
    outgoing m(kind::request, run_);
    m.body()(pace_.number());
    asked_ = true;
    pace_.asked(now, ahead_);
    ++counters_.requests;
    send_(victims_.next(), kind::request, m.seal());
  }
  /// Has a ready task executed here so that its end is recorded, as if it had come from another process.
  bool take_unit_() {
    writer w;
    if (!lent_.lend_to_self(w, by_.rank())) return false;
    reader all{std::span<const std::byte>(w.bytes())};
    execute_(all, by_.rank());
    return true;
  }
  void answer_(incoming& m) {
    if (const auto own = guests_.give_up_own()) lent_.declined(own->second, false);
    const auto wanted = m.body().get<unsigned>();
    outgoing answer(kind::tasks, m.run());
    task_range lent;
    if (m.run() == run_ && !over_) lent = lent_.lend(answer.body(), m.from(), wanted, batch_);
    send_(m.from(), kind::tasks, answer.seal(), lent);
  }
  /// An answer has come, with `some` tasks or none.
  void note_answer_(bool some) {
    const auto now = clock::now();
    asked_ = false;
    pace_.answered(now, some);
    if (some) return victims_.has_given();
    ++counters_.requests_in_vain;
    next_ahead_ = now + pace_.pause();
    if (ahead_) return;
    next_request_ = now + victims_.has_nothing(options_.longest_pause);
  }
  void take_in_(incoming& m) {
    note_answer_(m.body().left() != 0);
    while (m.body().left() != 0) counters_.closures_received += execute_(m.body(), m.from());
  }
  /// *Returns*: false if the task that comes next cannot be made here, as there is no memory, or as one of
  /// its values throws when it is read.
  bool execute_(reader& from_there, int from) {
    reader task = from_there.part(from_there.get<std::uint64_t>());
    const auto id = reader(task).get<std::uint64_t>();
    try {
      guests_.execute(task, from);
      return true;
    } catch (const error&) {  // the message is damaged
      throw;
    } catch (const std::bad_alloc&) {
      ++counters_.memory_refused;
    } catch (...) {  // it is executed where it comes from
    }
    give_back_(from, id, true);
    return false;
  }
  bool send_reports_() {
    std::vector<guests::report> all = guests_.reports(pace_.patience());
    for (guests::report& r : all) send_(r.to, r.of, std::move(r.message), r.about);
    if (const guests::ends e = guests_.ended_lately(); e.count != 0)
      pace_.ended(e.count, e.took, clock::now());
    return !all.empty();
  }
  /// Tells those who execute tasks of a run that it was stopped.
  bool tell_stops_() {
    return lent_.tell_stops([this](int to, std::uint64_t id) {
      outgoing m(kind::stop, run_);
      m.body()(id);
      send_(to, kind::stop, m.seal());
      ++told_stops_;
    });
  }

  void send_(int to, kind of, bytes message, task_range about = {}) {
    if (to == by_.rank()) return receive_(std::move(message), to);
    near_.sent(to);
    post_.send(to, of, std::move(message), about);
  }

  transport& by_;
  const process_tree tree_;
  const cluster_options options_;
  const std::size_t batch_;  // from how many bytes on nothing is added to a message
  keeper* const keeper_;
  sched::outside_thief thief_;
  const idle_wait wait_;
  cluster_counters counters_;
  neighbours near_;
  parcels post_;
  lent_tasks lent_;
  guests guests_;
  pace pace_;
  victims victims_;
  std::uint32_t run_ = 0;
  bool asked_ = false;  // a request has no answer yet
  bool ahead_ = false;  // it was sent while guests had all workers
  bool over_ = false, may_leave_ = false;
  int finished_below_ = 0;
  int told_stops_ = 0;  // that others have not seen yet
  bytes outcome_;
  std::vector<std::pair<int, bytes>> early_;  // messages of the next run
  clock::time_point next_request_{}, next_ahead_{}, next_look_{}, last_event_{};
};

}  // namespace weft::inline WEFT_ABI::remote
