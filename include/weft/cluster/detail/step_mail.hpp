// SPDX-License-Identifier: BSL-1.0
// Where the tasks of a round meet the messages: values that have come, values that are awaited, values to be
// sent, and what has failed.
#pragma once

#include <weft/base/platform.hpp>
#include <weft/cluster/detail/repeatable.hpp>
#include <weft/cluster/detail/step_message.hpp>
#include <weft/flow/completion.hpp>

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
/// Who may touch it when: everything under the mutex, but for the constants of a round, which the thread that
/// serves sets when no task runs. Bodies that are awaited are ended outside the mutex.
class step_mail {
 public:
  explicit step_mail(transport& by) noexcept : by_(by) {}
  step_mail(const step_mail&) = delete;
  step_mail& operator=(const step_mail&) = delete;

  /// A round begins. *Requires*: no task runs.
  void begin(std::uint32_t stage, std::uint32_t tasks, std::size_t channels) {
    stage_ = stage;
    tasks_ = tasks;
    channels_ = channels;
    limit_ = none;
    told_ = none;
    failure_ = {none, nullptr};
    arrived_.clear();
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
    bytes message;
    {
      const std::lock_guard hold(mutex_);
      if (a.writer >= limit_) throw abandoned();
      const auto found = arrived_.find(key_(iteration, channel));
      if (found == arrived_.end()) {
        waiting_.emplace(key_(iteration, channel), waiting{a, this_task::hold()});
        // Relaxed: a hint.
        waits_.store(static_cast<unsigned>(waiting_.size()), base::memory_order_relaxed);
        by_.wake();
        return;
      }
      message = std::move(found->second);
      arrived_.erase(found);
    }
    unpack_(message, a);
  }
  /// A value has come. *Thread safety*: the thread that serves. *Throws*: weft::error, std::bad_alloc.
  void deliver(bytes message) {
    reader r = body_(message);
    const auto iteration = r.get<std::uint64_t>();
    const auto channel = r.get<std::uint32_t>();
    std::optional<waiting> w;
    {
      const std::lock_guard hold(mutex_);
      const auto found = waiting_.find(key_(iteration, channel));
      if (found == waiting_.end()) {
        arrived_.emplace(key_(iteration, channel), std::move(message));
        return;
      }
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
  /// How many tasks wait for a value, as a hint.
  unsigned waits() const noexcept { return waits_.load(base::memory_order_relaxed); }

  /// A receiver and the channel to it.
  struct target {
    int to;
    std::uint32_t channel;
  };
  /// The body of the task that sends. *Throws*: what packing throws; weft::error for a value that is too
  /// long. *Returns*: the bytes of the value.
  std::size_t send(std::uint64_t iteration, const std::vector<target>& to, const void* object,
                   const value_kind& kind) {
    writer value;
    value.limit(longest_value(by_));
    kind.pack(object, value);
    std::vector<std::pair<int, bytes>> packed;
    for (const target& t : to) {
      outgoing m = step_message(step_kind::value, stage_);
      m.body()(iteration, t.channel);
      m.body().put(value.bytes().data(), value.bytes().size());
      packed.emplace_back(t.to, m.seal());
    }
    {
      const std::lock_guard hold(mutex_);
      for (auto& p : packed) outbox_.push_back(std::move(p));
    }
    by_.wake();
    return value.bytes().size();
  }
  std::vector<std::pair<int, bytes>> take_outbox() {
    const std::lock_guard hold(mutex_);
    return std::exchange(outbox_, {});
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
      std::optional<waiting> w;
      {
        const std::lock_guard hold(mutex_);
        if (place < limit_) limit_ = place;
        for (auto i = waiting_.begin(); i != waiting_.end() && !w; ++i)
          if (i->second.of.writer >= limit_) {
            w.emplace(std::move(i->second));
            waiting_.erase(i);
            break;
          }
        waits_.store(static_cast<unsigned>(waiting_.size()), base::memory_order_relaxed);
      }
      if (!w) return;
      w->open.fail(std::make_exception_ptr(abandoned()));
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

  transport& by_;
  std::uint32_t stage_ = 0, tasks_ = 0;
  std::size_t channels_ = 0;
  mutable base::mutex mutex_;
  std::unordered_map<std::uint64_t, bytes> arrived_;
  std::unordered_map<std::uint64_t, waiting> waiting_;
  std::vector<std::pair<int, bytes>> outbox_;
  std::pair<std::uint64_t, std::exception_ptr> failure_{none, nullptr};
  std::uint64_t limit_ = none, told_ = none;
  base::atomic<unsigned> waits_{0};
};

}  // namespace weft::inline WEFT_ABI::remote
