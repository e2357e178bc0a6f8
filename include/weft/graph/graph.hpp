// SPDX-License-Identifier: BSL-1.0
// The dependencies of a large frame: each closure is visited once, and whatever is ready is in a list.
#pragma once

#include <weft/base/contract.hpp>
#include <weft/base/lock.hpp>
#include <weft/graph/detail/graph_fences.hpp>
#include <weft/graph/detail/graph_replay.hpp>
#include <weft/graph/detail/ready_list.hpp>
#include <weft/graph/granularity_estimator.hpp>
#include <weft/task/strand.hpp>

#include <algorithm>
#include <cstddef>
#include <mutex>

namespace weft::inline WEFT_ABI::sched {

/// The graph of a promoted frame (graph/README.md, "Large frames"). It belongs to its engine and is never
/// freed before that, so a stale pointer to one is harmless.
///
/// Who may touch it when:
///  1. Under `mutex`: everything but the following.
///  2. `own` and `entered` belong to the owner of the strand.
///  3. Hints that anybody may read: those behind `owner`, and, outside the lock, `owner`. What workers write
///     with every task of a batch lies in other cache lines.
///  4. Who has taken a node may ask may_be_reported_later and, if so, end it without the lock (keep_ready).
class graph {
 public:
  using clock = base::clock;

  alignas(64) base::spin_lock mutex;                 // alone in its cache line: workers watch it
  alignas(64) base::atomic<strand*> owner{nullptr};  ///< whose frame it is
  base::atomic<graph*> outer{nullptr};               ///< the next one in the list strand::graphs
  base::atomic<bool> may_take{false};                ///< something is ready,
  base::atomic<bool> may_visit{false};               ///< or a thief should visit closures,
  base::atomic<bool> wants_owner{false};             ///< or the owner, or there is what only the owner may do
  deadline owner_near;                               ///< until then thieves leave visits to it,
  deadline tiny_until;                               ///< and the tasks, which are tiny
  base::atomic<bool> owner_visits{false};            ///< who does so, and looks at nothing else: a hint
  base::atomic<bool> nests{false};                   ///< tasks with children have been seen: a hint
  alignas(64) base::atomic<std::uint32_t> may_keep{
      0};                             ///< how many that become ready by what it ends a worker may keep
  alignas(64) frame* home = nullptr;  ///< null: not in use
  strand* waiter = nullptr;           ///< the owner, while it waits for something to do
  graph_node* at = nullptr;           ///< what the owner executes
  granularity_estimator speed;
  node_batch own;        ///< the owner's
  bool entered = false;  ///< the owner executes this frame by its graph

  /// Begins the graph of a frame. `from`: the closure that the owner is at, null if its body still forks.
  /// `versions`: how many an object may have. *Throws*: std::bad_alloc; then it is not in use.
  void begin(strand& s, frame& f, closure* from, int priority, unsigned versions = 1) {
    clear();
    order_.versions().begin(versions);
    base_priority_ = priority;
    cursor_ = &f.first;
    try {
      local_.expect(0);  // as the next line for visit_without_memory
      stolen_nodes_.reserve(1);
      if (from != nullptr) {
        // Acquire: as in visit_next. What an earlier graph has ended (see unprofitable) is in nobody's way.
        if (const record_marker* const m = record_marker::is(*from))
          replay_.begin(*m);
        else if (from->state.load(base::memory_order_acquire) != closure_state::done)
          at = &visit(*from, true);
        last_ = from;
        cursor_ = &from->next;
      }
      first_ = from != nullptr ? from : f.first.load(base::memory_order_acquire);  // as in visit_next
    } catch (...) {
      clear();
      throw;
    }
    home = &f;
    owner.store(&s, base::memory_order_relaxed);  // under the lock, as all of it
  }
  /// Ends it. *Requires*: all_ended().
  void end() noexcept {
    for (closure* c : raised_) c->take_failure();
    give_up();
  }
  /// Ends it as if it had never begun. *Requires*: can_be_given_up(), nothing was taken.
  void give_up() noexcept {
    home = nullptr;
    owner.store(nullptr, base::memory_order_relaxed);
    clear();
  }
  bool can_be_given_up() const noexcept { return stolen_nodes_.empty(); }
  /// Puts a node where those who may execute it find it.
  void make_ready(graph_node& n) noexcept {
    if (must_drop(n)) return doomed_.push_back(n);
    (n.task->local ? local_ : ready_).push_back(n);
  }

