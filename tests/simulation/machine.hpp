// SPDX-License-Identifier: BSL-1.0
// What simulated machines have in common: threads that are contexts on one kernel thread. Which of them goes
// on, and what time it is, is the matter of each machine.
#pragma once

#include "platform.hpp"

#include <weft/context/fiber.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace simulation {

inline constexpr std::uint64_t never = UINT64_MAX;

/// One simulated thread.
struct flow {
  unsigned number = 0;
  std::optional<weft::context::fiber> context{};
  std::function<void()> body{};
  void* current = nullptr;  // the library's thread-local pointer
  bool ended = false;
  const void* waits_for = nullptr;  // null: it can go on
  std::uint64_t until = never;
  unsigned weight = 1;           // simulate.cpp: how often it is chosen
  std::uint64_t away_until = 0;  // simulate.cpp: the point from which on it is
  std::uint64_t clock = 0;       // cost_model.cpp: its own time, in picoseconds

  bool ready() const { return !ended && waits_for == nullptr; }
  void go_on() {
    waits_for = nullptr;
    until = never;
  }
};

/// While one runs, the functions of platform.hpp go to it.
class machine {
 public:
  machine();
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;
  virtual ~machine() = default;

  virtual void point(action what, const void* place) = 0;
  virtual void give_way(bool long_time) = 0;
  virtual void fence_all() = 0;
  virtual std::uint64_t now() const = 0;
  virtual void wait_until(const void* word, std::uint64_t end) = 0;
  virtual void wake(const void* word, int count) = 0;
  virtual bool spurious() = 0;
  /// Leaves the running thread, which may wait or have ended.
  virtual void leave() = 0;

  virtual flow& add(std::function<void()> body);
  void start(flow& f);
  void join(unsigned thread);
  /// Calls `body` as the first thread. *Requires*: every thread that it starts has ended when it returns.
  void run(const std::function<void()>& body);

 protected:
  void switch_to(flow& next);
  /// Says why, with a line for each thread, and ends the process.
  [[noreturn]] void give_up(const char* why, std::uint64_t seed) const;

  std::vector<std::unique_ptr<flow>> flows{};
  flow* running = nullptr;
  std::uint64_t points = 0, switches = 0;

 private:
  static void begin_flow(void* self) noexcept;
};

}  // namespace simulation
