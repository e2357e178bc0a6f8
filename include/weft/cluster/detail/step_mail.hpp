// SPDX-License-Identifier: BSL-1.0
// Where the tasks of a round meet the messages: values that have come, values that are awaited, values to be
// sent, and what has failed.
#pragma once

#include <weft/base/platform.hpp>
#include <weft/cluster/detail/repeatable.hpp>
#include <weft/cluster/detail/step_message.hpp>
#include <weft/flow/completion.hpp>

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// Ends a task for whose value another process has no reason any more. It never leaves a run: the exception
/// because of which that is so does.
struct abandoned {};

/// Places in the serial order of a round: the iteration, then the task; behind the last task of an iteration
/// is one more. A value is named by the iteration in which it was written, and by its channel.
///
/// Values that have come before a task needs them are ahead. Some come unasked, within the credit that each
/// sender has here; who sends another one is told when the value before it in its channel is not ahead any
/// more, or there is room.
///
/// Who may touch it when: everything under the mutex, but for the constants of a round, which the thread that
/// serves sets when no task runs. Bodies that are awaited are ended outside the mutex.
class step_mail {
 public:
  explicit step_mail(transport& by) noexcept : by_(by) {}
  step_mail(const step_mail&) = delete;
  step_mail& operator=(const step_mail&) = delete;

  /// How many bytes may be ahead: that were asked for, and that each sender sends unasked; and how many may
  /// wait here to leave.
  struct room {
    std::size_t asked = SIZE_MAX, unasked = SIZE_MAX, leaving = SIZE_MAX;
  };
  /// Of the next rounds; without a limit at first. *Requires*: no task runs.
  void make(const room& r) noexcept { room_ = r; }
  /// A round begins. *Requires*: no task runs.
  void begin(std::uint32_t stage, std::uint32_t tasks, std::size_t channels) {
    stage_ = stage;
    tasks_ = tasks;
    channels_ = channels;
    limit_ = none;
    told_ = none;
    failure_ = {none, nullptr};
    arrived_.clear();
    leaving_.clear();
    used_.assign(static_cast<std::size_t>(by_.size()), 0);
    asked_.assign(channels, 0);
    bytes_asked_ = bytes_unasked_ = bytes_leaving_ = 0;
  }
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  /// Constant during a round.
  std::uint64_t place(std::uint64_t iteration, std::uint32_t task) const noexcept {
    return iteration * (std::uint64_t{tasks_} + 1) + task;
  }

  /// An object that waits for its value.
  struct awaiting {
    void* object;
    const value_kind* kind;
    std::uint64_t writer, reader;  ///< places of the tasks that write and need the value
  };
  /// The body of the task that receives: puts the value into the object, or keeps the task open until it has
  /// come. *Throws*: abandoned; std::bad_alloc, what unpacking throws.
  void receive(std::uint64_t iteration, std::uint32_t channel, const awaiting& a) {
    arrived value;
    bool serve = false;
    {
      const std::lock_guard hold(mutex_);
      if (a.writer >= limit_) throw abandoned();
      const auto found = arrived_.find(key_(iteration, channel));
      if (found == arrived_.end()) {
        waiting_.emplace(key_(iteration, channel), waiting{a, this_task::hold()});
        // Relaxed: a hint.
        waits_.store(static_cast<unsigned>(waiting_.size()), base::memory_order_relaxed);
        make_room_();
        by_.wake();
        return;
      }
      value = std::move(found->second);
      arrived_.erase(found);
      if (value.from != asked_for) bytes_unasked_ -= value.message.size();
      serve = use_(channel, value.from, value.message.size());
    }
    if (serve) by_.wake();
    if (value.refused) std::rethrow_exception(value.refused);
    unpack_(value.message, a);
  }
  static constexpr int asked_for = -1;
  /// A value has come: `from` this process, or it was asked_for. *Thread safety*: the thread that serves.
  /// *Throws*: weft::error, std::bad_alloc.
  void deliver(bytes message, int from) {
    reader r = body_(message);
    const auto iteration = r.get<std::uint64_t>();
    const auto channel = r.get<std::uint32_t>();
    if (channel >= channels_) reader::refuse();
    std::optional<waiting> w;
    {
      const std::lock_guard hold(mutex_);
      const auto found = waiting_.find(key_(iteration, channel));
      if (found == waiting_.end()) {
        if (from != asked_for) bytes_unasked_ += message.size();
        note_ahead_();
        arrived_.emplace(key_(iteration, channel), arrived{std::move(message), from, nullptr});
        return;
      }
      use_(channel, from, message.size());
      w.emplace(std::move(found->second));
      waiting_.erase(found);
      waits_.store(static_cast<unsigned>(waiting_.size()), base::memory_order_relaxed);
    }
    try {
      unpack_(message, w->of);
      w->open.complete();
    } catch (...) {
      fail(w->of.reader, std::current_exception());
      w->open.fail(std::current_exception());
    }
  }
  /// There is no memory for a value that was announced: the task that needs it fails.
  void refuse(std::uint64_t iteration, std::uint32_t channel, const std::exception_ptr& why) {
    std::optional<waiting> w;
    {
      const std::lock_guard hold(mutex_);
      const auto found = waiting_.find(key_(iteration, channel));
      if (found == waiting_.end()) {
        ++asked_.at(channel);
        arrived_.emplace(key_(iteration, channel), arrived{{}, asked_for, why});
        return;
      }
      w.emplace(std::move(found->second));
      waiting_.erase(found);
      waits_.store(static_cast<unsigned>(waiting_.size()), base::memory_order_relaxed);
    }
    fail(w->of.reader, why);
    w->open.fail(why);
  }
  /// *Returns*: which place a value of this length has among those that could be asked for now; nothing if it
  /// has to wait. One for which a task waits is always welcome, and so is the first of its channel, since who
  /// sends it may wait before the task here that needs it can begin.
  std::optional<std::uint64_t> may_ask(std::uint64_t iteration, std::uint32_t channel, std::size_t size) {
    const std::lock_guard hold(mutex_);
    const bool welcome = asked_.at(channel) == 0 ||
                         size <= room_.asked - std::min(room_.asked, bytes_asked_) ||
                         waiting_.contains(key_(iteration, channel));
    if (!welcome) return std::nullopt;
    return key_(iteration, channel);
  }
  /// The value is asked for.
  void ask(std::uint32_t channel, std::size_t size) {
    const std::lock_guard hold(mutex_);
    ++asked_.at(channel);
    bytes_asked_ += size;
    note_ahead_();
  }
  /// Whether more could be asked for than at the last call.
  bool take_room() noexcept {
    // Relaxed: who sets it wakes the thread that serves.
    return more_room_.load(base::memory_order_relaxed) &&
           more_room_.exchange(false, base::memory_order_relaxed);
  }
  /// Others wait until there is room, or do not. A hint: relaxed.
  void want_room(bool some) noexcept { room_wanted_.store(some, base::memory_order_relaxed); }
  /// How many bytes were ahead at most, in any round.
  std::size_t most_ahead() const {
    const std::lock_guard hold(mutex_);
    return most_ahead_;
  }
  /// How many tasks wait for a value, as a hint.
  unsigned waits() const noexcept { return waits_.load(base::memory_order_relaxed); }

