// SPDX-License-Identifier: BSL-1.0
// How the processes of a partitioned step talk: stages with a report and a verdict at the end, values and
// failures in between.
#pragma once

#include <weft/cluster/detail/idle_wait.hpp>
#include <weft/cluster/detail/parcels.hpp>
#include <weft/cluster/detail/step_mail.hpp>
#include <weft/cluster/detail/step_pulse.hpp>
#include <weft/cluster/detail/step_record.hpp>
#include <weft/cluster/exceptions.hpp>
#include <weft/cluster/partition_options.hpp>

#include <algorithm>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// One process's end. At the end of a stage all processes report to process 0, which answers all with its
/// verdict; so a message of a later stage than its receiver's has come early, and waits.
///
/// A value that fits into what its receiver grants goes at once. Others are announced; the receiver asks for
/// them, one at a time, as `step_mail` has room. *Thread safety*: the thread that serves.
class step_talk {
 public:
  /// `workers`: of this process.
  step_talk(transport& by, unsigned workers, const cluster_options& cluster, const step_record& step,
            step_mail& mail, std::size_t ahead_bytes)
      : by_(by),
        wait_(by, workers, microseconds(500)),
        step_(step),
        mail_(mail),
        part_bytes_(part_bytes_of(by, cluster)),
        ahead_bytes_(ahead_bytes),
        pulse_(by, cluster.silence, traffic_),
        post_(by, part_bytes_, traffic_, [this](int to) { note_(to, true); }) {
    sent_.resize(static_cast<std::size_t>(by_.size()));
    reports_.resize(sent_.size());
    leaving_.resize(sent_.size());
    post_.begin(stage_);
  }
  step_talk(const step_talk&) = delete;
  step_talk& operator=(const step_talk&) = delete;

  std::uint32_t stage() const noexcept { return stage_; }
  /// Messages and bytes that were sent, and what did not go at once.
  const cluster_counters& traffic() const noexcept { return traffic_; }
  /// How many values waited here until their receiver had room.
  std::uint64_t values_held() const noexcept { return values_held_; }
  /// From now to end_watch() the neighbours in the tree are watched. Each counts from its first message on.
  void begin_watch() noexcept { pulse_.begin(stage_); }
  /// Nobody waits for what takes long any more; the beats that were sent come, everywhere.
  void end_watch() {
    pulse_.end_beats();
    writer mine;
    mine(pulse_.beats(), bytes());
    await_all_(mine, pulse_.received());
    pulse_.end();
  }
  /// A round begins. `granted`: of each process, the bytes of values that this one may send unasked.
  void begin_round(std::vector<std::size_t> granted) noexcept {
    granted_ = std::move(granted);
    looks_ = true;
  }
  /// Reports, and waits for the verdict, which process 0 finds by `decide`. Then a new stage begins:
  /// begin_stage() is to be called when it may have messages.
  bytes agree(writer& mine, const std::function<void(std::vector<bytes>&, writer&)>& decide) {
    if (by_.rank() == 0) {
      reports_[0] = std::move(mine.bytes());
      serve_until([this] { return reported_ == by_.size() - 1; });
      writer w;
      decide(reports_, w);
      outgoing m = step_message(step_kind::verdict, stage_);
      m.body().put(w.bytes().data(), w.bytes().size());
      const bytes sealed = m.seal();
      for (int to = 1; to < by_.size(); ++to) send_(to, sealed, false);
      verdict_ = std::move(w.bytes());
      reported_ = 0;
    } else {
      outgoing m = step_message(step_kind::report, stage_);
      m.body().put(mine.bytes().data(), mine.bytes().size());
      send_(0, m.seal(), false);
      serve_until([this] { return verdict_.has_value(); });
    }
    post_.begin(++stage_);
    moving_ = 0;  // what was on its way has come, or was refused
    return *std::exchange(verdict_, {});
  }
  void begin_stage() {
    for (auto& [from, message] : std::exchange(early_, {})) receive_(std::move(message), from);
  }

