// SPDX-License-Identifier: BSL-1.0
// A simulated network, and a cluster whose processes are connected by it: runtimes whose threads belong to
// one simulated machine.
#pragma once

#include "support/random.hpp"
#include "virtual_time.hpp"

#include <weft/cluster/detail/member.hpp>
#include <weft/cluster/detail/step_message.hpp>
#include <weft/cluster/transport.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

namespace simulation {

/// What messages take, in nanoseconds: of the order of a network with 100 Gbit/s.
struct network_options {
  double latency = 1'500;
  int machine = 0;           ///< so many processes, one after the other, share a machine; 0: all
  double far = 0;            ///< what a message takes longer between two machines
  double per_byte = 0.1;     ///< on the line of the sender, and again on that of the receiver
  double overhead = 300;     ///< of a message, for the thread that sends it, and for the one that receives it
  std::uint64_t delays = 0;  ///< a seed: messages take longer by chance, so that they overtake; 0: none,
  std::uint64_t longest_delay = 10'000;  ///< by less than this, and one in eight by less than 30 times that
};

/// Where the messages of all processes are.
class network {
 public:
  network(int size, const network_options& options)
      : options_(options), dice_(options.delays), ends_(static_cast<std::size_t>(size)) {}

  int size() const noexcept { return static_cast<int>(ends_.size()); }
  int machine_of(int process) const noexcept {
    return options_.machine == 0 ? 0 : process / options_.machine;
  }
  /// How many messages were sent to other machines.
  std::uint64_t left() const noexcept { return left_; }
  const network_options& options() const noexcept { return options_; }

  void send(int from, int to, weft::remote::bytes what) {
    work(options_.overhead);
    end& source = at_(from);
    end& target = at_(to);
    const auto on_line = static_cast<std::uint64_t>(static_cast<double>(what.size()) * options_.per_byte);
    source.out_free = std::max(source.out_free, time_here()) + on_line;
    const bool leaves = machine_of(from) != machine_of(to);
    left_ += leaves;
    std::uint64_t there =
        source.out_free + static_cast<std::uint64_t>(options_.latency + (leaves ? options_.far : 0));
    there = target.in_free = std::max(target.in_free + on_line, there);
    if (options_.delays != 0)  // others pass it meanwhile
      there += dice_.below(options_.longest_delay * (dice_.one_in(8) ? 30 : 1));
    target.coming.push({there, ++sent_, from, std::move(what)});
    wake_at(&target, there);
  }
  int receive(int at, weft::remote::bytes& what) {
    if (!failure_.empty()) throw weft::error(failure_);
    end& e = at_(at);
    if (e.coming.empty() || e.coming.top().there > time_here()) return -1;
    // The queue gives it away only as a constant.
    message& m = const_cast<message&>(e.coming.top());
    const int from = m.from;
    what = std::move(m.what);
    e.coming.pop();
    work(options_.overhead);
    return from;
  }
  void wait(int at, std::chrono::nanoseconds at_most) {
    end& e = at_(at);
    std::uint64_t until = time_here() + static_cast<std::uint64_t>(at_most.count());
    if (!e.coming.empty()) until = std::min(until, e.coming.top().there);
    if (!e.rung && until > time_here()) poll_until(&e, until);
    e.rung = false;
  }
  void wake(int at) noexcept {
    end& e = at_(at);
    e.rung = true;
    wake_at(&e, time_here());
  }
  void fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
    for (int i = 0; i < size(); ++i) wake(i);
  }

 private:
  struct message {
    std::uint64_t there, number;
    int from;
    weft::remote::bytes what;
    bool operator<(const message& other) const {  // the queue has the greatest at the front
      return there != other.there ? there > other.there : number > other.number;
    }
  };
  struct end {
    std::priority_queue<message> coming{};
    std::uint64_t out_free = 0, in_free = 0;
    bool rung = false;
  };
  end& at_(int process) noexcept { return ends_[static_cast<std::size_t>(process)]; }

  const network_options options_;
  weft_test::random dice_;
  std::uint64_t sent_ = 0, left_ = 0;
  std::string failure_{};
  std::vector<end> ends_;
};

