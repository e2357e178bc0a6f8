// SPDX-License-Identifier: BSL-1.0
// External events: closures that nobody runs, and that some thread ends.
#pragma once

#include <weft/sched/fork.hpp>

namespace weft::inline WEFT_ABI::sched {

class engine;

/// The engine of the worker that executes the strand.
engine& home_of(const strand& s) noexcept;

/// Appends a closure to the running body's frame that counts as stolen, by the outside world: the body's task
/// has not ended before end_external().
/// *Throws*: std::bad_alloc.
closure& begin_external(strand& s);

/// A closure as by begin_external, and an object: itself. Tasks of the same frame that read that wait for the
/// end.
class awaited_event final : public closure {
 public:
  /// Appends one to the running body's frame.
  /// *Throws*: std::bad_alloc.
  static awaited_event& begin(strand& s);
  const void* object() const noexcept { return this; }

 private:
  awaited_event() noexcept : closure(what_), self_(this) {
    static_assert(sizeof(awaited_event) == sizeof(closure) + sizeof(void*), "objects() finds it there");
  }
  static constexpr access_mode modes_[] = {access_mode::update};
  static constexpr descriptor what_{.modes = modes_, .objects = 1};
  [[maybe_unused]] void* self_;
};

/// Ends either, once, from any thread.
/// *Requires*: the strand has not changed since it began; `e` is its engine.
void end_external(engine& e, strand& s, closure& c, std::exception_ptr failure) noexcept;

/// Puts a transfer between memory and a file into the engine's trace, if there is one. `began`: in
/// observe::ticks(); `kind`: "read" or "write". *Requires*: a task of the engine has not ended.
void trace_transfer(engine& e, std::uint64_t began, const char* kind, std::uint64_t bytes) noexcept;

}  // namespace weft::inline WEFT_ABI::sched
