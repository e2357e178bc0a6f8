// SPDX-License-Identifier: BSL-1.0
// What a process does from the moment on at which its bodies may wait for one another: no task runs inside
// fork.
#pragma once

#include <weft/sched/runtime_registry.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Lets no task run inside fork from now on, in this process: a body that waits there for a task that is
/// forked later, by the body around it, would wait for ever. *Cost*: one load; the first time a visit to each
/// strand. *Thread safety*: any thread that holds no lock of the library.
inline void keep_forks_apart() {
  if (forks_apart.load(base::memory_order_relaxed)) return;  // whoever set it visits the strands
  forks_apart.store(true, base::memory_order_seq_cst);       // before the bits: pairs with join_run
  const std::lock_guard hold(living_engine::door);
  for (living_engine* l = living_engine::first(); l != nullptr; l = l->next())
    l->home().each_strand(
        ~0u, [](strand& s, std::size_t) { s.attention.fetch_or(apart_asked, base::memory_order_seq_cst); });
  strand& s = current();
  if (!is_outside(s)) attend(s);
}

}  // namespace weft::inline WEFT_ABI::sched
