// SPDX-License-Identifier: BSL-1.0
// Telling all strands of the process that tasks may not run inside fork, or may again.
#pragma once

#include <weft/sched/inlining.hpp>
#include <weft/sched/runtime_registry.hpp>

namespace weft::inline WEFT_ABI::sched {

WEFT_FUNCTION void inlining_disabled::begin_() {
  if (inlining_disablers.fetch_add(1, base::memory_order_seq_cst) ==
      0) {  // before the bits: pairs with join_run
    const std::lock_guard hold(registered_engine::mutex);
    for (registered_engine* l = registered_engine::first(); l != nullptr; l = l->next())
      l->home().each_strand(~0u, [](strand& s, std::size_t) {
        s.attention.fetch_or(inlining_changed, base::memory_order_seq_cst);
      });
  }
  // Whoever else has begun may still be on the way to the caller's strand.
  strand& s = current();
  if (!is_outside(s)) s.inline_limit = s.limit = no_inlining;
}

WEFT_FUNCTION void inlining_disabled::end_() noexcept {
  // Release: what was done until then happens before tasks run inside fork again; pairs with
  // set_inline_limit.
  if (inlining_disablers.fetch_sub(1, base::memory_order_release) != 1) return;
  // The caller's strand defers no longer; other strands find out when they begin their next closure.
  strand& s = current();
  if (!is_outside(s)) s.attention.fetch_or(inlining_changed, base::memory_order_relaxed);
}

}  // namespace weft::inline WEFT_ABI::sched
