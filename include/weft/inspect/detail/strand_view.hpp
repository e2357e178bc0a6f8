// SPDX-License-Identifier: BSL-1.0
// What somebody sees of a strand from outside: its tasks by name, and what it waits for.
#pragma once

#include <weft/sched/scheduler.hpp>
#include <weft/sched/steal_entry.hpp>

#include <algorithm>
#include <cstring>
#include <span>

namespace weft::inline WEFT_ABI::sched {

/// The name of a task, copied, since the task may end.
struct task_label {
  char text[48] = "";

  void take(const char* name) noexcept {
    if (name == nullptr) name = "task";
    const std::size_t length = strnlen(name, sizeof text);
    std::memcpy(text, name, std::min(length, sizeof text - 1));
    if (length == sizeof text) std::memcpy(text + sizeof text - 4, "...", 3);
    text[std::min(length, sizeof text - 1)] = '\0';
  }
};

/// One look at a strand. *Thread safety*: a value.
struct strand_view {
  /// submitted: of a run that has not begun. unseen: the lock was locked all the time. gone: nothing to show.
  enum class state : std::uint8_t { gone, unseen, submitted, running, waiting };
  static constexpr std::size_t most_names = 4;

  strand* who = nullptr;
  engine* home = nullptr;
  std::size_t number = 0;  ///< among the strands of its engine
  state is = state::gone;
  bool external = false;           ///< it waits for an event outside the runtime
  bool ended = false;              ///< what it waits for has ended
  const closure* root = nullptr;   ///< the closure that it was made for; only to be compared
  const strand* victim = nullptr;  ///< whose closure that is; null: it is the root of its run
  const graph* source_graph = nullptr;
  const run_state* run = nullptr;
  wait_reason awaits;
  const strand* holder = nullptr;        ///< whose body has what it waits for
  const char* waits_in_words = nullptr;  ///< what signal it waits for; null: the end of a run
  std::uint32_t waits = 0;
  std::size_t unended = 0;    ///< tasks of the graph for which it waits
  std::size_t depth = 0;      ///< how many tasks it is in,
  task_label in[most_names];  ///< the outermost, and the innermost of them, as many as there is room for
  task_label awaited;
  std::size_t parent = 0, next = 0;  ///< used by find_cycle
  std::uint8_t mark = 0;             ///< the same

