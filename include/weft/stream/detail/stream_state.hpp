// SPDX-License-Identifier: BSL-1.0
// An append stream behind its handles: what the executors of tasks do, each in its own part of the tree.
#pragma once

#include <weft/base/error.hpp>
#include <weft/stream/detail/frontier.hpp>
#include <weft/stream/detail/worker_buffers.hpp>

#include <cstring>
#include <exception>
#include <string>

namespace weft::inline WEFT_ABI::stream {

/// The state that the handles and tasks of one stream share.
///
/// *Thread safety*: each member with a node is for the executor of that node; see node, frontier and worker
/// buffer for the rest.
class stream_state {
 public:
  stream_state(std::string name, std::unique_ptr<stream_layout> layout, std::size_t block_bytes,
               std::size_t budget, std::string scratch)
      : name_(std::move(name)),
        layout_(std::move(layout)),
        readable_(layout_->readable()),
        pool_(block_bytes),
        buffers_(pool_, *layout_, budget, std::move(scratch)),
        dispatch_(*layout_, buffers_, failure_),
        frontier_(*this, root_, pool_, *layout_, buffers_, dispatch_, failure_) {
    root_.body.watch();  // the frontier begins there
  }
  stream_state(const stream_state&) = delete;
  stream_state& operator=(const stream_state&) = delete;

  const std::string& name() const noexcept { return name_; }
  node& root() noexcept { return root_; }
  const stream_layout& layout() const noexcept { return *layout_; }
  bool readable() const noexcept { return readable_; }

