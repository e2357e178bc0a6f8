// SPDX-License-Identifier: BSL-1.0
// Checked builds: what the running body has delegated to children since its last sync, and the check against
// it.
#pragma once

#include <weft/base/contract.hpp>
#include <weft/memory/cleanup.hpp>
#include <weft/task/access.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::sched {

/// A right that a body gave to a child.
struct delegated_right {
  const void* object;
  access_mode mode;
  const char* child;
  const void* forked_at;               ///< a return address
  const base::atomic<presence>* mark;  ///< of the child's result, if that is the object

  bool is_lost() const noexcept {
    // Relaxed: asked after the sync that has waited for the child.
    return mark != nullptr && mark->load(base::memory_order_relaxed) == presence::lost;
  }
};

/// The log of a strand: the entries of the running body are those from `begin` on, first the results that the
/// last sync found lost. Whether the child has in fact ended does not count, so that a violation does not
/// depend on the schedule. *Thread safety*: belongs to the owner of the strand.
class delegated_rights {
 public:
  struct body {
    std::size_t begin = 0, lost_end = 0;
  };

  /// Begins the log of a body. *Returns*: what leave_body() needs.
  body enter_body() noexcept { return std::exchange(body_, {entries_.size(), entries_.size()}); }
  /// Ends it; the log of the body around it goes on.
  void leave_body(const body& outer) noexcept {
    if (entries_.size() > body_.begin) entries_.resize(body_.begin);
    body_ = outer;
  }
  /// After sync(), the body has full use again of what it delegated, but for results that were lost.
  void forget_children() noexcept {
    std::size_t kept = body_.begin;
    for (std::size_t i = body_.begin; i < entries_.size(); ++i)
      if (entries_[i].is_lost()) entries_[kept++] = entries_[i];
    entries_.resize(kept);
    body_.lost_end = kept;
  }
  /// `mark`: of a result, which the child is to produce. *Throws*: std::bad_alloc.
  void note(const void* object, access_mode mode, const char* child, const void* forked_at,
            const base::atomic<presence>* mark = nullptr) {
    entries_.push_back({object, mode, child, forked_at, mark});
  }
  /// What take_back() needs.
  std::size_t mark() const noexcept { return entries_.size(); }
  /// Forgets what was noted since then: the child will never be.
  void take_back(std::size_t mark) noexcept {
    if (entries_.size() > mark) entries_.resize(mark);
  }
  /// Forgets an object whose memory may now become another's.
  void forget_object(const void* object) noexcept {
    for (const delegated_right& h : lost())
      if (h.object == object) --body_.lost_end;
    std::erase_if(entries_, [object](const delegated_right& h) { return h.object == object; });
  }
  /// Whether the body has results that were lost before its last sync.
  bool any_lost() const noexcept { return !lost().empty(); }
  /// Stops the program if a new child is given a right on one of them.
  void check_present(const void* object, const char* child) const noexcept {
    for (const delegated_right& h : lost())
      if (h.object == object && h.is_lost()) [[unlikely]]
        base::fail_after(
            "forked at", h.forked_at,
            "task '%s' is given a right on the result of task '%s', which failed or was dropped: "
            "there is no value",
            child, h.child);
  }
  /// Stops the program if the body may not use the object like this now.
  void check(const void* object, access_mode use, const char* parent) const noexcept {
    for (std::size_t i = body_.lost_end; i < entries_.size(); ++i)
      if (entries_[i].object == object && conflict(entries_[i].mode, use)) [[unlikely]]
        base::fail_after(
            "delegated at", entries_[i].forked_at,
            "task '%s' %s an object after it delegated the right to %s it to task '%s'; call weft::sync() "
            "first",
            parent != nullptr ? parent : "task", use == access_mode::read ? "reads" : "changes",
            entries_[i].mode == access_mode::read ? "read" : "change", entries_[i].child);
  }

 private:
  std::span<const delegated_right> lost() const noexcept {
    return std::span(entries_).subspan(body_.begin, body_.lost_end - body_.begin);
  }

  std::vector<delegated_right> entries_;
  body body_;
};

}  // namespace weft::inline WEFT_ABI::sched
