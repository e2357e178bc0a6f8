// SPDX-License-Identifier: BSL-1.0
// How a thread that wants to go to another process meets what takes it there.
#pragma once

#include <weft/blocking/external_event.hpp>

namespace weft::inline WEFT_ABI::sched {

/// The body of a migratable thread, while this process executes it. Belongs to its strand.
struct migratable_body {
  int wish = -1;        ///< the process to which it has asked to go in this call; -1: none
  int refused_by = -1;  ///< the process that could not take it, after which it has come here; -1: none
};

/// A thread that is to go on in another process. Lives in the frame of its body here, which waits for the
/// event.
///
/// Who may touch it when: the body until it gives it to the carrier, and after the event; in between the
/// carrier.
struct leaving_thread {
  closure* call;   ///< of the body; that is executed in the other process
  int to;          ///< that one
  strand* place;   ///< of the body here,
  engine* home;    ///< and its engine
  closure* event;  ///< in the frame of the body here: ends when the call has ended there, or was refused
  bool refused = false;            ///< the other process cannot take it: `call` still has its arguments
  leaving_thread* next = nullptr;  ///< in the carrier's list
};

/// *Thread safety*: any thread.
struct thread_carrier {
  /// The number of this process, and how many there are.
  virtual int process() const noexcept = 0;
  virtual int processes() const noexcept = 0;
  /// Whether threads can leave: a run of the cluster is going on, not one of a step or of the runtime alone.
  virtual bool serves() const noexcept = 0;
  /// Takes it there, and brings back how it has ended. *Requires*: there is such a process, another one,
  /// and it serves.
  virtual void take(leaving_thread& t) noexcept = 0;

 protected:
  ~thread_carrier() = default;
};

}  // namespace weft::inline WEFT_ABI::sched
