// SPDX-License-Identifier: BSL-1.0
// A range of indices in adjacent pieces, from which idle workers take halves; each piece keeps what it has
// found.
#pragma once

#include <weft/algorithms/detail/pace.hpp>
#include <weft/algorithms/detail/team.hpp>
#include <weft/base/atomic.hpp>
#include <weft/flow/interval.hpp>
#include <weft/flow/steal_function.hpp>

#include <cstddef>
#include <memory>

namespace weft::inline WEFT_ABI::algorithms {

/// Indices [0, n) in pieces. `body(found, first, last)` is called for groups of consecutive indices, those of
/// one piece in their order and with the same `found`, which begins as Found(). It returns whether nothing
/// behind these indices matters any more.
///
/// Who may touch it when: what a piece has found belongs to the task that works on it, its `next` to the
/// steal function of this task; after run() both belong to the caller.
template <class Found, class Body>
class pieces {
 public:
  pieces(std::size_t n, Body body) : end_(n), n_(n), body_(std::move(body)) {}
  pieces(const pieces&) = delete;
  pieces& operator=(const pieces&) = delete;
  ~pieces() {
    while (first_.next) first_.next = std::move(first_.next->next);  // not by recursion
  }

  /// Processes all. *Throws*: as sync; then no piece is of use.
  void run(const char* name) {
    if (n_ != 0)
      run_and_wait(name, [this] { work_(first_, 0, n_); });
    else
      weft::sync();
  }
  /// Calls f for what each piece has found, in order. *Requires*: run() has returned.
  template <class F>
  void for_each(F&& f) {
    for (piece* p = &first_; p != nullptr; p = p->next.get()) f(p->found);
  }

 private:
  struct piece {
    Found found{};
    std::unique_ptr<piece> next = nullptr;  ///< in the order of the indices

    piece& insert_behind() {
      auto made = std::make_unique<piece>();
      made->next = std::move(next);
      next = std::move(made);
      return *next;
    }
  };

  /// Nothing behind index i matters any more: pieces there end soon. *Thread safety*: any.
  void end_behind_(std::size_t i) noexcept {
    [[maybe_unused]] const sched::races::unseen library;
    // Relaxed: the number alone is passed on.
    std::size_t end = end_.load(base::memory_order_relaxed);
    while (i < end && !end_.compare_exchange_weak(end, i, base::memory_order_relaxed)) {
    }
  }
  bool ended_before_(std::size_t i) const noexcept {
    [[maybe_unused]] const sched::races::unseen library;
    return end_.load(base::memory_order_relaxed) < i;  // relaxed: see end_behind_
  }
  /// Processes a group. *Returns*: whether nothing behind it matters; so it is after an exception, too.
  bool ends_(piece& p, std::size_t first, std::size_t last) {
    try {
      if (!body_(p.found, first, last)) return false;
    } catch (...) {
      end_behind_(first);
      throw;
    }
    end_behind_(first);
    return true;
  }
  /// Works on a piece at its front, while thieves take halves of what is left at its back.
  void work_(piece& p, std::size_t first, std::size_t last) {
    if constexpr (WEFT_RACES) return divide_(p, first, last);
    sched::strand& s = sched::current();
    interval<std::size_t> left(first, last);
    base::atomic<std::size_t> least{1};  // fewer are not worth a theft
    const steal_function give([&](thief& t) {
      // Relaxed: an older number does no harm.
      if (const auto taken = left.take_back_half(least.load(base::memory_order_relaxed)))
        t.fork([this, &back = p.insert_behind(), taken] { work_(back, taken->first, taken->last); });
    });
    pace speed;
    while (const auto now = left.take_front(speed.next(n_))) {
      if (sched::look(s)) throw cancelled();
      if (ended_before_(now->first)) return;
      if (ends_(p, now->first, now->last)) return;
      speed.note();
      least.store(speed.next(n_), base::memory_order_relaxed);  // see above
    }
  }
  /// Where races are looked for: each small piece is a task.
  void divide_(piece& p, std::size_t first, std::size_t last) {
    if (last - first <= n_ / 64 + 1) {
      if (!ended_before_(first)) ends_(p, first, last);
      return;
    }
    piece& back = p.insert_behind();
    const std::size_t middle = first + (last - first) / 2;
    fork([this, &p, first, middle] { divide_(p, first, middle); });
    fork([this, &back, middle, last] { divide_(back, middle, last); });
  }

  base::atomic<std::size_t> end_;
  std::size_t n_;
  Body body_;
  piece first_;
};

/// What a piece finds that finds nothing.
struct nothing {};

/// Calls body(first, last) for groups of consecutive indices that together are [0, n).
template <class Body>
void for_pieces(const char* name, std::size_t n, const Body& body) {
  auto of_piece = [&body](nothing, std::size_t first, std::size_t last) {
    body(first, last);
    return false;
  };
  pieces<nothing, decltype(of_piece)>(n, of_piece).run(name);
}

}  // namespace weft::inline WEFT_ABI::algorithms
