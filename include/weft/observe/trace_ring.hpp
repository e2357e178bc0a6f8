// SPDX-License-Identifier: BSL-1.0
// The last records of one worker, as many as there is room for: one thread writes, any thread reads.
#pragma once

#include <weft/base/atomic.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace weft::inline WEFT_ABI::observe {

/// What a record tells of.
enum class trace_kind : std::uint8_t {
  task,      ///< a body, or a part of it between two waits; `more`: when and where it was forked, if stolen
  steal,     ///< a thief's search that found a task; `more`: the same
  wait,      ///< of a strand that goes on here; `more`: on which worker it began, and for what (wait_place)
  sleep,     ///< of a worker
  search,    ///< for work, in vain so far
  level,     ///< of `more`: the strand's stealable (high half) and pending (low half) tasks
  transfer,  ///< between memory and a file; `more`: bytes
  memory,    ///< of the process, resident; `more`: bytes
};

/// One record. All of them have a beginning and a length, so that each can be understood without others.
struct trace_record {
  std::uint64_t begin;   ///< in ticks
  std::uint64_t length;  ///< in ticks, less than 2^56
  trace_kind kind;
  const char* name;  ///< kept by the trace
  std::uint64_t more;
};

/// How many bytes each takes in a ring.
inline constexpr std::size_t trace_record_bytes = 4 * sizeof(std::uint64_t);

/// A bounded ring that grows, piece by piece, until it is full; then each record replaces the oldest.
///
/// Who may touch it when:
///  1. One thread adds.
///  2. Any thread reads, also while that goes on: words are atomic, and what was replaced meanwhile is told
///     by `added`, which grows before the words of the next record are written.
class trace_ring {
 public:
  /// Room for so many records at least.
  explicit trace_ring(std::size_t records)
      : pieces_(new base::atomic<piece*>[(records + per_piece - 1) / per_piece] {}),
        room_((records + per_piece - 1) / per_piece * per_piece) {}
  trace_ring(const trace_ring&) = delete;
  trace_ring& operator=(const trace_ring&) = delete;
  ~trace_ring() {
    for (std::size_t i = 0; i < room_ / per_piece; ++i)
      delete pieces_[i].load(base::memory_order_relaxed);  // nobody adds any more
  }

  /// *Cost*: some nanoseconds. Without memory for another piece the record is lost.
  void add(const trace_record& r) noexcept {
    std::uint64_t n = added_.load(base::memory_order_relaxed);  // a single writer, also below
    base::atomic<piece*>* const place = &pieces_[n % room_ / per_piece];
    piece* p = place->load(base::memory_order_relaxed);
    if (p == nullptr) [[unlikely]] {
      p = new (std::nothrow) piece;
      if (p == nullptr) {
        lost_.store(lost_.load(base::memory_order_relaxed) + 1, base::memory_order_relaxed);  // a statistic
        return;
      }
      place->store(p, base::memory_order_release);  // pairs with read
    }
    words& w = p->all[n % per_piece];
    // Release, each: who reads the word finds `added` at least where it stands now; pairs with read.
    w[0].store(r.begin, base::memory_order_release);
    w[1].store(r.length << 8 | static_cast<std::uint64_t>(r.kind), base::memory_order_release);
    w[2].store(reinterpret_cast<std::uintptr_t>(r.name), base::memory_order_release);
    w[3].store(r.more, base::memory_order_release);
    added_.store(n + 1, base::memory_order_release);  // pairs with read
  }

  /// How many records were added so far, those included that are gone.
  std::uint64_t added() const noexcept { return added_.load(base::memory_order_acquire); }  // pairs with add
  /// How many found no memory.
  std::uint64_t lost() const noexcept { return lost_.load(base::memory_order_relaxed); }  // a statistic
  /// The number of the oldest record that is left; the one before it may just be replaced.
  std::uint64_t oldest() const noexcept {
    const std::uint64_t n = added();
    return n >= room_ ? n - room_ + 1 : 0;
  }
  /// *Requires*: `number` is less than added(). *Returns*: whether the record is still there.
  bool read(std::uint64_t number, trace_record& into) const noexcept {
    const piece* const p = pieces_[number % room_ / per_piece].load(base::memory_order_acquire);  // see add
    if (p == nullptr) return false;
    const words& w = p->all[number % per_piece];
    std::array<std::uint64_t, 4> copy{};
    for (std::size_t i = 0; i < copy.size(); ++i) copy[i] = w[i].load(base::memory_order_acquire);  // see add
    // While record `number + room_` is being written, `added` is just that.
    if (added() >= number + room_) return false;
    into = {copy[0], copy[1] >> 8, static_cast<trace_kind>(copy[1] & 0xff),
            reinterpret_cast<const char*>(static_cast<std::uintptr_t>(copy[2])), copy[3]};
    return true;
  }

 private:
  static constexpr std::size_t per_piece = 1024;
  using words = std::array<base::atomic<std::uint64_t>, 4>;
  struct piece {
    std::array<words, per_piece> all{};
  };

  std::unique_ptr<base::atomic<piece*>[]> pieces_;
  const std::size_t room_;
  alignas(64) base::atomic<std::uint64_t> added_{0};
  base::atomic<std::uint64_t> lost_{0};
};

}  // namespace weft::inline WEFT_ABI::observe
