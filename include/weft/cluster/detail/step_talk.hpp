// SPDX-License-Identifier: BSL-1.0
// How the processes of a partitioned step talk: stages with a report and a verdict at the end, values and
// failures in between.
#pragma once

#include <weft/cluster/detail/idle_wait.hpp>
#include <weft/cluster/detail/step_mail.hpp>
#include <weft/cluster/detail/step_record.hpp>
#include <weft/cluster/exceptions.hpp>
#include <weft/cluster/partition_options.hpp>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// One process's end. At the end of a stage all processes report to process 0, which answers all with its
/// verdict; so a message of a later stage than its receiver's has come early, and waits. *Thread safety*: the
/// thread that serves.
class step_talk {
 public:
  /// `workers`: of this process.
  step_talk(transport& by, unsigned workers, const step_record& step, step_mail& mail,
            partition_counters& counters)
      : by_(by), wait_(by, workers, microseconds(500)), step_(step), mail_(mail), counters_(counters) {
    sent_.resize(static_cast<std::size_t>(by_.size()));
    reports_.resize(sent_.size());
    leaving_.resize(sent_.size());
  }
  step_talk(const step_talk&) = delete;
  step_talk& operator=(const step_talk&) = delete;

  std::uint32_t stage() const noexcept { return stage_; }
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
    ++stage_;
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
  /// Sends what tasks have left to be sent. *Returns*: whether there was anything.
  bool flush() {
    auto all = mail_.take_outbox();
    for (auto& [to, message] : all) send_(to, std::move(message), true);
    const std::uint64_t place = mail_.untold_failure();
    if (place == step_mail::none) return !all.empty();
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
    writer mine, why;
    if (const std::exception_ptr e = take_move_failure()) detail::pack_exception(why, e);
    mine(sent_, why.bytes());
    const bytes told = agree(mine, [this](std::vector<bytes>& all, writer& w) {
      std::vector<std::uint64_t> sum(sent_.size());
      bytes first;
      for (const bytes& b : all) {
        reader r{std::span<const std::byte>(b)};
        const auto of = r.get<std::vector<std::uint64_t>>();
        for (std::size_t p = 0; p < std::min(of.size(), sum.size()); ++p) sum[p] += of[p];
        if (auto failure = r.get<bytes>(); first.empty()) first = std::move(failure);
      }
      w(sum, first);
    });
    reader r{std::span<const std::byte>(told)};
    const auto sum = r.get<std::vector<std::uint64_t>>();
    const auto failure = r.get<bytes>();
    begin_stage();
    serve_until([&] { return received_ >= sum.at(static_cast<std::size_t>(by_.rank())); });
    writer none;
    agree(none, [](std::vector<bytes>&, writer&) {});
    begin_stage();
    if (failure.empty()) return nullptr;
    reader of_it{std::span<const std::byte>(failure)};
    return detail::unpack_exception(of_it);
  }
  /// Sends the value of an object, between rounds: true and the value, or false and why there is none; and
  /// how many are to come to this process. Short ones go together, at the latest when moves are awaited.
  void move(int to, std::uint32_t object, const bytes& value) {
    constexpr std::size_t together = 1 << 16;  // bytes
    writer& w = leaving_[static_cast<std::size_t>(to)];
    if (w.bytes().size() + value.size() > together) send_moves_(to);
    w(object, static_cast<std::uint64_t>(value.size()));
    w.put(value.data(), value.size());
    if (w.bytes().size() >= together) send_moves_(to);
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

  void receive_(bytes message, int from) {
    incoming m(message, from);
    const std::uint32_t stage = m.run();
    if (stage > stage_) {
      early_.emplace_back(from, std::move(message));
      return;
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
      case step_kind::value:
        ++received_;
        if (stage == stage_) mail_.deliver(std::move(message));
        return;
      case step_kind::move:
        ++received_;
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
        ++received_;
        if (stage == stage_) mail_.limit(m.body().get<std::uint64_t>());
        return;
    }
  }
  void send_moves_(int to) {
    bytes& all = leaving_[static_cast<std::size_t>(to)].bytes();
    if (all.empty()) return;
    outgoing m = step_message(step_kind::move, stage_);
    m.body().put(all.data(), all.size());
    send_(to, m.seal(), true);
    all = bytes();
  }
  void send_(int to, bytes message, bool counted) {
    if (counted) ++sent_[static_cast<std::size_t>(to)];
    ++counters_.messages;
    counters_.bytes += message.size();
    by_.send(to, std::move(message));
  }

  transport& by_;
  const idle_wait wait_;
  const step_record& step_;
  step_mail& mail_;
  partition_counters& counters_;
  std::uint32_t stage_ = 1;
  std::vector<std::pair<int, bytes>> early_;  // messages of later stages
  std::vector<std::uint64_t> sent_;           // to each process, without reports and verdicts,
  std::uint64_t received_ = 0;                // and from all
  std::int64_t moves_ = 0;  // that have not come; less than 0: more have come than are awaited
  std::exception_ptr move_failure_;
  std::vector<writer> leaving_;  // moves to each process that have not been sent
  std::optional<bytes> verdict_;
  std::vector<bytes> reports_;  // of process 0, as the next one
  int reported_ = 0;
};

}  // namespace weft::inline WEFT_ABI::remote
