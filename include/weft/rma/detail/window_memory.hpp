// SPDX-License-Identifier: BSL-1.0
// The memory of a window: allocated, reached in the best way there is, and locked.
#pragma once

#include <weft/mpi/communicator.hpp>
#include <weft/rma/detail/known_faults.hpp>
#include <weft/rma/detail/message_memory.hpp>
#include <weft/rma/detail/mpi_memory.hpp>
#include <weft/rma/detail/owned_window.hpp>
#include <weft/rma/detail/probe.hpp>
#include <weft/rma/detail/target_locks.hpp>
#include <weft/rma/window_options.hpp>
#include <weft/system/environment.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft::inline WEFT_ABI::rma::detail {

/// Elements in each process of a group, zero at first; words for locks lie before them. Constructor and
/// destructor are collective. *Throws*: weft::error if the backend cannot be had, or processes ask for
/// different windows; std::length_error if it is too large; std::bad_alloc; mpi::error; each in all
/// processes.
class window_memory {
 public:
  /// `size` elements of `bytes` bytes.
  window_memory(const mpi::communicator& group, std::size_t size, std::size_t bytes,
                const window_options& options)
      : group_(group.handle()), options_(options) {
    check_same_(size, bytes);
    check_options_();
    const int least = group_.min(group_.node().size());
    const bool one_node = least == group_.size();
    if (!one_node && options_.backend == backend::shared)
      throw error("weft: a window in shared memory needs all processes on one node");
    if (options_.group == 0) options_.group = least;
    each_ = words_of_locks(options_.lock, group_.size());
    set_sizes_(size, bytes);
    const char* const fault = known_fault();
    const bool faulty = group_.max<int>(fault != nullptr) != 0;
    if (faulty) why_ = fault != nullptr ? fault : "another process has another MPI";
    if (faulty && options_.lock == lock_kind::mpi)
      throw error("weft: the locks of this MPI cannot be used: " + why_);
    const bool may_share = options_.backend == backend::shared || options_.backend == backend::automatic;
    if (!may_share || !one_node || !share_()) choose_(faulty);
    report_();
    group_.barrier();
  }
  window_memory(const window_memory&) = delete;
  window_memory& operator=(const window_memory&) = delete;
  /// Ends the job with a message if this process holds a lock, or leaves the scope of the window by an
  /// exception: the others would wait for ever.
  ~window_memory() {
    if (std::uncaught_exceptions() > exceptions_)
      mpi::end_job("leaves the scope of a window by an exception");
    if (held_here_() != 0) mpi::end_job("destroys a window of which it holds locks");
    MPI_Barrier(group_.handle());
  }

  const mpi::communicator& group() const noexcept { return group_; }
  /// What it has become.
  const window_options& options() const noexcept { return options_; }
  /// Whether a process may stay outside MPI while others use its memory and its locks.
  bool one_sided() const noexcept { return one_sided_ && locks_.front()->one_sided(); }
  /// The bytes of a process where they have an address here, else null.
  std::byte* address(process p) const noexcept {
    return addresses_.empty() ? nullptr : addresses_[static_cast<std::size_t>(p)];
  }
  std::byte* own() const noexcept { return own_; }
  /// The offset of the bytes in what remote() reaches.
  std::size_t offset() const noexcept { return before_; }
  /// How bytes without an address are reached.
  remote_memory& remote() const noexcept { return *remote_; }
  /// One of the locks of each process. *Throws*: std::out_of_range if there is none with this number.
  target_locks& locks(unsigned number) {
    if (number >= locks_.size())
      throw std::out_of_range("weft: lock " + std::to_string(number) + ", in a window with " +
                              std::to_string(locks_.size()) + " locks in each process");
    return *locks_[number];
  }

 private:
  static constexpr std::size_t line = 64;
  static constexpr std::size_t lines_(std::size_t bytes) noexcept { return (bytes + line - 1) / line * line; }

  void check_same_(std::size_t size, std::size_t bytes) const {
    const std::array<std::uint64_t, 8> mine = {size,
                                               bytes,
                                               static_cast<std::uint64_t>(options_.lock),
                                               static_cast<std::uint64_t>(options_.backend),
                                               options_.locks,
                                               options_.lock_all,
                                               static_cast<std::uint64_t>(options_.group),
                                               static_cast<std::uint64_t>(options_.most_writers_in_a_row)};
    if (group_.max<int>(mine != group_.broadcast(mine)) != 0)
      throw error("weft: processes make one window with different sizes or options");
  }
  void check_options_() const {
    if (options_.group < 0 || options_.most_writers_in_a_row < 1 || options_.locks < 1)
      throw error("weft: a window has at least one lock, a group one process, and one writer in a row");
  }
  void set_sizes_(std::size_t size, std::size_t bytes) {
    constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
    const std::size_t words = options_.locks * each_;
    if (words > std::numeric_limits<std::uint32_t>::max() - 2)
      throw std::length_error("weft: a window with " + std::to_string(options_.locks) +
                              " locks is too large");
    before_ = lines_((words + 2) * sizeof(std::uint64_t));  // two for the probe
    if (size > (most - before_ - 2 * line) / bytes)
      throw std::length_error("weft: a window of " + std::to_string(size) + " elements is too large");
    // Whole lines: with other sizes MPICH 4.0 reaches another place than the target itself.
    size_ = before_ + lines_(size * bytes) + line;
  }
  lock_context context_() const noexcept {
    lock_context c;
    c.processes = group_.size();
    c.group = std::min(options_.group, group_.size());
    c.most_in_a_row = options_.most_writers_in_a_row;
    return c;
  }
  /// `words(n)`: words from the n-th of each process on.
  template <class F>
  void make_locks_(F&& words) {
    for (std::size_t i = 0; i < options_.locks; ++i)
      locks_.push_back(std::make_unique<target_locks>(group_, options_.lock, options_.lock_all, context_(),
                                                      words(i * each_)));
  }
  std::size_t held_here_() const noexcept {
    std::size_t n = 0;
    for (const auto& l : locks_) n += l->held_here();
    return n;
  }

