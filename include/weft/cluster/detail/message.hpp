// SPDX-License-Identifier: BSL-1.0
// What the messages of a cluster begin with.
#pragma once

#include <weft/base/error.hpp>
#include <weft/cluster/archive.hpp>
#include <weft/cluster/transport.hpp>
#include <weft/io/crc32c.hpp>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace weft::inline WEFT_ABI::remote {

enum class kind : std::uint8_t {
  request,    ///< for a task
  tasks,      ///< the answer: one, or none
  ended,      ///< a task has ended: what it has written, or thrown
  declined,   ///< the process to which a task was sent has no worker for it
  stop,       ///< the run of a task was stopped, says the process from which it comes
  stop_seen,  ///< the answer
  stopped,    ///< the same, says the process that executes the task
  finish,     ///< from process 0: the run is over, and its outcome
  finished,   ///< to process 0: nothing of this process is under way any more
  leave,      ///< from process 0: no process has anything under way
};

/// A message that is being written.
class outgoing {
 public:
  outgoing(kind k, std::uint32_t run) { w_(std::uint32_t{0}, static_cast<std::uint8_t>(k), run); }
  writer& body() noexcept { return w_; }
  /// The whole, with its checksum.
  bytes seal() {
    bytes all = std::move(w_.bytes());
    const std::uint32_t sum = io::crc32c(all.data() + sizeof sum, all.size() - sizeof sum);
    std::memcpy(all.data(), &sum, sizeof sum);
    return all;
  }

 private:
  writer w_;
};

/// A message that has come.
class incoming {
 public:
  /// *Throws*: weft::error if it is not as it was sent. `all` outlives this.
  incoming(const bytes& all, int from) : r_(std::span<const std::byte>(all)), from_(from) {
    std::uint32_t sum = 0;
    if (all.size() < sizeof sum) refuse_();
    std::memcpy(&sum, all.data(), sizeof sum);
    if (sum != io::crc32c(all.data() + sizeof sum, all.size() - sizeof sum)) refuse_();
    std::uint8_t k = 0;
    r_(sum, k, run_);
    if (k > static_cast<std::uint8_t>(kind::leave)) refuse_();
    kind_ = static_cast<remote::kind>(k);
  }
  remote::kind kind() const noexcept { return kind_; }
  std::uint32_t run() const noexcept { return run_; }
  int from() const noexcept { return from_; }
  reader& body() noexcept { return r_; }

 private:
  [[noreturn]] void refuse_() const {
    throw error("weft: a message from process " + std::to_string(from_) + " of the cluster is damaged");
  }
  reader r_;
  int from_;
  remote::kind kind_{};
  std::uint32_t run_ = 0;
};

}  // namespace weft::inline WEFT_ABI::remote
