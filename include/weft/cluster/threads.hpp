// SPDX-License-Identifier: BSL-1.0
// A cluster in one process, in which runtimes stand for processes; for tests, and for sanitizers.
#pragma once

#include <weft/cluster/detail/member.hpp>
#include <weft/cluster/detail/thread_transport.hpp>

#include <memory>
#include <thread>
#include <vector>

namespace weft::inline WEFT_ABI {

/// A cluster of `processes` runtimes in this process, between which tasks go by messages as between
/// processes. *Thread safety*: one thread at a time. *Example*: `weft::thread_cluster c(3); c.run(f);`
class thread_cluster {
 public:
  /// Starts all workers: in each runtime as many as the options say, 0: one.
  /// *Requires*: `processes` > 0. *Throws*: as weft::runtime.
  explicit thread_cluster(int processes, cluster_options options = {},
                          const remote::thread_network& network = {})
      : hub_(processes, network) {
    if (options.runtime.workers == 0) options.runtime.workers = 1;
    for (int i = 0; i < processes; ++i) ends_.push_back(std::make_unique<remote::thread_transport>(hub_, i));
    for (int i = 0; i < processes; ++i)
      members_.push_back(std::make_unique<remote::member>(*ends_[i], options));
  }

  /// As cluster::run. *Returns*: what it returns in process 0.
  /// *Throws*: the same; in each process the exception is the same one.
  template <class F>
  auto run(const F& f) {
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < members_.size(); ++i)
      others.emplace_back([this, i, &f] {
        try {
          members_[i]->run(f);
        } catch (...) {  // process 0 throws it
        }
      });
    struct joined {
      std::vector<std::thread>& all;
      ~joined() {
        for (std::thread& t : all) t.join();
      }
    } const at_end{others};
    return members_[0]->run(f);
  }

  /// How many processes there are.
  int size() const noexcept { return static_cast<int>(members_.size()); }
  /// What one of them has done. *Requires*: no run is going on.
  cluster_counters counters(int process) const noexcept {
    return members_[static_cast<std::size_t>(process)]->counters();
  }

 private:
  remote::thread_hub hub_;
  std::vector<std::unique_ptr<remote::thread_transport>> ends_;
  std::vector<std::unique_ptr<remote::member>> members_;
};

}  // namespace weft::inline WEFT_ABI