  template <class Done>
  void serve_until(Done done) {
    auto last = clock::now();
    while (!done()) {
      bool some = flush();
      bytes message;
      if (const int from = by_.receive(message); from >= 0) {
        receive_(std::move(message), from);
        some = true;
      }
      if (some) {
        last = clock::now();
        continue;
      }
      wait_(clock::now() - last, mail_.waits() != 0);
    }
  }
  /// The same. Where it throws, the others are told at once: they do not wait for what tasks here are at.
  template <class Done>
  void serve_or_fail(Done done) {
    try {
      serve_until(done);
    } catch (...) {
      by_.fail(detail::look_at(std::current_exception()).text);
      throw;
    }
  }
  /// Sends what tasks have left to be sent, and asks for what there is room for. *Returns*: whether there was
  /// anything. *Throws*: weft::error, also if a process is silent; std::bad_alloc.
  bool flush() {
    pulse_.look(stage_);
    auto all = mail_.take_outbox();
    for (auto& d : all) send_value_(d);
    const auto used = mail_.take_used();
    for (const auto& [to, size] : used) {
      outgoing m = step_message(step_kind::used, stage_);
      m.body()(size);
      send_(to, m.seal(), true);
    }
    const bool asked = ask_next_();
    const std::uint64_t place = mail_.untold_failure();
    if (place == step_mail::none) return asked || !all.empty() || !used.empty();
    for (int to = 0; to < by_.size(); ++to) {
      if (to == by_.rank()) continue;
      outgoing m = step_message(step_kind::failed, stage_);
      m.body()(place);
      send_(to, m.seal(), true);
    }
    return true;
  }
  /// All that was sent has come, everywhere. Then all processes may leave. *Returns*: in all of them the same
  /// exception, if a value has not come into its object.
  std::exception_ptr settle() {
    serve_until([this] { return post_.all_settled(); });
    writer mine, why;
    if (const std::exception_ptr e = take_move_failure()) detail::pack_exception(why, e);
    mine(sent_, why.bytes());
    const bytes failure = await_all_(mine, received_);
    end_watch();
    if (failure.empty()) return nullptr;
    reader of_it{std::span<const std::byte>(failure)};
    return detail::unpack_exception(of_it);
  }
  /// Sends the value of an object, between rounds: true and the value, or false and why there is none; and
  /// how many are to come to this process. Short ones go together, at the latest when moves are awaited.
  /// Waits while there is more on its way than may be ahead.
  void move(int to, std::uint32_t object, const bytes& value) {
    constexpr std::size_t together = 1 << 16;  // bytes
    const auto add = [object](writer& w, const bytes& b) {
      w(object, static_cast<std::uint64_t>(b.size()));
      w.put(b.data(), b.size());
    };
    moves& m = leaving_[static_cast<std::size_t>(to)];
    if (value.size() > together) {
      outgoing alone = step_message(step_kind::move, stage_);
      try {
        add(alone.body(), value);
      } catch (const std::bad_alloc&) {
        writer why;
        why(false);
        detail::pack_exception(why, std::current_exception());
        return move(to, object, why.bytes());
      }
      send_moves_(to, alone.seal(), 1);
    } else {
      if (m.all.bytes().size() + value.size() > together) send_moves_(to);
      add(m.all, value);
      ++m.count;
    }
    if (moving_ > ahead_bytes_) serve_until([this] { return moving_ <= ahead_bytes_; });
  }
  void expect_move() noexcept { ++moves_; }
  void await_moves() {
    for (int to = 0; to < by_.size(); ++to) send_moves_(to);
    serve_until([this] { return moves_ == 0; });
  }
  /// Why a value has not come into its object, if so; the first of them.
  std::exception_ptr take_move_failure() noexcept { return std::exchange(move_failure_, nullptr); }

 private:
  using clock = base::clock;
  using microseconds = std::chrono::microseconds;

