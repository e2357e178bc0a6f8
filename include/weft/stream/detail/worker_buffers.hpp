// SPDX-License-Identifier: BSL-1.0
// The worker buffers of a stream: what each worker appends to, alone, and where it goes when memory is short.
#pragma once

#include <weft/io/crc32c.hpp>
#include <weft/io/directory.hpp>
#include <weft/sched/worker_number.hpp>
#include <weft/stream/detail/layout.hpp>
#include <weft/stream/detail/traced_transfer.hpp>
#include <weft/stream/detail/tree.hpp>

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

namespace weft::inline WEFT_ABI::stream {

/// What one worker uses to append to a stream, and after its end the next worker that has its number.
/// *Thread safety*: for the task that the worker executes.
struct worker_buffer {
  std::uint32_t number = 0;
  base::mutex mutex;         ///< closed while `current` changes or is filed
  block* current = nullptr;  ///< also read, under the lock, by whoever has the frontier
  chunk* records = nullptr;
  io::file scratch;
  std::uint64_t scratch_size = 0;
};

/// The worker buffers of a stream. *Thread safety*: `of` any thread; members with a worker buffer as said
/// there.
class buffer_table {
 public:
  buffer_table(memory_pool& pool, stream_layout& layout, std::size_t budget, std::string scratch)
      : pool_(pool), layout_(layout), budget_(budget), scratch_(std::move(scratch)) {}
  buffer_table(const buffer_table&) = delete;
  buffer_table& operator=(const buffer_table&) = delete;
  ~buffer_table() {
    for (auto& l : all_) {
      if (l->current != nullptr) leave_block_(*l);
      if (l->records != nullptr) leave_chunk_(*l);
    }
  }

  /// The worker buffer of the worker with that number; 0: of threads that are no workers. *Throws*:
  /// std::bad_alloc.
  worker_buffer& of(std::uint32_t worker) {
    const position p(worker);
    const entry* const entries = table_[p.row].load(base::memory_order_acquire);  // pairs with add_
    worker_buffer* const l =
        entries != nullptr ? entries[p.column].load(base::memory_order_acquire) : nullptr;  // pairs with add_
    return l != nullptr ? *l : add_(p);
  }
  /// Memory for a record. *Throws*: std::bad_alloc.
  void* record(worker_buffer& l, std::size_t size) {
    size = (size + 15) / 16 * 16;
    if (l.records == nullptr || chunk::size - l.records->used < size) {
      chunk* const fresh = pool_.take_chunk();
      if (l.records != nullptr) leave_chunk_(l);
      l.records = fresh;
    }
    chunk& c = *l.records;
    void* const place = reinterpret_cast<std::byte*>(&c) + c.used;
    c.used += size;
    ++c.records;
    return place;
  }
  /// Gives the worker buffer an empty block for its full one, which is written to a file where the layout or
  /// the lack of memory says so. *Throws*: std::system_error, std::bad_alloc.
  void renew(worker_buffer& l) {
    const std::lock_guard hold(l.mutex);
    if (block* const b = l.current) {
      const bool files = layout_.files_blocks();
      if (files) layout_.file_block(*b, b->used);
      if (b->users.load(base::memory_order_acquire) == -b->extents) {  // all of it has been placed
        b->begin_anew();
        if (files) layout_.begin_block(l.number, *b);
        return;
      }
      if (files)
        let_bytes_go_(*b);
      else if (pool_.in_use() + pool_.block_size() > budget_)
        spill_(l, *b);
      leave_block_(l);
    }
    block* const fresh = pool_.take_block();
    if (layout_.files_blocks()) layout_.begin_block(l.number, *fresh);
    l.current = fresh;
  }
  /// A worker buffer of its own for whoever has the frontier. *Throws*: std::bad_alloc.
  worker_buffer& extra() {
    const std::lock_guard hold(mutex_);
    return make_();
  }
  /// An extent grows no more: notes its checksum. `own`: the worker buffer of the calling worker, if the
  /// extent was made there. *Throws*: std::system_error.
  void seal(extent& e, const worker_buffer* own) const {
    block& b = *e.in;
    const std::size_t size = e.end - e.begin;
    const auto in_memory = [&] { return io::crc32c(b.bytes.get() + e.begin, size); };
    if (own != nullptr && own->current == &b) {  // nobody else gives it up
      e.crc = in_memory();
    } else if (b.hold()) {
      e.crc = in_memory();
      b.let_go(1);
    } else {  // the block became full while the body waited
      e.crc = layout_.checksum(b, e.begin, size);
    }
  }
  /// Writes what is left in the worker buffers of a stream whose blocks are filed. *Requires*: no task
  /// appends.
  void file_all() {
    if (!layout_.files_blocks()) return;
    for (auto& l : all_)
      if (l->current != nullptr) {
        layout_.file_block(*l->current, l->current->used);
        leave_block_(*l);
      }
  }
  /// Writes to their files what the frontier has passed, where blocks are filed. *Requires*: the caller has
  /// the frontier.
  void file_passed() {
    for (std::size_t i = 0;; ++i) {
      worker_buffer* l = nullptr;
      {
        const std::lock_guard hold(mutex_);
        if (i == all_.size()) return;
        l = all_[i].get();
      }
      const std::lock_guard hold(l->mutex);
      if (l->current != nullptr) layout_.file_block(*l->current, l->current->passed);
    }
  }
  /// Extents of a block have been passed.
  void release(block& b, std::int64_t extents) noexcept {
    // Release and acquire: whoever recycles it comes after all who used it.
    if (b.users.fetch_sub(extents, base::memory_order_acq_rel) == extents) recycle_(b);
  }
  /// Reads bytes of a block that is in a scratch file. *Throws*: std::system_error.
  void fetch(const block& b, std::size_t begin, std::byte* to, std::size_t size) {
    const std::lock_guard hold(mutex_);
    traced_transfer("read", size, [&] { all_[b.file]->scratch.read_at(to, size, b.begin + begin); });
  }
  /// Bytes written to scratch files so far.
  std::uint64_t spilled() const noexcept { return spilled_.load(base::memory_order_relaxed); }

