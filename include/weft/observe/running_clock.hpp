// SPDX-License-Identifier: BSL-1.0
// How long the pieces of bodies last between one fork, end or sync and the next; the clock is read seldom
// where they are shorter than that takes.
#pragma once

#include <weft/observe/tick_clock.hpp>

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace weft::inline WEFT_ABI::observe {

/// What a thread reads: the counter, how long it has had a processor, in nanoseconds, and which thread it is.
struct thread_counters {
  static std::uint64_t now() noexcept { return ticks(); }
  static std::uint64_t processor_time() noexcept {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
  }
  static pthread_t thread() noexcept { return ::pthread_self(); }
};

/// Lengths are counted in such parts of a tick, since the shortest pieces last only some ticks.
inline constexpr std::uint64_t parts_of_tick = 256;

/// What is known of the pieces of one kind.
struct pace {
  std::uint32_t until_measured = 1;  ///< how many begin until one is measured; 0: that one runs
  std::uint32_t short_ones = 0;      ///< measured in sequence
  std::uint32_t long_ones = 2;       ///< measured since one was not, and before all
  std::uint64_t mean = 0;            ///< in parts of a tick
};

/// Ticks in which the calling thread has a processor, piece by piece. A piece of 100 ns or more is measured.
/// Of a kind whose last pieces were shorter, about one in 64 is, and the others count as their mean. If all
/// that has passed since the last measurement shows that a long piece was missed, that counts for the piece
/// that is measured next. When so much as 1/64 of all time was found in this way, every piece is measured
/// until it is less. A body that goes on on another thread has waited: the piece in which that happened
/// counts nothing, since neither thread knows how long it had a processor in it. *Thread safety*: one thread
/// at a time.
template <class Counters>
class piece_clock {
 public:
  /// Begins, with a rate that was measured. No piece runs.
  void start(double nanoseconds_for_tick) noexcept {
    rate_ = nanoseconds_for_tick;
    cost_ = UINT64_MAX;
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t first = Counters::now(), second = Counters::now();
      cost_ = std::min(cost_, second - first);
    }
    short_ = static_cast<std::uint64_t>(100 / rate_);
    missed_ = late_ = 0;
    missed_time_ = missed_pieces_ = 0;
    begun_ = reached_ = looked_ = Counters::now();
    run_ = Counters::processor_time();
    thread_ = Counters::thread();
  }
  /// A piece of this kind begins. What has passed since the last one ended does not count.
  /// *Cost*: a reading of the counter, if the piece is measured.
  WEFT_ALWAYS_INLINE void go_on(pace& p) noexcept {
    running_ = &p;
    if (--p.until_measured == 0) [[unlikely]]
      begin_measured_();
    else
      ++missed_;
  }
  /// The piece ends. *Returns*: its length in parts of a tick, without the time in which the thread was
  /// not executed, and without what reading the counter takes.
  /// *Cost*: the same; a system call where that took long.
  WEFT_ALWAYS_INLINE std::uint64_t pass() noexcept {
    if (running_->until_measured == 0) [[unlikely]]
      return end_measured_();
    return running_->mean;
  }

 private:
  static constexpr std::uint64_t suspicious_ = 50'000;  ///< ticks in which the thread may have been away
  static constexpr std::uint32_t enough_short_ones_ = 32;

  WEFT_NOINLINE void begin_measured_() noexcept {
    const std::uint64_t now = Counters::now();
    std::uint64_t passed = now - reached_;
    reached_ = now;
    if (moved_(now))
      passed = 0;
    else if (passed >= suspicious_)
      passed -= std::min(passed, away_(now));
    if (missed_ != 0) look_for_long_ones_(passed);
  }
  WEFT_NOINLINE std::uint64_t end_measured_() noexcept {
    const std::uint64_t now = Counters::now();
    std::uint64_t length = now - reached_;
    reached_ = now;
    pace& p = *running_;
    if (moved_(now)) {
      p.until_measured = 1;
      return parts_of_tick * std::exchange(found_, 0);
    }
    length -= std::min(length, length < suspicious_ ? cost_ : away_(now));
    const bool sample = p.short_ones == enough_short_ones_;
    const std::uint64_t counts =
        parts_of_tick * std::min(length, 20 * short_);  // the longer ones are found otherwise
    if (length >= short_)
      p.short_ones = 0, ++p.long_ones;
    else if (!sample)
      ++p.short_ones;
    if (sample)
      p.mean = p.mean - p.mean / 16 + counts / 16;
    else if (p.long_ones != 1 && p.short_ones != 0)  // after a single long one, they are as before
      p.mean = p.short_ones == 1 ? counts : p.mean - p.mean / p.short_ones + counts / p.short_ones;
    p.until_measured = 1;
    if (p.short_ones == enough_short_ones_ && late_ <= (now - begun_) / 64) {
      p.long_ones = 0;
      random_ = random_ * 1'664'525 + 1'013'904'223;
      p.until_measured = 33 + (random_ >> 26);
    }
    return parts_of_tick * (length + std::exchange(found_, 0));
  }
  /// Compares what has passed, with all that lies between the pieces, with what is usual for so many.
  void look_for_long_ones_(std::uint64_t passed) noexcept {
    const std::uint64_t pieces = std::exchange(missed_, 0);
    if (missed_pieces_ == 0) missed_time_ = short_, missed_pieces_ = 1;
    if (passed * missed_pieces_ > 2 * pieces * missed_time_ + 10 * short_ * missed_pieces_) {
      found_ = passed - pieces * missed_time_ / missed_pieces_;
      late_ += found_;
      return;
    }
    missed_time_ += passed;
    missed_pieces_ += pieces;
    if (missed_pieces_ > 4096) missed_time_ /= 2, missed_pieces_ /= 2;
  }
  /// Whether the caller is another thread than the last one; then begins anew with it.
  bool moved_(std::uint64_t now) noexcept {
    const auto here = Counters::thread();
    if (here == thread_) [[likely]]
      return false;
    thread_ = here;
    looked_ = now;
    run_ = Counters::processor_time();
    return true;
  }
  /// *Returns*: ticks since the last call in which the thread was not executed.
  std::uint64_t away_(std::uint64_t now) noexcept {
    const std::uint64_t run = Counters::processor_time();
    const auto ran = static_cast<std::uint64_t>(static_cast<double>(run - run_) / rate_);
    const std::uint64_t all = now - looked_;
    looked_ = now;
    run_ = run;
    return all > ran ? all - ran : 0;
  }

  pace* running_ = nullptr;
  std::uint64_t missed_ = 0;  ///< pieces since the counter was read last
  std::uint64_t reached_ = 0;
  std::uint64_t found_ = 0;          ///< ticks of long pieces that were missed, not charged yet,
  std::uint64_t late_ = 0;           ///< and of all of them
  std::uint64_t missed_time_ = 0;    ///< of the last pieces that were not measured, with all between them,
  std::uint64_t missed_pieces_ = 0;  ///< and how many they were
  std::uint32_t random_ = 1;
  double rate_ = 1;
  std::uint64_t short_ = 0;  ///< shorter pieces need not be measured
  std::uint64_t cost_ = 0;   ///< of a reading
  std::uint64_t begun_ = 0;
  std::uint64_t looked_ = 0;               ///< when the time of the processor was read last,
  std::uint64_t run_ = 0;                  ///< in nanoseconds,
  decltype(Counters::thread()) thread_{};  ///< of this thread
};

/// By the counters of the calling thread.
using running_clock = piece_clock<thread_counters>;

}  // namespace weft::inline WEFT_ABI::observe