  /// A receiver and the channel to it.
  struct target {
    int to;
    std::uint32_t channel;
  };
  /// A value for another process.
  struct departure {
    int to;
    std::uint64_t iteration;
    std::uint32_t channel;
    bytes message;
    std::uint64_t number;  ///< for left()
  };
  /// The body of the task that sends what a task of the place `writer` has written. Where more waits to leave
  /// than there is room for, it keeps the task open until this value has left. *Throws*: abandoned; what
  /// packing throws, std::bad_alloc. *Returns*: the bytes of the value.
  std::size_t send(std::uint64_t iteration, std::uint64_t writer_place, const std::vector<target>& to,
                   const void* object, const value_kind& kind) {
    writer value;
    kind.pack(object, value);
    std::vector<departure> packed;
    std::size_t size = 0;
    for (const target& t : to) {
      outgoing m = step_message(step_kind::value, stage_);
      m.body()(iteration, t.channel);
      m.body().put(value.bytes().data(), value.bytes().size());
      packed.push_back({t.to, iteration, t.channel, m.seal(), 0});
      size += packed.back().message.size();
    }
    {
      const std::lock_guard hold(mutex_);
      if (writer_place >= limit_) throw abandoned();
      leaving& l = leaving_[++last_number_];
      l = {writer_place, to.size(), size, std::nullopt};
      bytes_leaving_ += size;
      if (bytes_leaving_ > room_.leaving) l.open.emplace(this_task::hold());
      for (departure& d : packed) {
        d.number = last_number_;
        outbox_.push_back(std::move(d));
      }
    }
    by_.wake();
    return value.bytes().size();
  }
  std::vector<departure> take_outbox() {
    const std::lock_guard hold(mutex_);
    return std::exchange(outbox_, {});
  }
  /// A departure of this number needs no memory of this process any more.
  void left(std::uint64_t number) noexcept {
    std::optional<completion> open;
    {
      const std::lock_guard hold(mutex_);
      const auto found = leaving_.find(number);  // not of an earlier round
      if (found == leaving_.end() || --found->second.targets != 0) return;
      bytes_leaving_ -= found->second.size;
      open = std::move(found->second.open);
      leaving_.erase(found);
    }
    if (open) open->complete();
  }
  /// How much of what others have sent was used, by sender: as much as they are to be told by now.
  std::vector<std::pair<int, std::uint64_t>> take_used() {
    if (!used_due_.load(base::memory_order_relaxed)) return {};  // relaxed, as take_room()
    used_due_.store(false, base::memory_order_relaxed);
    std::vector<std::pair<int, std::uint64_t>> due;
    const std::lock_guard hold(mutex_);
    for (std::size_t p = 0; p < used_.size(); ++p)
      if (is_due_(used_[p])) due.emplace_back(static_cast<int>(p), std::exchange(used_[p], 0));
    return due;
  }

