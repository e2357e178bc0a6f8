// SPDX-License-Identifier: BSL-1.0
// Replaying a record in a graph: nodes get their edges from there, and no object is looked up.
#pragma once

#include <weft/graph/detail/graph_order.hpp>
#include <weft/graph/recorded_call.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Where a graph is in a record. While this is on, all nodes of the graph that have not ended belong to the
/// iteration at which it is, or to iterations of the same record right before.
/// *Thread safety*: under the lock of the graph.
class graph_replay {
 public:
  bool on() const noexcept { return of_ != nullptr; }
  void stop() noexcept { of_ = nullptr; }
  /// All nodes have ended and are gone.
  void forget() noexcept {
    now_from_ = next_;
    before_from_ = UINT32_MAX;
  }
  /// Whether what follows a marker is the next iteration of the same record, right behind a complete one.
  bool continues_at(const record_marker& m) const noexcept {
    return on() && of_ == m.of && m.from == 0 && next_ == of_->size();
  }
  /// Begins what follows a marker. *Requires*: continues_at(m), or all nodes have ended.
  void begin(const record_marker& m) noexcept {
    if (continues_at(m)) {
      std::swap(now_, before_);
      before_from_ = std::exchange(now_from_, 0);
    } else {
      of_ = nullptr;
      if (m.of == nullptr) return;
      try {
        now_.resize(m.of->size());
        before_.resize(m.of->size());
      } catch (const std::bad_alloc&) {
        return;  // then it is visited like any other
      }
      of_ = m.of;
      now_from_ = m.from;
      before_from_ = UINT32_MAX;
    }
    next_ = m.from;
  }
  /// Whether nothing changes with a closure, which is no marker: this is off, or the closure is the next task
  /// of the record, or it has ended and was none.
  bool goes_on_with(closure& c, closure_state state) const noexcept {
    const bool ended = state == closure_state::done;
    if (!on() || (ended && !is_task(c))) return true;
    if (state == closure_state::failed || next_ >= of_->size()) return false;
    try {
      return ended ? of_->same_ended(next_, c) : of_->same(next_, c);
    } catch (...) {  // rights that could not be told
      return false;
    }
  }
  /// Goes past a closure that has ended already. *Requires*: goes_on_with it.
  void skip(const closure& c) noexcept {
    if (on() && is_task(c)) now_[next_++] = nullptr;
  }
  /// Adds the node of the next task. *Throws*: std::bad_alloc; then all is forgotten when all have ended.
  graph_node& add(graph_order& order, closure& c, std::uint32_t index, int priority, bool running) {
    graph_node& n = *order.make_node(&c, index, priority, running);
    for (const earlier_task e : of_->before(next_))
      if (e.place() >= (e.previous() ? before_from_ : now_from_))
        order.wait_for(n, (e.previous() ? before_ : now_)[e.place()]);
    now_[next_++] = &n;
    ++replayed_;
    return n;
  }
  /// How many nodes were made since reset.
  std::uint64_t count() const noexcept { return replayed_; }
  void reset() noexcept {
    stop();
    replayed_ = 0;
  }

 private:
  /// Others stand for what is not forked, as a body that was spawned: no record knows of them.
  static bool is_task(const closure& c) noexcept { return c.what->run != nullptr; }

  const record* of_ = nullptr;
  std::uint32_t next_ = 0;  // which of its tasks comes next
  std::uint64_t replayed_ = 0;
  std::vector<graph_node*> now_;     // of this iteration, by their places; null: ended
  std::vector<graph_node*> before_;  // of the one before
  std::uint32_t now_from_ = 0;       // all at earlier places are gone
  std::uint32_t before_from_ = 0;
};

}  // namespace weft::inline WEFT_ABI::sched
