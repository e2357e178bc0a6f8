// SPDX-License-Identifier: BSL-1.0
// A range of indices in adjacent pieces, which are divided where workers ask for work; each piece keeps what
// it has found.
#pragma once

#include <weft/algorithms/detail/pace.hpp>
#include <weft/algorithms/detail/team.hpp>
#include <weft/base/atomic.hpp>

#include <cstddef>
#include <memory>

namespace weft::inline WEFT_ABI::algorithms {

/// Indices [0, n) in pieces. `body(found, first, last)` is called for groups of consecutive indices, those of
/// one piece in their order and with the same `found`, which begins as Found(). It returns whether nothing
/// behind these indices matters any more.
///
/// Who may touch it when: a piece belongs to the task that works on it, and after run() to the caller.
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
    run_and_wait(name, [this] { work_(first_, 0, n_); });
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
  void work_(piece& p, std::size_t first, std::size_t last) {
    sched::strand& s = sched::current();
    pace speed;
    while (first != last && !ended_before_(first)) {
      if (stopped_(s)) throw cancelled();
      const std::size_t left = last - first;
      const std::size_t now = WEFT_RACES ? std::min(left, n_ / 64 + 1) : speed.next(left);
      if (left > now && (WEFT_RACES || (speed.known() && s.surplus == 0))) return divide_(s, p, first, last);
      if (body_(p.found, first, first + now)) return end_behind_(first);
      first += now;
      speed.note();
    }
  }
  static bool stopped_(sched::strand& s) noexcept {
    [[maybe_unused]] const sched::races::unseen library;
    return sched::look(s);
  }
  void divide_(sched::strand& s, piece& p, std::size_t first, std::size_t last) {
    auto made = std::make_unique<piece>();
    piece& back = *made;
    made->next = std::move(p.next);
    p.next = std::move(made);
    const std::size_t middle = first + (last - first) / 2;
    sched::count_division(s);
    fork([this, &p, first, middle] { work_(p, first, middle); });
    fork([this, &back, middle, last] { work_(back, middle, last); });
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
