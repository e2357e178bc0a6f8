// SPDX-License-Identifier: BSL-1.0
// The items of a channel, who waits for items or for room, and how items change hands.
#pragma once

#include <weft/threads/detail/selection.hpp>

#include <deque>
#include <exception>
#include <utility>

namespace weft::inline WEFT_ABI::threads {

template <class T>
struct channel_case;

/// What a channel consists of. Those who wait all wait for the same: for items, while there are none, or for
/// room, while there is none. Each change serves those who need wait no longer, in the order of arrival.
template <class T>
struct channel_state {
  explicit channel_state(std::size_t most) noexcept : capacity(most) {}

  // The lock of `waiters` is held in all of these.
  bool settles_put() const noexcept { return closed || items.size() < capacity; }
  bool settles_take() const noexcept { return closed || !items.empty(); }
  /// *Returns*: false if it is closed; then the item is as it was.
  bool put(T& item) {
    if (closed) return false;
    items.push_back(std::move(item));
    return true;
  }
  /// *Returns*: false if it is closed and empty.
  bool take(std::optional<T>& item) {
    if (items.empty()) return false;
    item.emplace(std::move(items.front()));
    items.pop_front();
    return true;
  }
  /// Does what those who wait have come for, as long as that is possible.
  void serve(wait_entry*& chain) noexcept {
    while (wait_entry* const first = waiters.first()) {
      auto& c = static_cast<channel_case<T>&>(*first);
      if (!c.ready()) return;
      if (!c.of->claim(static_cast<select_case*>(&c))) {
        waiters.withdraw(c);
        continue;
      }
      c.act_for_other();
      chain = waiters.grant(c, chain);
    }
  }

  waiter_list waiters;
  std::deque<T> items;
  std::size_t capacity;
  bool closed = false;
};

/// An item on its way into a channel, or room for one that comes out.
template <class T>
struct channel_case : select_case {
  channel_case(channel_state<T>& at, T& given) noexcept : select_case(at.waiters), at_(at), given_(&given) {}
  channel_case(channel_state<T>& at, std::optional<T>& taken) noexcept
      : select_case(at.waiters), at_(at), taken_(&taken) {}

  bool ready() const noexcept final { return given_ != nullptr ? at_.settles_put() : at_.settles_take(); }
  void act(wait_entry*& chain) final {
    move_();
    at_.serve(chain);
  }
  /// The same for one who waits. What moving the item throws is thrown there.
  void act_for_other() noexcept {
    try {
      move_();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  const void* object() const noexcept { return &at_; }
  bool sends() const noexcept { return given_ != nullptr; }
  /// *Returns*: whether an item has been moved; not if the channel was closed. *Throws*: what moving it has
  /// thrown. *Requires*: it was chosen.
  bool moved() const {
    if (failure_) std::rethrow_exception(failure_);
    return moved_;
  }

 protected:
  ~channel_case() = default;

 private:
  void move_() { moved_ = given_ != nullptr ? at_.put(*given_) : at_.take(*taken_); }

  channel_state<T>& at_;
  T* given_ = nullptr;
  std::optional<T>* taken_ = nullptr;
  bool moved_ = false;
  std::exception_ptr failure_;
};

}  // namespace weft::inline WEFT_ABI::threads
