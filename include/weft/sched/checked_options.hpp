// SPDX-License-Identifier: BSL-1.0
// Options as the engine takes them: environment applied, defaults filled in, nonsense refused.
#pragma once

#include <weft/context/stack.hpp>
#include <weft/options.hpp>
#include <weft/system/cpu_count.hpp>
#include <weft/system/environment.hpp>
#include <weft/system/topology.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace weft::inline WEFT_ABI::sched {

/// Limits of the options; what lies beyond is a slip, not a wish.
struct option_limits {
  static constexpr unsigned workers = 4096, surplus = 1u << 20, cap = 1u << 30, versions = 1u << 10;
  static constexpr std::size_t least_stack = context::stack::minimum, most_stack = std::size_t{1} << 32;
  static constexpr std::chrono::microseconds spin{10'000'000};
  static constexpr std::chrono::milliseconds stall{1'000'000'000};
  static constexpr std::size_t trace_mb = 1u << 16;
};

/// Sets the pinning that WEFT_PINNING asks for, if it is set. *Throws*: weft::option_error.
inline void read_pinning(pinning& p) {
  const char* const text = base::environment_text("WEFT_PINNING");
  if (text == nullptr) return;
  const std::string_view word = text;
  if (word == "none") {
    p = pinning::none;
  } else if (word == "compact") {
    p = pinning::compact;
  } else if (word == "scatter") {
    p = pinning::scatter;
  } else {
    p = pinning(base::processor_list(word));
    if (p.processors().empty())
      base::detail::refuse_value("WEFT_PINNING", text, "none, compact, scatter, or processors such as 0-3,8");
  }
}

/// *Returns*: the processors of workers 0, 1, ..., and from the beginning again for more workers; empty: not
/// pinned. *Throws*: weft::option_error naming a processor that the process may not use.
inline std::vector<unsigned> processors_for(const pinning& p) {
  if (p.which() == pinning::none) return {};
  const std::vector<unsigned> allowed = base::affinity_mask();
  const auto refuse = [](const std::string& expected) {
    if (const char* const text = base::environment_text("WEFT_PINNING"))
      base::detail::refuse_value("WEFT_PINNING", text, expected);
    throw option_error("weft: runtime_options::pinning is invalid; expected " + expected);
  };
  if (allowed.empty()) refuse("none, since the system does not say which processors this process may use");
  if (p.which() == pinning::compact) return base::compact_order(allowed);
  if (p.which() == pinning::scatter) return base::scatter_order(allowed);
  if (p.processors().empty() || p.processors().size() > option_limits::workers)
    refuse("from 1 to " + std::to_string(option_limits::workers) + " processors");
  for (const unsigned processor : p.processors())
    if (std::find(allowed.begin(), allowed.end(), processor) == allowed.end())
      refuse("processors that this process may use, " + base::to_text(allowed) + "; " +
             std::to_string(processor) + " is none of them");
  return p.processors();
}

/// *Returns*: `o` with the WEFT_* variables applied and the number of workers known; `pinning` names the
/// processors, whatever pattern was asked for.
/// *Throws*: weft::option_error naming the member or the variable.
inline runtime_options checked_options(runtime_options o) {
  using limits = option_limits;
  base::check_environment();
  if (auto v = base::environment_unsigned("WEFT_WORKERS", 0, limits::workers))
    o.workers = static_cast<unsigned>(*v);
  if (auto v = base::environment_bytes("WEFT_STACK_SIZE", limits::least_stack, limits::most_stack))
    o.stack_size = *v;
  if (auto v = base::environment_bool("WEFT_INLINING")) o.inlining = *v;
  if (auto v = base::environment_unsigned("WEFT_SURPLUS", 0, limits::surplus))
    o.surplus = static_cast<unsigned>(*v);
  if (auto v = base::environment_unsigned("WEFT_CAP", 1, limits::cap)) o.cap = static_cast<unsigned>(*v);
  if (auto v = base::environment_unsigned("WEFT_VERSIONS", 1, limits::versions))
    o.versions = static_cast<unsigned>(*v);
  if (auto v = base::environment_microseconds("WEFT_SPIN_US", std::chrono::microseconds(0), limits::spin))
    o.spin = *v;
  if (auto v =
          base::environment_unsigned("WEFT_STALL_MS", 0, static_cast<std::size_t>(limits::stall.count())))
    o.stall = std::chrono::milliseconds(*v);
  read_pinning(o.pinning);
  if (const char* const path = base::environment_text("WEFT_TRACE")) o.trace = path;
  if (auto v = base::environment_unsigned("WEFT_TRACE_MB", 1, limits::trace_mb)) o.trace_mb = *v;
  static_cast<void>(base::environment_bool("WEFT_MPI_VERBOSE"));  // read by windows; refused here, too

  const auto refuse_unless = [](bool sensible, const char* member, const std::string& expected) {
    if (!sensible)
      throw option_error(std::string("weft: runtime_options::") + member + " is invalid; expected " +
                         expected);
  };
  refuse_unless(o.workers <= limits::workers, "workers",
                "at most " + std::to_string(limits::workers) + " (0: as many as this process may use)");
  refuse_unless(
      o.stack_size >= limits::least_stack && o.stack_size <= limits::most_stack, "stack_size",
      "from " + std::to_string(limits::least_stack) + " to " + std::to_string(limits::most_stack) + " bytes");
  refuse_unless(o.surplus <= limits::surplus, "surplus", "at most " + std::to_string(limits::surplus));
  refuse_unless(o.cap >= 1 && o.cap <= limits::cap, "cap", "from 1 to " + std::to_string(limits::cap));
  refuse_unless(o.versions >= 1 && o.versions <= limits::versions, "versions",
                "from 1 to " + std::to_string(limits::versions));
  refuse_unless(o.spin.count() >= 0 && o.spin <= limits::spin, "spin",
                "from 0 to " + std::to_string(limits::spin.count()) + " microseconds");
  refuse_unless(o.stall.count() >= 0 && o.stall <= limits::stall, "stall",
                "from 0 to " + std::to_string(limits::stall.count()) + " milliseconds");
  refuse_unless(o.trace_mb >= 1 && o.trace_mb <= limits::trace_mb, "trace_mb",
                "from 1 to " + std::to_string(limits::trace_mb) + " mebibytes");
  if (o.workers == 0) {
    o.workers = base::usable_cpus();
    if (o.pinning.which() == pinning::listed) {
      const auto listed = static_cast<unsigned>(o.pinning.processors().size());
      o.workers = std::min(listed, base::quota_cpus().value_or(listed));
    }
  }
  o.pinning = pinning(processors_for(o.pinning));
  return o;
}

}  // namespace weft::inline WEFT_ABI::sched
