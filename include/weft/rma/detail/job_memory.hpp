// SPDX-License-Identifier: BSL-1.0
// The memory of a window of an MPI job: allocated, and reached in the best way there is.
#pragma once

#include <weft/mpi/communicator.hpp>
#include <weft/rma/detail/known_faults.hpp>
#include <weft/rma/detail/message_memory.hpp>
#include <weft/rma/detail/mpi_lock.hpp>
#include <weft/rma/detail/mpi_memory.hpp>
#include <weft/rma/detail/owned_window.hpp>
#include <weft/rma/detail/probe.hpp>
#include <weft/rma/detail/window_memory.hpp>
#include <weft/system/environment.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace weft::inline WEFT_ABI::rma::detail {

/// *Throws*: as window_memory; weft::error also if a backend or locks are asked for that this MPI does not
/// have, or only as a fault.
class job_memory final : public window_memory<mpi::communicator> {
 public:
  /// `size` elements of `bytes` bytes.
  job_memory(const mpi::communicator& group, std::size_t size, std::size_t bytes,
             const window_options& options)
      : window_memory(mpi::communicator(group.handle()), size, bytes, options) {
    const int least = group_.min(group_.node().size());
    const bool one_node = least == group_.size();
    if (options_.backend == backend::threads)
      throw error("weft: the processes of an MPI job cannot have the backend threads");
    if (!one_node && options_.backend == backend::shared)
      throw error("weft: a window in shared memory needs all processes on one node");
    if (options_.group == 0) options_.group = least;
    set_sizes_(size, bytes);
    const char* const fault = known_fault();
    const bool faulty = group_.max<int>(fault != nullptr) != 0;
    if (faulty) why_ = fault != nullptr ? fault : "another process has another MPI";
    if (faulty && options_.lock == lock_kind::mpi)
      throw error("weft: the locks of this MPI cannot be used: " + why_);
    const bool may_share = options_.backend == backend::shared || options_.backend == backend::automatic;
    try {
      if (!may_share || !one_node || !share_()) choose_(faulty);
      report_();
      group_.barrier();
    } catch (...) {  // what uses the memory ends before it
      locks_.clear();
      remote_.reset();
      throw;
    }
  }
  job_memory(const job_memory&) = delete;
  job_memory& operator=(const job_memory&) = delete;
  ~job_memory() {
    if (close_()) return;
    // Others still use the memory, and to end anything here would wait for them.
    for (auto& l : locks_) static_cast<void>(l.release());
    static_cast<void>(remote_.release());
    window_.leave();
    static_cast<void>(own_memory_.release());
  }

 private:
  /// Executes what is not collective; collective itself. *Throws*: what `f` throws here, or an exception that
  /// stands for what it throws in another process: so in all processes or in none.
  template <class F>
  void agreed_(F&& f) {
    enum { nothing, no_memory, other } kind = nothing;
    std::exception_ptr failure;
    try {
      f();
    } catch (const std::bad_alloc&) {
      kind = no_memory;
      failure = std::current_exception();
    } catch (...) {
      kind = other;
      failure = std::current_exception();
    }
    const int worst = group_.max<int>(kind);
    if (failure) std::rethrow_exception(failure);
    if (worst == no_memory) throw std::bad_alloc();
    if (worst == other) throw error("weft: another process cannot make its part of a window");
  }
  /// Makes the locks. `make` calls make_locks_() with what it is given for those that are MPI's.
  template <class F>
  void agree_on_locks_(F&& make) {
    std::vector<mpi_lock*> of_mpi;
    agreed_([&] {
      make([&]() -> std::unique_ptr<lock_of_targets> {
        if (options_.lock != lock_kind::mpi) return nullptr;
        auto made = std::make_unique<mpi_lock>(group_.size());
        of_mpi.push_back(made.get());
        return made;
      });
    });
    for (mpi_lock* const l : of_mpi) l->begin(group_);
  }
  /// The next cache line.
  static std::byte* line_at_(void* at) noexcept {
    return static_cast<std::byte*>(at) + (line - reinterpret_cast<std::uintptr_t>(at) % line) % line;
  }

