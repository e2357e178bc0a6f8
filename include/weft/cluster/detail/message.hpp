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
  request,    ///< for so many tasks
  tasks,      ///< the answer: some, or none
  lifeline,   ///< the same as a request, but the answer may wait until there are tasks
  pushed,     ///< that answer: some; or none, and who may have some
  ended,      ///< tasks have ended: what they have written, or thrown
  declined,   ///< the process to which a task was sent has no worker for it, or no memory
  stop,       ///< the run of a task was stopped, says the process from which it comes
  stop_seen,  ///< the answer
  stopped,    ///< the same, says the process that executes the task
  offer,      ///< a long message is there
  more,       ///< asks for a part of it
  part,       ///< that
  refused,    ///< there is no memory for it
  thread,     ///< a thread that goes on here
  kept,       ///< what of the values of a task its receiver has kept and given up
  finish,     ///< down the tree from process 0: the run is over, and its outcome
  finished,   ///< up the tree: nothing of this process, and of those below it, is under way any more
  leave,      ///< down the tree: no process has anything under way
  beat,       ///< to a neighbour in the tree: this process is there
  gone,       ///< the same: this process takes part in no other run
};

/// Tasks and threads that are in other processes are numbered by where they come from; this bit says which.
inline constexpr std::uint64_t thread_bit = std::uint64_t{1} << 63;
constexpr bool is_thread(std::uint64_t id) noexcept { return (id & thread_bit) != 0; }

/// One of several parts of a message, with its size in front.
class item_frame {
 public:
  /// Begins it.
  explicit item_frame(writer& w) : at_(w.bytes().size()) { w(std::uint64_t{0}); }
  void close(writer& w) const noexcept {
    const std::uint64_t size = w.bytes().size() - at_ - sizeof size;
    std::memcpy(w.bytes().data() + at_, &size, sizeof size);
  }

 private:
  std::size_t at_;
};

/// A message that is being written.
class outgoing {
 public:
  outgoing(kind k, std::uint32_t run) {
    w_.bytes().reserve(usual);
    w_(std::uint32_t{0}, static_cast<std::uint8_t>(k), run);
  }
  writer& body() noexcept { return w_; }
  std::size_t size() noexcept { return w_.bytes().size(); }
  /// What was written into the body.
  std::span<const std::byte> content() noexcept { return std::span(w_.bytes()).subspan(head); }
  /// The whole, with its checksum.
  bytes seal() {
    bytes all = std::move(w_.bytes());
    const std::uint32_t sum = io::crc32c(all.data() + sizeof sum, all.size() - sizeof sum);
    std::memcpy(all.data(), &sum, sizeof sum);
    return all;
  }

 private:
  static constexpr std::size_t usual = 64;  // bytes: the few fields of most messages
  static constexpr std::size_t head = sizeof(std::uint32_t) + sizeof(std::uint8_t) + sizeof(std::uint32_t);
  writer w_;
};

/// A message that says nothing but of which task it is.
inline bytes about_task(kind k, std::uint64_t id, std::uint32_t run) {
  outgoing m(k, run);
  m.body()(id);
  return m.seal();
}

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
    if (k > static_cast<std::uint8_t>(kind::gone)) refuse_();
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

/// Throws that there is no memory for the outcome of a run, which has so many bytes.
[[noreturn]] inline void refuse_outcome(int process, std::uint64_t size) {
  throw error("weft: no memory in process " + std::to_string(process) +
              " of the cluster for the result of the run, which has " + std::to_string(size) + " bytes");
}

}  // namespace weft::inline WEFT_ABI::remote
