// SPDX-License-Identifier: BSL-1.0
// Bytes whose places are known, on their way to the layout: whoever has time writes them, where order does
// not matter.
#pragma once

#include <weft/io/crc32c.hpp>
#include <weft/stream/detail/worker_buffers.hpp>

#include <deque>
#include <exception>
#include <mutex>
#include <vector>

namespace weft::inline WEFT_ABI::stream {

/// The first thing that went wrong with a stream. *Thread safety*: any thread.
class first_failure {
 public:
  void note(std::exception_ptr e) noexcept {
    const std::lock_guard hold(mutex_);
    if (what_) return;
    what_ = std::move(e);
    any_.store(true, base::memory_order_release);  // pairs with rethrow
  }
  bool any() const noexcept { return any_.load(base::memory_order_relaxed); }
  void rethrow() const {
    if (any_.load(base::memory_order_acquire)) std::rethrow_exception(what_);
  }

 private:
  base::mutex mutex_;
  std::exception_ptr what_;
  base::atomic<bool> any_{false};
};

/// What a batch uses of a block until it is placed.
struct use {
  block* of;
  std::int64_t extents;
  bool held;  ///< in memory
};

/// Bytes that follow each other in the stream. A piece without data is in a scratch file, unless blocks are
/// filed.
struct batch {
  std::vector<piece> pieces;
  std::vector<use> used;
  std::uint64_t begin = 0;
  std::size_t size = 0;
  std::uint32_t crc = 0;
  bool placed = false;
};

/// Wants to know when all bytes before an offset can be read.
struct placed_listener {
  void (*tell)(placed_listener&) noexcept;  ///< called once, also if that will never be: see first_failure
  std::uint64_t end = 0;
  placed_listener* after = nullptr;
};

/// Batches in the order of the stream, not all placed. *Thread safety*: `help` any thread; the rest for
/// whoever has the frontier.
class dispatcher {
 public:
  /// *Throws*: std::bad_alloc.
  dispatcher(stream_layout& layout, buffer_table& worker_buffers, first_failure& failure)
      : layout_(layout), buffers_(worker_buffers), failure_(failure) {}

  /// Takes the batch that comes next in the stream.
  void add(batch&& b) noexcept {
    if (failure_.any()) return release_(b);
    if (!layout_.in_any_order()) {
      place_(b, [&] {
        layout_.place(b.pieces);
        if (!layout_.wants_commit()) return;
        buffers_.file_passed();
        layout_.commit();
      });
      return release_(b);
    }
    constexpr std::size_t enough = 4;
    std::size_t waiting = 0;
    try {
      const std::lock_guard hold(mutex_);
      queue_.push_back(std::move(b));
      waiting = queue_.size() - begun_;
    } catch (...) {
      failure_.note(std::current_exception());
      return release_(b);
    }
    if (waiting > enough) help();
  }
  /// Places one batch. *Returns*: false if none waits for that.
  bool help() noexcept {
    std::unique_lock hold(mutex_);
    if (begun_ == queue_.size()) return false;
    batch& b = queue_[begun_++];  // stays where it is until it is placed and comes first
    hold.unlock();
    const bool well = !failure_.any() && place_(b, [&] { b.crc = layout_.place_at(b.pieces, b.begin); });
    release_(b);
    hold.lock();
    b.placed = well;
    const std::uint64_t before = prefix_;
    for (; !queue_.empty() && queue_.front().placed; queue_.pop_front(), --begun_) {
      prefix_ += queue_.front().size;
      crc_ = io::crc32c_combine(crc_, queue_.front().crc, queue_.front().size);
    }
    placed_listener* reached = take_reached_();
    if (prefix_ != before) tell_(hold);
    hold.unlock();
    while (reached != nullptr) {
      placed_listener& l = *std::exchange(reached, reached->after);
      l.tell(l);
    }
    return true;
  }
  /// Places all that nobody else places.
  void drain() noexcept {
    while (help()) {
    }
  }
  /// Whether all bytes before `end` are placed.
  bool has_placed(std::uint64_t end) noexcept {
    const std::lock_guard hold(mutex_);
    return !layout_.in_any_order() || prefix_ >= end;
  }
  /// Tells when that is so and they can be read, or something has failed: maybe at once. *Requires*: `end` is
  /// not beyond what was added; the layout is readable.
  void tell_when_placed(placed_listener& l) noexcept {
    if (layout_.files_blocks() && !failure_.any()) {
      try {
        buffers_.file_passed();
      } catch (...) {
        failure_.note(std::current_exception());
      }
    }
    std::unique_lock hold(mutex_);
    if (failure_.any() || !layout_.in_any_order() || prefix_ >= l.end) {
      hold.unlock();
      return l.tell(l);
    }
    l.after = std::exchange(listeners_, &l);
    hold.unlock();
    drain();  // what others place, they tell
  }

 private:
  template <class Place>
  bool place_(batch& b, Place place) noexcept {
    try {
      std::vector<std::byte> fetched;
      if (!layout_.files_blocks())
        for (piece& p : b.pieces) {
          if (p.data != nullptr) continue;
          fetched.resize(p.size);  // such a batch has one piece
          buffers_.fetch(*p.in, p.begin, fetched.data(), p.size);
          p.data = fetched.data();
        }
      place();
      return true;
    } catch (...) {
      failure_.note(std::current_exception());
      return false;
    }
  }
  void release_(batch& b) noexcept {
    for (const use& u : b.used) {
      if (u.held) u.of->let_go(static_cast<std::uint32_t>(u.extents));
      buffers_.release(*u.of, u.extents);
    }
    b.used.clear();
    b.pieces.clear();
  }
  /// Those who wait no longer. *Requires*: the lock is held.
  placed_listener* take_reached_() noexcept {
    placed_listener* taken = nullptr;
    for (placed_listener** link = &listeners_; *link != nullptr;) {
      placed_listener* const l = *link;
      if (prefix_ < l->end && !failure_.any()) {
        link = &l->after;
        continue;
      }
      *link = l->after;
      l->after = std::exchange(taken, l);
    }
    return taken;
  }
  /// Tells the layout how far everything is placed, one at a time.
  void tell_(std::unique_lock<base::mutex>& hold) noexcept {
    if (telling_) return;  // who does goes on with this
    telling_ = true;
    for (std::uint64_t told = 0; told != prefix_ && !failure_.any();) {
      told = prefix_;
      const std::uint32_t crc = crc_;
      hold.unlock();
      try {
        layout_.placed(told, crc);
      } catch (...) {
        failure_.note(std::current_exception());
      }
      hold.lock();
    }
    telling_ = false;
  }

  stream_layout& layout_;
  buffer_table& buffers_;
  first_failure& failure_;
  base::mutex mutex_;
  std::deque<batch> queue_;
  std::size_t begun_ = 0;  // of the queue: somebody places them, or has
  std::uint64_t prefix_ = 0;
  std::uint32_t crc_ = 0;  // of the prefix
  bool telling_ = false;
  placed_listener* listeners_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::stream
