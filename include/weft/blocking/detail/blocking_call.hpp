// SPDX-License-Identifier: BSL-1.0
// How a call goes to a spare kernel thread, and how its body goes on.
#pragma once

#include <weft/blocking/blocking_call.hpp>
#include <weft/blocking/wait.hpp>
#include <weft/sched/scheduler.hpp>

namespace weft::inline WEFT_ABI::sched {

namespace detail {

struct spare_call : abandonable, spare_threads::call {
  void (*function)(void*) noexcept = nullptr;
  void* of = nullptr;
};

}  // namespace detail

WEFT_FUNCTION void call_on_spare_thread(void (*f)(void*) noexcept, void* of) {
  detail::spare_call c;
  c.function = f;
  c.of = of;
  c.what = "a call that may block";
  c.execute = [](spare_threads::call& self) noexcept {
    auto& mine = static_cast<detail::spare_call&>(self);
#if WEFT_RACES
    context::races::acquire(mine.of);
#endif
    mine.function(mine.of);
#if WEFT_RACES
    context::races::release(mine.of);
#endif
    raise_signal(mine);
  };
#if WEFT_RACES
  context::races::release(of);
#endif
  {
    signal_wait here(c, "calls this_task::blocking()", {.stop = false});
    c.home->spares.submit(c);
    here.wait();
  }
#if WEFT_RACES
  context::races::acquire(of);
#endif
}

}  // namespace weft::inline WEFT_ABI::sched
