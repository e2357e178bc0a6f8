// SPDX-License-Identifier: BSL-1.0
// A cluster in one process, in which runtimes stand for processes; for tests, and for sanitizers.
#pragma once

#include <weft/cluster/anywhere.hpp>
#include <weft/cluster/detail/member.hpp>
#include <weft/cluster/detail/step_message.hpp>
#include <weft/cluster/detail/thread_transport.hpp>
#include <weft/cluster/migratable.hpp>

#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace weft::inline WEFT_ABI {

namespace remote {
struct thread_cluster_key;
}

/// A cluster of `processes` runtimes in this process, between which tasks go by messages as between
/// processes. *Thread safety*: one thread at a time. *Example*: `weft::thread_cluster c(3); c.run(f);`
class thread_cluster {
 public:
  /// Starts all workers: in each runtime as many as the options say, 0: one.
  /// *Requires*: `processes` > 0. *Throws*: as weft::runtime.
  explicit thread_cluster(int processes, cluster_options options = {},
                          const remote::thread_network& network = {})
      : network_(network), hub_(processes, network), steps_(static_cast<std::size_t>(processes)) {
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

  /// As cluster::resume, for all of them.
  std::size_t resume(const std::string& directory) {
    std::size_t found = 0;
    for (const auto& m : members_) found = m->resume(directory);
    return found;
  }

  /// One of them, in whose place a thread of each() is.
  class process {
   public:
    /// Its number, from 0.
    int rank() const noexcept { return rank_; }
    /// How many processes there are.
    int size() const noexcept { return of_.size(); }

   private:
    friend class thread_cluster;
    friend class partitioned;
    process(thread_cluster& of, int rank) noexcept : of_(of), rank_(rank) {}
    remote::step_place place_for_steps_() { return of_.place_for_steps_(rank_); }

    thread_cluster& of_;
    int rank_;
  };
  /// Calls `f(process&)` for each process, in threads of their own: what main() does in the processes of a
  /// job. *Throws*: what `f` throws, of the first process where it does.
  template <class F>
  void each(const F& f) {
    std::vector<std::exception_ptr> thrown(members_.size());
    std::vector<std::thread> all;
    for (int i = 0; i < size(); ++i)
      all.emplace_back([this, i, &f, &to = thrown[static_cast<std::size_t>(i)]] {
        process here(*this, i);
        try {
          f(here);
        } catch (...) {
          to = std::current_exception();
        }
      });
    for (std::thread& t : all) t.join();
    for (const std::exception_ptr& e : thrown)
      if (e) std::rethrow_exception(e);
  }

  /// How many processes there are.
  int size() const noexcept { return static_cast<int>(members_.size()); }
  /// What one of them has done. *Requires*: no run is going on.
  cluster_counters counters(int of) const noexcept {
    return members_[static_cast<std::size_t>(of)]->counters();
  }

 private:
  friend struct remote::thread_cluster_key;
  /// The steps of one number, one in each process, have messages of their own.
  remote::step_place place_for_steps_(int rank) {
    const auto i = static_cast<std::size_t>(rank);
    const std::lock_guard hold(steps_mutex_);
    std::weak_ptr<remote::thread_hub>& known = step_hubs_[steps_[i]++];
    std::shared_ptr<remote::thread_hub> hub = known.lock();
    if (!hub) known = hub = std::make_shared<remote::thread_hub>(size(), network_);
    return members_[i]->place_for_steps(std::make_unique<step_transport>(std::move(hub), rank));
  }
  struct step_hub {
    std::shared_ptr<remote::thread_hub> hub;
  };
  struct step_transport final : private step_hub, public remote::thread_transport {
    step_transport(std::shared_ptr<remote::thread_hub> by, int rank)
        : step_hub{std::move(by)}, remote::thread_transport(*hub, rank) {}
  };

  const remote::thread_network network_;
  remote::thread_hub hub_;
  std::vector<std::unique_ptr<remote::thread_transport>> ends_;
  std::vector<std::unique_ptr<remote::member>> members_;
  std::mutex steps_mutex_;
  std::vector<std::size_t> steps_;  // how many each process has made
  std::map<std::size_t, std::weak_ptr<remote::thread_hub>> step_hubs_;
};

/// Opens a cluster for tests of what its processes are made of.
struct remote::thread_cluster_key {
  static member& process(thread_cluster& of, int rank) {
    return *of.members_[static_cast<std::size_t>(rank)];
  }
};

}  // namespace weft::inline WEFT_ABI