 private:
  using entry = base::atomic<worker_buffer*>;
  /// Where a number stands in the table: rows hold 1, 1, 2, 4, 8, ... numbers, and are made when they are
  /// needed.
  struct position {
    std::size_t row, column;
    explicit position(std::uint32_t n) noexcept
        : row(static_cast<std::size_t>(std::bit_width(n))), column(n - std::bit_floor(n)) {}
  };
  static constexpr std::size_t rows = std::bit_width(sched::worker_number::most) + 1;

  worker_buffer& add_(position p) {
    const std::lock_guard hold(mutex_);
    // Relaxed: they are changed under the lock only.
    entry* entries = table_[p.row].load(base::memory_order_relaxed);
    if (entries == nullptr) {
      rows_.push_back(std::make_unique<entry[]>(p.row < 2 ? 1 : std::size_t{1} << (p.row - 1)));
      entries = rows_.back().get();
      table_[p.row].store(entries, base::memory_order_release);  // pairs with of
    }
    if (worker_buffer* const l = entries[p.column].load(base::memory_order_relaxed)) return *l;
    worker_buffer& l = make_();
    entries[p.column].store(&l, base::memory_order_release);  // pairs with of
    return l;
  }
  worker_buffer& make_() {
    all_.push_back(std::make_unique<worker_buffer>());
    all_.back()->number = static_cast<std::uint32_t>(all_.size() - 1);
    return *all_.back();
  }
  void spill_(worker_buffer& l, block& b) {
    if (!b.begin_move()) return;
    try {
      if (!l.scratch) {
        const io::directory in(scratch_);
        l.scratch = io::unnamed_file(in, io::directory::name_in(scratch_), 0600).keep_unnamed();
      }
      traced_transfer("write", b.used, [&] { l.scratch.write_at(b.bytes.get(), b.used, l.scratch_size); });
    } catch (...) {
      b.end_move(false);
      throw;
    }
    b.file = l.number;
    b.begin = l.scratch_size;
    l.scratch_size += b.used;
    spilled_.fetch_add(b.used, base::memory_order_relaxed);
    pool_.give_back_bytes(b);
    b.end_move(true);
  }
  /// The content of a block is in its file. Who seals an extent of it just now keeps the memory.
  void let_bytes_go_(block& b) noexcept {
    if (!b.begin_move()) return;
    pool_.give_back_bytes(b);
    b.end_move(true);
  }
  void leave_block_(worker_buffer& l) noexcept {
    block& b = *std::exchange(l.current, nullptr);
    const std::int64_t made = b.extents;
    if (b.users.fetch_add(made, base::memory_order_acq_rel) == -made) recycle_(b);
  }
  void recycle_(block& b) noexcept { pool_.give_back(&b); }
  void leave_chunk_(worker_buffer& l) noexcept {
    chunk& c = *std::exchange(l.records, nullptr);
    if (c.live.fetch_add(c.records, base::memory_order_acq_rel) == -c.records) pool_.give_back(&c);
  }

  memory_pool& pool_;
  stream_layout& layout_;
  const std::size_t budget_;
  const std::string scratch_;
  base::atomic<std::uint64_t> spilled_{0};
  std::array<base::atomic<entry*>, rows> table_{};
  base::mutex mutex_;
  std::vector<std::unique_ptr<entry[]>> rows_;
  std::vector<std::unique_ptr<worker_buffer>> all_;
};

}  // namespace weft::inline WEFT_ABI::stream
