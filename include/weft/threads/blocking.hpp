// SPDX-License-Identifier: BSL-1.0
// Calls that block their kernel thread, without keeping a worker.
#pragma once

#include <weft/blocking/blocking_call.hpp>
#include <weft/blocking/definitions.hpp>
#include <weft/task/current.hpp>
#include <weft/task/races.hpp>

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace weft::inline WEFT_ABI::this_task {

/// Calls `f()`, which may block the kernel thread for long: a system call, a foreign lock, a library that
/// waits. `f` runs on a spare kernel thread; meanwhile the body is suspended, and its worker executes other
/// tasks. There are as many spare threads as calls at the same time; a few are kept for later ones. Outside
/// tasks, just calls `f`.
///
/// `f` does not run in a task: there it must not fork or sync, waits block the kernel thread, and errno and
/// thread_local variables are those of the spare thread; read them within `f`. The stop of the run does not
/// end it.
///
/// *Returns*: what `f` returns. *Throws*: what `f` throws; std::bad_alloc, std::system_error if there is no
/// thread or no stack, and then `f` has not been called. *Suspends*: yes. *Cost*: two changes of the kernel
/// thread, some 10 microseconds. *Thread safety*: each task its own.
///
/// *Example*: `const ssize_t n = weft::this_task::blocking([&] { return read(pipe, data, size); });`
template <std::invocable F>
std::invoke_result_t<F> blocking(F&& f) {
  using result = std::invoke_result_t<F>;
  using kept = std::conditional_t<
      std::is_void_v<result>, std::monostate,
      std::conditional_t<std::is_reference_v<result>, std::add_pointer_t<result>, std::remove_cv_t<result>>>;
  sched::check_may_block(sched::current(), "calls this_task::blocking()");
  if (is_outside(sched::current())) return std::invoke(std::forward<F>(f));
  struct call {
    std::remove_reference_t<F>& function;
    std::optional<kept> value = std::nullopt;
    std::exception_ptr failure = nullptr;

    static void make(void* self) noexcept {
      auto& c = *static_cast<call*>(self);
      try {
        if constexpr (std::is_void_v<result>)
          std::invoke(static_cast<F&&>(c.function));
        else if constexpr (std::is_reference_v<result>)
          c.value.emplace(std::addressof(std::invoke(static_cast<F&&>(c.function))));
        else
          c.value.emplace(std::invoke(static_cast<F&&>(c.function)));
      } catch (...) {
        c.failure = std::current_exception();
      }
    }
  } here{f};
  {
    [[maybe_unused]] const sched::races::unseen library;
    sched::call_on_spare_thread(&call::make, &here);
  }
  if (here.failure) std::rethrow_exception(here.failure);
  if constexpr (std::is_reference_v<result>)
    return static_cast<result>(**here.value);
  else if constexpr (!std::is_void_v<result>)
    return std::move(*here.value);
}

}  // namespace weft::inline WEFT_ABI::this_task
