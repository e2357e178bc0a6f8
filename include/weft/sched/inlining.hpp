// SPDX-License-Identifier: BSL-1.0
// Lets no task of the process run inside fork while its bodies may wait for one another.
#pragma once

#include <weft/sched/runtime_registry.hpp>

namespace weft::inline WEFT_ABI::sched {

/// From begin() to the end of this object no task of the process runs inside fork: a body that waits there
/// for a task that the body around it forks later would wait for ever. Tasks that run inside fork already go
/// on. *Thread safety*: one thread at a time; any number of objects.
class inlining_disabled {
 public:
  inlining_disabled() = default;
  inlining_disabled(const inlining_disabled&) = delete;
  inlining_disabled& operator=(const inlining_disabled&) = delete;
  ~inlining_disabled() {
    // Release: what was done until then happens before tasks run inside fork again; pairs with
    // set_inline_limit.
    if (!begun_ || inlining_disablers.fetch_sub(1, base::memory_order_release) != 1) return;
    // The caller's strand defers no longer; other strands find out when they begin their next closure.
    strand& s = current();
    if (!is_outside(s)) s.attention.fetch_or(inlining_changed, base::memory_order_relaxed);
  }

  /// Does nothing the second time. *Cost*: an atomic addition; a visit to each strand of the process if no
  /// other object has begun. *Requires*: the caller holds no lock of the library.
  void begin() {
    if (begun_) return;
    begun_ = true;
    if (inlining_disablers.fetch_add(1, base::memory_order_seq_cst) ==
        0) {  // before the bits: pairs with join_run
      const std::lock_guard hold(living_engine::door);
      for (living_engine* l = living_engine::first(); l != nullptr; l = l->next())
        l->home().each_strand(~0u, [](strand& s, std::size_t) {
          s.attention.fetch_or(inlining_changed, base::memory_order_seq_cst);
        });
    }
    // Whoever else has begun may still be on the way to the caller's strand.
    strand& s = current();
    if (!is_outside(s)) s.inline_limit = s.limit = no_inlining;
  }

 private:
  bool begun_ = false;
};

}  // namespace weft::inline WEFT_ABI::sched
