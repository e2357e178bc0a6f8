// SPDX-License-Identifier: BSL-1.0
// Stack overflow of a task is named before the program dies: the fault handler and its own stack per thread.
#pragma once

#include <weft/base/lock.hpp>
#include <weft/context/detail/fault_text.hpp>
#include <weft/context/detail/guard_registry.hpp>
#include <weft/context/stack.hpp>

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace weft::inline WEFT_ABI::context {

/// Says which task the calling kernel thread runs; nullptr if none or without a name. Called inside a signal
/// handler.
using task_name_hook = const char* (*)() noexcept;

namespace detail {

/// What the handler needs. Written before the handler is installed, except the hook.
struct fault_state {
  base::atomic<task_name_hook> name{nullptr};
  struct sigaction previous_segv = {};
  struct sigaction previous_bus = {};
  base::spin_lock mutex;   // over installed and whoever changes it
  bool installed = false;  // some module's handler
};
WEFT_PER_PROCESS inline constinit fault_state faults;

inline const struct sigaction& previous_action(int signal) noexcept {
  return signal == SIGBUS ? faults.previous_bus : faults.previous_segv;
}

/// Lets the fault kill the program as if no handler had been installed. A fault of an instruction comes again
/// when the handler returns, so the core shows the place; a signal somebody sent must be sent again.
inline void die_by_default(int signal, const siginfo_t& info) noexcept {
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
  if (info.si_code <= 0) raise(signal);  // blocked until the handler returns
}

/// Hands a fault that is not ours to whoever was there before.
inline void pass_on(int signal, siginfo_t* info, void* machine) noexcept {
  const struct sigaction& before = previous_action(signal);
  if ((before.sa_flags & SA_NODEFER) != 0) {
    // Its handler may leave by siglongjmp and expects the signal not to be blocked.
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal);
    pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  }
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, machine);
  } else if (before.sa_handler == SIG_DFL || (before.sa_handler == SIG_IGN && info->si_code > 0)) {
    die_by_default(signal, *info);  // the kernel does not let a program ignore a real fault either
  } else if (before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  }
}

/// The handler: only async-signal-safe calls, errno kept.
WEFT_PER_MODULE inline void on_fault(int signal, siginfo_t* info, void* machine) noexcept {
  const int saved = errno;
  // A positive code: the kernel reports a fault, so si_addr is an address.
  const stack_bounds hit =
      info->si_code > 0 ? guards.find(reinterpret_cast<std::uintptr_t>(info->si_addr)) : stack_bounds{};
  if (hit.size() == 0) {
    pass_on(signal, info, machine);
  } else {
    const task_name_hook hook =
        faults.name.load(base::memory_order_acquire);  // pairs with set_task_name_hook
    const char* const name = hook != nullptr ? hook() : nullptr;
    fault_text text;
    text.add("weft: stack overflow in task '");
    text.add(name != nullptr ? name : "unnamed");
    text.add("' (context stack of ");
    text.add(hit.size());
    text.add(" bytes; raise runtime_options::stack_size or WEFT_STACK_SIZE)\n");
    text.write_to(STDERR_FILENO);
    die_by_default(signal, *info);
  }
  errno = saved;
}

#if defined(__PIC__) && !defined(__PIE__)
// The dynamic linker's functions; null where the C library has them elsewhere.
[[gnu::weakref("dladdr")]] static int find_module(const void*, Dl_info*) noexcept;
[[gnu::weakref("dlopen")]] static void* open_module(const char*, int) noexcept;

/// Keeps the library loaded whose handler ours calls: maybe that of another copy of weft, which cannot take
/// it back when ours stands before it. Only libraries do it: linkers warn of dlopen in static programs.
WEFT_PER_MODULE inline void keep_loaded(const struct sigaction& handler) noexcept {
  const void* const code = (handler.sa_flags & SA_SIGINFO) != 0
                               ? reinterpret_cast<const void*>(handler.sa_sigaction)
                               : reinterpret_cast<const void*>(handler.sa_handler);
  Dl_info module = {};
  if (&find_module != nullptr && &open_module != nullptr && find_module(code, &module) != 0)
    static_cast<void>(open_module(module.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE));
}
#else
WEFT_PER_MODULE inline void keep_loaded(const struct sigaction&) noexcept {}
#endif

