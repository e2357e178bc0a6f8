// SPDX-License-Identifier: BSL-1.0
// What a runtime consists of, behind its handle: the engine, its place among the living, the watchdog.
#pragma once

#include <weft/observe/counters.hpp>
#include <weft/options.hpp>
#include <weft/system/forked_process.hpp>
#include <weft/task/current.hpp>

#include <string>
#include <vector>

namespace weft::inline WEFT_ABI::sched {

class engine;

/// Owns all that. *Thread safety*: every member but constructor, destructor and resize from any thread; while
/// resize runs, no other member.
class runtime_state {
 public:
  /// Starts the workers. *Throws*: as weft::runtime.
  explicit runtime_state(const runtime_options& options);
  runtime_state(const runtime_state&) = delete;
  runtime_state& operator=(const runtime_state&) = delete;
  /// In a forked child, where the workers do not exist, it only lets go of them.
  ~runtime_state();

  /// *Throws*: weft::error in a forked child.
  engine& home() const;
  unsigned workers() const noexcept;
  void resize(unsigned workers);
  std::vector<int> processors() const;
  weft::counters counters() const;
  std::string describe() const;
  bool write_trace() const;
  /// Says in the trace that this process is one of several, which have numbers from 0.
  void set_rank(unsigned rank, unsigned processes) const;
  /// In which unit the runs begin that are called outside tasks; null: in none. Nothing is shown to a keeper
  /// by a runtime that is traced. *Requires*: no run is active.
  void set_unit(kept_unit* unit) const;
  /// Whether there is a trace.
  bool is_traced() const;

 private:
  struct parts;

  forked_process born_;
  parts* parts_;
};

}  // namespace weft::inline WEFT_ABI::sched
