// SPDX-License-Identifier: BSL-1.0
// What the processes of a partitioned step tell each other, and by which transport.
#pragma once

#include <weft/cluster/detail/message.hpp>
#include <weft/cluster/options.hpp>
#include <weft/cluster/transport.hpp>
#include <weft/flow/runtime.hpp>

#include <algorithm>
#include <memory>

namespace weft::inline WEFT_ABI::remote {

enum class step_kind : std::uint8_t {
  report,   ///< to process 0, once in each stage
  verdict,  ///< from process 0, when all reports are there: what the next stage is
  value,    ///< of an object, for a task
  move,     ///< values of objects, between rounds
  failed,   ///< something has failed, at this place of the serial order
  used,     ///< so many bytes of the values that its receiver has sent
};

/// These messages have a transport of their own, so they need no kind of the cluster's: theirs comes first in
/// the body. The stage stands in the place of the run.
inline outgoing step_message(step_kind k, std::uint32_t stage) {
  outgoing m(kind::tasks, stage);
  m.body()(k);
  return m;
}

/// How many bytes a part of a long message has.
inline std::size_t part_bytes_of(const transport& by, const cluster_options& options) noexcept {
  constexpr std::size_t head = 64;  // of any of these messages; less, really
  return std::min(options.part_bytes, by.longest() - std::min(by.longest() - 1, head));
}

/// What a cluster lends to a step.
struct step_place {
  weft::runtime& runtime;
  std::unique_ptr<transport> by;
  cluster_options options;
};

}  // namespace weft::inline WEFT_ABI::remote
