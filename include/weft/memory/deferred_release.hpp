// SPDX-License-Identifier: BSL-1.0
// Objects whose handles have ended, but that could not be released at once: children may have used them, or
// younger objects lay above.
#pragma once

#include <weft/base/config.hpp>
#include <weft/memory/cleanup.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::sched {

/// The deferred releases of the bodies of a strand; the running body is the last one that has any. What is
/// not noted here is released when its task ends. *Thread safety*: belongs to the owner of the strand.
class deferred_release {
  struct range {
    std::byte* begin;
    std::byte* end;
  };
  struct summary {
    bool any = false;
    bool more = false;         // ranges besides the last one
    bool waiting = false;      // some handle ended while children could still use the object
    bool reserved = false;     // fills the word, so that one store clears it
    std::uint32_t linked = 0;  // ended handles whose records are still in the list of cleanups
  };

 public:
  /// What a body that is interrupted by others has left.
  class body {
    friend class deferred_release;
    summary sum_;
    range last_{};
    std::size_t first_ = 0, count_ = 0;
    const cleanup* base_ = nullptr;
  };

  /// Whether the running body has any.
  WEFT_ALWAYS_INLINE bool any() const noexcept { return sum_.any; }
  /// A new body has begun, and has none.
  WEFT_ALWAYS_INLINE void begin_body() noexcept { sum_ = {}; }
  /// Puts the deferred releases of the running body aside while others run: a task inside fork whose cleanups
  /// begin at `base`, or its children.
  body put_aside(const cleanup* base = nullptr) noexcept {
    body b;
    b.sum_ = std::exchange(sum_, summary{});
    b.last_ = last_;
    b.first_ = std::exchange(first_, b.sum_.more ? count_ : first_);
    b.count_ = count_;
    b.base_ = std::exchange(base_, base);
    return b;
  }
  /// Goes on with a body that was put aside; what was left since is released already.
  void resume(const body& b) noexcept {
    sum_ = b.sum_;
    last_ = b.last_;
    first_ = b.first_;
    count_ = b.count_;
    base_ = b.base_;
  }
  /// The same, where what was left since falls to the body that was put aside.
  void inherit(const body& b) noexcept {
    const summary own = sum_;
    const range last = last_;
    const std::size_t first = first_, count = own.more ? count_ : first_;
    resume(b);
    if (!own.any) return;
    for (std::size_t i = first; i < count; ++i) note(ranges_[i].begin, ranges_[i].end);
    note(last.begin, last.end);
    sum_.waiting |= own.waiting;
    sum_.linked += own.linked;
  }

  /// Notes the memory of an object if that is simple. *Returns*: whether it was.
  WEFT_ALWAYS_INLINE bool try_note(std::byte* begin, std::byte* end) noexcept {
    if (!sum_.any) {
      sum_.any = true;
      last_ = {begin, end};
      return true;
    }
    if (last_.begin != end) return false;
    last_.begin = begin;  // scopes end their objects youngest first
    return true;
  }
  /// Notes the memory of an object.
  void note(std::byte* begin, std::byte* end) noexcept {
    if (!try_note(begin, end)) note_apart(begin, end);
  }
  /// Notes the record of an object that stays in the list of cleanups.
  void note(cleanup& c, handle how, std::byte* end) noexcept {
    note(reinterpret_cast<std::byte*>(&c), end);
    c.how = how;
    ++sum_.linked;
    sum_.waiting |= how == handle::waiting;
  }

  /// Destroys what waited for children, and releases what lies above all living objects. *Requires*: the
  /// running body has no children; its list of cleanups begins at `base`.
  void release(arena& objects, cleanup*& cleanups, const cleanup* base) noexcept {
    if (std::exchange(sum_.waiting, false)) {
      std::uint32_t found = 0;
      for (cleanup* c = cleanups; c != base && found != sum_.linked; c = c->below) {
        found += c->how != handle::held;
        if (c->how == handle::waiting) c->run();
        if (c->how == handle::waiting) c->how = handle::ended;
      }
    }
    for (; sum_.linked != 0 && cleanups != base && cleanups != base_ && cleanups->how == handle::ended;
         --sum_.linked)
      cleanups = cleanups->below;
    // The records in the topmost range are out of the list now: no younger object is alive.
    while (last_.begin != nullptr && brings_up(objects.top())) {
      objects.release_to(last_.begin);
      last_ = sum_.more ? ranges_[--count_] : range{};
      sum_.more = sum_.more && count_ > first_;
    }
    sum_.any = last_.begin != nullptr || sum_.linked != 0;
  }

 private:
  /// Makes the range that ends at `top` the last one, if it is among the youngest.
  bool brings_up(const std::byte* top) noexcept {
    constexpr std::size_t reach = 8;
    if (last_.end == top) return true;
    if (!sum_.more) return false;
    for (std::size_t i = count_; i > first_ && i + reach > count_; --i)
      if (ranges_[i - 1].end == top) {
        std::swap(ranges_[i - 1], last_);
        return true;
      }
    return false;
  }
  WEFT_COLD void note_apart(std::byte* begin, std::byte* end) noexcept {
    if (last_.end == begin) {
      last_.end = end;
      return;
    }
    if (last_.begin != nullptr) {
      if (!sum_.more) count_ = first_;
      try {
        if (ranges_.size() == count_) ranges_.emplace_back();
      } catch (const std::bad_alloc&) {
        return;  // these bytes are released with their task
      }
      ranges_[count_++] = last_;
      sum_.more = true;
    }
    last_ = {begin, end};
  }

  summary sum_;
  range last_{};
  std::vector<range> ranges_;  // the earlier ones of the running body: from first_ on, count_ in all
  std::size_t first_ = 0, count_ = 0;
  const cleanup* base_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::sched
