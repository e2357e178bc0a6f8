// SPDX-License-Identifier: BSL-1.0
// The memory of a window: allocated, reached in the best way there is, and locked.
#pragma once

#include <weft/mpi/communicator.hpp>
#include <weft/rma/detail/message_memory.hpp>
#include <weft/rma/detail/mpi_memory.hpp>
#include <weft/rma/detail/probe.hpp>
#include <weft/rma/detail/target_locks.hpp>
#include <weft/rma/window_options.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft::inline WEFT_ABI::rma::detail {

/// Bytes in each process of a group, zero at first; words for locks lie before them. Constructor and
/// destructor are collective. *Throws*: weft::error if the backend cannot be had; mpi::error.
class window_memory {
 public:
  window_memory(const mpi::communicator& group, std::size_t bytes, const window_options& options)
      : group_(group.handle()), options_(options) {
    check_options_();
    mpi::communicator node = group_.node();
    const int least = group_.min(node.size());
    const bool one_node = least == group_.size();
    if (!one_node && options_.backend == backend::shared)
      throw error("weft: a window in shared memory needs all processes on one node");
    if (options_.backend == backend::automatic)
      options_.backend = one_node ? backend::shared : backend::between_nodes;
    if (options_.group == 0) options_.group = least;
    each_ = words_of_locks(options_.lock, group_.size());
    const std::size_t words = options_.locks * each_ + 1;  // one for the probe
    before_ = lines_(words * sizeof(std::uint64_t));
    // Whole lines: with other sizes MPICH 4.0 reaches another place than the target itself.
    size_ = before_ + lines_(bytes) + line;
    if (options_.backend == backend::shared)
      share_();
    else
      choose_(static_cast<std::uint32_t>(words - 1));
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
    free_();
  }

  const mpi::communicator& group() const noexcept { return group_; }
  /// What it has become.
  const window_options& options() const noexcept { return options_; }
  /// Whether a process may stay outside MPI while others use its memory.
  bool one_sided() const noexcept { return one_sided_; }
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

  void check_options_() const {
    if (options_.group < 0 || options_.most_writers_in_a_row < 1 || options_.locks < 1)
      throw error("weft: a window has at least one lock, a group one process, and one writer in a row");
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

  void share_() {
    void* base = nullptr;
    mpi::detail::check(MPI_Win_allocate_shared(static_cast<MPI_Aint>(size_), 1, MPI_INFO_NULL,
                                               group_.handle(), &base, &window_),
                       "MPI_Win_allocate_shared");
    MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
    std::vector<std::uint64_t*> words;
    for (process p = 0; p < group_.size(); ++p) {
      MPI_Aint size = 0;
      int unit = 0;
      void* at = nullptr;
      mpi::detail::check(MPI_Win_shared_query(window_, p, &size, &unit, &at), "MPI_Win_shared_query");
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
  }

  /// Memory that is reached by MPI's operations, or by messages. `spare`: a word for the probe.
  void choose_(std::uint32_t spare) {
    void* base = nullptr;
    mpi::detail::check(
        MPI_Win_allocate(static_cast<MPI_Aint>(size_), 1, MPI_INFO_NULL, group_.handle(), &base, &window_),
        "MPI_Win_allocate");
    MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
    std::memset(base, 0, size_);
    own_ = static_cast<std::byte*>(base) + before_;
    if (options_.backend != backend::messages) {
      remote_ = std::make_unique<mpi_memory>(window_);
      group_.barrier();
      const probe_result found = probe(memory_words(*remote_, group_.rank()), spare, group_);
      one_sided_ = found.one_sided;
      if (found.wrong != nullptr) why_ = std::string("MPI loses ") + found.wrong;
      if (!found.one_sided) why_ = "MPI needs the target's calls";
      if (options_.backend == backend::between_nodes)
        options_.backend = why_.empty() ? backend::mpi : backend::messages;
      else if (found.wrong != nullptr)
        refuse_(std::string("weft: one-sided operations of this MPI are not atomic: ") + found.wrong);
    }
    if (options_.backend == backend::messages) {
      remote_.reset();
      remote_ = std::make_unique<message_memory>(group_, static_cast<std::byte*>(base));
      one_sided_ = true;
    }
    make_locks_([&](std::size_t first) {
      return memory_words(*remote_, group_.rank(), static_cast<std::uint32_t>(first));
    });
  }
  [[noreturn]] void refuse_(const std::string& what) {
    free_();
    throw error(what);
  }
  void free_() {
    locks_.clear();
    remote_.reset();
    MPI_Win_free(&window_);
  }
  void report_() const {
    if (group_.rank() != 0 || std::getenv("WEFT_MPI_VERBOSE") == nullptr) return;
    std::fprintf(stderr, "weft: window in %d processes: backend %s%s%s%s, locks %s, targets %s\n",
                 group_.size(), name(options_.backend), why_.empty() ? "" : " (", why_.c_str(),
                 why_.empty() ? "" : ")", name(options_.lock),
                 one_sided_ ? "may stay outside MPI" : "must call MPI now and then");
  }

  mpi::communicator group_;
  window_options options_;
  std::size_t each_ = 0, before_ = 0, size_ = 0;  // words of a lock; bytes before the elements, and in all
  MPI_Win window_ = MPI_WIN_NULL;
  std::byte* own_ = nullptr;
  std::vector<std::byte*> addresses_;  // of each process; backend shared
  std::unique_ptr<remote_memory> remote_;
  std::vector<std::unique_ptr<target_locks>> locks_;
  bool one_sided_ = true;
  std::string why_;  // what speaks against the operations of MPI
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace weft::inline WEFT_ABI::rma::detail