  /// Visits closures until `wanted` nodes are ready or `budget` have been visited; or, if `width` counts,
  /// until the graph is wide.
  void look_ahead(std::size_t wanted, std::size_t budget, bool width = false) noexcept {
    while (!busy_ && ready_.size() < wanted && budget-- != 0 && !(width && is_wide()) && visit_next()) {
    }
  }
  /// Whether more than one worker would soon have something to do, even if nothing is ready now: what has
  /// been visited is more than half as much again as its longest path. Not where priorities differ: more
  /// urgent tasks may come.
  bool is_wide() const noexcept {
    return unended_ >= granularity::crowded_frame && 2 * unended_ > 3 * order_.longest() &&
           ready_.only_priority() != nullptr;
  }
  /// Visits closures until so many are ready or visited, unless another worker does so. *Effects*: opens the
  /// lock meanwhile; the graph does not end.
  void visit_ahead(std::size_t wanted, std::size_t budget, bool by_owner) noexcept;
  /// The same, as far as it makes sense for so many workers who take batches.
  void visit_for(std::size_t takers, bool by_owner) noexcept;
  /// Whether the owner would visit many with visit_for.
  bool owner_would_visit() const noexcept {
    return speed.longer() && !busy_ && ready_.size() < enough_ && unvisited() != nullptr;
  }
  /// Whether somebody else visits closures now.
  bool being_visited() const noexcept { return busy_; }
  /// Whether the values of renamed objects have to be written back now. Nothing is visited before that.
  bool must_write_back() noexcept {
    if (under_way() || !order_.versions().any()) return false;
    return busy_ = true;
  }
  /// Moves them; by the owner. *Requires*: the lock is free.
  void write_back() noexcept {
    order_.versions().write_back(failed_at_.load(base::memory_order_relaxed));  // all have ended
    const std::lock_guard hold(mutex);
    forget();
    busy_ = false;
  }
  std::uint64_t renames() noexcept { return order_.versions().renames(); }
  std::uint64_t folds() const noexcept { return folds_; }
  std::uint64_t replayed() const noexcept { return replay_.count(); }
  /// Whether all closures linked so far have ended.
  bool all_ended() const noexcept { return !under_way() && unvisited() == nullptr; }
  std::size_t unended() const noexcept { return unended_; }
  std::size_t ready() const noexcept { return ready_.size(); }
  /// Whether there is something that only the owner can do.
  bool needs_owner() const noexcept { return local_.size() != 0 || doomed_.first != nullptr || !under_way(); }
  // Relaxed: under the lock; and of a failed task know those that waited for it when they are let go.
  bool failed() const noexcept { return failed_at_.load(base::memory_order_relaxed) != none; }
  /// Whether a task must be dropped, because one before it failed.
  bool must_drop(const graph_node& n) const noexcept {
    return n.index > failed_at_.load(base::memory_order_relaxed);
  }

  /// *Returns*: the most urgent ready node that a thief may run, and has use for; null if there is none.
  graph_node* take(thief_filter wanted = nullptr) noexcept {
    for (;;) {
      const auto fits = [&](const graph_node& g) { return wanted(*g.task); };
      graph_node* const n = wanted == nullptr ? ready_.front() : ready_.bring_to_front(fits);
      if (n == nullptr || claim(*ready_.pop_front())) return note_taken(n);
    }
  }
  /// The same for who executes another one first; null also where the next one may wait for earlier tasks.
  graph_node* take_behind() noexcept {
    while (!next_may_wait_for_earlier()) {
      graph_node* const n = ready_.pop_front();
      if (n == nullptr || claim(*n)) return note_taken(n);
    }
    return nullptr;
  }
  /// For the owner: also local tasks, and those that must be dropped. *Requires*: !must_write_back().
  graph_node* take_for_owner() noexcept {
    if (!under_way()) begin_anew();
    for (;;) {
      graph_node* n = (next_is_for_thieves() ? local_ : more_urgent(ready_, local_)).pop_front();
      if (n == nullptr) n = doomed_.pop_front();
      if (n == nullptr || claim(*n)) return note_taken(n);
    }
  }
  /// Whether the next node may wait for earlier tasks, and what it may wait for could need the owner.
  bool next_is_for_thieves() const noexcept { return next_may_wait_for_earlier() && unended_ != 1; }
  bool next_may_wait_for_earlier() const noexcept { return ready_.first_may_wait_for_earlier(); }
  /// Gives back a node that was taken and not begun.
  void give_back(graph_node& n) noexcept {
    --away_;
    unclaim(n);
    make_ready(n);
  }
  /// Whether a node that has just become ready must be made so for all: there may be more to ask than whether
  /// it is ready, or who may execute it.
  bool is_for_all(const graph_node& n, bool by_owner) const noexcept {
    const closure& c = *n.task;
    return n.claims != nullptr || must_drop(n) || c.may_wait_for_earlier || c.what->fence ||
           (c.local && !by_owner);
  }
  /// Whether workers may keep what becomes ready by what they end.
  bool may_be_kept() const noexcept {
    return speed.longer() && !failed() && !fences_.any() && ready_.levels() <= 1 && local_.levels() <= 1;
  }
  /// Whether who ends a node may go on with what becomes ready by that, and report it later. Without the
  /// lock.
  bool may_be_reported_later(const graph_node& n) const noexcept {
    return may_keep.load(base::memory_order_relaxed) != 0 && n.parts == nullptr && n.claims == nullptr;
  }
  /// Learns of so many nodes that became ready and were kept by one worker.
  void note_kept(std::uint32_t count) noexcept { away_ += count; }
  bool has_local() const noexcept { return local_.size() != 0; }

