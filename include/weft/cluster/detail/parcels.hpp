// SPDX-License-Identifier: BSL-1.0
// Long messages, in parts that the receiver asks for.
#pragma once

#include <weft/cluster/detail/message.hpp>
#include <weft/cluster/options.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>

namespace weft::inline WEFT_ABI::remote {

/// The tasks of which a message is about, by their numbers where they come from.
struct task_range {
  std::uint64_t first = 0, last = 0;
};

/// Sends messages. One longer than a part is announced (`offer`). The receiver makes room for one of them at
/// a time, and asks for its parts, a few ahead; so nobody receives more than there is room for. Where memory
/// is refused, neither side keeps anything, and both are told. Runs and steps use it, each with a number in
/// the place of the run. *Thread safety*: the thread that serves.
class parcels {
 public:
  enum class fate : std::uint8_t {
    open,          ///< there is more to come
    complete,      ///< it is there
    refused_here,  ///< there is no memory for it
    refused_there  ///< it was of this process, and the receiver had none
  };
  /// What a long message has come to.
  struct outcome {
    parcels::fate state = parcels::fate::open;
    remote::kind of{};
    int from = -1;
    task_range about;
    std::size_t size = 0;
    bytes message;
  };

  /// `note`: called with the receiver of each message that is sent, of whatever kind.
  parcels(transport& by, std::size_t part_bytes, cluster_counters& counters,
          std::function<void(int)> note = {}) noexcept
      : by_(by), part_bytes_(part_bytes), counters_(counters), note_(std::move(note)) {}
  parcels(const parcels&) = delete;
  parcels& operator=(const parcels&) = delete;

  /// A run begins.
  void begin(std::uint32_t run) noexcept {
    run_ = run;
    kept_.clear();
    offered_.clear();
  }
  /// Sends a message of this kind. `left`: as transport::send calls it; also if the message is refused.
  /// *Throws*: weft::error, std::bad_alloc.
  void send(int to, kind of, bytes message, task_range about = {}, std::function<void()> left = {}) {
    if (message.size() <= part_bytes_) return send_(to, std::move(message), std::move(left));
    ++counters_.long_messages;
    announce(to, of, std::move(message), about, std::move(left));
  }
  /// The same, but the receiver has to ask for the message, whatever its length.
  void announce(int to, kind of, bytes message, task_range about, std::function<void()> left) {
    const std::uint64_t number = ++last_number_, size = message.size();
    kept_.emplace(number, kept{std::move(message), of, about, to, std::move(left)});
    outgoing m(kind::offer, run_);
    m.body()(number, size, static_cast<std::uint8_t>(of), about.first, about.last);
    send_(to, m.seal());
  }
  /// Whether a message that has come is of this class.
  static bool is_one(kind k) noexcept {
    return k == kind::offer || k == kind::more || k == kind::part || k == kind::refused;
  }
  /// Does what it asks for. *Throws*: weft::error, std::bad_alloc.
  outcome handle(incoming& m) {
    const auto number = m.body().get<std::uint64_t>();
    switch (m.kind()) {
      case kind::offer:
        return take_offer_(m, number);
      case kind::more:
        send_part_(m, number);
        return {};
      case kind::part:
        return take_part_(m, number);
      default:
        return take_refusal_(m, number);
    }
  }
  /// Whether none of this process's long messages waits here any more: they have gone, or were refused.
  bool all_settled() const noexcept { return kept_.empty(); }
  /// Whether one of them is for that process.
  bool sends_to(int process) const noexcept {
    return std::any_of(kept_.begin(), kept_.end(), [=](const auto& k) { return k.second.to == process; });
  }
  /// Whether a long message of this kind is on its way to this process.
  bool awaits(kind of) const noexcept {
    return std::any_of(offered_.begin(), offered_.end(), [=](const offered& o) { return o.of == of; });
  }
  /// Makes room for the next long message, if its turn has come. To be called again and again.
  outcome begin_next() {
    if (offered_.empty() || offered_.front().begun) return {};
    return begin_front_();
  }
  /// The same, out of turn: for the one with the least number that `rank(kind, about, size)` returns, an
  /// optional; nothing means not yet. *Returns*: with fate::open also which one it is; of size 0 if it is
  /// none.
  template <class Rank>
  outcome begin_next(const Rank& rank) {
    if (offered_.empty() || offered_.front().begun) return {};
    auto best = offered_.end();
    std::uint64_t least = 0;
    for (auto o = offered_.begin(); o != offered_.end(); ++o)
      if (const std::optional<std::uint64_t> r = rank(o->of, o->about, o->size);
          r && (best == offered_.end() || *r < least)) {
        best = o;
        least = *r;
      }
    if (best == offered_.end()) return {};
    if (best != offered_.begin()) std::rotate(offered_.begin(), best, best + 1);
    return begin_front_();
  }
  /// Whether there are long messages of others that are not complete.
  bool any_offered() const noexcept { return !offered_.empty(); }

