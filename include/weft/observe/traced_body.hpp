// SPDX-License-Identifier: BSL-1.0
// The beginning and the end of a body in the trace of the worker that executes it.
#pragma once

#include <weft/observe/open_slice.hpp>
#include <weft/task/strand.hpp>

namespace weft::inline WEFT_ABI::observe {

/// A body of the calling strand runs as long as this object lives. It may wait and go on elsewhere meanwhile.
/// Where there is no trace, nothing happens.
class traced_body {
 public:
  /// `fork`: the stamp of the task; 0 if it is not known. *Requires*: the calling thread executes the strand.
  traced_body(sched::strand& s, const char* name, std::uint64_t fork) noexcept;
  traced_body(const traced_body&) = delete;
  traced_body& operator=(const traced_body&) = delete;
  ~traced_body();

 private:
  sched::strand& strand_;
  open_slice here_{};
};

/// *Returns*: the stamp of a task that the strand is forking now: when and where, or, where there is no
/// trace, in which unit.
std::uint64_t stamp_fork(const sched::strand& s) noexcept;

/// Stands in the descriptor of a task that is traced for the run function of its kind. Where there is no
/// trace, the task is shown to the keeper of its unit.
void run_traced(sched::closure& c);

/// The descriptor of traced tasks of this kind.
constexpr sched::descriptor traced(const sched::descriptor& kind) noexcept {
  sched::descriptor d = kind;
  d.run = &run_traced;
  d.untraced = &kind;
  return d;
}

}  // namespace weft::inline WEFT_ABI::observe
