// SPDX-License-Identifier: BSL-1.0
// The neighbours of a process in the tree: whether they answer during a run, and whether they have ended.
#pragma once

#include <weft/base/error.hpp>
#include <weft/cluster/detail/message.hpp>
#include <weft/cluster/detail/process_tree.hpp>
#include <weft/cluster/detail/pulse.hpp>
#include <weft/cluster/options.hpp>
#include <weft/cluster/transport.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace weft::inline WEFT_ABI::remote {

/// *Throws*: weft::error: a process has not answered for so long.
[[noreturn]] inline void refuse_silence(int process, std::chrono::milliseconds silence) {
  const auto ms = silence.count();
  const std::string limit = ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
  throw error("weft: process " + std::to_string(process) + " of the cluster has not answered for " + limit);
}

/// Sends `beat` and `gone`, and takes them. Beats may come when their run is over; they say nothing then.
/// *Thread safety*: the thread that serves.
class neighbours {
 public:
  neighbours(transport& by, const cluster_options& options, cluster_counters& counters)
      : by_(by),
        tree_{by.rank(), by.size()},
        silence_(options.silence),
        counters_(counters),
        pulse_(tree_, silence_) {}
  neighbours(const neighbours&) = delete;
  neighbours& operator=(const neighbours&) = delete;

  /// A run begins. *Throws*: weft::error if a neighbour will not take part, since it has ended.
  void begin(std::uint32_t run) {
    run_ = run;
    if (gone_ != 0 && first_gone_run_ < run_) refuse_(first_gone_);
    pulse_.begin(base::clock::now());
  }
  /// A message has come, of whatever kind. *Returns*: whether it was for this class. *Throws*: weft::error if
  /// it says that a process has ended which this run needs.
  bool take(const incoming& m) {
    if (m.run() == run_) pulse_.heard(m.from());
    if (m.kind() != kind::gone) return m.kind() == kind::beat;
    if (gone_++ == 0 || m.run() < first_gone_run_) {
      first_gone_ = m.from();
      first_gone_run_ = m.run();
    }
    if (m.run() < run_) refuse_(m.from());
    return true;
  }
  /// This process has sent something during a run.
  void sent(int to) noexcept { pulse_.sent(to); }
  /// Sends beats that are due. To be called again and again during a run. *Throws*: weft::error if a process
  /// is silent.
  void look(base::clock::time_point now) {
    const int silent = pulse_.look(now, [this](int to) { send_(to, kind::beat); });
    if (silent >= 0) refuse_silence(silent, silence_);
  }
  /// This process takes part in no other run; tells the neighbours, and waits until none of them does. Those
  /// that are in a run, or begin one, end the job. *Throws*: weft::error.
  void leave() {
    if (tree_.rank != 0) send_(tree_.above(), kind::gone);
    for (int to = tree_.first_below(); to != tree_.end_below(); ++to) send_(to, kind::gone);
    bytes message;
    while (gone_ != tree_.count_below() + (tree_.rank != 0)) {
      const int from = by_.receive(message);
      if (from < 0)
        by_.wait(std::chrono::milliseconds(1));
      else
        take(incoming(message, from));  // whoever asks for tasks learns soon why it gets no answer
    }
  }

 private:
  [[noreturn]] void refuse_(int process) const {
    throw error("weft: process " + std::to_string(process) +
                " of the cluster has ended, and has called run() less often than process " +
                std::to_string(tree_.rank));
  }
  void send_(int to, kind of) {
    bytes message = outgoing(of, run_).seal();
    ++counters_.messages;
    counters_.bytes += message.size();
    by_.send(to, std::move(message));
  }

  transport& by_;
  const process_tree tree_;
  const std::chrono::milliseconds silence_;
  cluster_counters& counters_;
  pulse pulse_;
  std::uint32_t run_ = 0;
  int gone_ = 0;  // how many neighbours have ended,
  int first_gone_ = -1;
  std::uint32_t first_gone_run_ = 0;  // and the last run of the one that has taken part in the fewest
};

}  // namespace weft::inline WEFT_ABI::remote
