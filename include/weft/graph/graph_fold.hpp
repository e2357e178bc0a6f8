// SPDX-License-Identifier: BSL-1.0
// How a graph folds contributions to reductions into their objects, in reference order.
#pragma once

#include <weft/graph/graph.hpp>

namespace weft::inline WEFT_ABI::sched {

inline void graph::fold(graph_entry* folds) noexcept {
  while (folds != nullptr) {
    graph_entry& e = *std::exchange(folds, folds->fold_next);
    mutex.lock();
    while (e.first_part != nullptr && e.first_part->node->ran) {
      graph_part& p = *e.first_part;
      graph_node& n = *p.node;
      const bool privatized = !n.running && !n.dropped, counts = privatized && !must_drop(n);
      mutex.unlock();
      std::exception_ptr thrown;
      try {
        if (counts) n.task->what->fold(*n.task, p.number);
      } catch (...) {
        thrown = std::current_exception();
      }
      mutex.lock();
      if (thrown) fail(n.index, {std::move(thrown), n.task});
      folds_ += counts;
      e.first_part = p.next;
      if (e.first_part == nullptr) e.last_part = nullptr;
      if (--n.unfolded != 0) continue;
      if (privatized) {
        mutex.unlock();
        n.task->what->fold(*n.task, all_parts);
        mutex.lock();
      }
      release(n);
    }
    e.folding = false;
    mutex.unlock();
  }
}

}  // namespace weft::inline WEFT_ABI::sched
