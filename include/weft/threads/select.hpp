// SPDX-License-Identifier: BSL-1.0
// select: a wait at several channels for the first of them that has an item, or room for one.
#pragma once

#include <weft/threads/channel.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace weft::inline WEFT_ABI {

namespace threads {

struct channel_access {
  template <class T>
  static channel_state<T>& state(channel<T>& c) noexcept {
    return c.state_;
  }
};

struct do_nothing {
  void operator()(auto&&) const noexcept {}
};

template <class T, class F>
class receive_case final : public channel_case<T> {
 public:
  receive_case(channel<T>& from, F f)
      : channel_case<T>(channel_access::state(from), item_), then_(std::move(f)) {}
  void finish() {
    this->moved();
    std::invoke(std::move(then_), std::move(item_));
  }

 private:
  std::optional<T> item_;
  F then_;
};

/// `Item`: T, or T&& for an item of the caller, which is moved from only if its case is chosen.
template <class Item>
struct kept_item {
  Item item;
};
template <class T, class Item, class F>
class send_case final : kept_item<Item>, public channel_case<T> {
 public:
  send_case(channel<T>& to, auto&& given, F f)
      : kept_item<Item>{static_cast<decltype(given)>(given)},
        channel_case<T>(channel_access::state(to), kept_item<Item>::item),
        then_(std::move(f)) {}
  void finish() { std::invoke(std::move(then_), this->moved()); }

 private:
  F then_;
};

template <class C>
concept case_of_select = std::derived_from<C, select_case> && requires(C& c) { c.finish(); };

template <class... Case>
std::optional<std::size_t> select_within(deadline until, Case&... cases) {
  select_case* const all[] = {&cases...};
  select_case* chosen = nullptr;
  (static_cast<void>(cases.sends() ? let_see(cases.object()) : void()), ...);
  {
    [[maybe_unused]] const sched::races::unseen library;
    chosen = first_of(std::span(all), [](select_case& c) {
      wait_entry* chain = nullptr;
      bool ready = false;
      {
        const std::lock_guard hold(c.list.mutex);
        if ((ready = c.ready())) c.act(chain);
      }
      waiter_list::tell(chain);
      return ready;
    });
    if (chosen == nullptr && !until.is_at_once())
      chosen = selection().wait(all, {"one of several channels", "selects from channels"}, until);
  }
  if (chosen == nullptr) return std::nullopt;
  std::size_t index = 0;
  const auto finish_if_chosen = [&](auto& c) {
    if (&c != chosen) return ++index, false;
    see(c.object());
    c.finish();
    return true;
  };
  static_cast<void>((finish_if_chosen(cases) || ...));
  return index;
}

}  // namespace threads

/// A case of weft::select: an item is taken from a channel. `f(std::optional<T>)` is then called by the one
/// who selects; with nothing if the channel is closed and empty.
template <class T, std::invocable<std::optional<T>> F = threads::do_nothing>
[[nodiscard]] threads::receive_case<T, F> on_receive(channel<T>& from, F f = {}) {
  return {from, std::move(f)};
}

/// A case of weft::select: an item is put into a channel. `f(bool)` is then called by the one who selects;
/// with false if the channel is closed. An item given as an rvalue is moved from only if the case is chosen
/// and the channel is not closed; else it is as it was. *Requires*: used in the same expression.
template <class T, class Item, std::invocable<bool> F = threads::do_nothing>
  requires std::convertible_to<Item, T>
[[nodiscard]] auto on_send(channel<T>& to, Item&& item, F f = {}) {
  using kept = std::conditional_t<std::is_same_v<Item, T>, T&&, T>;
  return threads::send_case<T, kept, F>(to, std::forward<Item>(item), std::move(f));
}

/// Waits until one of the cases can be done, does it, and calls its function. A closed channel can always be
/// received from and sent to. Where several can be done, each has its turn: calls begin to look at another
/// case each time, so that over many calls each of them is chosen about equally often. Where none can be
/// done, the caller takes its place among those who wait at each channel, in the order of arrival. A channel
/// may occur more than once.
///
/// *Returns*: the number of the case, from 0. *Throws*: weft::cancelled if the run is stopped meanwhile; what
/// moving the item, or the function throws; std::bad_alloc, std::system_error. In all but the function's
/// exceptions, no item has changed hands.
///
/// *Suspends*: yes; outside tasks the kernel thread blocks. *Cost*: a lock of each channel looked at; for a
/// wait two of each. *Thread safety*: any.
///
/// *Example*: `weft::select(weft::on_receive(orders, work), weft::on_send(log, line));`
template <threads::case_of_select... Case>
  requires(sizeof...(Case) > 0)
std::size_t select(Case&&... cases) {
  return *threads::select_within({}, cases...);
}
/// Does one of the cases if that is possible at once. *Returns*: its number; nothing if there was none; as
/// the next two.
template <threads::case_of_select... Case>
  requires(sizeof...(Case) > 0)
std::optional<std::size_t> try_select(Case&&... cases) {
  return threads::select_within(threads::at_once, cases...);
}
/// As select; waits so long at most.
template <class Rep, class Period, threads::case_of_select... Case>
  requires(sizeof...(Case) > 0)
std::optional<std::size_t> select_for(const std::chrono::duration<Rep, Period>& time, Case&&... cases) {
  return threads::select_within(threads::after(time), cases...);
}
/// As select; waits until then at most.
template <class Clock, class Duration, threads::case_of_select... Case>
  requires(sizeof...(Case) > 0)
std::optional<std::size_t> select_until(const std::chrono::time_point<Clock, Duration>& time,
                                        Case&&... cases) {
  std::optional<std::size_t> chosen;
  threads::until_time(
      time, [&](threads::deadline d) { return (chosen = threads::select_within(d, cases...)).has_value(); });
  return chosen;
}

}  // namespace weft::inline WEFT_ABI
