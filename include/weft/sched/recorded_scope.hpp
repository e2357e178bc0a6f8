// SPDX-License-Identifier: BSL-1.0
// A recorded graph of tasks, and the extent of a call whose forks are recorded or replayed.
#pragma once

#include <weft/sched/sync.hpp>
#include <weft/task/recorded_call.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Owns a record, empty at first.
class record_owner {
 public:
  /// *Throws*: std::bad_alloc.
  record_owner();
  record_owner(const record_owner&) = delete;
  record_owner& operator=(const record_owner&) = delete;
  ~record_owner();

 private:
  friend class recorded_scope;
  record* record_;
};

/// Makes the forks of the running body part of a record, as long as it lives.
class recorded_scope {
 public:
  /// Contract violation outside tasks.
  recorded_scope(strand& s, record_owner& o) noexcept;
  recorded_scope(const recorded_scope&) = delete;
  recorded_scope& operator=(const recorded_scope&) = delete;
  ~recorded_scope();
  /// To be called when the function has returned.
  void end() noexcept;

 private:
  strand& strand_;
  recorded_call call_;
};

}  // namespace weft::inline WEFT_ABI::sched
