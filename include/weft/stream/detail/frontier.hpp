// SPDX-License-Identifier: BSL-1.0
// The frontier of a stream: up to it everything is known and placed; one thread at a time moves it on.
#pragma once

#include <weft/stream/detail/dispatcher.hpp>
#include <weft/stream/detail/reading.hpp>
#include <weft/stream/detail/tree.hpp>

#include <exception>
#include <vector>

namespace weft::inline WEFT_ABI::stream {

/// Walks the tree in reference order, frees what it has passed, and gives the layout the bytes.
///
/// Who may touch it when: whoever has it. It lies at a watched gate, and belongs to the executor or fence
/// that will end that; `fail` and `failed` are for everybody.
///
/// After a failure in reference order, bytes are passed without being placed, until a body has seen the
/// exception: `lost_at` is the depth of the list in which that has to happen.
class frontier {
 public:
  frontier(stream_state& of, node& root, memory_pool& pool, stream_layout& layout,
           buffer_table& worker_buffers, dispatcher& dispatch, first_failure& failure)
      : of_(of),
        at_(&root),
        pool_(pool),
        layout_(layout),
        buffers_(worker_buffers),
        dispatch_(dispatch),
        failure_(failure) {
    begin_batch_();
  }
  frontier(const frontier&) = delete;
  frontier& operator=(const frontier&) = delete;
  ~frontier() = default;

  /// Moves on as far as everything is known. `mine`: the node of the caller's task, if that is where the
  /// frontier lies; it goes on there afterwards. Then somebody else may have the frontier, and the stream may
  /// be gone. *Returns*: whether it lies at `mine` again, with everything passed.
  bool advance(node* mine) noexcept {
    if (mine != nullptr) mine->body.leave();
    for (;;) {
      node& n = *at_;
      element* const e = next_of_(n);
      if (e == nullptr) {
        if (n.body.watch()) return &n == mine;
        if (n.body.clear_dirty()) continue;
        if (next_of_(n) != nullptr) continue;  // was added before the end
        if (n.parent == nullptr) return end_(), false;
        leave_(n);
      } else if (e->kind == element_kind::extent && !is_final_(n, *e, mine)) {
        if (n.body.watch()) return &n == mine;
        n.body.clear_dirty();
        // It has ended meanwhile, or another element was added, so the extent is final.
      } else if (!pass_(*e)) {
        return false;
      }
    }
  }
  /// Lets the bytes be placed that were put together so far.
  void place_batch() noexcept {
    if (now_.used.empty()) return;
    now_.begin = position_ - now_.size;
    dispatch_.add(std::exchange(now_, {}));
    begin_batch_();
  }
  /// Whether bytes are passed without being placed.
  bool lost() const noexcept { return lost_at_ != nowhere; }
  /// Bytes known so far.
  std::uint64_t position() const noexcept { return position_; }

  /// Appends what a hook gives, at the frontier. *Throws*: std::bad_alloc.
  void append(const std::byte* from, std::size_t size) {
    if (own_ == nullptr) own_ = &buffers_.extra();
    worker_buffer& l = *own_;
    while (size != 0) {
      if (l.current == nullptr || l.current->used == pool_.block_size()) {
        if (l.current != nullptr) place_batch();
        buffers_.renew(l);
      }
      block& b = *l.current;
      const std::size_t part = std::min(size, pool_.block_size() - b.used);
      std::memcpy(b.bytes.get() + b.used, from, part);
      ++b.extents;
      add_(b, b.used, part, layout_.files_blocks() ? io::crc32c(from, part) : 0);
      b.used += part;
      from += part;
      size -= part;
    }
  }

 private:
  static constexpr std::size_t most_pieces = 512;
  static constexpr std::uint32_t nowhere = UINT32_MAX;