WEFT_PER_MODULE inline void take_signal(int signal, struct sigaction& previous) {
  struct sigaction ours = {};
  ours.sa_sigaction = &on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  // Asked first and replaced then, so that the handler never meets a half-written `previous`.
  if (sigaction(signal, nullptr, &previous) != 0 || sigaction(signal, &ours, nullptr) != 0)
    throw std::system_error(errno, std::generic_category(),
                            "weft: cannot install the stack overflow handler");
  keep_loaded(previous);
}

/// Puts back what was there before, unless somebody else has taken the signal meanwhile.
WEFT_PER_MODULE inline void give_back_signal(int signal, const struct sigaction& previous) noexcept {
  struct sigaction present = {};
  if (sigaction(signal, nullptr, &present) == 0 && (present.sa_flags & SA_SIGINFO) != 0 &&
      present.sa_sigaction == &on_fault)
    sigaction(signal, &previous, nullptr);
}

/// What of this module the process calls at a fault; taken back when the module is unloaded.
struct module_faults {
  bool installed = false;  // the handler is this module's; under fault_state::mutex
  base::atomic<task_name_hook> name{nullptr};

  ~module_faults() {
    const std::lock_guard hold(faults.mutex);
    if (installed) {
      give_back_signal(SIGSEGV, faults.previous_segv);
      give_back_signal(SIGBUS, faults.previous_bus);
      faults.installed = false;  // the next runtime brings a handler
    }
    task_name_hook ours = name.load(base::memory_order_relaxed);  // nobody sets it in an ending module
    if (ours != nullptr)
      faults.name.compare_exchange_strong(ours, nullptr, base::memory_order_relaxed);  // publishes nothing
  }
};
WEFT_PER_MODULE inline constinit module_faults faults_of_module;

}  // namespace detail

/// Sets who names the running task in the overflow message; nullptr for nobody.
/// *Requires*: `hook` makes only async-signal-safe calls and works in any kernel thread.
/// *Thread safety*: any thread; the last one stays.
WEFT_PER_MODULE inline void set_task_name_hook(task_name_hook hook) noexcept {
  detail::faults_of_module.name.store(hook, base::memory_order_relaxed);  // for this module's end alone
  detail::faults.name.store(hook, base::memory_order_release);  // pairs with the acquire in on_fault
}

/// Installs the process-wide handler of SIGSEGV and SIGBUS; later calls do nothing. A fault in the guard of a
/// context stack prints one sentence that names the task and ends the program by that signal; every other
/// fault goes to the handler that was there before, which is put back when the module is unloaded whose
/// handler it is. A thread needs an overflow_guard besides: the handler
/// cannot run on the stack that overflowed.
/// *Throws*: std::system_error. *Suspends*: no. *Thread safety*: any thread.
WEFT_PER_MODULE inline void install_overflow_handler() {
  const std::lock_guard hold(detail::faults.mutex);
  if (detail::faults.installed) return;
  detail::take_signal(SIGSEGV, detail::faults.previous_segv);
  detail::take_signal(SIGBUS, detail::faults.previous_bus);
  detail::faults.installed = detail::faults_of_module.installed = true;
}

/// Gives the calling kernel thread a stack for signal handlers while it lives; a thread that already has one
/// keeps its own. *Requires*: destroyed by the kernel thread that made it.
class overflow_guard {
 public:
  /// *Throws*: std::system_error or std::bad_alloc if there is no memory for it. *Cost*: five system calls.
  overflow_guard() {
    stack_t present = {};
    if (sigaltstack(nullptr, &present) != 0) refuse();
    if ((present.ss_flags & SS_DISABLE) == 0) return;
    // Twice what the kernel asks for one frame: the previous handler runs here too.
    const long frame = sysconf(_SC_SIGSTKSZ);
    memory_ = stack(std::max<std::size_t>(64 * 1024, frame > 0 ? 2 * static_cast<std::size_t>(frame) : 0));
    stack_t ours = {};
    ours.ss_sp = memory_.lowest();
    ours.ss_size = memory_.size();
    if (sigaltstack(&ours, nullptr) != 0) refuse();
  }

  overflow_guard(const overflow_guard&) = delete;
  overflow_guard& operator=(const overflow_guard&) = delete;

  /// Takes the stack away unless somebody has replaced it meanwhile.
  ~overflow_guard() {
    stack_t present = {};
    if (memory_.size() == 0 || sigaltstack(nullptr, &present) != 0 || present.ss_sp != memory_.lowest())
      return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }

 private:
  [[noreturn]] static void refuse() {
    throw std::system_error(errno, std::generic_category(),
                            "weft: cannot set a stack for the overflow handler");
  }

  stack memory_;
};

}  // namespace weft::inline WEFT_ABI::context
