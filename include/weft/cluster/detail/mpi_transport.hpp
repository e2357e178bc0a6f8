// SPDX-License-Identifier: BSL-1.0
// Messages between the processes of an MPI job.
#pragma once

#include <weft/cluster/transport.hpp>
#include <weft/mpi/communicator.hpp>
#include <weft/system/cpu_count.hpp>
#include <weft/system/processor_share.hpp>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// All calls of MPI are made by the thread that serves.
class mpi_transport final : public transport {
 public:
  /// *Throws*: mpi::error.
  explicit mpi_transport(MPI_Comm of, const processor_room& processors = {})
      : group_(of), processors_(processors) {}
  ~mpi_transport() override {
    for (MPI_Request& r : requests_) MPI_Wait(&r, MPI_STATUS_IGNORE);
    // What has not come altogether comes no more, but MPI may still write there.
    if (!coming_.empty()) static_cast<void>(new auto(std::move(coming_)));
  }

  int rank() const noexcept override { return group_.rank(); }
  int size() const noexcept override { return group_.size(); }
  const mpi::communicator& group() const noexcept { return group_; }
  /// Which processes share a machine, and which processors they share. All call it.
  void find_machines() {
    const mpi::communicator here = group_.node();
    machines_ = group_.gather(here.gather(rank()).front());
    find_processors_(here);
  }
  processor_room processors() const noexcept override { return processors_; }
  int machine_of(int process) const noexcept override {
    return machines_.empty() ? 0 : machines_[static_cast<std::size_t>(process)];
  }

