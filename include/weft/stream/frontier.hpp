// SPDX-License-Identifier: BSL-1.0
// The frontier of a stream: up to it everything is known and placed; one thread at a time moves it on.
#pragma once

#include <weft/stream/lanes.hpp>
#include <weft/stream/placer.hpp>
#include <weft/stream/tree.hpp>

#include <exception>
#include <vector>

namespace weft::stream {

/// Walks the tree in reference order, frees what it has passed, and gives the layout the bytes.
///
/// Who may touch it when: whoever has it. It lies at a watched gate, and belongs to the executor or fence
/// that will end that; `fail` and `failed` are for everybody.
///
/// After a failure in reference order, bytes are passed without being placed, until a body has seen the
/// exception: `lost_at` is the depth of the list in which that has to happen.
class frontier {
 public:
  frontier(core& of, node& root, memory_pool& pool, placer& layout, lane_table& lanes)
      : of_(of), at_(&root), pool_(pool), layout_(layout), lanes_(lanes) {
    pieces_.reserve(most_pieces);
    used_.reserve(most_pieces);
  }
  frontier(const frontier&) = delete;
  frontier& operator=(const frontier&) = delete;
  ~frontier() { release_batch_(); }

  /// Moves on as far as everything is known. `mine`: the node of the caller's task, if that is where the
  /// frontier lies; it goes on there afterwards. Then somebody else may have the frontier, and the stream may
  /// be gone.
  void advance(node* mine) noexcept {
    if (mine != nullptr) mine->body.leave();
    for (;;) {
      node& n = *at_;
      element* const e = next_of_(n);
      if (e == nullptr) {
        if (n.body.watch()) return;
        if (next_of_(n) != nullptr) continue;  // was added before the end
        if (n.parent == nullptr) return end_();
        leave_(n);
      } else if (e->kind == element_kind::extent && !is_final_(n, *e, mine)) {
        if (n.body.watch()) return;
        // It has ended meanwhile, so the extent is final.
      } else if (!pass_(*e)) {
        return;
      }
    }
  }
  /// Places the bytes that were put together for one call.
  void place_batch() noexcept {
    if (!pieces_.empty() && !failed()) {
      try {
        layout_.place(pieces_);
      } catch (...) {
        fail(std::current_exception());
      }
    }
    release_batch_();
  }
  /// Bytes known so far.
  std::uint64_t position() const noexcept { return position_; }

  /// The first failure of the stream itself counts.
  void fail(std::exception_ptr e) noexcept {
    const std::lock_guard hold(failure_door_);
    if (failure_) return;
    failure_ = std::move(e);
    failed_.store(true, base::memory_order_release);  // pairs with rethrow_failure
  }
  bool failed() const noexcept { return failed_.load(base::memory_order_relaxed); }
  void rethrow_failure() const {
    if (failed_.load(base::memory_order_acquire)) std::rethrow_exception(failure_);
  }

  /// Appends what a hook gives, at the frontier. *Throws*: std::bad_alloc.
  void append(const std::byte* from, std::size_t size) {
    if (own_ == nullptr) own_ = &lanes_.extra();
    lane& l = *own_;
    while (size != 0) {
      if (l.current == nullptr || l.current->used == pool_.block_size()) {
        if (l.current != nullptr) place_batch();
        lanes_.renew(l);
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
  bool lost_() const noexcept { return lost_at_ != nowhere; }
  void lose_() noexcept {
    if (!lost_()) lost_at_ = at_->depth;
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
      case element_kind::anew:
        if (lost_at_ == at_->depth) lost_at_ = nowhere;
        break;
      case element_kind::hook: {
        auto& h = static_cast<hook_element&>(e);
        try {
          h.call(h, lost_() || failed() ? nullptr : &of_);
        } catch (...) {
          fail(std::current_exception());
        }
        break;
      }
    }
    free_last_();
    last_ = &e;
    return true;
  }
  /// The node has ended, and everything of it has been passed.
  void leave_(node& n) noexcept {
    if (n.body.state() == gate_state::cut) lose_();
    free_last_();
    at_ = n.parent;
    last_ = &n;
    if (lost_() && lost_at_ > at_->depth) lost_at_ = n.is_run ? nowhere : at_->depth;
  }
  /// The record before is not needed any more.
  void free_last_() noexcept {
    if (last_ == nullptr) return;
    chunk& c = chunk::of(last_);
    last_ = nullptr;
    // Release and acquire: whoever recycles it comes after all who used it.
    if (c.live.fetch_sub(1, base::memory_order_acq_rel) == 1) pool_.give_back(&c);
  }
  /// Adds bytes to the batch.
  void add_(block& b, std::size_t begin, std::size_t size, std::uint32_t crc) noexcept {
    if (lost_() || failed()) return lanes_.release(b, 1);
    position_ += size;
    const bool files = layout_.files_blocks();
    if (!files && !b.hold()) return place_fetched_(b, begin, size);
    const std::byte* const data = files ? nullptr : b.bytes.get() + begin;
    if (data != nullptr && !pieces_.empty() && pieces_.back().data + pieces_.back().size == data)
      pieces_.back().size += size;
    else
      pieces_.push_back({data, size, &b, begin, crc});
    if (!used_.empty() && used_.back().of == &b)
      ++used_.back().extents;
    else
      used_.push_back({&b, 1});
    batch_size_ += size;
    if (batch_size_ >= layout_.worth_while() || pieces_.size() == most_pieces || used_.size() == most_pieces)
      place_batch();
  }
  /// Places bytes that were written to a scratch file.
  void place_fetched_(block& b, std::size_t begin, std::size_t size) noexcept {
    place_batch();
    try {
      fetched_.resize(size);
      lanes_.fetch(b, begin, fetched_.data(), size);
      const piece p{fetched_.data(), size, &b, begin, 0};
      layout_.place({&p, 1});
    } catch (...) {
      fail(std::current_exception());
    }
    lanes_.release(b, 1);
  }
  void release_batch_() noexcept {
    for (const use& u : used_) {
      if (!layout_.files_blocks()) u.of->let_go(static_cast<std::uint32_t>(u.extents));
      lanes_.release(*u.of, u.extents);
    }
    used_.clear();
    pieces_.clear();
    batch_size_ = 0;
  }
  /// The end of a stream that has no handle any more (core.hpp).
  void end_() noexcept;

  core& of_;
  node* at_;
  element* last_ = nullptr;  // of the list of at_: all up to it are passed
  std::uint32_t lost_at_ = nowhere;
  std::uint64_t position_ = 0;
  std::size_t batch_size_ = 0;
  memory_pool& pool_;
  placer& layout_;
  lane_table& lanes_;
  lane* own_ = nullptr;  // for what hooks append
  std::vector<piece> pieces_;
  struct use {
    block* of;
    std::int64_t extents;
  };
  std::vector<use> used_;  // blocks of the batch
  std::vector<std::byte> fetched_;
  base::mutex failure_door_;
  std::exception_ptr failure_;
  base::atomic<bool> failed_{false};
};

}  // namespace weft::stream