  /// Appends bytes at the end of what the node's task has appended so far. *Throws*: what placing bytes has
  /// met first; std::bad_alloc.
  void write(node& n, const void* bytes, std::size_t size) {
    sched::strand& s = sched::current();
    worker_buffer& l = enter_(n, s);
    const auto* from = static_cast<const std::byte*>(bytes);
    if (n.growing != nullptr && n.growing->in == l.current && n.growing->end == l.current->used &&
        size <= pool_.block_size() - l.current->used) [[likely]] {
      std::memcpy(l.current->bytes.get() + l.current->used, from, size);
      n.growing->end = l.current->used += size;
      return;
    }
    write_slowly_(n, s, from, size);
  }
  /// Reserves the place of a task that is being deferred; `c`: its closure, not linked yet.
  node& begin_child(node& parent, const sched::closure& c) {
    sched::strand& s = sched::current();
    worker_buffer& l = enter_(parent, s);
    node& n = *::new (buffers_.record(l, sizeof(node))) node(&parent, false);
    push_(parent, n);
    parent.seen = {&s, &c.next, s.drains};
    s.earliest_first.store(true, base::memory_order_relaxed);  // a hint
    hand_on_frontier_(parent);
    return n;
  }
  /// Reserves the place of a run.
  node& begin_run(node& parent) {
    worker_buffer& l = enter_(parent, sched::current());
    node& n = *::new (buffers_.record(l, sizeof(node))) node(&parent, true);
    push_(parent, n);
    hand_on_frontier_(parent);
    return n;
  }
  /// Makes the node of a task that a thief takes from the running body of the parent: outside the tree until
  /// add_part. By the thief, on the worker with that number.
  node& begin_part(node& parent, std::uint32_t worker) {
    if (readable_)
      throw error("weft: a steal function cannot give away the right to append to the stream '" + name_ +
                  "', which tasks may read while it is written");
    return *::new (buffers_.record(buffers_.of(worker), sizeof(node))) node(&parent, false);
  }
  /// Puts it behind all that the parent's task has appended; where `conditional`, what it appends counts only
  /// if end_condition says so. *Returns*: the condition, or null. By the parent's task.
  fence_element* add_part(node& parent, node& part, bool conditional) noexcept {
    fence_element* condition = nullptr;
    try {
      sched::strand& s = sched::current();
      account_(parent, s);
      if (conditional) condition = &push_fence_(parent, s);
    } catch (...) {
      failure_.note(std::current_exception());
    }
    push_(parent, part);
    hand_on_frontier_(parent);
    return condition;
  }
  void end_condition(fence_element& f, bool counts) noexcept {
    if (f.tasks.end(counts)) frontier_.advance(nullptr);
  }
  /// The body of a deferred task begins.
  void begin_body(node& n) noexcept { n.seen = fork_mark::now(sched::current()); }
  /// It has returned, or thrown.
  void end_body(node& n, bool well) noexcept {
    try {
      sched::strand& s = sched::current();
      if (fork_mark::now(s) != n.seen) account_(n, s);
    } catch (...) {
      failure_.note(std::current_exception());
      well = false;
    }
    seal_(n);
    end_(n, well);
  }
  /// A deferred task will never begin.
  void drop(node& n) noexcept { end_(n, false); }
  /// A task was dropped inside fork: nothing that comes next counts.
  void cut(node& n) noexcept {
    try {
      if (push_fence_(n, sched::current()).tasks.end(false)) frontier_.advance(nullptr);
    } catch (...) {
      failure_.note(std::current_exception());
    }
  }
  /// Appends what `f` will append when everything before is known.
  template <class Hook, class F>
  void hook(node& n, F&& f) {
    static_assert(sizeof(Hook) <= chunk::size / 4 && alignof(Hook) <= 16,
                  "weft: the function given to finalise is too large; keep what it needs behind a pointer");
    sched::strand& s = sched::current();
    worker_buffer& l = enter_(n, s);
    void* const place = buffers_.record(l, sizeof(Hook));
    push_(n, *::new (place) Hook(std::forward<F>(f)));
  }
  /// Reserves the place of a task that reads what was appended before, and notes what it has to wait for.
  /// *Throws*: as write; weft::error if the stream cannot be read.
  reading& begin_reading(node& n, file_pointer from);
  /// A task that reads has ended, or will never begin.
  void end_reading(reading& r) noexcept {
    if (r.from == file_pointer::global && r.task.end(true)) frontier_.advance(nullptr);
    r.release();
  }
  /// What a task gets instead of the bytes. Null: nothing.
  std::exception_ptr why_not() const noexcept {
    try {
      failure_.rethrow();
      if (const char* const why = over_.load(base::memory_order_relaxed))
        throw error("weft: the append stream '" + name_ + "' " + why);
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }
  /// One keeps it less: its tree, or a task that reads.
  void let_go() noexcept {
    // Release and acquire: whoever deletes it comes after all who used it.
    if (keepers_.fetch_sub(1, base::memory_order_acq_rel) == 1) delete this;
  }
  /// Places what is known, if the node's task is the one that the frontier waits for. *Returns*: whether it
  /// still is, and that is all that was appended before.
  bool place_now(node& n) noexcept {
    seal_(n);
    return n.body.state() == gate_state::watched && frontier_.advance(&n);
  }

  /// Places everything and publishes the stream. *Throws*: weft::error if tasks append; what placing bytes
  /// has met first.
  void close() {
    if (over_.load(base::memory_order_relaxed) != nullptr) return failure_.rethrow();
    settle_();
    if (keepers_.load(base::memory_order_acquire) != 1)  // pairs with let_go
      throw error("weft: the append stream '" + name_ +
                  "' was closed while tasks read it; wait for them with sync() or run() first");
    over_.store("is closed", base::memory_order_relaxed);
    if (!failure_.any()) {
      try {
        buffers_.file_all();
        layout_->finish();
        finished_ = true;
      } catch (...) {
        failure_.note(std::current_exception());
      }
    }
    failure_.rethrow();
  }
  /// The handle ends. The stream ends with it, or with its last task.
  static void end_handle(stream_state* c) noexcept {
    c->over_.store("was destroyed while tasks append to it", base::memory_order_relaxed);  // a hint to tasks
    if (c->place_now(c->root_)) {
      c->frontier_.place_batch();
      c->dispatch_.drain();
    }
    if (c->root_.body.end(true)) c->end_orphan();
  }
  /// The frontier has passed the end of a stream without handle.
  void end_orphan() noexcept {
    if (!finished_) {
      try {
        buffers_.file_all();
      } catch (...) {
        failure_.note(std::current_exception());
      }
      layout_->give_up();
    }
    let_go();
  }
  /// For a hook that is being called: bytes before its place, and more bytes there.
  std::uint64_t known() const noexcept { return frontier_.position(); }
  void append_known(const void* bytes, std::size_t size) {
    failure_.rethrow();
    frontier_.append(static_cast<const std::byte*>(bytes), size);
  }
  /// Bytes that were written to scratch files for lack of memory.
  std::uint64_t spilled() const noexcept { return buffers_.spilled(); }
  /// Bytes placed so far. *Requires*: no task appends.
  std::uint64_t placed() {
    settle_();
    return frontier_.position();
  }

 private:
  ~stream_state() = default;

  /// Makes sure that everything before is accounted for. *Returns*: the worker buffer to write in.
  WEFT_ALWAYS_INLINE worker_buffer& enter_(node& n, sched::strand& s) {
    if (fork_mark::now(s) != n.seen || failure_.any() || over_.load(base::memory_order_relaxed) != nullptr)
        [[unlikely]]
      enter_slowly_(n, s);
    if (s.worker_number == n.worker && n.worker_buffer != nullptr) [[likely]]
      return *n.worker_buffer;
    return move_(n, s);
  }
  /// The body begins, or has gone on on another worker.
  WEFT_NOINLINE worker_buffer& move_(node& n, sched::strand& s) {
    seal_(n);
    n.worker_buffer = &buffers_.of(s.worker_number);
    n.worker = s.worker_number;
    return *n.worker_buffer;
  }
  WEFT_NOINLINE void enter_slowly_(node& n, sched::strand& s) {
    failure_.rethrow();
    if (const char* const why = over_.load(base::memory_order_relaxed))
      throw error("weft: the append stream '" + name_ + "' " + why);
    account_(n, s);
  }
  /// Closures that the body has forked since append nothing: what comes next counts only if they end well.
  /// And what comes after a sync counts in any case.
  void account_(node& n, sched::strand& s) {
    const fork_mark now = fork_mark::now(s);
    if (now == n.seen) return;
    count_wait_(n, s);
    if (now.link != nullptr && now.link != n.seen.link) {
      fence_element& f = push_fence_(n, s);
      try {
        sched::put_fence(s, f);
      } catch (...) {
        if (f.tasks.end(false)) frontier_.advance(nullptr);
        throw;
      }
    }
    n.seen = fork_mark::now(s);
  }
  /// What comes after a sync counts, whatever has failed before.
  void count_wait_(node& n, sched::strand& s) {
    const fork_mark now = fork_mark::now(s);
    const bool waited = now.who != n.seen.who || now.drains != n.seen.drains ||
                        (now.link == nullptr && n.seen.link != nullptr);
    if (!waited) return;
    if (n.last != nullptr)
      push_(n, *::new (buffers_.record(buffers_.of(s.worker_number), sizeof(element)))
                   element(element_kind::resume_marker));
    n.seen = {now.who, nullptr, now.drains};
  }
  fence_element& push_fence_(node& n, sched::strand& s) {
    static constexpr auto passed = [](sched::fence_listener& l) {
      auto& f = static_cast<fence_element&>(l);
      stream_state& of = *f.of;
      if (f.tasks.end(true)) of.frontier_.advance(nullptr);
    };
    static constexpr auto dropped = [](sched::fence_listener& l) noexcept {
      auto& f = static_cast<fence_element&>(l);
      stream_state& of = *f.of;
      if (f.tasks.end(false)) of.frontier_.advance(nullptr);
    };
    void* const place = buffers_.record(buffers_.of(s.worker_number), sizeof(fence_element));
    auto& f = *::new (place) fence_element(*this, {passed, dropped});
    push_(n, f);
    return f;
  }
  /// Whether the frontier is here, at the end of what the node's task has appended, and all before is placed.
  bool all_is_placed_(node& n) noexcept {
    if (!place_now(n) || frontier_.lost() || failure_.any()) return false;
    frontier_.place_batch();
    dispatch_.drain();
    return dispatch_.has_placed(frontier_.position()) && !failure_.any();
  }
  /// Puts an element at the end of the node's list.
  void push_(node& n, element& e) noexcept {
    seal_(n);
    // Release publishes the element, and that the one before it grows no more.
    (n.last != nullptr ? n.last->next : n.first).store(&e, base::memory_order_release);
    n.last = &e;
  }
  /// The last extent grows no more.
  void seal_(node& n) noexcept {
    if (n.growing != nullptr && layout_->files_blocks()) {
      try {
        buffers_.seal(*n.growing, sched::current().worker_number == n.worker ? n.worker_buffer : nullptr);
      } catch (...) {
        failure_.note(std::current_exception());
      }
    }
    n.growing = nullptr;
  }
  /// The child may go on while the parent waits, so it is to have the frontier.
  void hand_on_frontier_(node& parent) noexcept {
    // A task below may wait for the frontier, and this one for that task: then it must not be left behind.
    if (readable_ ? parent.body.set_dirty() : parent.body.state() == gate_state::watched)
      frontier_.advance(&parent);
  }
  void end_(node& n, bool well) noexcept {
    if (n.body.end(well)) frontier_.advance(nullptr);
  }
  WEFT_NOINLINE void write_slowly_(node& n, sched::strand& s, const std::byte* from, std::size_t size) {
    while (size != 0) {
      if (is_full_(enter_(n, s))) {
        if (place_now(n)) frontier_.place_batch();
        dispatch_.help();
        layout_->wait_for_room();
      }
      worker_buffer& l = enter_(n, s);  // who has waited may be elsewhere now
      if (is_full_(l)) renew_(l);
      block& b = *l.current;
      if (n.growing == nullptr || n.growing->in != &b || n.growing->end != b.used) {
        auto& e = *::new (buffers_.record(l, sizeof(extent))) extent(b, b.used);
        push_(n, e);
        n.growing = &e;
        ++b.extents;
      }
      const std::size_t part = std::min(size, pool_.block_size() - b.used);
      std::memcpy(b.bytes.get() + b.used, from, part);
      n.growing->end = b.used += part;
      from += part;
      size -= part;
    }
  }
  /// Without a new block bytes are missing, so the stream has failed, whatever becomes of the exception.
  void renew_(worker_buffer& l) {
    try {
      buffers_.renew(l);
    } catch (...) {
      failure_.note(std::current_exception());
      throw;
    }
  }
  bool is_full_(const worker_buffer& l) const noexcept {
    return l.current == nullptr || l.current->used == pool_.block_size();
  }
  /// Lets the frontier come to the end. *Throws*: weft::error if tasks append.
  void settle_() {
    sched::strand& s = sched::current();
    account_(root_, s);
    if (!place_now(root_))
      throw error("weft: the append stream '" + name_ +
                  "' was closed or read while tasks append to it; wait for them with sync() or run() first");
    frontier_.place_batch();
    dispatch_.drain();
  }

  const std::string name_;
  const std::unique_ptr<stream_layout> layout_;
  const bool readable_;
  base::atomic<std::uint32_t> keepers_{1};
  memory_pool pool_;
  node root_{nullptr, false};
  buffer_table buffers_;
  first_failure failure_;
  dispatcher dispatch_;
  frontier frontier_;
  base::atomic<const char*> over_{nullptr};
  bool finished_ = false;  ///< for the handle, and then for whoever has the frontier
};

inline void frontier::end_() noexcept { of_.end_orphan(); }
inline void reading::tell_(placed_listener& l) noexcept {
  auto& r = static_cast<reading&>(l);
  r.end_wait(r.of.why_not());
}
inline void reading::destroy_() noexcept {
  stream_state& stream = of;
  delete this;
  stream.let_go();
}

}  // namespace weft::inline WEFT_ABI::stream
