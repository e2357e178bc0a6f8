// SPDX-License-Identifier: BSL-1.0
// The engines of this process that describers may look at.
#pragma once

#include <weft/sched/scheduler.hpp>

#include <pthread.h>

namespace weft::inline WEFT_ABI::sched {

/// Writes the descriptions of all runtimes to a file, once there is one (description.hpp). With a fixed name,
/// for those who cannot include this header, since they are compiled in another way: the watchdog of the
/// tests, debuggers.
WEFT_PER_PROCESS inline void (*dump_hook)(int) noexcept asm("weft_dump_living") = nullptr;

/// Puts an engine on the list of those that live, which every runtime does. The end waits for describers.
class registered_engine {
 public:
  registered_engine(engine& e, [[maybe_unused]] void (*dump)(int) noexcept) : engine_(e) {
    prepare_for_forks();
    const std::lock_guard hold(mutex);
#if !defined(WEFT_PLATFORM)  // where a signal handler cannot choose who goes on
    dump_hook = mine_.dump = dump;
#endif
    number_ = ++made_;
    generation_ = forks_;
    next_ = first_;
    first_ = this;
  }
  registered_engine(const registered_engine&) = delete;
  registered_engine& operator=(const registered_engine&) = delete;
  ~registered_engine() {
    const std::lock_guard hold(mutex);
    if (generation_ != forks_) return;  // a forked process has forgotten it
    registered_engine** link = &first_;
    while (*link != this) link = &(*link)->next_;
    *link = next_;
  }

  engine& home() const noexcept { return engine_; }
  /// How many there had been when it was made, itself included.
  unsigned number() const noexcept { return number_; }

  /// To be held by whoever uses the following. Never taken by somebody who holds another lock of the library.
  WEFT_PER_PROCESS static inline base::mutex mutex;
  static registered_engine* first() noexcept { return first_; }
  registered_engine* next() const noexcept { return next_; }

 private:
  /// The hook, as far as it is of this module; taken back when the module is unloaded.
  struct module_hook {
    void (*dump)(int) noexcept;
    ~module_hook() {
      const std::lock_guard hold(mutex);
      if (dump != nullptr && dump_hook == dump) dump_hook = nullptr;
    }
  };
  WEFT_PER_MODULE static inline constinit module_hook mine_{nullptr};

  /// Each module for itself, since the C library forgets what an unloaded module has registered.
  WEFT_PER_MODULE static void prepare_for_forks() noexcept {
    static const int registered = pthread_atfork(nullptr, nullptr, &forget_all);
    static_cast<void>(registered);
  }
  /// In a forked process the workers do not exist, nor whoever holds the lock.
  static void forget_all() noexcept {
    std::construct_at(&mutex);
    first_ = nullptr;
    ++forks_;
  }

  WEFT_PER_PROCESS static inline registered_engine* first_ = nullptr;
  WEFT_PER_PROCESS static inline unsigned made_ = 0;
  WEFT_PER_PROCESS static inline unsigned forks_ = 0;

  engine& engine_;
  registered_engine* next_ = nullptr;
  unsigned number_ = 0;
  unsigned generation_ = 0;
};

}  // namespace weft::inline WEFT_ABI::sched
