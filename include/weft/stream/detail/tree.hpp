// SPDX-License-Identifier: BSL-1.0
// The records of a stream: a tree in which every piece of it stands at its place in the reference order.
#pragma once

#include <weft/blocking/definitions.hpp>
#include <weft/blocking/fence.hpp>
#include <weft/stream/detail/gate.hpp>
#include <weft/stream/detail/memory.hpp>

namespace weft::inline WEFT_ABI::stream {

class stream_state;
struct worker_buffer;
struct node;

/// What stands at a place of the stream.
///
/// extent: bytes in a block. child: all that a task appends which was given the right. fence: what comes next
/// counts only if certain tasks end well. anew: what comes next counts again, although something before has
/// failed; the body has seen the exception. hook: a function that appends when it is its turn. reading: a
/// task that reads what stands before.
enum class element_kind : std::uint8_t { extent, child, fence, resume_marker, hook, reading };

/// One element of a node's list. *Thread safety*: constant once `next` of the one before it, or the end of
/// its node, is published; `next` is written once with release by the node's executor, and read with acquire.
struct element {
  explicit element(element_kind k) noexcept : kind(k) {}
  base::atomic<element*> next{nullptr};
  const element_kind kind;
};

/// Bytes [begin, end) of a block. The last extent of a node grows until there is another element, or the node
/// has ended. `crc` is of all of it, if the stream has checksums by then.
struct extent final : element {
  extent(block& b, std::size_t at) noexcept : element(element_kind::extent), in(&b), begin(at), end(at) {}
  block* in;
  std::size_t begin, end;
  std::uint32_t crc = 0;
};

/// Waits for closures that append nothing.
struct fence_element final : element, sched::fence_listener {
  fence_element(stream_state& c, sched::fence_listener how) noexcept
      : element(element_kind::fence), sched::fence_listener(how), of(&c) {}
  stream_state* of;
  gate tasks;
};

struct hook_element : element {
  explicit hook_element(void (*c)(hook_element&, stream_state*)) noexcept
      : element(element_kind::hook), call(c) {}
  /// Calls the function, if the stream is not null, and destroys it.
  void (*call)(hook_element&, stream_state*);
};

struct reading;
struct reading_element final : element {
  explicit reading_element(reading& r) noexcept : element(element_kind::reading), of(&r) {}
  reading* of;
};

/// Up to where the executor of a node has accounted for what its body has forked.
struct fork_mark {
  const sched::strand* who = nullptr;
  const base::atomic<sched::closure*>* link = nullptr;  ///< strand's last one; null: nothing is pending
  std::uint32_t drains = 0;

  static fork_mark now(const sched::strand& s) noexcept {
    return {&s, s.pending() ? s.top->link : nullptr, s.drains};
  }
  bool operator==(const fork_mark&) const = default;
};

/// The part of a stream that belongs to one deferred task, with what it runs inside fork; or the whole.
///
/// Who may touch it when:
///  1. `first`, links and `body` as said there. `parent`, `depth`, `is_run` are constant.
///  2. The rest belongs to whoever executes the task.
struct node final : element {
  node(node* around, bool run) noexcept
      : element(element_kind::child),
        parent(around),
        depth(around != nullptr ? around->depth + 1 : 0),
        is_run(run) {}
  base::atomic<element*> first{nullptr};
  gate body;
  node* const parent;
  const std::uint32_t depth;
  const bool is_run;  ///< an exception that leaves it reaches the caller of run

  element* last = nullptr;
  extent* growing = nullptr;  ///< the last element, if that is an extent in the worker buffer's block
  fork_mark seen;
  std::uint32_t worker = 0;  ///< the number of the worker whose worker buffer this is:
  stream::worker_buffer* worker_buffer = nullptr;
};

}  // namespace weft::inline WEFT_ABI::stream
