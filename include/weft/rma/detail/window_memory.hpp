// SPDX-License-Identifier: BSL-1.0
// The memory of a window, of whatever processes: what it is like, how it is reached and locked.
#pragma once

#include <weft/rma/detail/remote_memory.hpp>
#include <weft/rma/detail/target_locks.hpp>
#include <weft/rma/process_group.hpp>
#include <weft/rma/window_options.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::rma::detail {

/// Elements in each process of a group, zero at first; words for locks lie before them. A class that derives
/// from it allocates them, for one kind of group. Constructor and destructor are collective. *Throws*:
/// weft::error if processes ask for different windows or for what there cannot be; std::length_error if it is
/// too large; std::bad_alloc; what the group throws; each in all processes.
template <process_group Group>
class window_memory {
 public:
  window_memory(const window_memory&) = delete;
  window_memory& operator=(const window_memory&) = delete;

  const Group& group() const noexcept { return group_; }
  /// What it has become.
  const window_options& options() const noexcept { return options_; }
  /// Whether a process may do something else while others use its memory and its locks.
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
    if (number >= locks_.size()) [[unlikely]]
      refuse_lock_(number);
    return *locks_[number];
  }

 protected:
  static constexpr std::size_t line = 64;

  /// `size` elements of `bytes` bytes.
  window_memory(Group group, std::size_t size, std::size_t bytes, const window_options& options)
      : group_(std::move(group)), options_(options) {
    check_same_(size, bytes);
    if (options_.group < 0 || options_.most_writers_in_a_row < 1 || options_.locks < 1)
      throw error("weft: a window has at least one lock, a group one process, and one writer in a row");
  }
  ~window_memory() = default;

  /// A destructor begins with it: waits for the other processes, and ends them with a message if this one
  /// holds a lock. *Returns*: false if the window is left by an exception: then nobody is waited for, and
  /// what others may use has to stay as it is.
  bool close_() noexcept {
    if (std::uncaught_exceptions() > exceptions_) {
      group_.abandon();
      return false;
    }
    std::size_t held = 0;
    for (const auto& l : locks_) held += l->held_here();
    if (held != 0) group_.end_job("destroys a window of which it holds locks");
    try {
      group_.barrier();
    } catch (...) {  // the group has failed: whoever comes first has said so
    }
    locks_.clear();
    remote_.reset();
    return true;
  }
  void set_sizes_(std::size_t size, std::size_t bytes) {
    each_ = words_of_locks(options_.lock, group_.size());
    constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
    const std::size_t words = options_.locks * each_;
    if (words > std::numeric_limits<std::uint32_t>::max() - 2)
      throw std::length_error("weft: a window with " + std::to_string(options_.locks) +
                              " locks is too large");
    before_ = lines_((words + 2) * sizeof(std::uint64_t));  // two for a probe
    if (size > (most - before_ - 2 * line) / bytes)
      throw std::length_error("weft: a window of " + std::to_string(size) + " elements is too large");
    // Whole lines: with other sizes MPICH 4.0 reaches another place than the target itself.
    size_ = before_ + lines_(size * bytes) + line;
  }
  /// `words(n)`: words from the n-th of each process on; `other()`: what locks in the place of words.
  template <class F, class Other>
  void make_locks_(F&& words, Other&& other) {
    lock_context c;
    c.processes = group_.size();
    c.group = std::min(options_.group, group_.size());
    c.most_in_a_row = options_.most_writers_in_a_row;
    for (std::size_t i = 0; i < options_.locks; ++i)
      locks_.push_back(
          std::make_unique<target_locks>(options_.lock, options_.lock_all, c, words(i * each_), other()));
  }
  /// Makes locks of words with addresses here; `first[p]`: the first one of process p.
  template <class Other>
  void share_locks_(const std::vector<std::uint64_t*>& first, Other&& other) {
    make_locks_(
        [&](std::size_t skipped) {
          std::vector<std::uint64_t*> from = first;
          for (std::uint64_t*& w : from) w += skipped;
          return shared_words(std::move(from), group_.rank());
        },
        other);
  }
  void share_locks_(const std::vector<std::uint64_t*>& first) {
    share_locks_(first, [] { return std::unique_ptr<lock_of_targets>(); });
  }

  Group group_;
  window_options options_;
  std::size_t each_ = 0, before_ = 0, size_ = 0;  // words of a lock; bytes before the elements, and in all
  std::byte* own_ = nullptr;
  std::vector<std::byte*> addresses_;  // of each process, if they have one here
  std::unique_ptr<remote_memory> remote_;
  std::vector<std::unique_ptr<target_locks>> locks_;
  bool one_sided_ = true;

 private:
  [[noreturn]] WEFT_COLD void refuse_lock_(unsigned number) const {
    throw std::out_of_range("weft: lock " + std::to_string(number) + ", in a window with " +
                            std::to_string(locks_.size()) + " locks in each process");
  }
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
    if (group_.max(static_cast<int>(mine != group_.broadcast(mine))) != 0)
      throw error("weft: processes make one window with different sizes or options");
  }

  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace weft::inline WEFT_ABI::rma::detail
