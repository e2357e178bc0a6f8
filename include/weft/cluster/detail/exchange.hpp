// SPDX-License-Identifier: BSL-1.0
// What a process of a cluster does during a run: asks others for tasks when it has none, gives them some of
// its own.
#pragma once

#include <weft/cluster/detail/answers.hpp>
#include <weft/cluster/detail/guests.hpp>
#include <weft/cluster/detail/idle_wait.hpp>
#include <weft/cluster/detail/keeper.hpp>
#include <weft/cluster/detail/lent_tasks.hpp>
#include <weft/cluster/detail/lifelines.hpp>
#include <weft/cluster/detail/message.hpp>
#include <weft/cluster/detail/neighbours.hpp>
#include <weft/cluster/detail/pace.hpp>
#include <weft/cluster/detail/parcels.hpp>
#include <weft/cluster/detail/process_tree.hpp>
#include <weft/cluster/detail/requests.hpp>
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
        batch_(std::min<std::size_t>(options.part_bytes / 2, 64 << 10)),
        keeper_(kept),
        thief_(of, &lent_tasks::may_go),
        wait_(by, thief_.workers(), microseconds(200)),
        near_(by, options, counters_),
        post_(by, options.part_bytes, counters_),
        lent_(thief_, by, options, counters_, kept),
        guests_(by, thief_, batch_, options.cache_bytes, kept),
        lines_(by.rank(), by.size()),
        requests_(by.rank(), machines_of(by), options.longest_pause, pace_, lines_, counters_),
        answers_(lent_, guests_, lines_, batch_, counters_) {}
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

  /// Those of this process that go to others.
  sent_threads& threads() noexcept { return lent_.threads(); }
  /// As neighbours::leave.
  void leave() { near_.leave(); }

  /// *Thread safety*: the thread that serves, or between runs.
  const cluster_counters& counters() const noexcept { return counters_; }

 private:
  using clock = base::clock;
  using microseconds = std::chrono::microseconds;

  auto sender_() {
    return [this](int to, kind of, bytes message, task_range about) {
      send_(to, of, std::move(message), about);
    };
  }

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
    answers_.end(sender_());
    while (!requests_.all_answered() || told_stops_ != 0 || !post_.all_settled() || !lent_.all_kept() ||
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
    over_ = may_leave_ = false;
    finished_below_ = told_stops_ = 0;
    next_look_ = last_event_ = clock::now();
    lines_.begin();
    requests_.begin(last_event_);
    answers_.begin(run_);
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
    some |= lent_.threads().send(post_, near_, run_);
    some |= lent_.execute_returned();
    const auto now = clock::now();
    if (now >= next_look_) {
      next_look_ = now + microseconds(50);
      near_.look(now);
      some |= tell_stops_();
      some |= decline_();
      if (working && keeper_ != nullptr && keeper_->is_on() && keeper_->wants_unit(now)) some |= take_unit_();
    }
    const bool hungry = working && by_.size() > 1 && requests_.may_find() && thief_.workers_idle();
    if (working && by_.size() > 1 && !post_.awaits(kind::pushed)) some |= ask_(now, hungry);
    if (working && !hungry) some |= answers_.serve_waiters(now, sender_());
    if (some)
      last_event_ = now;
    else
      wait_(now - last_event_, hungry);
  }

  void receive_(bytes message, int from) {
    incoming m(message, from);
    if (near_.take(m)) return;
    if (m.kind() == kind::request || m.kind() == kind::lifeline)
      return answers_.answer(m, !post_.sends_to(from), sender_());  // not the same values twice
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
      refuse_outcome(by_.rank(), message.size());
    }
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
        if (o.of == kind::tasks || o.of == kind::pushed || o.of == kind::thread) lent_.refused(o.about);
        return true;
      case refused_here:
        break;
    }
    if (o.of == kind::finish) refuse_outcome(by_.rank(), o.size);
    if (o.of == kind::tasks)
      requests_.answered(false, clock::now());
    else if (o.of == kind::pushed)
      requests_.pushed(o.from, false, clock::now());
    else if (o.of == kind::ended)
      lent_.end_without_memory(o.about.first);
    else if (o.of != kind::thread)
      throw std::bad_alloc();  // what was kept is not known now
    return true;
  }
  void handle_(incoming& m) {
    if (parcels::is_one(m.kind())) return static_cast<void>(settle_(post_.handle(m)));
    switch (m.kind()) {
      case kind::tasks:
        requests_.answered(m.body().left() != 0, clock::now());
        return take_in_(m, false);
      case kind::pushed:
        return take_pushed_(m);
      case kind::thread:
        return void(counters_.threads_received += execute_(m.body(), m.from()));
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
          refuse_outcome(by_.rank(), size);
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

  /// Asks others for tasks if a worker has nothing to do, or soon will.
  bool ask_(clock::time_point now, bool hungry) {
    return requests_.ask(now, hungry, guests_.active(), thief_.workers(),
                         [this](kind of, int to, unsigned number) {
                           outgoing m(of, run_);
                           m.body()(number);
                           send_(to, of, m.seal());
                         });
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

  /// Has a ready task executed here so that its end is recorded, as if it had come from another process.
  bool take_unit_() {
    writer w;
    if (!lent_.lend_to_self(w, by_.rank())) return false;
    reader all{std::span<const std::byte>(w.bytes())};
    execute_(all, by_.rank());
    return true;
  }
  void take_pushed_(incoming& m) {
    const int named = m.body().get<int>();
    if (named < lifelines::nobody || named >= by_.size()) reader::refuse();
    const auto now = clock::now();
    const bool tasks = m.body().left() != 0;
    requests_.pushed(m.from(), tasks, now);
    if (named != lifelines::nobody && named != by_.rank()) requests_.hear_of(named, now);
    const bool busy = !thief_.workers_idle();
    if (tasks && !busy) pace_.came(now);
    take_in_(m, busy);
  }
  void take_in_(incoming& m, bool unasked) {
    while (m.body().left() != 0) counters_.closures_received += execute_(m.body(), m.from(), unasked);
  }
  /// *Returns*: false if the task that comes next cannot be made here, as there is no memory, or as one of
  /// its values throws when it is read.
  bool execute_(reader& from_there, int from, bool unasked = false) {
    reader task = from_there.part(from_there.get<std::uint64_t>());
    const auto id = reader(task).get<std::uint64_t>();
    try {
      guests_.execute(task, from, unasked);
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
      send_(to, kind::stop, about_task(kind::stop, id, run_));
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
  lifelines lines_;
  requests requests_;
  answers answers_;
  std::uint32_t run_ = 0;
  bool over_ = false, may_leave_ = false;
  int finished_below_ = 0;
  int told_stops_ = 0;  // that others have not seen yet
  bytes outcome_;
  std::vector<std::pair<int, bytes>> early_;  // messages of the next run
  clock::time_point next_look_{}, last_event_{};
};

}  // namespace weft::inline WEFT_ABI::remote
