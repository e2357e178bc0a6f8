// SPDX-License-Identifier: BSL-1.0
// Paths through the tasks of a run: chains of work that share their beginnings and free what nobody needs.
#pragma once

#include <weft/base/config.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

namespace weft::inline WEFT_ABI::observe {

/// A piece of work of one task on a path, behind another one.
struct path_piece {
  path_piece* before;
  std::uint64_t length;  ///< in ticks
  std::uint32_t type;    ///< of the task
  std::uint32_t users;
};

/// The memory of all paths of a record. *Thread safety*: one thread at a time.
class path_memory {
 public:
  path_piece* make(path_piece* before, std::uint64_t length, std::uint32_t type) {
    path_piece* p = free_;
    if (p != nullptr)
      free_ = p->before;
    else
      p = &all_.emplace_back();
    if (before != nullptr) ++before->users;
    *p = {before, length, type, 1};
    return p;
  }
  void release(path_piece* p) noexcept {
    while (p != nullptr && --p->users == 0) p = std::exchange(p->before, std::exchange(free_, p));
  }

 private:
  std::deque<path_piece> all_;
  path_piece* free_ = nullptr;
};

/// The end of a path, and so all of it.
class path {
 public:
  path() = default;
  path(const path& p) noexcept : memory_(p.memory_), end_(p.end_) {
    if (end_ != nullptr) ++end_->users;
  }
  path(path&& p) noexcept : memory_(p.memory_), end_(std::exchange(p.end_, nullptr)) {}
  path& operator=(path p) noexcept {
    std::swap(memory_, p.memory_);
    std::swap(end_, p.end_);
    return *this;
  }
  ~path() {
    if (end_ != nullptr) memory_->release(end_);
  }

  /// Adds work at the end.
  void add(path_memory& m, std::uint64_t length, std::uint32_t type) {
    path longer;
    longer.memory_ = &m;
    if (end_ != nullptr && end_->type == type && end_->users == 1) {
      end_->length += length;
      return;
    }
    longer.end_ = m.make(end_, length, type);
    *this = std::move(longer);
  }
  const path_piece* end() const noexcept { return end_; }

 private:
  path_memory* memory_ = nullptr;
  path_piece* end_ = nullptr;
};

/// A moment of the ideal run, with as many workers as there is use for.
struct instant {
  std::uint64_t span = 0;      ///< ticks since the run began
  std::uint64_t burdened = 0;  ///< the same, if each task that begins and each wait costs a steal
  path way;                    ///< to it

  void wait_for(const instant& other) {
    if (other.span > span) {
      span = other.span;
      way = other.way;
    }
    if (other.burdened > burdened) burdened = other.burdened;
  }
};

}  // namespace weft::inline WEFT_ABI::observe
