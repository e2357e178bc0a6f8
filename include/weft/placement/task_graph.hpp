// SPDX-License-Identifier: BSL-1.0
// A graph of tasks with their costs and the bytes that go between them, the machine that is to execute it,
// and what a method of placement yields.
#pragma once

#include <weft/base/config.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace weft::inline WEFT_ABI::placement {

/// Task `to` reads what task `from` has written.
struct arc {
  std::uint32_t from;  ///< the number of a task
  std::uint32_t to;    ///< the number of another one
  double bytes;        ///< that are sent where the two are on different processors
};

/// A task uses a datum.
struct use {
  std::uint32_t task;   ///< its number
  std::uint32_t datum;  ///< its number
  bool writes;          ///< otherwise it only reads it
};

/// One iteration of a repeated graph. Tasks are numbered in reference order, data by their first use.
struct task_graph {
  std::vector<double> costs;  ///< of each task, in seconds, at least 0
  std::vector<arc> arcs;      ///< each leads to a later task
  std::vector<arc> carried;   ///< from a task to one of the next iteration
  std::vector<double> bytes;  ///< of each datum
  std::vector<use> uses;      ///< by task
};

/// Processors that are alike, and what it takes to send something from one to another.
struct machine {
  unsigned processors = 1;  ///< how many
  double latency = 20e-6;   ///< of a message, in seconds
  double bandwidth = 1e9;   ///< in bytes per second

  /// When what was sent is there, in seconds.
  double delay(double bytes) const noexcept { return latency + bytes / bandwidth; }
};

/// Where and when each task is executed: on one processor at a time, and without a break.
struct schedule {
  std::vector<unsigned> processor;  ///< of each task
  std::vector<double> start;        ///< of each task, in seconds
  double length = 0;                ///< when the last one has ended
};

/// Places a graph on a machine. *Requires*: at least one processor.
using method = std::function<schedule(const task_graph&, const machine&)>;

}  // namespace weft::inline WEFT_ABI::placement
