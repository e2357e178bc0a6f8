// SPDX-License-Identifier: BSL-1.0
// Where a thief outside has found nothing, and how long it stays away.
#pragma once

#include <weft/task/strand.hpp>

#include <chrono>
#include <cstddef>

namespace weft::inline WEFT_ABI::sched {

/// An owner forks nothing without a look at the mark of hunger that a visit in vain leaves, and takes it off
/// then. As long as the mark is there, another visit would find nothing new, but interrupt a long body by a
/// heavy fence. What becomes ready because a task ends elsewhere leaves no trace, so nobody stays away for
/// long. *Thread safety*: one thread.
class vain_visits {
 public:
  static constexpr std::chrono::microseconds stays_away{200};

  /// Whether to pass by the strand. A hint.
  bool covers(const strand& s) const noexcept {
    const visit* const last = find_(last_, s);
    // Relaxed: who takes the mark off makes closures that the next visit finds under the lock.
    return last != nullptr && (s.attention.load(base::memory_order_relaxed) & hungry) != 0 &&
           base::clock::now() < last->until;
  }
  /// Nothing was found in the strand, which is marked as hungry.
  void note(const strand& s) noexcept {
    visit* place = find_(last_, s);
    if (place == nullptr) place = &last_[oldest_++ % places];
    *place = {&s, base::clock::now() + stays_away};
  }
  /// A task that was taken has ended: others may be ready.
  void forget() noexcept {
    for (visit& v : last_) v.in = nullptr;
  }

 private:
  struct visit {
    const strand* in = nullptr;
    base::clock::time_point until{};
  };
  template <class Visits>
  static auto find_(Visits& all, const strand& s) noexcept -> decltype(&all[0]) {
    for (auto& v : all)
      if (v.in == &s) return &v;
    return nullptr;
  }

  static constexpr std::size_t places = 8;  // a strand that loses its place is visited sooner
  visit last_[places];
  std::size_t oldest_ = 0;  // the place that is used next
};

}  // namespace weft::inline WEFT_ABI::sched
