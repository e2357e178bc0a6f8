// SPDX-License-Identifier: BSL-1.0
// How somebody gets into a strand that another worker executes, and out again.
#pragma once

#include <weft/task/strand.hpp>

namespace weft::inline WEFT_ABI::sched {

/// A visit to a running strand: between answered(), or a heavy fence, and the end of this object its owner
/// neither claims closures nor reuses the memory of frames (strand, rule 4; sched/README.md, "How a thief
/// gets in"). *Requires*: the caller holds strand::mutex, and the strand is executed.
class steal_entry {
 public:
  /// Tells the owner, and waits some time for its answer.
  explicit steal_entry(strand& s) noexcept : strand_(s) {
    using namespace base;
    // The bit comes first, then the number: see attend. Sequentially consistent for the fenced variant of
    // owner_store.
    s.attention.fetch_or(thief_inside, memory_order_seq_cst);
    number_ = s.entry.load(memory_order_relaxed) + 1;  // only visitors write it, under the lock
    s.entry.store(number_, memory_order_release);      // pairs with attend
    wait(WEFT_ANSWER_LOOKS);
  }
  steal_entry(const steal_entry&) = delete;
  steal_entry& operator=(const steal_entry&) = delete;
  /// Lets the owner go on.
  ~steal_entry() {
    // Release pairs with the acquire in attend: the owner sees what was done inside.
    strand_.attention.fetch_and(static_cast<std::uint8_t>(~thief_inside), base::memory_order_release);
  }

  /// Looks for the owner's answer at most so many times more. *Returns*: answered().
  bool wait(int looks) noexcept {
    for (; looks > 0 && !answered_; --looks) {
      // Acquire pairs with the release in attend.
      answered_ = strand_.answer.load(base::memory_order_acquire) == number_;
      if (!answered_) base::pause();
    }
    return answered_;
  }
  /// Whether the owner stands still.
  bool answered() const noexcept { return answered_; }

 private:
  strand& strand_;
  std::uint32_t number_;
  bool answered_ = false;
};

}  // namespace weft::inline WEFT_ABI::sched