  /// The first failure in reference order counts.
  void fail(std::uint32_t index, placed_exception e) noexcept {
    if (index >= failed_at_.load(base::memory_order_relaxed)) return;  // under the lock, here and below
    failed_at_.store(index, base::memory_order_relaxed);
    failure_ = std::move(e);
    const auto drops = [this](const graph_node& n) { return must_drop(n); };
    ready_.move_out(drops, doomed_);
    local_.move_out(drops, doomed_);
  }
  placed_exception take_failure() noexcept { return std::exchange(failure_, {}); }

  /// Notes that the task of a node has run or was dropped. Contributions that now have to be folded are added
  /// to `folds`.
  void finish(graph_node& n, graph_entry*& folds) noexcept {
    --away_;
    if (n.ran) return count_ended(n);
    unclaim(n);
    n.ran = true;
    if (n.unfolded == 0) return release(n);
    for (graph_part* p = n.parts; p != nullptr; p = p->beside) {
      graph_entry& e = *p->entry;
      if (e.folding || !e.first_part->node->ran) continue;
      e.folding = true;
      e.fold_next = folds;
      folds = &e;
    }
  }
  /// Folds contributions into their objects. *Requires*: the lock is free.
  void fold(graph_entry* folds) noexcept;
  /// Finds the node of a closure that was stolen before the frame was promoted. *Returns*: maybe null.
  graph_node* take_stolen_node(const closure& c) noexcept {
    for (graph_node*& n : stolen_nodes_) {
      if (n->task != &c) continue;
      graph_node* const found = std::exchange(n, stolen_nodes_.back());
      stolen_nodes_.pop_back();
      return found;
    }
    return nullptr;
  }
  /// Learns from a batch, see granularity_estimator::learn.
  void learn_batch(const node_batch& batch, clock::time_point end, bool by_owner,
                   std::size_t takers) noexcept;
  /// Whether thieves should leave it to the owner, who is at it.
  bool tiny() const noexcept { return waiter == nullptr && tiny_until.lies_ahead(); }
  /// Whether the owner does better without it: tasks are tiny, and no priorities are to be kept.
  bool unprofitable() const noexcept {
    return speed.tiny_throughout() && !failed() && ready_.levels() <= 1 && local_.levels() <= 1;
  }
  /// *Returns*: the closure behind which the owner can go on without the graph, in reference order: all
  /// before it have ended, and whatever has ended behind it says so in its state. Null if there is none now.
  closure* left_behind() noexcept {
    if (!under_way()) return last_;
    if (busy_ || away_ != 0 || !all_plain_ || stuck_ || replay_.on() || order_.versions().any())
      return nullptr;
    for (const graph_node* n = newest_; n != nullptr; n = n->earlier)
      if (n->ran) tell_closure(*n->task);
    closure* last = nullptr;
    // Acquire: as in visit_next.
    for (closure* c = first_;
         c != nullptr && c->state.load(base::memory_order_acquire) == closure_state::done;
         c = c->next.load(base::memory_order_acquire))
      last = c;
    return last;
  }
  /// To be called before the lock is released: a hint.
  void update_hint() noexcept;

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  /// Whether tasks have not ended, or somebody is about to find more of them.
  bool under_way() const noexcept { return busy_ || unended_ != 0; }
  closure* unvisited() const noexcept { return cursor_->load(base::memory_order_acquire); }

