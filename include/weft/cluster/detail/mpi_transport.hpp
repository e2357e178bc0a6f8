// SPDX-License-Identifier: BSL-1.0
// Messages between the processes of an MPI job.
#pragma once

#include <weft/cluster/transport.hpp>
#include <weft/mpi/communicator.hpp>

#include <climits>
#include <list>
#include <string>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// All calls of MPI are made by the thread that serves.
class mpi_transport final : public transport {
 public:
  /// *Throws*: mpi::error.
  explicit mpi_transport(MPI_Comm of) : group_(of) {}
  ~mpi_transport() override {
    for (under_way& u : sent_) MPI_Wait(&u.request, MPI_STATUS_IGNORE);
  }

  int rank() const noexcept override { return group_.rank(); }
  int size() const noexcept override { return group_.size(); }
  const mpi::communicator& group() const noexcept { return group_; }
  /// Which processes share a machine. All call it. *Returns*: how many share that of this one.
  int find_machines() {
    const mpi::communicator here = group_.node();
    machines_ = group_.gather(here.gather(rank()).front());
    return here.size();
  }
  int machine_of(int process) const noexcept override {
    return machines_.empty() ? 0 : machines_[static_cast<std::size_t>(process)];
  }

  std::size_t longest() const noexcept override { return INT_MAX; }
  void send(int to, bytes message) override {
    require_length(message, longest());
    sent_.push_back({std::move(message), MPI_REQUEST_NULL});
    under_way& u = sent_.back();
    mpi::detail::check(MPI_Isend(u.message.data(), static_cast<int>(u.message.size()), MPI_BYTE, to, tag,
                                 group_.handle(), &u.request),
                       "MPI_Isend");
    forget_sent_();
  }
  int receive(bytes& message) override {
    int there = 0;
    MPI_Message which = MPI_MESSAGE_NULL;
    MPI_Status status;
    mpi::detail::check(MPI_Improbe(MPI_ANY_SOURCE, tag, group_.handle(), &there, &which, &status),
                       "MPI_Improbe");
    if (there == 0) {
      forget_sent_();
      return -1;
    }
    int size = 0;
    mpi::detail::check(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
    message.resize(static_cast<std::size_t>(size));
    mpi::detail::check(MPI_Mrecv(message.data(), size, MPI_BYTE, &which, &status), "MPI_Mrecv");
    return status.MPI_SOURCE;
  }
  void wait(std::chrono::nanoseconds at_most) override { bell_.wait(at_most); }
  void wake() noexcept override { bell_.ring(); }
  void fail(const std::string& why) noexcept override { mpi::end_job("cannot go on in the cluster: " + why); }

 private:
  static constexpr int tag = 1;
  struct under_way {
    bytes message;
    MPI_Request request;
  };
  void forget_sent_() {
    for (auto u = sent_.begin(); u != sent_.end();) {
      int done = 0;
      mpi::detail::check(MPI_Test(&u->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      u = done != 0 ? sent_.erase(u) : std::next(u);
    }
  }

  mpi::communicator group_;
  std::vector<int> machines_;  // each called by its first process
  std::list<under_way> sent_;
  doorbell bell_;
};

}  // namespace weft::inline WEFT_ABI::remote
