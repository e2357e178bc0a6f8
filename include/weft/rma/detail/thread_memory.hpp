// SPDX-License-Identifier: BSL-1.0
// The memory of a window of threads.
#pragma once

#include <weft/rma/detail/window_memory.hpp>
#include <weft/rma/thread_group.hpp>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace weft::inline WEFT_ABI::rma::detail {

/// Each thread allocates its own part, for the memory to be near to it; a part is freed when no thread has
/// the window any more. Who leaves it by an exception and holds one of its locks ends the process with a
/// message, since nobody else could ever get that lock. *Throws*: as window_memory; weft::error also if a
/// backend or locks are asked for that need processes.
class thread_memory final : public window_memory<thread_group> {
 public:
  /// `size` elements of `bytes` bytes.
  thread_memory(const thread_group& group, std::size_t size, std::size_t bytes, const window_options& options)
      : window_memory(thread_group(group), size, bytes, options) {
    if (options_.lock == lock_kind::mpi) throw error("weft: threads have no locks of the kind mpi");
    if (options_.backend != backend::automatic && options_.backend != backend::threads)
      throw error(std::string("weft: a window of threads cannot have the backend ") + name(options_.backend));
    options_.backend = backend::threads;
    if (options_.group == 0) options_.group = group_.size();
    set_sizes_(size, bytes);
    std::shared_ptr<std::byte> mine(static_cast<std::byte*>(std::aligned_alloc(line, size_)), &std::free);
    if (group_.max<int>(mine == nullptr) != 0) throw std::bad_alloc();
    try {
      make_(mine);
    } catch (...) {  // perhaps in this thread alone: the others are not to wait for it
      group_.abandon();
      throw;
    }
  }
  thread_memory(const thread_memory&) = delete;
  thread_memory& operator=(const thread_memory&) = delete;
  ~thread_memory() {
    if (close_()) return;
    for (const auto& l : locks_)
      if (l->held_here() != 0) group_.end_job("leaves by an exception a window of which it holds locks");
  }

 private:
  /// The parts of all threads, and the locks in them.
  void make_(const std::shared_ptr<std::byte>& mine) {
    std::memset(mine.get(), 0, size_);
    parts_ = group_.gather(mine);
    std::vector<std::uint64_t*> words;
    for (const auto& part : parts_) {
      words.push_back(reinterpret_cast<std::uint64_t*>(part.get()));
      addresses_.push_back(part.get() + before_);
    }
    own_ = mine.get() + before_;
    share_locks_(words);
    group_.barrier();
  }

  std::vector<std::shared_ptr<std::byte>> parts_;  // of all threads
};

template <>
struct memory_of<thread_group> {
  using type = thread_memory;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