  /// Something of this process has failed. What comes later in the serial order, or at the same place, sends
  /// nothing any more. *Thread safety*: any thread.
  void fail(std::uint64_t place, std::exception_ptr why) noexcept {
    {
      const std::lock_guard hold(mutex_);
      if (place < failure_.first || failure_.second == nullptr) failure_ = {place, std::move(why)};
    }
    limit(place);
    by_.wake();
  }
  /// Something has failed, in whatever process: nobody waits for what is written there or later.
  void limit(std::uint64_t place) noexcept {
    for (;;) {
      std::optional<completion> open;
      {
        const std::lock_guard hold(mutex_);
        if (place < limit_) limit_ = place;
        for (auto i = waiting_.begin(); i != waiting_.end() && !open; ++i)
          if (i->second.of.writer >= limit_) {
            open.emplace(std::move(i->second.open));
            waiting_.erase(i);
            break;
          }
        for (auto i = leaving_.begin(); i != leaving_.end() && !open; ++i)
          if (i->second.open && i->second.writer >= limit_) open = std::exchange(i->second.open, {});
        waits_.store(static_cast<unsigned>(waiting_.size()), base::memory_order_relaxed);
      }
      if (!open) return;
      open->fail(std::make_exception_ptr(abandoned()));
    }
  }
  /// The place of a failure of this process of which the others have not been told; none.
  std::uint64_t untold_failure() noexcept {
    const std::lock_guard hold(mutex_);
    if (failure_.second == nullptr || failure_.first >= told_) return none;
    return told_ = failure_.first;
  }
  /// The first failure of this process, and its place; a null pointer if there is none.
  std::pair<std::uint64_t, std::exception_ptr> failure() const {
    const std::lock_guard hold(mutex_);
    return failure_;
  }
  /// Whether somebody has failed.
  bool limited() const {
    const std::lock_guard hold(mutex_);
    return limit_ != none;
  }

 private:
  struct waiting {
    awaiting of;
    completion open;
  };
  /// A value that has come before its task.
  struct arrived {
    bytes message;
    int from = asked_for;  ///< who has sent it unasked
    std::exception_ptr refused;
  };
  /// A value that has not left altogether.
  struct leaving {
    std::uint64_t writer = 0;  ///< the place of the task
    std::size_t targets = 0, size = 0;
    std::optional<completion> open;  ///< of the task that sends it, if that has to wait
  };
  std::uint64_t key_(std::uint64_t iteration, std::uint32_t channel) const noexcept {
    return iteration * channels_ + channel;
  }
  /// What is behind the kind. The message was checked when it came.
  static reader body_(const bytes& message) {
    incoming m(message, 0);
    m.body().get<step_kind>();
    return m.body();
  }
  static void unpack_(const bytes& message, const awaiting& a) {
    reader r = body_(message);
    r.get<std::uint64_t>();
    r.get<std::uint32_t>();
    a.kind->unpack(a.object, r);
  }

  bool is_due_(std::uint64_t used) const noexcept { return used != 0 && used >= room_.unasked / 2; }
  /// A value of this length, from there, is not ahead any more. *Returns*: whether the thread that serves has
  /// to do something about it.
  bool use_(std::uint32_t channel, int from, std::size_t size) noexcept {
    if (from != asked_for) {
      if (!is_due_(used_[static_cast<std::size_t>(from)] += size)) return false;
      used_due_.store(true, base::memory_order_relaxed);
      return true;
    }
    --asked_[channel];
    bytes_asked_ -= size;
    return make_room_();
  }
  bool make_room_() noexcept {
    more_room_.store(true, base::memory_order_relaxed);
    return room_wanted_.load(base::memory_order_relaxed);
  }
  void note_ahead_() noexcept { most_ahead_ = std::max(most_ahead_, bytes_asked_ + bytes_unasked_); }

  transport& by_;
  std::uint32_t stage_ = 0, tasks_ = 0;
  std::size_t channels_ = 0;
  room room_;
  mutable base::mutex mutex_;
  std::unordered_map<std::uint64_t, arrived> arrived_;
  std::unordered_map<std::uint64_t, waiting> waiting_;
  std::vector<departure> outbox_;
  std::unordered_map<std::uint64_t, leaving> leaving_;  // by number
  std::uint64_t last_number_ = 0;
  std::vector<std::uint64_t> used_;   // bytes that came unasked, by sender, who has not been told
  std::vector<std::uint32_t> asked_;  // how many values of each channel were asked for, and are not used
  std::size_t bytes_asked_ = 0, bytes_unasked_ = 0, bytes_leaving_ = 0, most_ahead_ = 0;
  std::pair<std::uint64_t, std::exception_ptr> failure_{none, nullptr};
  std::uint64_t limit_ = none, told_ = none;
  base::atomic<unsigned> waits_{0};
  base::atomic<bool> used_due_{false}, more_room_{false}, room_wanted_{false};
};

}  // namespace weft::inline WEFT_ABI::remote
