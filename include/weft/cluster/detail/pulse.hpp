// SPDX-License-Identifier: BSL-1.0
// When a process of a cluster tells its neighbours in the tree that it is there, and when one of them is
// silent.
#pragma once

#include <weft/base/platform.hpp>
#include <weft/cluster/detail/process_tree.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// Watches the process above and those below. A neighbour counts from its first message in a run: one that
/// has not begun the run yet may compute as long as it likes. Whoever has sent a neighbour nothing for a
/// third of the limit owes it a beat; the first one in a run is due after a second at most, so that the
/// neighbour counts soon.
///
/// The process above may be silent a little longer than those below, by another part for each of its
/// children: so one process says that it is silent, and not all of them at once.
///
/// *Thread safety*: one thread.
class pulse {
 public:
  using duration = base::clock::duration;
  using time_point = base::clock::time_point;

  /// `limit` 0: nobody is watched, and nobody gets beats.
  pulse(const process_tree& tree, duration limit) : tree_(tree), limit_(limit) {
    if (limit_ == duration{}) return;
    if (tree.rank != 0) {
      const int place = tree.rank - process_tree{tree.above(), tree.size}.first_below();
      links_.push_back({tree.above(), limit_ + (place + 1) * (limit_ / 16)});
    }
    for (int below = tree.first_below(); below != tree.end_below(); ++below)
      links_.push_back({below, limit_});
  }

  /// A run begins: nobody counts.
  void begin(time_point now) noexcept {
    next_ = last_look_ = now;
    for (link& l : links_) {
      l.counts = l.heard = l.sent = false;
      l.sent_at = now - (limit_ / 3 - std::min<duration>(limit_ / 3, std::chrono::seconds(1)));
    }
  }
  /// A message of this run has come from there, or has gone there.
  void heard(int from) noexcept {
    if (link* l = find_(from)) l->heard = l->counts = true;
  }
  void sent(int to) noexcept {
    if (link* l = find_(to)) l->sent = true;
  }
  /// What was not heard until now counts against nobody.
  void forgive() noexcept {
    for (link& l : links_) l.heard = true;
  }
  /// Calls `beat(process)` for each neighbour that is owed one. To be called again and again; most calls only
  /// compare the time. *Returns*: a process that is silent; -1 if there is none.
  template <class Beat>
  int look(time_point now, Beat beat) {
    if (links_.empty() || now < next_) return -1;
    next_ = now + std::min<duration>(limit_ / 64, std::chrono::milliseconds(250));
    // A process that was suspended itself has heard nobody meanwhile; what they have sent is still to come.
    const bool was_away = now - std::exchange(last_look_, now) > limit_ / 3;
    for (link& l : links_) {
      if (std::exchange(l.heard, false) || was_away) l.heard_at = now;
      if (std::exchange(l.sent, false)) l.sent_at = now;
      if (l.counts && now - l.heard_at > l.patience) return l.process;
      if (now - l.sent_at < limit_ / 3) continue;
      l.sent_at = now;
      beat(l.process);
    }
    return -1;
  }

 private:
  struct link {
    int process;
    duration patience;
    bool counts = false;               // it has begun this run
    bool heard = false, sent = false;  // since the last look
    time_point heard_at{}, sent_at{};
  };
  link* find_(int process) noexcept {
    if (links_.empty()) return nullptr;
    if (tree_.rank != 0 && process == tree_.above()) return &links_.front();
    if (process < tree_.first_below() || process >= tree_.end_below()) return nullptr;
    return &links_[static_cast<std::size_t>(process - tree_.first_below()) + (tree_.rank != 0)];
  }

  const process_tree tree_;
  const duration limit_;
  std::vector<link> links_;  // the process above, if there is one, then those below
  time_point next_{}, last_look_{};
};

}  // namespace weft::inline WEFT_ABI::remote
