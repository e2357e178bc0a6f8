// SPDX-License-Identifier: BSL-1.0
// What a process does for a step that is partitioned: agrees with the others on where tasks are, and executes
// its own in rounds of iterations.
#pragma once

#include <weft/base/thread.hpp>
#include <weft/cluster/detail/step_leader.hpp>
#include <weft/cluster/detail/step_talk.hpp>
#include <weft/cluster/detail/step_tasks.hpp>
#include <weft/cluster/partition_options.hpp>
#include <weft/system/prompt_thread.hpp>

#include <future>
#include <string>

namespace weft::inline WEFT_ABI::remote {

/// One process. A run is a sequence of rounds of iterations. Within a round processes tell each other only
/// values and failures. *Thread safety*: the thread that calls run().
class step_exchange {
 public:
  step_exchange(step_place at, const partition_options& options)
      : at_(std::move(at)),
        by_(*at_.by),
        options_(options),
        mail_(by_),
        talk_(by_, at_.runtime.workers(), at_.options, step_, mail_, options_.ahead_bytes),
        leader_(step_, options_, by_.size(), files_) {}
  step_exchange(const step_exchange&) = delete;
  step_exchange& operator=(const step_exchange&) = delete;

  /// Records a step, and compares it with those of the others. *Throws*: in all processes what it throws in
  /// the first one where it does; weft::error.
  template <class F>
  void record(F& f) {
    std::exception_ptr thrown;
    try {
      at_.runtime.run([this, &f] { step_.record(f); });
      require_travel_();
      if (!options_.checkpoint.empty()) files_.emplace(step_, options_.checkpoint);
    } catch (...) {
      thrown = std::current_exception();
    }
    if (alone_()) {
      if (thrown) std::rethrow_exception(thrown);
      place_({std::vector<unsigned>(step_.tasks().size()), {}});
      return;
    }
    guarded_([&] {
      writer mine;
      mine(thrown == nullptr);
      if (thrown) {
        detail::pack_exception(mine, thrown);
      } else {
        mine(static_cast<std::uint64_t>(step_.tasks().size()));
        for (const auto& t : step_.tasks()) mine(t.identity);
      }
      const bytes told =
          talk_.agree(mine, [this](std::vector<bytes>& all, writer& w) { leader_.compare(all, w); });
      talk_.begin_stage();
      reader r{std::span<const std::byte>(told)};
      const auto by = r.get<std::int32_t>();  // whose exception it is; -1: nobody's
      if (by == -1)
        thrown = nullptr;
      else if (by != by_.rank() || thrown == nullptr)
        thrown = detail::unpack_exception(r);
    });
    if (thrown) std::rethrow_exception(thrown);
  }

  /// Executes so many iterations. *Throws*: in all processes what the serial program throws first;
  /// weft::error.
  void run(std::uint64_t iterations) {
    if (alone_()) {
      mail_.begin(0, size_(), 0);
      struct counted {
        step_exchange& of;
        ~counted() {
          for (own_task* const t : of.tasks_->own()) of.take_cost_(*t);
        }
      } const at_end{*this};
      at_.runtime.run([&] { tasks_->run(iterations, mail_); });
      counters_.steps += iterations;
      return;
    }
    if (std::exchange(has_thrown_, true) && files_) files_->forget();
    std::exception_ptr thrown;
    guarded_([&] {
      talk_.begin_watch();
      writer mine;
      mine(iterations);
      bytes told =
          talk_.agree(mine, [this](std::vector<bytes>& all, writer& w) { leader_.begin_run(all, w); });
      for (;;) {
        reader r{std::span<const std::byte>(told)};
        const auto next = r.get<order>();
        if (next == order::go) {
          told = round_(r);
          continue;
        }
        talk_.begin_stage();
        if (next == order::throw_) {
          const bool own = r.get<std::int32_t>() == by_.rank();
          thrown = own ? mail_.failure().second : detail::unpack_exception(r);
        }
        if (next == order::finish) move_all_([](std::uint32_t, unsigned) { return true; });
        all_valid_ = true;
        const std::exception_ptr lost = talk_.settle();
        if (lost != nullptr && thrown == nullptr) {
          leader_.take_back_run();
          thrown = lost;
        }
        return;
      }
    });
    if (thrown) std::rethrow_exception(thrown);
    has_thrown_ = false;
    counters_.steps += iterations;
  }

