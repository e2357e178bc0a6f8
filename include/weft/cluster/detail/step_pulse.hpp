// SPDX-License-Identifier: BSL-1.0
// Whether the neighbours of a process answer while they do something for a step together.
#pragma once

#include <weft/base/platform.hpp>
#include <weft/cluster/detail/message.hpp>
#include <weft/cluster/detail/neighbours.hpp>
#include <weft/cluster/detail/pulse.hpp>
#include <weft/cluster/options.hpp>
#include <weft/cluster/transport.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// Sends and takes beats, and counts them: at the end all that were sent are to have come. *Thread
/// safety*: the thread that serves.
class step_pulse {
 public:
  step_pulse(transport& by, std::chrono::milliseconds silence, cluster_counters& counters)
      : by_(by),
        silence_(silence),
        counters_(counters),
        pulse_({by.rank(), by.size()}, silence),
        beats_(static_cast<std::size_t>(by.size())) {}
  step_pulse(const step_pulse&) = delete;
  step_pulse& operator=(const step_pulse&) = delete;

  /// They begin, with this stage. A neighbour counts from its first message of this stage or a later one.
  void begin(std::uint32_t stage) noexcept {
    first_stage_ = stage;
    watches_ = owes_beats_ = true;
    pulse_.begin(base::clock::now());
  }
  /// From here on nobody waits for what takes long.
  void end_beats() noexcept {
    owes_beats_ = false;
    pulse_.forgive();  // who has nothing more to say to this process is not silent
  }
  /// That is over.
  void end() noexcept { watches_ = false; }

  /// This process has sent something.
  void sent(int to) noexcept { pulse_.sent(to); }
  /// A message has come. *Returns*: whether it was a beat.
  bool take(const incoming& m) noexcept {
    if (watches_ && m.run() >= first_stage_) pulse_.heard(m.from());
    if (m.kind() != kind::beat) return false;
    ++received_;
    return true;
  }
  /// Sends beats that are due. To be called again and again. *Throws*: weft::error if a process is silent.
  void look(std::uint32_t stage) {
    if (!watches_) return;
    const int silent = pulse_.look(base::clock::now(), [this, stage](int to) {
      if (!owes_beats_) return;
      bytes beat = outgoing(kind::beat, stage).seal();
      ++counters_.messages;
      counters_.bytes += beat.size();
      ++beats_[static_cast<std::size_t>(to)];
      by_.send(to, std::move(beat));
    });
    if (silent >= 0) refuse_silence(silent, silence_);
  }
  /// How many beats were sent to each process so far, and how many have come from all.
  const std::vector<std::uint64_t>& beats() const noexcept { return beats_; }
  const std::uint64_t& received() const noexcept { return received_; }

 private:
  transport& by_;
  const std::chrono::milliseconds silence_;
  cluster_counters& counters_;
  pulse pulse_;
  std::uint32_t first_stage_ = 0;
  bool watches_ = false, owes_beats_ = false;
  std::vector<std::uint64_t> beats_;
  std::uint64_t received_ = 0;
};

}  // namespace weft::inline WEFT_ABI::remote
