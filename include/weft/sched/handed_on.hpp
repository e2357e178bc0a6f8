// SPDX-License-Identifier: BSL-1.0
// Checked builds: what the running body has handed on to children since its last sync, and the check against
// it.
#pragma once

#include <weft/base/contract.hpp>
#include <weft/sched/access.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::sched {

/// A right that a body gave to a child.
struct handed_right {
  const void* object;
  access_mode mode;
  const char* child;
  const void* forked_at;  ///< a return address
};

/// The log of a strand: the entries of the running body are those from `body_begin` on. Whether the child has
/// in fact ended does not count, so that a violation does not depend on the schedule. *Thread safety*:
/// belongs to the owner of the strand.
class handed_on {
 public:
  /// Begins the log of a body. *Returns*: what leave_body() needs.
  std::size_t enter_body() noexcept { return std::exchange(body_begin_, entries_.size()); }
  /// Ends it; the log of the body around it goes on.
  void leave_body(std::size_t outer) noexcept {
    forget_children();
    body_begin_ = outer;
  }
  /// After sync(), the body has full use again of what it handed on.
  void forget_children() noexcept { entries_.resize(std::min(entries_.size(), body_begin_), handed_right{}); }
  /// *Throws*: std::bad_alloc.
  void note(const void* object, access_mode mode, const char* child, const void* forked_at) {
    entries_.push_back({object, mode, child, forked_at});
  }
  /// Forgets an object whose memory may now become another's.
  void forget_object(const void* object) noexcept {
    std::erase_if(entries_, [object](const handed_right& h) { return h.object == object; });
  }
  /// Stops the program if the body may not use the object like this now.
  void check(const void* object, access_mode use, const char* parent) const noexcept {
    for (std::size_t i = body_begin_; i < entries_.size(); ++i)
      if (entries_[i].object == object && conflict(entries_[i].mode, use)) [[unlikely]]
        base::fail_after(
            "handed on at", entries_[i].forked_at,
            "task '%s' %s an object after it handed on the right to %s it to task '%s'; call weft::sync() "
            "first",
            parent != nullptr ? parent : "task", use == access_mode::read ? "reads" : "changes",
            entries_[i].mode == access_mode::read ? "read" : "change", entries_[i].child);
  }

 private:
  std::vector<handed_right> entries_;
  std::size_t body_begin_ = 0;
};

}  // namespace weft::inline WEFT_ABI::sched
