// SPDX-License-Identifier: BSL-1.0
// The items of a pipeline on their way, and who carries them.
#pragma once

#include <weft/algorithms/detail/team.hpp>
#include <weft/base/lock.hpp>
#include <weft/blocking/definitions.hpp>
#include <weft/blocking/ready_queue.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

namespace weft::inline WEFT_ABI::algorithms {

template <class F, bool Serial>
struct stage {
  static constexpr bool serial = Serial;
  F f;
};

/// What the stages take, one after the other, if the first takes an Item.
template <class Item, class... Stages>
struct passed_types;
template <class Item, class F, bool Serial>
struct passed_types<Item, stage<F, Serial>> {
  using type = std::tuple<std::optional<Item>>;
};
template <class Item, class F, bool Serial, class... Rest>
struct passed_types<Item, stage<F, Serial>, Rest...> {
  using type = decltype(std::tuple_cat(
      std::tuple<std::optional<Item>>(),
      typename passed_types<std::remove_cvref_t<std::invoke_result_t<F&, Item>>, Rest...>::type()));
};

/// A pipeline that runs. Its carriers, a task and the helpers of its team, carry an item from stage to stage
/// until it must wait for its turn; then they take another one. The source and the stages are called as tasks
/// of their own: what they fork, and wait for, is never a carrier.
///
/// Who may touch it when: an item that is carried, the source while reading_, and a serial stage while it is
/// `busy` belong to one carrier. All else belongs to mutex_; team_ is constant while there are helpers.
template <class Source, class... Stages>
class pipe {
 public:
  pipe(std::size_t tokens, Source& source, Stages&... stages)
      : source_(source), stages_(stages...), items_(tokens) {
    for (item& i : items_) free_.push_back(&i);
    for (gate& g : gates_) g.waiting.resize(tokens);
    ready_.reserve(tokens);
  }

  /// Until the source is empty and all items have passed. *Throws*: what the first item has thrown;
  /// cancelled.
  void run() {
    run_and_wait(name_, [this] {
      static constexpr task_options helpers{.name = name_};
      sched::strand& s = sched::current();
      sched::helper_team team(s, &help_, this, helpers, "the items of a pipeline");
      if (s.recorder == nullptr) team_ = &team;  // a record is that of one worker
      carry_();
      team.wait();
    });
    if (thrown_) std::rethrow_exception(thrown_);
    if (stopped_) throw cancelled();
  }

 private:
  static constexpr std::size_t count = sizeof...(Stages);
  static constexpr const char* name_ = "weft::pipeline";
  static constexpr std::chrono::microseconds worthwhile{10};  ///< as long as a helper must stay
  static constexpr unsigned few_in_vain = 8, most_in_vain = 16;
  using source_item = std::remove_cvref_t<decltype(*std::declval<std::invoke_result_t<Source&>&>())>;

  struct item {
    std::size_t number = 0;
    std::size_t next_stage = 0;
    typename passed_types<source_item, Stages...>::type values;
  };
  /// Of a serial stage.
  struct gate {
    std::size_t next = 0;  ///< number of the item whose turn it is
    bool busy = false;
    std::vector<item*>
        waiting;  ///< by number, modulo its size; all are fewer numbers than tokens behind `next`
  };
  using lock = std::unique_lock<base::spin_lock>;

  static void help_(void* of) noexcept {
    pipe& self = *static_cast<pipe*>(of);
    const auto began = base::clock::now();
    self.carry_();
    const bool pays = base::clock::now() - began >= worthwhile;
    const lock hold(self.mutex_);
    self.in_vain_ = pays ? 0 : std::min(self.in_vain_ + 1, most_in_vain);
    --self.carriers_;
  }
  void carry_() noexcept {
    sched::strand& s = sched::current();
    lock hold(mutex_);
    item* carried = nullptr;
    for (;;) {
      if (carried == nullptr) carried = take_ready_();
      const bool reads = carried == nullptr && can_read_();
      if (carried == nullptr && !reads) break;
      if (reads) {
        reading_ = true;
        carried = free_.back();
        free_.pop_back();
      }
      call_help_(hold);
      hold.unlock();
      const bool stop = sched::look(s);
      std::exception_ptr thrown;
      bool there = true;
      if (!stop)
        thrown = sched::call_as_task(s, name_, [&] {
          if (reads)
            there = read_(*carried);
          else
            call_stage_(*carried);
        });
      hold.lock();
      if (stop) {  // nobody begins anything any more
        stopped_ = at_end_ = true;
        ready_.clear();
        break;
      }
      if (reads) {
        reading_ = false;
        carried->number = read_count_;
        carried->next_stage = 0;
        if (there && !thrown)
          ++read_count_;
        else
          at_end_ = true;
      } else if (!thrown) {
        leave_(*carried);
        there = ++carried->next_stage != count;
      }
      if (thrown) {
        fail_(carried->number, std::move(thrown));
        carried = nullptr;
      } else if (!there) {
        free_.push_back(carried);
        carried = nullptr;
      } else if (!enter_(*carried)) {
        carried = nullptr;
      }
    }
  }

