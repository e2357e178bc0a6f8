// SPDX-License-Identifier: BSL-1.0
// Lets no task of the process run inside fork while its bodies may wait for one another.
#pragma once

#include <weft/base/config.hpp>

namespace weft::inline WEFT_ABI::sched {

/// From begin() to the end of this object no task of the process runs inside fork: a body that waits there
/// for a task that the body around it forks later would wait for ever. Tasks that run inside fork already go
/// on. *Thread safety*: one thread at a time; any number of objects.
class inlining_disabled {
 public:
  inlining_disabled() = default;
  inlining_disabled(const inlining_disabled&) = delete;
  inlining_disabled& operator=(const inlining_disabled&) = delete;
  ~inlining_disabled() {
    if (begun_) end_();
  }

  /// Does nothing the second time. *Cost*: an atomic addition; a visit to each strand of the process if no
  /// other object has begun. *Requires*: the caller holds no lock of the library.
  void begin() {
    if (!begun_) begin_();
    begun_ = true;
  }

 private:
  static void begin_();
  static void end_() noexcept;

  bool begun_ = false;
};

}  // namespace weft::inline WEFT_ABI::sched
