// SPDX-License-Identifier: BSL-1.0
// Runs one fiber by turns on two kernel threads, so that its body wakes up elsewhere after each suspension.
#pragma once

#include "context/outside.hpp"

#include <weft/context/fiber.hpp>

#include <atomic>
#include <exception>
#include <thread>

namespace weft_test {

/// Carries a body from thread to thread.
class migrant {
 public:
  /// Runs `body(*this)` in a fiber: the part up to the first suspend() on a new kernel thread, the next part
  /// on the other one, and so on by turns. `arrive(i)` runs on kernel thread i (0 or 1) before it executes
  /// the fiber. Returns how often a kernel thread found an exception of the body in its own hands afterwards.
  template <class Body, class Arrive>
  static int run(Body& body, Arrive arrive) {
    struct both {
      Body& body;
      migrant self;
    } state{body, {}};
    weft::context::fiber travelling(
        weft::context::stack(256 * 1024),
        [](void* argument) noexcept {
          auto& here = *static_cast<both*>(argument);
          here.body(here.self);
          here.self.done_ = true;
          for (;;) here.self.suspend();
        },
        &state);
    migrant& self = state.self;
    self.travelling_ = &travelling;
    auto host = [&self, &arrive](int index) {
      weft::context::fiber own;
      arrive(index);
      for (bool over = false; !over;) {
        while (self.turn_.load(std::memory_order_acquire) != index) std::this_thread::yield();  // pairs below
        self.host_ = &own;
        if (!self.done_) weft::context::fiber::switch_to(own, *self.travelling_);
        self.leaked_ += std::current_exception() != nullptr;
        over = self.done_;
        self.turn_.store(1 - index, std::memory_order_release);  // publishes the fiber, now suspended
      }
    };
    std::thread first(host, 0);
    std::thread second(host, 1);
    first.join();
    second.join();
    return self.leaked_;
  }

  /// Called by the body: returns on the other kernel thread.
  void suspend() noexcept { weft::context::fiber::switch_to(*travelling_, *host_); }

 private:
  // All but turn_ belong to the thread whose turn it is.
  weft::context::fiber* travelling_ = nullptr;
  weft::context::fiber* host_ = nullptr;
  bool done_ = false;
  int leaked_ = 0;
  std::atomic<int> turn_{0};
};

}  // namespace weft_test