  element* next_of_(const node& n) const noexcept {
    // Acquire pairs with core::push_.
    return (last_ != nullptr ? last_->next : n.first).load(base::memory_order_acquire);
  }
  /// Whether an extent grows no more.
  static bool is_final_(const node& n, const element& e, const node* mine) noexcept {
    if (&n == mine || e.next.load(base::memory_order_acquire) != nullptr) return true;
    const gate_state s = n.body.state();
    return s == gate_state::ended || s == gate_state::cut;
  }
  void lose_() noexcept {
    if (!lost()) lost_at_ = at_->depth;
  }
  /// *Returns*: false if the frontier stays before it, and belongs to somebody else.
  bool pass_(element& e) noexcept {
    switch (e.kind) {
      case element_kind::extent: {
        auto& x = static_cast<extent&>(e);
        add_(*x.in, x.begin, x.end - x.begin, x.crc);
        break;
      }
      case element_kind::child:
        free_last_();
        at_ = &static_cast<node&>(e);
        return true;
      case element_kind::fence: {
        gate& g = static_cast<fence_element&>(e).tasks;
        if (g.watch()) return false;
        if (g.state() == gate_state::cut) lose_();
        break;
      }
      case element_kind::resume_marker:
        if (lost_at_ == at_->depth) lost_at_ = nowhere;
        break;
      case element_kind::hook: {
        auto& h = static_cast<hook_element&>(e);
        try {
          h.call(h, lost() || failure_.any() ? nullptr : &of_);
        } catch (...) {
          failure_.note(std::current_exception());
        }
        break;
      }
      case element_kind::reading:
        if (!pass_reading_(*static_cast<reading_element&>(e).of)) return false;
        break;
    }
    free_last_();
    last_ = &e;
    return true;
  }
  /// A task reads what has been passed: it may begin. A task with the shared position stays in front until it
  /// has ended. *Returns*: as pass_.
  bool pass_reading_(reading& r) noexcept {
    if (!r.told) {
      r.told = true;
      r.position = r.from == file_pointer::global ? shared_position_ : r.position;
      if (lost()) {
        r.end_wait(sched::cancellation());
      } else {
        place_batch();
        r.end = position_;
        dispatch_.tell_when_placed(r);
      }
    }
    if (r.from == file_pointer::global) {
      if (r.task.watch()) return false;
      shared_position_ = r.position;
    }
    r.release();
    return true;
  }
  /// The node has ended, and everything of it has been passed.
  void leave_(node& n) noexcept {
    if (n.body.state() == gate_state::cut) lose_();
    free_last_();
    at_ = n.parent;
    last_ = &n;
    if (lost() && lost_at_ > at_->depth) lost_at_ = n.is_run ? nowhere : at_->depth;
  }
  /// The record before is not needed any more.
  void free_last_() noexcept {
    if (last_ == nullptr) return;
    chunk* const c = &chunk::of(last_);
    last_ = nullptr;
    if (c == freed_in_) {
      ++freed_;
      return;
    }
    // Release and acquire: whoever recycles it comes after all who used it.
    if (freed_ != 0 && freed_in_->live.fetch_sub(freed_, base::memory_order_acq_rel) == freed_)
      pool_.give_back(freed_in_);
    freed_in_ = c;
    freed_ = 1;
  }
  void begin_batch_() noexcept {
    try {
      now_.pieces.reserve(most_pieces);
      now_.used.reserve(most_pieces);
    } catch (...) {
      failure_.note(std::current_exception());
    }
  }
  /// Adds bytes to the batch.
  void add_(block& b, std::size_t begin, std::size_t size, std::uint32_t crc) noexcept {
    if (lost() || failure_.any()) return buffers_.release(b, 1);
    const bool files = layout_.files_blocks();
    if (files) b.passed = std::max(b.passed, begin + size);
    const bool held = !files && b.hold();
    const bool fetched = !files && !held;
    if (fetched) place_batch();                                    // it is a batch of its own
    if (fetched && failure_.any()) return buffers_.release(b, 1);  // maybe there is no memory for that
    const std::byte* const data = held ? b.bytes.get() + begin : nullptr;
    if (held && !now_.pieces.empty() && now_.pieces.back().data + now_.pieces.back().size == data)
      now_.pieces.back().size += size;
    else
      now_.pieces.push_back({data, size, &b, begin, crc});
    if (!now_.used.empty() && now_.used.back().of == &b)
      ++now_.used.back().extents;
    else
      now_.used.push_back({&b, 1, held});
    now_.size += size;
    position_ += size;
    if (fetched || now_.size >= layout_.worth_while() || now_.pieces.size() == most_pieces ||
        now_.used.size() == most_pieces)
      place_batch();
  }
  /// The end of a stream that has no handle any more (stream_state.hpp).
  void end_() noexcept;

  stream_state& of_;
  node* at_;
  element* last_ = nullptr;    // of the list of at_: all up to it are passed
  chunk* freed_in_ = nullptr;  // so many records of it are not needed any more, and it has not been told
  std::int64_t freed_ = 0;
  std::uint32_t lost_at_ = nowhere;
  std::uint64_t position_ = 0;
  std::uint64_t shared_position_ = 0;  // where the serial program's one file pointer stands, for reading
  memory_pool& pool_;
  stream_layout& layout_;
  buffer_table& buffers_;
  worker_buffer* own_ = nullptr;  // for what hooks append
  dispatcher& dispatch_;
  first_failure& failure_;
  batch now_;  // what is being put together
};

}  // namespace weft::inline WEFT_ABI::stream