  /// Memory that all processes have mapped. *Returns*: false if MPI has none, and it is not demanded.
  bool share_() {
    if (const int code = window_.allocate(group_, size_, true); code != MPI_SUCCESS) {
      if (options_.backend == backend::shared) throw mpi::error("MPI_Win_allocate_shared", code);
      return false;
    }
    options_.backend = backend::shared;
    std::vector<std::uint64_t*> words;
    agreed_([&] {
      for (process p = 0; p < group_.size(); ++p) {
        MPI_Aint size = 0;
        int unit = 0;
        void* at = nullptr;
        mpi::detail::check(MPI_Win_shared_query(window_.handle(), p, &size, &unit, &at),
                           "MPI_Win_shared_query");
        std::byte* const begin = line_at_(at);  // as far in all processes, since pages are aligned
        words.push_back(reinterpret_cast<std::uint64_t*>(begin));
        addresses_.push_back(begin + before_);
      }
    });
    own_ = addresses_[static_cast<std::size_t>(group_.rank())];
    std::memset(own_ - before_, 0, size_ - line);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    agree_on_locks_([&](auto&& of_mpi) { share_locks_(words, of_mpi); });
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
    agree_on_locks_([&](auto&& of_mpi) {
      make_locks_(
          [&](std::size_t first) {
            return memory_words(*remote_, group_.rank(), static_cast<std::uint32_t>(first));
          },
          of_mpi);
    });
  }
  probe_result try_mpi_() {
    if (const int code = window_.allocate(group_, size_, false); code != MPI_SUCCESS)
      return {.wrong = text_of(mpi::error("MPI_Win_allocate", code)), .one_sided = false};
    // MPI aligns the parts to 8 or 16 bytes, and each in its own way.
    std::byte* const begin = line_at_(window_.base());
    std::memset(begin, 0, size_ - line);
    own_ = begin + before_;
    std::vector<MPI_Aint> begins;
    agreed_([&] { begins.resize(static_cast<std::size_t>(group_.size())); });
    const MPI_Aint mine = begin - static_cast<std::byte*>(window_.base());
    mpi::detail::check(MPI_Allgather(&mine, 1, MPI_AINT, begins.data(), 1, MPI_AINT, group_.handle()),
                       "MPI_Allgather");
    std::string failed;
    agreed_([&] {
      try {
        remote_ = std::make_unique<mpi_memory>(window_.handle(), std::move(begins));
      } catch (const mpi::error& e) {
        failed = text_of(e);
      }
    });
    if (group_.max<int>(!failed.empty()) != 0)
      return {.wrong = failed.empty() ? fails_elsewhere : failed, .one_sided = false};
    const auto spare = static_cast<std::uint32_t>(options_.locks * each_);
    return probe(memory_words(*remote_, group_.rank()), spare,
                 reinterpret_cast<std::uint64_t*>(begin)[spare + 1], group_);
  }
  void report_() const {
    if (group_.rank() != 0 || !verbose_) return;
    std::fprintf(stderr, "weft: window in %d processes: backend %s%s%s%s, locks %s, targets %s\n",
                 group_.size(), name(options_.backend), why_.empty() ? "" : " (", why_.c_str(),
                 why_.empty() ? "" : ")", name(options_.lock),
                 one_sided() ? "may stay outside MPI" : "must call MPI now and then");
  }

  const bool verbose_ = base::environment_bool("WEFT_MPI_VERBOSE").value_or(false);
  struct free_memory {
    void operator()(std::byte* at) const noexcept { std::free(at); }
  };
  // What the destructor frees, collectively and in the reverse order.
  owned_window window_;
  std::unique_ptr<std::byte, free_memory> own_memory_;
  std::string why_;  // what speaks against the operations of MPI, if they are not used
};

template <>
struct memory_of<mpi::communicator> {
  using type = job_memory;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