  /// Takes over the values of the last checkpoint. *Returns*: how many iterations it has; 0 if there is none.
  /// *Throws*: in all processes weft::error, std::system_error, what unpacking throws.
  std::uint64_t resume() {
    require_checkpoints_();
    files_->forget();
    outcome o;
    std::optional<checkpoint> last;
    watched_([&] {
      writer none;
      agree_(none, o, [this](const std::vector<bytes>&, writer& w) { leader_.tell_last_checkpoint(w); });
      if (!o.thrown) last = reader{std::span<const std::byte>(o.told)}.get<std::optional<checkpoint>>();
      if (!last) return;
      auto loaded =
          std::async(std::launch::async, [&] { return attempt_([&](writer&) { files_->load(*last); }); });
      talk_.serve_or_fail([&loaded] { return is_ready(loaded); });
      writer mine = loaded.get();
      agree_(mine, o, [&](const std::vector<bytes>& all, writer& w) { leader_.end_loading(all, *last, w); });
      all_valid_ = true;
      has_thrown_ = o.thrown != nullptr;
    });
    if (o.thrown) std::rethrow_exception(o.thrown);
    return last ? last->done : 0;
  }
  /// Makes a checkpoint, and waits until it is whole. *Throws*: in all processes weft::error,
  /// std::system_error, what packing throws.
  void save() {
    require_checkpoints_();
    files_->forget();
    outcome o;
    watched_([&] {
      writer none;
      agree_(none, o, [this](const std::vector<bytes>&, writer& w) { leader_.begin_saving(w); });
      const auto number = o.thrown ? 0 : reader{std::span<const std::byte>(o.told)}.get<std::uint64_t>();
      if (number == 0) return;
      writer mine = attempt_([&](writer&) { write_checkpoint_(number); });
      talk_.serve_until([this] { return files_->is_written(); });
      if (reader{std::span<const std::byte>(mine.bytes())}.get<bool>())
        mine = attempt_([&](writer& w) { w(*files_->take_written(true)); });
      agree_(mine, o, [this](const std::vector<bytes>& all, writer& w) { leader_.end_saving(all, w); });
    });
    if (o.thrown) std::rethrow_exception(o.thrown);
  }

  partition_counters counters() const noexcept {
    partition_counters all = counters_;
    all.messages = talk_.traffic().messages;
    all.bytes = talk_.traffic().bytes;
    all.long_messages = talk_.traffic().long_messages;
    all.memory_refused = talk_.traffic().memory_refused;
    all.values_held = talk_.values_held();
    all.most_ahead = mail_.most_ahead();
    return all;
  }
  const std::vector<unsigned>& processor() const noexcept { return plan_->processor(); }
  std::size_t tasks() const noexcept { return step_.tasks().size(); }
  bool placed() const noexcept { return plan_.has_value(); }

 private:
  using order = step_leader::order;

  /// Whether there is nobody to talk to, and nothing to be done between iterations.
  bool alone_() const noexcept { return by_.size() == 1 && options_.checkpoint.empty(); }
  std::uint32_t size_() const noexcept { return static_cast<std::uint32_t>(step_.tasks().size()); }
  std::size_t rank_() const noexcept { return static_cast<std::size_t>(by_.rank()); }

  void require_checkpoints_() const {
    if (!files_)
      throw error("weft: a partitioned step has no checkpoints without partition_options::checkpoint");
  }
  void require_travel_() const {
    if (alone_()) return;
    for (const auto& o : step_.objects())
      if (o.written && o.kind == nullptr)
        throw error(
            "weft: an object of a partitioned step is of a type that cannot be sent to other processes; " +
            step_.name_of(o.first) + " is the first that uses it");
  }