  bool can_read_() const noexcept { return !reading_ && !at_end_ && !thrown_ && !free_.empty(); }
  /// The earliest item that may go on; its gate is busy for it.
  item* take_ready_() noexcept {
    const auto first = std::ranges::min_element(ready_, {}, [](const item* i) { return i->number; });
    if (first == ready_.end()) return nullptr;
    item* const i = *first;
    ready_.erase(first);
    return i;
  }
  /// Another carrier, if it would find something to do; more and more rarely where the last ones soon found
  /// nothing.
  void call_help_(lock& hold) noexcept {
    if ((ready_.empty() && !can_read_()) || carriers_ == most_carriers_ || team_ == nullptr) return;
    if (in_vain_ > few_in_vain && ++pauses_ < 1u << (in_vain_ - few_in_vain)) return;
    pauses_ = 0;
    ++carriers_;
    hold.unlock();
    const bool comes = team_->add_helper();
    hold.lock();
    if (!comes) --carriers_;
  }

  bool read_(item& to) {
    auto value = std::invoke(source_);
    if (!value) return false;
    std::get<0>(to.values).emplace(std::move(*value));
    return true;
  }
  void call_stage_(item& i) {
    static constexpr auto calls = []<std::size_t... N>(std::index_sequence<N...>) {
      return std::array<void (*)(pipe&, item&), count>{&pipe::template call_<N>...};
    }(std::make_index_sequence<count>());
    calls[i.next_stage](*this, i);
  }
  template <std::size_t N>
  static void call_(pipe& p, item& i) {
    auto& value = std::get<N>(i.values);
    auto& f = std::get<N>(p.stages_).f;
    if constexpr (N + 1 == count)
      std::invoke(f, std::move(*value));
    else
      std::get<N + 1>(i.values).emplace(std::invoke(f, std::move(*value)));
    value.reset();
  }

  /// Whether the item may enter its next stage now; else it waits there, or has been dropped.
  bool enter_(item& i) noexcept {
    if (i.number >= failed_) return false;
    if (!is_serial[i.next_stage]) return true;
    gate& g = gates_[i.next_stage];
    if (g.busy || g.next != i.number) {
      g.waiting[i.number % g.waiting.size()] = &i;
      return false;
    }
    return g.busy = true;
  }
  /// The item has passed its stage: it is the next one's turn.
  void leave_(item& i) noexcept {
    if (!is_serial[i.next_stage]) return;
    gate& g = gates_[i.next_stage];
    ++g.next;
    item*& next = g.waiting[g.next % g.waiting.size()];
    g.busy = next != nullptr;
    if (next == nullptr) return;
    if (next->number < failed_) ready_.push_back(next);
    next = nullptr;
  }
  void fail_(std::size_t number, std::exception_ptr thrown) noexcept {
    if (number >= failed_) return;
    failed_ = number;
    thrown_ = std::move(thrown);
    std::erase_if(ready_, [number](const item* i) { return i->number > number; });
  }

  static constexpr std::array<bool, count> is_serial{Stages::serial...};

  Source& source_;
  std::tuple<Stages&...> stages_;
  base::spin_lock mutex_;
  std::vector<item> items_;
  std::vector<item*> free_, ready_;
  std::array<gate, count> gates_;
  std::size_t read_count_ = 0;
  bool reading_ = false, at_end_ = false, stopped_ = false;
  sched::helper_team* team_ = nullptr;
  unsigned carriers_ = 1;  ///< those who carry, or will
  unsigned in_vain_ = 0;   ///< so many helpers, one after the other, did not stay worthwhile
  unsigned pauses_ = 0;    ///< so often nobody was called since
  const unsigned most_carriers_ = workers();
  std::size_t failed_ = static_cast<std::size_t>(-1);  ///< number of the first item that has failed
  std::exception_ptr thrown_;                          ///< what it has thrown
};

}  // namespace weft::inline WEFT_ABI::algorithms