  /// Reports how many messages this process has sent to each, and something more; waits until so many have
  /// come as others have sent to it. *Returns*: the first that is something, of what all have reported.
  bytes await_all_(writer& mine, const std::uint64_t& come) {
    const bytes told = agree(mine, [this](std::vector<bytes>& all, writer& w) {
      std::vector<std::uint64_t> sum(sent_.size());
      bytes first;
      for (const bytes& b : all) {
        reader r{std::span<const std::byte>(b)};
        const auto of = r.get<std::vector<std::uint64_t>>();
        for (std::size_t p = 0; p < std::min(of.size(), sum.size()); ++p) sum[p] += of[p];
        if (auto more = r.get<bytes>(); first.empty()) first = std::move(more);
      }
      w(sum, first);
    });
    reader r{std::span<const std::byte>(told)};
    const auto sum = r.get<std::vector<std::uint64_t>>();
    begin_stage();
    serve_until([&] { return come >= sum.at(static_cast<std::size_t>(by_.rank())); });
    return r.get<bytes>();
  }
  void send_value_(step_mail::departure& d) {
    const auto left = [&mail = mail_, number = d.number] { mail.left(number); };
    const task_range about{d.iteration, d.channel};
    std::size_t& granted = granted_.at(static_cast<std::size_t>(d.to));
    const std::size_t size = d.message.size();
    if (size > part_bytes_)
      return post_.send(d.to, as_kind_(step_kind::value), std::move(d.message), about, left);
    if (size > granted) {
      ++values_held_;
      return post_.announce(d.to, as_kind_(step_kind::value), std::move(d.message), about, left);
    }
    granted -= size;
    send_(d.to, std::move(d.message), true, left);
  }
  /// Asks for the next message that was announced, if there is room. *Returns*: whether there was one.
  bool ask_next_() {
    looks_ |= mail_.take_room();
    if (!looks_) return false;
    const parcels::outcome o =
        post_.begin_next([this](remote::kind of, const task_range& about, std::size_t size) {
          if (of == as_kind_(step_kind::move)) return std::optional<std::uint64_t>(0);
          return mail_.may_ask(about.first, static_cast<std::uint32_t>(about.last), size);
        });
    looks_ = o.size != 0;
    mail_.want_room(!looks_ && post_.any_offered());
    if (!looks_) return false;
    if (o.state == parcels::fate::refused_here)
      refused_(o);
    else if (o.of == as_kind_(step_kind::value))
      mail_.ask(static_cast<std::uint32_t>(o.about.last), o.size);
    return true;
  }
  /// There is no memory here for a message of another process.
  void refused_(const parcels::outcome& o) {
    const auto why =
        std::make_exception_ptr(error("weft: no memory in process " + std::to_string(by_.rank()) +
                                      " of the cluster for what a partitioned step sends to it, which has " +
                                      std::to_string(o.size) + " bytes"));
    if (o.of == as_kind_(step_kind::value))
      return mail_.refuse(o.about.first, static_cast<std::uint32_t>(o.about.last), why);
    moves_ -= static_cast<std::int64_t>(o.about.first);
    if (move_failure_ == nullptr) move_failure_ = why;
  }
  /// To `parcels` the kinds of a step are what those of a run are.
  static constexpr remote::kind as_kind_(step_kind k) noexcept { return static_cast<remote::kind>(k); }