  std::size_t longest() const noexcept override { return INT_MAX; }
  using transport::send;
  void send(int to, bytes message, std::function<void()> left) override {
    require_length(message, longest());
    if (requests_.size() == requests_.capacity())  // so that nothing throws once the message is under way
      requests_.reserve(2 * requests_.size() + looked_at);
    sent_.push_back({std::move(message), std::move(left)});
    const bytes& m = sent_.back().content;
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        MPI_Isend(m.data(), static_cast<int>(m.size()), MPI_BYTE, to, tag, group_.handle(), &request);
    if (code != MPI_SUCCESS) sent_.pop_back();
    mpi::detail::check(code, "MPI_Isend");
    requests_.push_back(request);
    forget_sent_();
  }
  int receive(bytes& message) override {
    int there = 0;
    MPI_Message which = MPI_MESSAGE_NULL;
    MPI_Status status;
    mpi::detail::check(MPI_Improbe(MPI_ANY_SOURCE, tag, group_.handle(), &there, &which, &status),
                       "MPI_Improbe");
    if (there != 0) {
      int size = 0;
      mpi::detail::check(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
      if (size <= short_message) {
        message.resize(static_cast<std::size_t>(size));
        mpi::detail::check(MPI_Mrecv(message.data(), size, MPI_BYTE, &which, &status), "MPI_Mrecv");
        return status.MPI_SOURCE;
      }
      begin_long_(which, status.MPI_SOURCE, size);
    }
    if (!coming_.empty())
      if (const int from = take_long_(message); from >= 0) return from;
    if (there == 0) forget_sent_();
    return -1;
  }
  bool moves() const noexcept override { return !requests_.empty() || !coming_.empty(); }
  void wait(std::chrono::nanoseconds at_most) override { bell_.wait(at_most); }
  void wake() noexcept override { bell_.ring(); }
  void fail(const std::string& why) noexcept override { mpi::end_job("cannot go on in the cluster: " + why); }

 private:
  static constexpr int tag = 1;
  /// Messages of so many bytes, every MPI sends without an answer of the receiver.
  static constexpr int short_message = 1024;
  /// A longer one. Its sender may stop in the middle, so nobody waits for it inside of MPI.
  struct arriving {
    int from;
    bytes content;
  };
  /// One that is leaving, and whom to tell when it has left.
  struct leaving {
    bytes content;
    std::function<void()> left;
  };
  /// How many messages are looked at in one call: more than one for each that is sent, so that they do not
  /// pile up, and no more the more there are.
  static constexpr std::size_t looked_at = 4;

  /// What the others of this machine may use counts in part.
  void find_processors_(const mpi::communicator& here) {
    std::array<std::uint64_t, 64> mask{};  // machines with more processors are divided evenly
    for (const unsigned p : base::affinity_mask())
      if (p < 64 * mask.size()) mask[p / 64] |= std::uint64_t{1} << p % 64;
    std::vector<std::vector<unsigned>> allowed;
    for (const auto& m : here.gather(mask)) {
      auto& processors = allowed.emplace_back();
      for (unsigned p = 0; p < 64 * m.size(); ++p)
        if ((m[p / 64] >> p % 64 & 1) != 0) processors.push_back(p);
    }
    const unsigned usable =
        base::usable_cpus();  // a quota is less than the processors, and that of all together
    const double evenly = static_cast<double>(usable) / here.size();
    processors_.allowed = usable;
    processors_.share = usable < base::affinity_cpus()
                            ? evenly
                            : base::processor_share(allowed, static_cast<std::size_t>(here.rank()));
    if (processors_.share == 0) processors_.share = evenly;
  }
  void begin_long_(MPI_Message which, int from, int size) {
    if (receiving_.size() == receiving_.capacity()) receiving_.reserve(2 * receiving_.size() + 1);
    coming_.push_back({from, bytes(static_cast<std::size_t>(size))});
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Imrecv(coming_.back().content.data(), size, MPI_BYTE, &which, &request);
    if (code != MPI_SUCCESS) coming_.pop_back();
    mpi::detail::check(code, "MPI_Imrecv");
    receiving_.push_back(request);
  }
  /// Takes a long message that has come. Waits for a moment, as one takes some ten microseconds.
  int take_long_(bytes& message) {
    int which = MPI_UNDEFINED, done = 0;
    const auto end = base::clock::now() + std::chrono::milliseconds(1);
    do
      mpi::detail::check(MPI_Testany(static_cast<int>(receiving_.size()), receiving_.data(), &which, &done,
                                     MPI_STATUS_IGNORE),
                         "MPI_Testany");
    while (done == 0 && base::clock::now() < end);
    if (done == 0 || which == MPI_UNDEFINED) return -1;
    const auto at = static_cast<std::size_t>(which);
    std::swap(coming_[at], coming_.back());
    receiving_[at] = receiving_.back();
    receiving_.pop_back();
    message = std::move(coming_.back().content);
    const int from = coming_.back().from;
    coming_.pop_back();
    return from;
  }
  /// Looks at the next few messages in turn, and drops those that have left.
  void forget_sent_() {
    if (requests_.empty()) return;
    if (next_ >= requests_.size()) next_ = 0;
    const std::size_t end = std::min(next_ + looked_at, requests_.size());
    int some = 0, which[looked_at];
    mpi::detail::check(MPI_Testsome(static_cast<int>(end - next_), requests_.data() + next_, &some, which,
                                    MPI_STATUSES_IGNORE),
                       "MPI_Testsome");
    const std::size_t first = std::exchange(next_, end - static_cast<std::size_t>(some));
    // The last one first: only later ones change places.
    for (std::size_t i = some != 0 ? end : first; i-- > first;) {
      if (requests_[i] != MPI_REQUEST_NULL) continue;
      std::swap(sent_[i], sent_.back());
      requests_[i] = requests_.back();
      const std::function<void()> left = std::move(sent_.back().left);
      sent_.pop_back();
      requests_.pop_back();
      if (left) left();
    }
  }

  mpi::communicator group_;
  processor_room processors_;
  std::vector<int> machines_;  // each called by its first process
  // Messages on their way, and the request of each at the same place: MPI takes an array of requests.
  std::vector<leaving> sent_;
  std::vector<MPI_Request> requests_;
  std::size_t next_ = 0;  ///< the place that is looked at next
  // The same of long messages that are coming.
  std::vector<arriving> coming_;
  std::vector<MPI_Request> receiving_;
  doorbell bell_;
};

}  // namespace weft::inline WEFT_ABI::remote
