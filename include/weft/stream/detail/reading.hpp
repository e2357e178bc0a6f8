// SPDX-License-Identifier: BSL-1.0
// A task that reads a stream: what it waits for, and what it sees.
#pragma once

#include <weft/blocking/definitions.hpp>
#include <weft/blocking/external_event.hpp>
#include <weft/stream/detail/dispatcher.hpp>
#include <weft/stream/detail/tree.hpp>

#include <exception>
#include <memory>

namespace weft::inline WEFT_ABI {

/// Where a task begins to read a stream. local: at the beginning, with a position of its own. global: where
/// the task that read so before it in reference order has left off, as with the one file pointer of the
/// serial program; such tasks run one after the other. *Source*: Cheerio.
enum class file_pointer : unsigned char { local, global };

namespace stream {

/// What tasks see that read a stream: its first `end` bytes, once the frontier has come to their place.
///
/// Who may touch it when:
///  1. Before it is in the tree, the task that makes it.
///  2. `told`, `end`, `failure`, `known`: whoever has the frontier when it comes, and then who places
///     the bytes, up to the end of `event`; afterwards all but `told` are constant.
///  3. `position` the same; then, where the pointer is global, the task that reads, up to the end of
///     `task`, and then again who has the frontier.
///  4. `users` counts the tasks, the element, and that it is to be told; who brings it to zero deletes it.
struct reading final : placed_listener {
  reading(stream_state& c, file_pointer p) noexcept : placed_listener{&tell_}, of(c), from(p) {}

  stream_state& of;
  const file_pointer from;
  bool told = false;
  base::atomic<bool> known{false};  ///< for the task that made it, where there is no event
  std::uint64_t position = 0;
  std::exception_ptr failure;
  gate task;  ///< has to end before the frontier passes, where the pointer is global
  sched::awaited_event* event = nullptr;  ///< ends when the task may begin
  sched::strand* strand = nullptr;        ///< where that is
  sched::engine* engine = nullptr;
  base::atomic<std::uint32_t> users{3};

  /// Lets the task begin, or fail.
  void end_wait(std::exception_ptr e) noexcept {
    failure = e;
    known.store(true, base::memory_order_release);  // pairs with is_known
    if (event != nullptr) sched::end_external(*engine, *strand, *event, std::move(e));
    release();
  }
  bool is_known() const noexcept { return known.load(base::memory_order_acquire); }
  void add_user() noexcept {
    users.fetch_add(1, base::memory_order_relaxed);  // by one who is a user
  }
  void release() noexcept {
    // Release and acquire: whoever deletes it comes after all who used it.
    if (users.fetch_sub(1, base::memory_order_acq_rel) == 1) destroy_();
  }

 private:
  static void tell_(placed_listener& l) noexcept;  // stream_state.hpp, as that
  void destroy_() noexcept;
};

}  // namespace stream
}  // namespace weft::inline WEFT_ABI