  void receive_(bytes message, int from) {
    incoming m(message, from);
    const std::uint32_t stage = m.run();
    if (pulse_.take(m)) return;
    if (stage > stage_) {
      early_.emplace_back(from, std::move(message));
      return;
    }
    if (parcels::is_one(m.kind())) {
      ++received_;
      if (stage != stage_) return;  // nobody needs it any more
      looks_ = true;
      parcels::outcome o = post_.handle(m);
      if (o.state != parcels::fate::complete) return;
      incoming whole(o.message, o.from);
      const auto of = whole.body().get<step_kind>();
      return take_(of, whole, o.message, step_mail::asked_for);
    }
    const auto kind = m.body().get<step_kind>();
    switch (kind) {
      case step_kind::report: {
        bytes& mine = reports_.at(static_cast<std::size_t>(from));
        mine.resize(m.body().left());
        m.body().take(mine.data(), mine.size());
        ++reported_;
        return;
      }
      case step_kind::verdict:
        verdict_.emplace(m.body().left());
        return m.body().take(verdict_->data(), verdict_->size());
      default:
        ++received_;
        if (stage == stage_) take_(kind, m, message, from);
    }
  }
  /// A message of this stage; `from`: as step_mail::deliver.
  void take_(step_kind k, incoming& m, bytes& message, int from) {
    switch (k) {
      case step_kind::value:
        return mail_.deliver(std::move(message), from);
      case step_kind::move:
        while (m.body().left() != 0) {
          const auto& o = step_.objects().at(m.body().get<std::uint32_t>());
          reader value = m.body().part(m.body().get<std::uint64_t>());
          --moves_;
          try {
            if (!value.get<bool>()) std::rethrow_exception(detail::unpack_exception(value));
            o.kind->unpack(o.at, value);
          } catch (...) {
            if (move_failure_ == nullptr) move_failure_ = std::current_exception();
          }
        }
        return;
      case step_kind::failed:
        return mail_.limit(m.body().get<std::uint64_t>());
      case step_kind::used: {
        std::size_t& granted = granted_.at(static_cast<std::size_t>(m.from()));
        granted += static_cast<std::size_t>(m.body().get<std::uint64_t>());
        return;
      }
      default:
        reader::refuse();
    }
  }
  void send_moves_(int to) {
    moves& of = leaving_[static_cast<std::size_t>(to)];
    if (of.count == 0) return;
    outgoing m = step_message(step_kind::move, stage_);
    m.body().put(of.all.bytes().data(), of.all.bytes().size());
    of.all.bytes() = bytes();
    send_moves_(to, m.seal(), std::exchange(of.count, 0));
  }
  void send_moves_(int to, bytes message, std::uint64_t count) {
    const std::size_t size = message.size();
    moving_ += size;
    post_.send(to, as_kind_(step_kind::move), std::move(message), {count, 0}, [this, size, stage = stage_] {
      if (stage == stage_) moving_ -= size;
    });
  }
  void send_(int to, bytes message, bool counted, std::function<void()> left = {}) {
    ++traffic_.messages;
    traffic_.bytes += message.size();
    note_(to, counted);
    by_.send(to, std::move(message), std::move(left));
  }
  void note_(int to, bool counted) noexcept {
    if (counted) ++sent_[static_cast<std::size_t>(to)];
    pulse_.sent(to);
  }

  /// Values of objects that go to a process together.
  struct moves {
    writer all;
    std::uint64_t count = 0;
  };

  transport& by_;
  const idle_wait wait_;
  const step_record& step_;
  step_mail& mail_;
  const std::size_t part_bytes_, ahead_bytes_;
  cluster_counters traffic_;
  step_pulse pulse_;
  parcels post_;
  std::uint32_t stage_ = 1;
  bool looks_ = false;                // there may be a message to ask for
  std::vector<std::size_t> granted_;  // by each process: how much more this one may send there unasked
  std::uint64_t values_held_ = 0;
  std::vector<std::pair<int, bytes>> early_;  // messages of later stages
  std::vector<std::uint64_t> sent_;           // to each process, without beats, reports and verdicts,
  std::uint64_t received_ = 0;                // and from all
  std::int64_t moves_ = 0;  // that have not come; less than 0: more have come than are awaited
  std::exception_ptr move_failure_;
  std::vector<moves> leaving_;  // to each process, not sent yet
  std::size_t moving_ = 0;      // bytes of what was sent and has not left
  std::optional<bytes> verdict_;
  std::vector<bytes> reports_;  // of process 0, as the next one
  int reported_ = 0;
};

}  // namespace weft::inline WEFT_ABI::remote
