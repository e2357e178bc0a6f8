// SPDX-License-Identifier: BSL-1.0
// The memory of an append stream: blocks that hold bytes, and chunks that hold the records of their places.
#pragma once

#include <weft/base/lock.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace weft::inline WEFT_ABI::stream {

/// Bytes that one worker has appended to a stream, in the order of their making.
///
/// Who may touch it when:
///  1. `bytes` up to the end of a published extent, and `file`, `begin` once it has moved, are constant.
///  2. What lies behind, `used` and `extents` belong to the worker whose worker buffer the block is in, which
///     also moves the content to a file (at once in segmented streams).
///  3. Batches hold the content in memory from when they are made until they are placed.
///  4. `written` belongs to whoever has locked the worker buffer; `passed` to whoever has the frontier.
///  5. `users` counts extents that are not placed, and the worker buffer; who brings it to zero recycles the
///  block.
struct block {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t used = 0;
  std::int64_t extents = 0;  ///< made in it, while it is in a worker buffer
  std::uint32_t file = 0;    ///< number of the file it was written to,
  std::uint64_t begin = 0;   ///< where it begins there,
  std::size_t written = 0;   ///< and how much of it has been written, where blocks are filed
  std::size_t passed = 0;    ///< what the frontier has passed ends before, where blocks are filed
  base::atomic<std::int64_t> users{0};

  /// Keeps the content in memory until let_go. *Returns*: false if it is in a file.
  bool hold() noexcept {
    for (base::backoff wait;;) {
      std::uint32_t n = holds_.load(base::memory_order_acquire);  // pairs with end_move
      if (n == filed) return false;
      if (n == moving)
        wait.wait();
      else if (holds_.compare_exchange_weak(n, n + 1, base::memory_order_relaxed, base::memory_order_relaxed))
        return true;
    }
  }
  void let_go(std::uint32_t n) noexcept {
    holds_.fetch_sub(n, base::memory_order_release);
  }  // see begin_move
  /// *Returns*: false if somebody holds the content.
  bool begin_move() noexcept {
    std::uint32_t nobody = 0;
    // Acquire pairs with let_go: nobody reads any more.
    return holds_.compare_exchange_strong(nobody, moving, base::memory_order_acquire,
                                          base::memory_order_relaxed);
  }
  void end_move(bool well) noexcept {
    holds_.store(well ? filed : 0, base::memory_order_release);  // pairs with hold
  }
  /// *Requires*: nobody else knows of the block.
  void begin_anew() noexcept {
    used = written = passed = 0;
    extents = 0;
    holds_.store(0, base::memory_order_relaxed);
    users.store(0, base::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t filed = UINT32_MAX, moving = UINT32_MAX - 1;
  base::atomic<std::uint32_t> holds_{0};
};

/// Records are carved from chunks, which are aligned to their size, and recycled when all of them have been
/// released.
struct chunk {
  static constexpr std::size_t size = std::size_t{1} << 16;

  std::size_t used = 0;      // belongs to the worker buffer that it is in
  std::int64_t records = 0;  // made in it, while it is in a worker buffer
  base::atomic<std::int64_t> live{
      0};  // minus those released, plus `records` when the worker buffer leaves it

  static chunk& of(void* record) noexcept {
    return *reinterpret_cast<chunk*>(reinterpret_cast<std::uintptr_t>(record) & ~(size - 1));
  }
};

/// The blocks and chunks of a stream, those that nobody uses among them, and how many bytes of memory are in
/// use. *Thread safety*: any thread.
class memory_pool {
 public:
  explicit memory_pool(std::size_t block_size) noexcept : block_size_(block_size) {}
  memory_pool(const memory_pool&) = delete;
  memory_pool& operator=(const memory_pool&) = delete;

  std::size_t block_size() const noexcept { return block_size_; }
  /// Bytes of blocks whose content is in memory. Relaxed: a measure, not a promise.
  std::size_t in_use() const noexcept { return in_use_.load(base::memory_order_relaxed); }

  /// *Throws*: std::bad_alloc.
  block* take_block() {
    const std::lock_guard hold(mutex_);
    if (free_blocks_.empty()) {
      free_blocks_.reserve(blocks_.size() + 1);  // so that giving back needs no memory
      spare_.reserve(blocks_.size() + 1);
      blocks_.push_back(std::make_unique<block>());
      free_blocks_.push_back(blocks_.back().get());
    }
    block* const b = free_blocks_.back();
    if (b->bytes == nullptr) b->bytes = take_bytes_();
    free_blocks_.pop_back();
    b->begin_anew();
    in_use_.fetch_add(block_size_, base::memory_order_relaxed);
    return b;
  }
  /// *Requires*: nobody uses the block.
  void give_back(block* b) noexcept {
    if (b->bytes != nullptr) in_use_.fetch_sub(block_size_, base::memory_order_relaxed);
    const std::lock_guard hold(mutex_);
    free_blocks_.push_back(b);
  }
  /// The content of a block is elsewhere now: its memory may serve another one.
  void give_back_bytes(block& b) noexcept {
    in_use_.fetch_sub(block_size_, base::memory_order_relaxed);
    const std::lock_guard hold(mutex_);
    spare_.push_back(std::move(b.bytes));
  }

  /// *Throws*: std::bad_alloc.
  chunk* take_chunk() {
    const std::lock_guard hold(mutex_);
    if (free_chunks_.empty()) {
      free_chunks_.reserve(chunks_.size() + 1);
      chunks_.reserve(chunks_.size() + 1);
      void* const memory = ::operator new(chunk::size, std::align_val_t(chunk::size));
      chunks_.emplace_back(::new (memory) chunk);
      free_chunks_.push_back(chunks_.back().get());
    }
    chunk* const c = free_chunks_.back();
    free_chunks_.pop_back();
    c->used = (sizeof(chunk) + 15) / 16 * 16;
    c->records = 0;
    c->live.store(0, base::memory_order_relaxed);  // published with its first record
    return c;
  }
  void give_back(chunk* c) noexcept {
    const std::lock_guard hold(mutex_);
    free_chunks_.push_back(c);
  }

 private:
  struct free_chunk {
    void operator()(chunk* c) const noexcept { ::operator delete(c, std::align_val_t(chunk::size)); }
  };
  std::unique_ptr<std::byte[]> take_bytes_() {
    if (spare_.empty()) return std::make_unique_for_overwrite<std::byte[]>(block_size_);
    std::unique_ptr<std::byte[]> bytes = std::move(spare_.back());
    spare_.pop_back();
    return bytes;
  }

  const std::size_t block_size_;
  base::atomic<std::size_t> in_use_{0};
  base::mutex mutex_;
  std::vector<std::unique_ptr<block>> blocks_;
  std::vector<std::unique_ptr<chunk, free_chunk>> chunks_;
  std::vector<block*> free_blocks_;
  std::vector<chunk*> free_chunks_;
  std::vector<std::unique_ptr<std::byte[]>> spare_;
};

}  // namespace weft::inline WEFT_ABI::stream