  /// Adds the name of a task below those that were added.
  void add(const char* name) noexcept {
    if (depth >= most_names) std::copy(in + 2, in + most_names, in + 1);
    in[std::min(depth, most_names - 1)].take(name);
    ++depth;
  }
  void add(const closure& c) noexcept { add(c.what->options(c).name); }
};

/// Adds the names of a strand's tasks behind its own, innermost last, but for what stands in the frame
/// `end`. *Requires*: alone inside the strand.
inline void add_frames(strand_view& v, const frame* end) noexcept {
  // Acquire, here and below, pairs with the owner's release stores that publish frames and closures.
  for (const frame* f = v.who->root.child.load(base::memory_order_acquire); f != nullptr && f != end;
       f = f->child.load(base::memory_order_acquire))
    if (const closure* c = f->current.load(base::memory_order_acquire)) v.add(*c);
}

/// *Requires*: the strand waits, and its lock is held: nobody else reads or writes what its owner left.
inline void look_at_waiting(strand_view& v, unsigned rounds) noexcept {
  const strand& s = *v.who;
  if (!s.started) {  // a thief outside has given it back: it has waited for nothing, but for a worker
    v.is = strand_view::state::submitted;
    if (v.root != nullptr) v.add(*v.root);
    return;
  }
  v.is = strand_view::state::waiting;
  v.awaits = s.awaits;
  v.waits = s.waits.load(base::memory_order_relaxed);  // constant
  if (v.root != nullptr) v.add(*v.root);
  add_frames(
      v,
      v.awaits.happens == nullptr ? s.top : nullptr);  // its place in the innermost frame is not its own
  if (const closure* c = v.awaits.task) {
    v.external = c->what->run == nullptr;
    v.awaited.take(c->what->options(*c).name);
    // Acquire: as the owner will read it.
    v.ended = c->state.load(base::memory_order_acquire) != closure_state::awaited;
  } else if (v.awaits.happens != nullptr) {
    v.waits_in_words = v.awaits.happens->what;
    v.ended = v.awaits.happens->is_on();
    // Relaxed: a cycle counts only if all of it stands still.
    if (const auto* holder = v.awaits.happens->holder) v.holder = holder->load(base::memory_order_relaxed);
    if (s.inline_name != nullptr) v.add(s.inline_name);
  } else if (base::lock_within(v.awaits.large->mutex, rounds)) {
    v.unended = v.awaits.large->unended();
    v.ended = v.awaits.large->waiter != &s;
    v.awaits.large->mutex.unlock();
  }
}

/// Goes in like a thief who takes nothing. *Requires*: the strand is executed, and its lock is held.
inline void look_at_running(strand_view& v, unsigned rounds) noexcept {
  strand& s = *v.who;
  v.is = strand_view::state::running;
  const steal_entry entry(s);
  if (!entry.answered() && base::heavy_fence() == base::fenced::by_nothing)
    return;  // nothing of it may be read
  if (s.source_graph == nullptr) {
    if (v.root != nullptr) v.add(*v.root);
  } else if (base::lock_within(s.source_graph->mutex, rounds)) {
    // What was taken from a graph stays in its frame until it was handed in, under this lock.
    v.root = s.root.current.load(base::memory_order_relaxed);
    if (v.root != nullptr) v.add(*v.root);
    s.source_graph->mutex.unlock();
  }
  add_frames(v, nullptr);
}

/// Goes into a strand that may go on without the lock: then whoever executes it waits for this to end, or has
/// made it running before. *Requires*: its lock is held. *Returns*: whether it still waited.
inline bool look_at_waiting_alone(strand_view& v, unsigned rounds) noexcept {
  strand& s = *v.who;
  // Sequentially consistent for the fenced variant of owner_store in adopt.
  s.attention.fetch_or(thief_inside, base::memory_order_seq_cst);
  const bool waits =
      base::heavy_fence() != base::fenced::by_nothing &&
      s.status.load(base::memory_order_acquire) == strand_status::waiting_alone;  // see put_aside
  if (waits) look_at_waiting(v, rounds);
  // Release, for whoever executes it.
  s.attention.fetch_and(static_cast<std::uint8_t>(~thief_inside), base::memory_order_release);
  return waits;
}

/// Looks at `v.who`. A lock that is not free within so many rounds of waiting is not waited for.
/// *Thread safety*: any thread, in a task as well.
inline void look_at(strand_view& v, unsigned rounds) noexcept {
  strand& s = *v.who;
  v.is = strand_view::state::unseen;
  if (!base::lock_within(s.mutex, rounds)) return;
  const auto status = s.status.load(base::memory_order_relaxed);  // ordered by the lock, but for rule 3
  v.is = strand_view::state::gone;
  if (status != strand_status::idle) {  // then all this is constant, but for `root` of a task of a graph
    v.root = s.root.current.load(base::memory_order_relaxed);
    v.victim = s.victim;
    v.source_graph = s.source_graph;
    v.run = s.run.load(base::memory_order_relaxed);
    if (status == strand_status::waiting)
      look_at_waiting(v, rounds);
    else if (status == strand_status::running || !look_at_waiting_alone(v, rounds))
      look_at_running(v, rounds);
  }
  s.mutex.unlock();
}

/// Whether the strand still waits as it did in this look.
inline bool still_waits(const strand_view& v, unsigned rounds) noexcept {
  if (!base::lock_within(v.who->mutex, rounds)) return false;
  // Acquire, as above: who waits again has counted before.
  const bool same = is_waiting(v.who->status.load(base::memory_order_acquire)) &&
                    v.who->waits.load(base::memory_order_relaxed) == v.waits;
  v.who->mutex.unlock();
  return same;
}

/// The views of the strands in use of some engines, as many as there is room for.
class strand_views {
 public:
  strand_views(std::span<strand_view> room, unsigned rounds) noexcept : room_(room), rounds_(rounds) {}

  /// Adds the strands of an engine. *Requires*: it lives, and goes on to.
  void add(engine& e) noexcept {
    const std::size_t first = size_;
    bool all = e.each_ready(rounds_, [&](strand& s) {
      // Relaxed: ordered by the list's lock. Others only go on.
      if (s.status.load(base::memory_order_relaxed) != strand_status::idle) return;
      if (strand_view* v = fresh(s, e)) {
        v->is = strand_view::state::submitted;
        v->root = s.root.current.load(base::memory_order_relaxed);
        v->run = s.run.load(base::memory_order_relaxed);
        v->add(*v->root);
      }
    });
    const std::size_t begun = size_;
    all &= e.each_strand(rounds_, [&](strand& s, std::size_t number) {
      for (std::size_t i = first; i < begun; ++i)
        if (room_[i].who == &s) {
          room_[i].number = number;
          return;
        }
      // Relaxed: a first look from outside; it is read again under the lock.
      if (s.status.load(base::memory_order_relaxed) == strand_status::idle) return;
      if (strand_view* v = fresh(s, e)) v->number = number;
    });
    for (std::size_t i = begun; i < size_; ++i) look_at(room_[i], rounds_);
    locked_ |= !all;
  }

  std::span<strand_view> all() const noexcept { return room_.first(size_); }
  std::size_t left_out() const noexcept { return left_out_; }
  /// Whether lists were locked, so that strands are missing.
  bool locked() const noexcept { return locked_; }
  unsigned rounds() const noexcept { return rounds_; }

 private:
  strand_view* fresh(strand& s, engine& e) noexcept {
    if (size_ == room_.size()) {
      ++left_out_;
      return nullptr;
    }
    strand_view& v = room_[size_++];
    v = strand_view{};
    v.who = &s;
    v.home = &e;
    return &v;
  }

  std::span<strand_view> room_;
  unsigned rounds_;
  std::size_t size_ = 0;
  std::size_t left_out_ = 0;
  bool locked_ = false;
};

}  // namespace weft::inline WEFT_ABI::sched