 private:
  static constexpr int parts_ahead = 2;
  /// A long message of this process.
  struct kept {
    bytes message;
    kind of;
    task_range about;
    int to;
    std::function<void()> left;
    std::size_t sent = 0;
  };
  /// One of another process.
  struct offered {
    int from;
    std::uint64_t number;
    std::size_t size;
    kind of;
    task_range about;
    bool begun = false;
    std::size_t asked = 0, come = 0;
    bytes message;
  };

  outcome begin_front_() {
    offered& next = offered_.front();
    try {
      if (next.size > next.message.max_size()) throw std::bad_alloc();
      next.message.resize(next.size);
    } catch (const std::bad_alloc&) {
      ++counters_.memory_refused;
      outgoing m(kind::refused, run_);
      m.body()(next.number);
      send_(next.from, m.seal());
      const outcome refused{fate::refused_here, next.of, next.from, next.about, next.size, {}};
      offered_.pop_front();
      return refused;
    }
    next.begun = true;
    for (int ahead = 0; ahead < parts_ahead; ++ahead) ask_(next);
    return {fate::open, next.of, next.from, next.about, next.size, {}};
  }
  outcome take_offer_(incoming& m, std::uint64_t number) {
    std::uint64_t size = 0;
    std::uint8_t of = 0;
    task_range about;
    m.body()(size, of, about.first, about.last);
    offered_.push_back(
        {m.from(), number, static_cast<std::size_t>(size), static_cast<kind>(of), about, false, 0, 0, {}});
    return {};
  }
  void ask_(offered& o) {
    if (o.asked >= o.size) return;
    outgoing m(kind::more, run_);
    m.body()(o.number, static_cast<std::uint64_t>(o.asked));
    o.asked += std::min(part_bytes_, o.size - o.asked);
    send_(o.from, m.seal());
  }
  void send_part_(incoming& m, std::uint64_t number) {
    const auto at = m.body().get<std::uint64_t>();
    const auto found = kept_.find(number);
    if (found == kept_.end() || at >= found->second.message.size()) reader::refuse();
    kept& k = found->second;
    const std::size_t size = std::min(part_bytes_, k.message.size() - static_cast<std::size_t>(at));
    outgoing part(kind::part, run_);
    part.body()(number, at);
    part.body().put(k.message.data() + at, size);
    k.sent += size;
    if (k.sent != k.message.size()) return send_(m.from(), part.seal());
    const std::function<void()> left = std::move(k.left);
    kept_.erase(found);
    send_(m.from(), part.seal(), left);
  }
  outcome take_refusal_(incoming& m, std::uint64_t number) {
    const auto found = kept_.find(number);
    if (found == kept_.end()) reader::refuse();
    const kept k = std::move(found->second);
    kept_.erase(found);
    if (k.left) k.left();
    return {fate::refused_there, k.of, m.from(), k.about, k.message.size(), {}};
  }
  outcome take_part_(incoming& m, std::uint64_t number) {
    const auto at = m.body().get<std::uint64_t>();
    const std::size_t size = m.body().left();
    if (offered_.empty()) reader::refuse();
    offered& o = offered_.front();
    if (!o.begun || o.from != m.from() || o.number != number || at > o.size || size > o.size - at)
      reader::refuse();
    m.body().take(o.message.data() + at, size);
    o.come += size;
    ask_(o);
    if (o.come != o.size) return {};
    outcome done{fate::complete, o.of, o.from, o.about, o.size, std::move(o.message)};
    offered_.pop_front();
    return done;
  }
  void send_(int to, bytes message, std::function<void()> left = {}) {
    ++counters_.messages;
    counters_.bytes += message.size();
    if (note_) note_(to);
    by_.send(to, std::move(message), std::move(left));
  }

  transport& by_;
  const std::size_t part_bytes_;
  cluster_counters& counters_;
  const std::function<void(int)> note_;
  std::uint32_t run_ = 0;
  std::uint64_t last_number_ = 0;
  std::unordered_map<std::uint64_t, kept> kept_;
  std::deque<offered> offered_;  // in the order in which they are received
};

}  // namespace weft::inline WEFT_ABI::remote