  void place_(const placed_tasks& p) {
    tasks_.reset();
    plan_.emplace(step_, p.processor, static_cast<unsigned>(by_.size()));
    tasks_.emplace(step_, *plan_, static_cast<unsigned>(by_.rank()), p.start, mail_);
  }
  /// A stage with iterations. `r`: the verdict. *Returns*: the next one.
  bytes round_(reader& r) {
    const auto n = r.get<std::uint64_t>();
    std::exception_ptr unwritten;
    try {
      if (const auto number = r.get<std::uint64_t>(); number != 0) write_checkpoint_(number);
    } catch (...) {
      unwritten = std::current_exception();
    }
    const std::optional<step_plan> before = r.get<bool>() ? std::exchange(plan_, {}) : std::nullopt;
    if (!plan_) {
      placed_tasks next;
      r(next.processor, next.start);
      if (before) ++counters_.redistributions;
      place_(next);
    }
    make_room_();
    mail_.begin(talk_.stage(), size_(), plan_->channels().size());
    talk_.begin_stage();
    if (before) move_all_(*before, [this](std::uint32_t o, unsigned p) { return plan_->needs(o, p); });
    if (const std::exception_ptr lost = talk_.take_move_failure()) mail_.fail(0, lost);
    all_valid_ = false;
    base::atomic<bool> ended{false};
    base::thread root([&] {
      bool begun = false;
      try {
        at_.runtime.run([&] {
          begun = true;
          tasks_->run(n, mail_);
        });
      } catch (...) {  // what has failed is known already, but for what comes before the first task
        if (!begun || !mail_.limited()) mail_.fail(0, std::current_exception());
      }
      ended.store(true, base::memory_order_release);  // pairs with the load below
      by_.wake();
    });
    struct joined {
      base::thread& t;
      step_mail& mail;
      ~joined() {
        mail.limit(0);  // an error of the messages: nothing that is awaited will come
        t.join();
      }
    };
    {
      const joined at_end{root, mail_};
      const base::prompt_thread serves;
      talk_.serve_or_fail([&ended] { return ended.load(base::memory_order_acquire); });
    }
    talk_.flush();
    return report_(unwritten);
  }
  /// For the values of a round. Each process may send its part of one half unasked, which all know of each
  /// other.
  void make_room_() {
    std::vector<std::size_t> granted = plan_->senders(static_cast<unsigned>(by_.size()));
    for (std::size_t& n : granted) n = options_.ahead_bytes / 2 / std::max<std::size_t>(n, 1);
    const std::size_t unasked = granted[rank_()];
    talk_.begin_round(std::move(granted));
    mail_.make({options_.ahead_bytes - options_.ahead_bytes / 2, unasked, options_.ahead_bytes});
  }
  /// Tells process 0 what this one has done in a round. `unwritten`: why there is no part of a checkpoint;
  /// maybe null. *Returns*: the verdict.
  bytes report_(const std::exception_ptr& unwritten) {
    bool failed = false;
    std::optional<written_part> part;
    try {
      if (unwritten) std::rethrow_exception(unwritten);
      if (files_) part = files_->take_written(false);
    } catch (...) {
      failed = true;
      mail_.fail(step_mail::none - 1, std::current_exception());  // behind what tasks throw
      talk_.flush();                                              // what settle counts
    }
    writer mine;
    const auto [place, why] = mail_.failure();
    writer exception;
    if (why) detail::pack_exception(exception, why);
    mine(place, exception.bytes());
    std::vector<std::pair<std::uint32_t, double>> costs;
    for (own_task* const t : tasks_->own())
      if (const auto [seconds, times] = take_cost_(*t); times != 0)
        costs.emplace_back(t->number(), seconds / static_cast<double>(times));
    std::vector<std::pair<std::uint32_t, double>> sizes;
    for (const sending_task* const t : tasks_->senders())
      sizes.emplace_back(t->object(), static_cast<double>(t->last_size()));
    mine(costs, sizes, failed, part);
    return talk_.agree(mine, [this](std::vector<bytes>& all, writer& w) { leader_.end_round(all, w); });
  }
  /// A verdict on something that all have done or not: what process 0 tells, or why it failed.
  struct outcome {
    bytes told;
    std::exception_ptr thrown;
  };
  template <class Decide>
  void agree_(writer& mine, outcome& o, const Decide& decide) {
    const bytes told = talk_.agree(mine, decide);
    talk_.begin_stage();
    reader r{std::span<const std::byte>(told)};
    if (!r.get<bool>()) o.thrown = detail::unpack_exception(r);
    o.told.assign(told.end() - static_cast<std::ptrdiff_t>(r.left()), told.end());
  }
  /// The report on an attempt: true, and what that adds; or false, and what it has thrown.
  template <class F>
  static writer attempt_(const F& f) {
    try {
      writer w;
      w(true);
      f(w);
      return w;
    } catch (...) {
      writer w;
      w(false);
      detail::pack_exception(w, std::current_exception());
      return w;
    }
  }
  /// Begins to write the values with which the next iteration begins: each object in one process.
  void write_checkpoint_(std::uint64_t number) {
    const auto rank = static_cast<std::uint32_t>(rank_());
    files_->write(number, rank_(), [this, rank](std::uint32_t o) { return plan_->holder(o) == rank; });
    ++counters_.checkpoints;
  }
  /// Counts how often a task was executed. *Returns*: as own_task::take_cost.
  std::pair<double, std::uint64_t> take_cost_(own_task& t) noexcept {
    const auto cost = t.take_cost();
    counters_.tasks += cost.second;
    return cost;
  }
  template <class Needs>
  void move_all_(Needs needs) {
    if (!all_valid_) move_all_(*plan_, needs);
  }
  /// Sends the values of objects to those who need them and have not got them, and waits for those of others.
  template <class Needs>
  void move_all_(const step_plan& from, Needs needs) {
    if (all_valid_) return;
    for (std::uint32_t o = 0; o < step_.objects().size(); ++o) {
      const std::uint32_t holder = from.holder(o);
      if (holder == step_plan::nobody) continue;
      std::optional<writer> value;  // or an exception
      for (unsigned p = 0; p < static_cast<unsigned>(by_.size()); ++p) {
        if (from.valid(o, p) || !needs(o, p)) continue;
        if (p == rank_()) talk_.expect_move();
        if (holder != rank_()) continue;
        const auto& object = step_.objects()[o];
        if (!value) value = attempt_([&](writer& w) { object.kind->pack(object.at, w); });
        talk_.move(static_cast<int>(p), o, value->bytes());
      }
    }
    talk_.await_moves();
  }

  /// The same, and the neighbours are watched.
  template <class Go>
  void watched_(Go go) {
    guarded_([&] {
      talk_.begin_watch();
      go();
      talk_.end_watch();
    });
  }
  /// An error here concerns all processes: they cannot go on without this one.
  template <class Go>
  void guarded_(Go go) {
    try {
      go();
    } catch (...) {
      const std::string why = detail::look_at(std::current_exception()).text;
      by_.fail(why);
      throw error(why);
    }
  }

  step_place at_;
  transport& by_;
  const partition_options options_;
  partition_counters counters_;
  step_record step_;
  std::optional<step_checkpoints> files_;
  step_mail mail_;
  step_talk talk_;
  step_leader leader_;  // in process 0
  std::optional<step_plan> plan_;
  std::optional<step_tasks> tasks_;
  bool all_valid_ = true;    // every process has the value of every object
  bool has_thrown_ = false;  // the last run; or runs
};

}  // namespace weft::inline WEFT_ABI::remote
