// SPDX-License-Identifier: BSL-1.0
// open_metrics: the counters of runtimes as text for monitoring systems.
#pragma once

#include <weft/base/error.hpp>
#include <weft/observe/counters.hpp>
#include <weft/observe/json_text.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace weft::inline WEFT_ABI::observe {

/// The numbers of one runtime at one moment, and the name by which they are told from those of others.
struct runtime_metrics {
  weft::counters totals;          ///< what runtime::counters() returned
  unsigned workers = 0;           ///< what runtime::workers() returned
  std::string_view runtime = {};  ///< value of the label `runtime`; empty: no label. It must outlive the call

  runtime_metrics() = default;
  /// Reads `rt`, a weft::runtime. *Cost*: that of runtime::counters().
  template <class Runtime>
    requires requires(const Runtime& r) {
      { r.counters() } -> std::same_as<weft::counters>;
      { r.workers() } -> std::same_as<unsigned>;
    }
  runtime_metrics(const Runtime& rt, std::string_view name = {})
      : totals(rt.counters()), workers(rt.workers()), runtime(name) {}
};

/// One family of metrics: its name without prefix and suffixes, where its value is, and what it counts.
struct metric_family {
  std::string_view name;
  std::uint64_t weft::counters::* value;
  std::string_view help;
};

/// The families that only grow, in the order of weft::counters.
inline constexpr metric_family counted_metrics[] = {
    {"deferred", &counters::deferred, "Tasks that fork deferred"},
    {"inlined", &counters::inlined, "Tasks that fork ran inline, in builds that count them"},
    {"dropped", &counters::dropped, "Tasks that never ran, because of an exception before them or a stop"},
    {"steals", &counters::steals, "Closures that thieves took"},
    {"capped", &counters::capped, "Times fork ran pending tasks because the cap was reached"},
    {"divisions", &counters::divisions, "Times a loop was divided for thieves"},
    {"promotions", &counters::promotions, "Frames for which a thief built a graph"},
    {"demotions", &counters::demotions, "Graphs of frames that were given up because their tasks were tiny"},
    {"folds", &counters::folds, "Contributions that were made to private copies and folded into objects"},
    {"renames", &counters::renames, "Times a write got a new version of its object"},
    {"replayed", &counters::replayed, "Tasks whose dependencies were taken from a recorded graph"},
    {"steal_attempts", &counters::steal_attempts, "Times a thief entered a strand"},
    {"barriers", &counters::barriers, "Process-wide barriers that thieves issued"},
    {"barriers_refused", &counters::barriers_refused, "Process-wide barriers that the kernel refused"},
    {"parkings", &counters::parkings, "Times a strand waited without a stack"},
    {"suspensions", &counters::suspensions, "Times a body was suspended with its stack"},
    {"sleeps", &counters::sleeps, "Times a worker went to sleep"},
    {"wakes", &counters::wakes, "Times a worker with work woke a sleeping one"},
    {"contexts", &counters::contexts, "Stacks that were made"},
};

/// Appends a label value: UTF-8, with quotes, backslashes and line ends escaped; a byte that is no UTF-8
/// becomes the replacement character.
inline void append_label_value(std::string& out, std::string_view value) {
  while (!value.empty()) {
    const std::size_t length = utf8_length(value);
    if (length == 0)
      out += "\xEF\xBF\xBD";
    else if (value[0] == '\n')
      out += "\\n";
    else
      (out += value[0] == '"' || value[0] == '\\' ? "\\" : "") += value.substr(0, length);
    value.remove_prefix(std::max<std::size_t>(length, 1));
  }
}

/// Writes the metrics of several runtimes in the text format OpenMetrics 1.0, which Prometheus and others
/// read: the families `weft_deferred`, `weft_steals`, ..., one for each member of weft::counters, and
/// `weft_workers`. Send it with the content type
/// `application/openmetrics-text; version=1.0.0; charset=utf-8`.
/// *Returns*: the text, which ends in `# EOF`. *Throws*: weft::error if two runtimes have the same name;
/// std::bad_alloc. *Suspends*: no. *Cost*: some microseconds. *Thread safety*: any thread, also in a task.
/// *Example*: `weft::observe::open_metrics({{solver, "solver"}, {loader, "loader"}})`.
inline std::string open_metrics(std::span<const runtime_metrics> runtimes) {
  for (auto r = runtimes.begin(); r != runtimes.end(); ++r)
    for (auto other = runtimes.begin(); other != r; ++other)
      if (other->runtime == r->runtime)
        throw error("weft: open_metrics() was given two runtimes named '" + std::string(r->runtime) +
                    "'; give each a name of its own");
  std::string out;
  const auto head = [&out](std::string_view name, std::string_view type, std::string_view unit,
                           std::string_view help) {
    ((((out += "# TYPE weft_") += name) += ' ') += type) += '\n';
    if (!unit.empty()) ((((out += "# UNIT weft_") += name) += ' ') += unit) += '\n';
    ((((out += "# HELP weft_") += name) += ' ') += help) += ".\n";
  };
  const auto sample = [&out](std::string_view name, std::string_view suffix, const runtime_metrics& of,
                             std::uint64_t value) {
    ((out += "weft_") += name) += suffix;
    if (!of.runtime.empty()) {
      out += "{runtime=\"";
      append_label_value(out, of.runtime);
      out += "\"}";
    }
    ((out += ' ') += std::to_string(value)) += '\n';
  };
  for (const metric_family& m : counted_metrics) {
    head(m.name, "counter", "", m.help);
    for (const runtime_metrics& r : runtimes) sample(m.name, "_total", r, r.totals.*m.value);
  }
  head("stack_high_water_bytes", "gauge", "bytes", "The most that a stack of the ordinary size has used");
  for (const runtime_metrics& r : runtimes)
    sample("stack_high_water_bytes", "", r, r.totals.stack_high_water);
  head("workers", "gauge", "", "Workers of the runtime");
  for (const runtime_metrics& r : runtimes) sample("workers", "", r, r.workers);
  return out += "# EOF\n";
}

/// The same, of runtimes that are listed.
inline std::string open_metrics(std::initializer_list<runtime_metrics> runtimes) {
  return open_metrics(std::span(runtimes.begin(), runtimes.size()));
}
/// The same, of one runtime: `weft::observe::open_metrics(rt)`.
inline std::string open_metrics(const runtime_metrics& runtime) {
  return open_metrics(std::span(&runtime, 1));
}

}  // namespace weft::inline WEFT_ABI::observe
