// SPDX-License-Identifier: BSL-1.0
// Paths through the tasks of a run: chains of work that share their beginnings and free what nobody needs.
#pragma once

#include <weft/base/config.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

namespace weft::inline WEFT_ABI::observe {

class path_memory;

/// The work of tasks of one type on a path, behind that of others. It ends where the next piece begins.
struct path_piece {
  path_piece* before;
  std::uint64_t begin;  ///< as instant::span
  std::uint32_t type;   ///< of the tasks
  std::uint32_t users;
  path_memory* home;
};

/// The memory of all paths of a record. *Thread safety*: one thread at a time.
class path_memory {
 public:
  path_piece* make(path_piece* before, std::uint64_t begin, std::uint32_t type) {
    path_piece* p = free_;
    if (p != nullptr)
      free_ = p->before;
    else
      p = &all_.emplace_back();
    if (before != nullptr) ++before->users;
    *p = {before, begin, type, 1, this};
    return p;
  }
  /// A user has gone.
  static void release(path_piece* p) noexcept {
    while (p != nullptr && --p->users == 0) p = std::exchange(p->before, std::exchange(p->home->free_, p));
  }

 private:
  std::deque<path_piece> all_;
  path_piece* free_ = nullptr;
};

/// The end of a path, and so all of it.
class path {
 public:
  path() = default;
  path(const path& p) noexcept : end_(p.end_) {
    if (end_ != nullptr) ++end_->users;
  }
  path(path&& p) noexcept : end_(std::exchange(p.end_, nullptr)) {}
  /// Becomes the same path. *Requires*: there was none.
  void begin_with(const path& p) noexcept {
    end_ = p.end_;
    if (end_ != nullptr) ++end_->users;
  }
  path& operator=(const path& p) noexcept {
    if (this == &p || end_ == p.end_) return *this;
    if (p.end_ != nullptr) ++p.end_->users;
    drop_(std::exchange(end_, p.end_));
    return *this;
  }
  path& operator=(path&& p) noexcept {
    std::swap(end_, p.end_);
    return *this;
  }
  WEFT_ALWAYS_INLINE ~path() { drop_(end_); }
  /// Becomes empty.
  WEFT_ALWAYS_INLINE void clear() noexcept { drop_(std::exchange(end_, nullptr)); }

  /// What follows from `begin` on is work of a task of this type.
  WEFT_ALWAYS_INLINE void go_on(path_memory& m, std::uint64_t begin, std::uint32_t type) {
    if (end_ == nullptr || end_->type != type) [[unlikely]]
      begin_piece_(m, begin, type);
  }
  const path_piece* end() const noexcept { return end_; }

 private:
  WEFT_NOINLINE void begin_piece_(path_memory& m, std::uint64_t begin, std::uint32_t type) {
    path_piece* const made = m.make(end_, begin, type);
    drop_(std::exchange(end_, made));
  }
  WEFT_ALWAYS_INLINE static void drop_(path_piece* p) noexcept {
    if (p == nullptr) return;
    if (p->users != 1) [[likely]]
      --p->users;
    else
      path_memory::release(p);
  }

  path_piece* end_ = nullptr;
};

/// A moment of the ideal run, with as many workers as there is use for. Times are in parts of a tick.
struct instant {
  std::uint64_t span = 0;    ///< since the run began
  path way;                  ///< to it
  std::uint64_t burden = 0;  ///< how much later it is if each task that begins and each wait costs a steal

  /// Work of a task of this type has been done.
  WEFT_ALWAYS_INLINE void add(path_memory& m, std::uint64_t length, std::uint32_t type) {
    way.go_on(m, span, type);
    span += length;
  }
  /// Is not before the other one, with what it costs to wait for that.
  WEFT_ALWAYS_INLINE void wait_for(const instant& other, std::uint64_t cost = 0) noexcept {
    const std::uint64_t burdened = latest_(other, cost);
    if (other.span > span) {
      span = other.span;
      way = other.way;
    }
    burden = burdened - span;
  }
  /// The same; the other one becomes the beginning of the run.
  WEFT_ALWAYS_INLINE void wait_for(instant&& other, std::uint64_t cost = 0) noexcept {
    const std::uint64_t burdened = latest_(other, cost);
    if (other.span > span) {
      span = other.span;
      way = std::move(other.way);
    }
    burden = burdened - span;
    other.clear();
  }
  WEFT_ALWAYS_INLINE void clear() noexcept {
    span = burden = 0;
    way.clear();
  }

 private:
  std::uint64_t latest_(const instant& other, std::uint64_t cost) const noexcept {
    const std::uint64_t mine = span + burden, others = other.span + other.burden + cost;
    return mine > others ? mine : others;
  }
};

}  // namespace weft::inline WEFT_ABI::observe
