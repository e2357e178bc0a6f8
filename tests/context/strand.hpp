// SPDX-License-Identifier: BSL-1.0
// A function that runs in a fiber of its own, to its suspension, on whichever kernel thread asks.
#pragma once

#include "context/outside.hpp"

#include <weft/context/fiber.hpp>

namespace weft_test {

/// Runs `f` once per run(). Its own fields are invisible to Thread Sanitizer, as those of a scheduler would
/// be.
class strand {
 public:
  explicit strand(void (*f)()) : body_(f), away_(weft::context::stack(128 * 1024), &start, this) {}

  /// Executes the body on the calling kernel thread until it has ended.
  [[gnu::no_sanitize_thread]] void run() noexcept {
    weft::context::fiber own;
    home_ = &own;
    weft::context::fiber::switch_to<!WEFT_RACES>(own, away_);
  }

  /// The suspended fiber.
  weft::context::fiber& away() noexcept { return away_; }

 private:
  [[gnu::no_sanitize_thread]] static void start(void* self) noexcept {
    auto& here = *static_cast<strand*>(self);
    for (;;) {
      here.body_();
      weft::context::fiber::switch_to<!WEFT_RACES>(here.away_, *here.home_);
    }
  }

  weft::context::fiber* home_ = nullptr;
  void (*body_)() = nullptr;
  weft::context::fiber away_;
};

}  // namespace weft_test