  /// Memory that all processes have mapped. *Returns*: false if MPI has none, and it is not demanded.
  bool share_() {
    if (const int code = window_.allocate(group_, size_, true); code != MPI_SUCCESS) {
      if (options_.backend == backend::shared) throw mpi::error("MPI_Win_allocate_shared", code);
      return false;
    }
    options_.backend = backend::shared;
    std::vector<std::uint64_t*> words;
    for (process p = 0; p < group_.size(); ++p) {
      MPI_Aint size = 0;
      int unit = 0;
      void* at = nullptr;
      mpi::detail::check(MPI_Win_shared_query(window_.handle(), p, &size, &unit, &at),
                         "MPI_Win_shared_query");
      // To the next cache line; as far in all processes, since pages are aligned.
      auto* const begin =
          static_cast<std::byte*>(at) + (line - reinterpret_cast<std::uintptr_t>(at) % line) % line;
      words.push_back(reinterpret_cast<std::uint64_t*>(begin));
      addresses_.push_back(begin + before_);
    }
    own_ = addresses_[static_cast<std::size_t>(group_.rank())];
    std::memset(own_ - before_, 0, size_ - line);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    make_locks_([&](std::size_t first) {
      std::vector<std::uint64_t*> from = words;
      for (std::uint64_t*& w : from) w += first;
      return shared_words(std::move(from), group_.rank());
    });
    why_.clear();
    return true;
  }

  /// Memory that is reached by MPI's operations, or by messages. `faulty`: the operations end the job.
  void choose_(bool faulty) {
    const backend demanded =
        options_.backend == backend::automatic ? backend::between_nodes : options_.backend;
    probe_result found;
    if (faulty)
      found.wrong = why_;
    else if (demanded != backend::messages)
      found = try_mpi_();
    options_.backend = chosen(demanded, found);
    if (options_.backend == backend::messages) {
      if (demanded != backend::messages)
        why_ = found.wrong.empty() ? "MPI needs the target's calls" : found.wrong;
      remote_.reset();
      window_.reset();
      own_memory_.reset(static_cast<std::byte*>(std::aligned_alloc(line, size_)));
      if (group_.max<int>(own_memory_ == nullptr) != 0) throw std::bad_alloc();
      std::memset(own_memory_.get(), 0, size_);
      own_ = own_memory_.get() + before_;
      remote_ = std::make_unique<message_memory>(group_, own_memory_.get());
      one_sided_ = true;
    } else {
      one_sided_ = found.one_sided;
    }
    make_locks_([&](std::size_t first) {
      return memory_words(*remote_, group_.rank(), static_cast<std::uint32_t>(first));
    });
  }
  probe_result try_mpi_() {
    if (const int code = window_.allocate(group_, size_, false); code != MPI_SUCCESS)
      return {.wrong = std::string(mpi::error("MPI_Win_allocate", code).what()).substr(6),
              .one_sided = false};
    auto* const base = static_cast<std::byte*>(window_.base());
    std::memset(base, 0, size_);
    own_ = base + before_;
    remote_ = std::make_unique<mpi_memory>(window_.handle());
    group_.barrier();
    const auto spare = static_cast<std::uint32_t>(options_.locks * each_);
    return probe(memory_words(*remote_, group_.rank()), spare,
                 reinterpret_cast<std::uint64_t*>(base)[spare + 1], group_);
  }
  void report_() const {
    if (group_.rank() != 0 || !verbose_) return;
    std::fprintf(stderr, "weft: window in %d processes: backend %s%s%s%s, locks %s, targets %s\n",
                 group_.size(), name(options_.backend), why_.empty() ? "" : " (", why_.c_str(),
                 why_.empty() ? "" : ")", name(options_.lock),
                 one_sided() ? "may stay outside MPI" : "must call MPI now and then");
  }

  const bool verbose_ = base::environment_bool("WEFT_MPI_VERBOSE").value_or(false);
  mpi::communicator group_;
  window_options options_;
  std::size_t each_ = 0, before_ = 0, size_ = 0;  // words of a lock; bytes before the elements, and in all
  struct free_memory {
    void operator()(std::byte* at) const noexcept { std::free(at); }
  };
  // What the destructor frees, collectively and in the reverse order.
  owned_window window_;
  std::unique_ptr<std::byte, free_memory> own_memory_;
  std::byte* own_ = nullptr;
  std::vector<std::byte*> addresses_;  // of each process; backend shared
  std::unique_ptr<remote_memory> remote_;
  std::vector<std::unique_ptr<target_locks>> locks_;
  bool one_sided_ = true;
  std::string why_;  // what speaks against the operations of MPI, if they are not used
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace weft::inline WEFT_ABI::rma::detail