/// The end of one process.
class network_transport : public weft::remote::transport {
 public:
  network_transport(network& of, int rank) noexcept : of_(of), rank_(rank) {}
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return of_.size(); }
  int machine_of(int process) const noexcept override { return of_.machine_of(process); }
  std::size_t longest() const noexcept override { return SIZE_MAX; }
  using transport::send;
  void send(int to, weft::remote::bytes message, std::function<void()> left) override {
    of_.send(rank_, to, std::move(message));
    if (left) left();
  }
  int receive(weft::remote::bytes& message) override { return of_.receive(rank_, message); }
  void wait(std::chrono::nanoseconds at_most) override { of_.wait(rank_, at_most); }
  void wake() noexcept override { of_.wake(rank_); }
  void fail(const std::string& why) noexcept override { of_.fail(why); }

 private:
  network& of_;
  int rank_;
};

/// Runtimes that stand for the processes of a cluster. *Requires*: it is made, used and destroyed by the
/// first thread of a simulated machine.
class cluster {
 public:
  explicit cluster(int processes, const weft::cluster_options& options = {.runtime = {.workers = 1}},
                   const network_options& by = {})
      : network_(processes, by), steps_(static_cast<std::size_t>(processes)) {
    for (int i = 0; i < processes; ++i) {
      ends_.push_back(std::make_unique<network_transport>(network_, i));
      members_.push_back(std::make_unique<weft::remote::member>(*ends_.back(), options));
    }
  }

  /// As thread_cluster::run.
  template <class F>
  auto run(const F& f) {
    std::vector<weft::base::thread> others;
    for (std::size_t i = 1; i < members_.size(); ++i)
      others.emplace_back([this, i, &f] {
        try {
          members_[i]->run(f);
        } catch (...) {  // process 0 throws it
        }
      });
    struct joined {
      std::vector<weft::base::thread>& all;
      ~joined() {
        for (weft::base::thread& t : all) t.join();
      }
    } const at_end{others};
    return members_[0]->run(f);
  }

  /// As thread_cluster::process.
  class process {
   public:
    process(cluster& of, int rank) noexcept : of_(of), rank_(rank) {}
    int rank() const noexcept { return rank_; }
    int size() const noexcept { return of_.size(); }
    weft::remote::step_place place_for_steps_() { return of_.place_for_steps_(rank_); }  // for partitioned

   private:
    cluster& of_;
    int rank_;
  };
  /// As thread_cluster::each.
  template <class F>
  void each(const F& f) {
    std::vector<std::exception_ptr> thrown(members_.size());
    std::vector<weft::base::thread> all;
    for (int i = 0; i < size(); ++i)
      all.emplace_back([this, i, &f, &thrown] {
        process here(*this, i);
        try {
          f(here);
        } catch (...) {
          thrown[static_cast<std::size_t>(i)] = std::current_exception();
        }
      });
    for (weft::base::thread& t : all) t.join();
    for (const std::exception_ptr& e : thrown)
      if (e) std::rethrow_exception(e);
  }

  int size() const noexcept { return network_.size(); }
  std::uint64_t messages_between_machines() const noexcept { return network_.left(); }
  weft::cluster_counters counters(int of) const noexcept { return at_(of).counters(); }
  weft::runtime& runtime(int of) noexcept { return at_(of).runtime(); }

 private:
  weft::remote::member& at_(int of) const noexcept { return *members_[static_cast<std::size_t>(of)]; }
  /// The steps of one number, one in each process, have a network of their own.
  weft::remote::step_place place_for_steps_(int rank) {
    std::weak_ptr<network>& known = step_networks_[steps_[static_cast<std::size_t>(rank)]++];
    std::shared_ptr<network> by = known.lock();
    if (!by) known = by = std::make_shared<network>(size(), network_.options());
    return at_(rank).place_for_steps(std::make_unique<step_transport>(std::move(by), rank));
  }
  struct step_network {
    std::shared_ptr<network> by;
  };
  struct step_transport final : private step_network, public network_transport {
    step_transport(std::shared_ptr<network> shared, int rank)
        : step_network{std::move(shared)}, network_transport(*by, rank) {}
  };

  network network_;
  std::vector<std::unique_ptr<network_transport>> ends_{};
  std::vector<std::unique_ptr<weft::remote::member>> members_{};
  std::vector<std::size_t> steps_;  // how many each process has made
  std::map<std::size_t, std::weak_ptr<network>> step_networks_{};
};

}  // namespace simulation
