// SPDX-License-Identifier: BSL-1.0
// How a task that reads gets its place in a stream.
#pragma once

#include <weft/stream/detail/stream_state.hpp>

namespace weft::inline WEFT_ABI::stream {

inline reading& stream_state::begin_reading(node& n, file_pointer from) {
  if (!readable_)
    throw error("weft: the append stream '" + name_ +
                "' cannot be read while it is written; a file can, opened with append_options::readable");
  sched::strand& s = sched::current();
  if (failure_.any() || over_.load(base::memory_order_relaxed) != nullptr) enter_slowly_(n, s);
  if (from == file_pointer::global)
    account_(n, s);  // a task that must not have begun would move the position
  else
    count_wait_(n, s);
  std::unique_ptr<reading> r(new reading(*this, from));
  keepers_.fetch_add(1, base::memory_order_relaxed);  // given back by destroy_
  struct undo {
    stream_state& of;
    bool needed = true;
    ~undo() {
      if (needed) of.keepers_.fetch_sub(1, base::memory_order_relaxed);
    }
  } keeper{*this};
  if (from == file_pointer::local && all_is_placed_(n)) {
    keeper.needed = false;
    r->users.store(2, base::memory_order_relaxed);  // nobody else knows of it
    r->end = frontier_.position();
    dispatch_.tell_when_placed(*r);
    return *r.release();
  }
  void* const place = buffers_.record(buffers_.of(s.worker_number), sizeof(reading_element));
  if (!is_outside(s)) {
    const bool accounted = fork_mark::now(s) == n.seen;
    r->event = &sched::awaited_event::begin(s);
    r->strand = &s;
    r->engine = &sched::home_of(s);
    if (accounted) n.seen = fork_mark::now(s);
  }
  keeper.needed = false;
  reading& made = *r.release();
  push_(n, *::new (place) reading_element(made));
  hand_on_frontier_(n);
  if (is_outside(s) && !made.is_known()) {
    end_reading(made);
    throw error("weft: the append stream '" + name_ +
                "' was read while tasks append to it; wait for them with run() first");
  }
  return made;
}

}  // namespace weft::inline WEFT_ABI::stream
