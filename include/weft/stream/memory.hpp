// SPDX-License-Identifier: BSL-1.0
// The memory of an append stream: blocks that hold bytes, and chunks that hold the records of their places.
#pragma once

#include <weft/base/spin.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace weft::stream {

/// Where the bytes of a block are. moving: whoever found no room in memory writes them to a scratch file.
/// held: whoever has the frontier reads them in memory.
enum class residence : std::uint8_t { memory, held, moving, file };

/// Bytes that one worker has appended to a stream, in the order of their making.
///
/// Who may touch it when:
///  1. `bytes` up to the end of a published extent, and `file`, `begin` once `where` says file, are constant.
///  2. What lies behind, `used` and `extents` belong to the worker whose lane the block is in.
///  3. `where`: memory -> moving -> file by that worker (or at once to file, in segmented streams); memory
///  <->
///     held by whoever has the frontier, to whom `holds` belongs as well.
///  4. `users` counts extents that are not placed, and the lane; who brings it to zero recycles the block.
struct block {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t used = 0;
  std::int64_t extents = 0;  ///< made in it, while it is in a lane
  std::uint32_t holds = 0;
  std::uint32_t file = 0;   ///< number of the file it was written to,
  std::uint64_t begin = 0;  ///< and where it begins there
  base::atomic<residence> where{residence::memory};
  base::atomic<std::int64_t> users{0};

  /// *Returns*: whether the content stays in memory now, until let_go; else it is in a file.
  bool hold() noexcept {
    if (holds != 0) return ++holds, true;
    for (base::backoff wait;; wait.wait()) {
      residence r = residence::memory;
      // Acquire pairs with end_move.
      if (where.compare_exchange_strong(r, residence::held, base::memory_order_acquire,
                                        base::memory_order_acquire)) {
        holds = 1;
        return true;
      }
      if (r == residence::file) return false;
    }
  }
  void let_go(std::uint32_t n) noexcept {
    if ((holds -= n) == 0)
      where.store(residence::memory, base::memory_order_release);  // pairs with begin_move
  }
  /// *Returns*: false if somebody holds the content.
  bool begin_move() noexcept {
    residence r = residence::memory;
    // Acquire pairs with let_go.
    return where.compare_exchange_strong(r, residence::moving, base::memory_order_acquire,
                                         base::memory_order_relaxed);
  }
  void end_move(residence now) noexcept { where.store(now, base::memory_order_release); }  // pairs with hold
};

/// Records are carved from chunks, which are aligned to their size, and recycled when all of them have been
/// released.
struct chunk {
  static constexpr std::size_t size = std::size_t{1} << 16;

  std::size_t used = 0;                // belongs to the lane that it is in
  std::int64_t records = 0;            // made in it, while it is in a lane
  base::atomic<std::int64_t> live{0};  // minus those released, plus `records` when the lane leaves it

  static chunk& of(void* record) noexcept {
    return *reinterpret_cast<chunk*>(reinterpret_cast<std::uintptr_t>(record) & ~(size - 1));
  }
};

/// Blocks and chunks that nobody uses, and how many bytes of memory are in use. *Thread safety*: any thread.
class memory_pool {
 public:
  explicit memory_pool(std::size_t block_size) noexcept : block_size_(block_size) {}
  memory_pool(const memory_pool&) = delete;
  memory_pool& operator=(const memory_pool&) = delete;
  ~memory_pool() {
    for (chunk* c : chunks_) free_chunk(c);
  }

  std::size_t block_size() const noexcept { return block_size_; }
  /// Bytes of blocks whose content is in memory. Relaxed: a measure, not a promise.
  std::size_t in_use() const noexcept { return in_use_.load(base::memory_order_relaxed); }

  /// *Throws*: std::bad_alloc.
  block* take_block() {
    std::unique_ptr<block> b;
    {
      const std::lock_guard hold(door_);
      if (!blocks_.empty()) {
        b = std::move(blocks_.back());
        blocks_.pop_back();
      } else {
        blocks_.reserve(++made_);  // so that giving back needs no memory
        spare_.reserve(made_);
      }
    }
    if (b == nullptr) b = std::make_unique<block>();
    if (b->bytes == nullptr) b->bytes = take_bytes();
    b->used = 0;
    b->extents = 0;
    b->holds = 0;
    b->where.store(residence::memory, base::memory_order_relaxed);  // published with its first extent
    b->users.store(0, base::memory_order_relaxed);
    in_use_.fetch_add(block_size_, base::memory_order_relaxed);
    return b.release();
  }
  /// *Requires*: nobody uses the block.
  void give_back(block* b) noexcept {
    if (b->bytes != nullptr) in_use_.fetch_sub(block_size_, base::memory_order_relaxed);
    const std::lock_guard hold(door_);
    blocks_.emplace_back(b);
  }
  /// The content of a block is elsewhere now: its memory may serve another one.
  void give_back_bytes(block& b) noexcept {
    in_use_.fetch_sub(block_size_, base::memory_order_relaxed);
    const std::lock_guard hold(door_);
    spare_.push_back(std::move(b.bytes));
  }

  /// *Throws*: std::bad_alloc.
  chunk* take_chunk() {
    {
      const std::lock_guard hold(door_);
      if (!chunks_.empty()) {
        chunk* const c = chunks_.back();
        chunks_.pop_back();
        return begin_chunk(c);
      }
      chunks_.reserve(++chunks_made_);
    }
    return begin_chunk(::operator new(chunk::size, std::align_val_t(chunk::size)));
  }
  void give_back(chunk* c) noexcept {
    const std::lock_guard hold(door_);
    chunks_.push_back(c);
  }

 private:
  static chunk* begin_chunk(void* memory) noexcept {
    auto* const c = ::new (memory) chunk;
    c->used = (sizeof(chunk) + 15) / 16 * 16;
    return c;
  }
  static void free_chunk(chunk* c) noexcept { ::operator delete(c, std::align_val_t(chunk::size)); }
  std::unique_ptr<std::byte[]> take_bytes() {
    {
      const std::lock_guard hold(door_);
      if (!spare_.empty()) {
        std::unique_ptr<std::byte[]> bytes = std::move(spare_.back());
        spare_.pop_back();
        return bytes;
      }
    }
    return std::make_unique_for_overwrite<std::byte[]>(block_size_);
  }

  const std::size_t block_size_;
  base::atomic<std::size_t> in_use_{0};
  base::mutex door_;
  std::vector<std::unique_ptr<block>> blocks_;
  std::vector<chunk*> chunks_;
  std::vector<std::unique_ptr<std::byte[]>> spare_;
  std::size_t made_ = 0, chunks_made_ = 0;
};

}  // namespace weft::stream