  void clear() noexcept {
    at = nullptr;
    own = {};
    doomed_ = {};
    waiter = nullptr;
    entered = false;
    nests.store(false, base::memory_order_relaxed);
    tiny_until.clear();
    speed.reset();
    first_ = last_ = nullptr;
    away_ = 0;
    all_plain_ = true;
    failed_at_.store(none, base::memory_order_relaxed);
    failure_ = {};
    next_index_ = 1;
    folds_ = unended_ = 0;
    enough_ = takers_ = 1;
    owner_asks_.store(false, base::memory_order_relaxed);
    stolen_nodes_.clear();
    raised_.clear();
    ready_.clear();
    local_.clear();
    forget();
    replay_.reset();
    update_hint();
  }
  /// Forgets all nodes and objects. *Requires*: all nodes have ended.
  void forget() noexcept {
    newest_ = nullptr;
    if (last_ != nullptr) tell_closure(*(first_ = last_));
    order_.clear();
    fences_.clear();
    replay_.forget();
    stuck_ = pausing_ = false;
  }
  /// All closures visited have ended: visits the next one, whether or not there is memory for that.
  void begin_anew() noexcept;
  /// Visits a closure for which there is no memory. *Requires*: all nodes have ended.
  void visit_without_memory() noexcept;
  /// *Returns*: false if there is nothing to visit, or no memory.
  bool visit_next() noexcept;
  /// Visits up to so many closures with the lock open, as long as these need nothing but nodes and edges.
  /// *Returns*: how many.
  std::size_t visit_unlocked(std::size_t most, bool by_owner) noexcept;
  graph_node& make_node(closure& c, int priority, bool running);
  /// Whether the owner is likely to come soon: it has the closures in its cache, and visits them faster.
  bool owner_is_near() const noexcept;
  /// Enters and leaves replays at the next closure: only where they continue, or all nodes have ended and all
  /// objects are at home. *Returns*: false if it must wait for that.
  bool replays(closure& c, closure_state state) noexcept;
  /// *Requires*: room in stolen_nodes_.
  void note_stolen(closure& c, graph_node& n, closure_state state) noexcept;
  /// *Requires*: room in raised_, or the graph will not be given up before its end.
  void note_raised(closure& c, std::uint32_t index) noexcept;
  graph_node& visit(closure& c, bool running);

  graph_node* note_taken(graph_node* n) noexcept {
    away_ += n != nullptr;
    return n;
  }
  /// The node of a task has ended, and those that waited for it go on.
  void release(graph_node& n) noexcept {
    count_ended(n);
    release_waiting(n, [this](graph_node& w) { make_ready(w); });
  }
  void count_ended(graph_node& n) noexcept {
    --unended_;
    if (graph_node* const f = fences_.end(n)) make_ready(*f);
  }
  void unclaim(graph_node& n) noexcept {
    for (graph_claim* c = n.claims; c != nullptr; c = c->next) {
      c->entry->busy = false;
      for (graph_node* b = std::exchange(c->entry->blocked, nullptr); b != nullptr;)
        make_ready(*std::exchange(b, b->next));
    }
  }

  closure* first_ = nullptr;      // of which nodes tell: visited, or the one that the owner was at
  graph_node* newest_ = nullptr;  // of visited closures
  closure* last_ = nullptr;       // visited
  base::atomic<closure*>* cursor_ = nullptr;  // where the next one to be visited is, or will be linked
  std::uint32_t next_index_ = 1;              // 0 is before all: a failure there drops every task
  base::atomic<std::uint32_t> failed_at_{none};
  placed_exception failure_;
  std::size_t unended_ = 0;  // nodes of visited closures
  std::size_t away_ = 0;     // of these, taken or begun
  bool all_plain_ = true;    // all of these know only read, write and update of whole objects
  int base_priority_ = 0;
  std::size_t enough_ = 1;                // so many ready nodes
  std::size_t takers_ = 1;                // who may take them
  base::atomic<bool> owner_asks_{false};  // a thief that visits is to leave that to the owner: a hint
  bool waited_ = false;                   // who has visited last, for the lock
  bool stuck_ = false;                    // there is no memory
  bool pausing_ = false;                  // what comes next is visited when all before it have ended
  bool busy_ = false;  // somebody visits closures, or writes values back, with the lock open
  std::uint64_t folds_ = 0;
  ready_list ready_, local_;               // that need not be dropped
  node_queue doomed_;                      // ready, and to be dropped by the owner
  std::vector<closure*> raised_;           // visited when they had failed already; they keep their exceptions
  std::vector<graph_node*> stolen_nodes_;  // of closures that were stolen before the frame was promoted
  alignas(graph_node) std::byte last_resort_[sizeof(graph_node)];
  graph_order order_;
  graph_fences fences_;
  graph_replay replay_;
};

}  // namespace weft::inline WEFT_ABI::sched
