// SPDX-License-Identifier: BSL-1.0
// One who waits at several places for the first of several things that can be done there.
#pragma once

#include <weft/threads/detail/waiters.hpp>

#include <cstddef>
#include <span>

namespace weft::inline WEFT_ABI::threads {

class selection;

/// Something that can be done at an object as soon as that permits it. The lock of `list` is held in all
/// functions.
struct select_case : wait_entry {
  explicit select_case(waiter_list& at) noexcept : list(at) {}
  select_case(const select_case&) = delete;
  select_case& operator=(const select_case&) = delete;

  /// Whether it can be done now.
  virtual bool ready() const noexcept = 0;
  /// Does it. *Requires*: it is ready. `chain`: those who are to be told. *Throws*: then nothing is done.
  virtual void act(wait_entry*& chain) = 0;

  waiter_list& list;
  selection* of = nullptr;  ///< who waits, while it is in the list

 protected:
  ~select_case() = default;
};

/// Counts calls, for fairness.
WEFT_PER_PROCESS inline constinit base::atomic<std::uint32_t> selects_begun{0};

/// Calls `f(case)` for all cases, beginning with another one each time. *Returns*: the first case for which
/// it returns true, or null.
template <class F>
select_case* first_of(std::span<select_case* const> cases, F f) {
  std::size_t at = 0;
  if (cases.size() > 1) {
    // Relaxed, twice: it does not matter whether two get the same number.
    const std::uint32_t n = selects_begun.load(base::memory_order_relaxed) + 1;
    selects_begun.store(n, base::memory_order_relaxed);
    // Multiples of the golden ratio spread evenly, also if every second call is another select.
    at = static_cast<std::size_t>((std::uint64_t{n * 0x9E3779B9u} * cases.size()) >> 32);
  }
  for (std::size_t i = 0; i < cases.size(); ++i, at = at + 1 == cases.size() ? 0 : at + 1)
    if (f(*cases[at])) return cases[at];
  return nullptr;
}

/// A body, or a kernel thread outside tasks, that waits until one of several cases can be done.
///
/// Who may touch it when:
///  1. `chosen_` is set once, by whoever claims the wait: the one who does a case for it, under the lock of
///  the case's list; the one who waits, before it waits; or who ends the wait early. Who has claimed it sets
///  the signal, unless it is the one who waits.
///  2. The case belongs to the lock of its list while it is in that.
class selection : sched::abandonable, sched::timer {
 public:
  selection() = default;
  selection(const selection&) = delete;
  selection& operator=(const selection&) = delete;

  /// *Returns*: whether the caller is the one who ends the wait.
  bool claim(const void* how) noexcept {
    const void* expected = nullptr;
    // Relaxed: what is done with a case is ordered by the lock of its list and by the signal.
    return chosen_.compare_exchange_strong(expected, how, base::memory_order_relaxed);
  }

  /// Does a case, or waits until another one has done it. *Returns*: that; null if the time is over.
  /// *Requires*: called once. *Throws*: cancelled if the run is stopped meanwhile; what doing a case throws;
  /// std::bad_alloc, std::system_error before anything was done. *Suspends*: yes.
  select_case* wait(std::span<select_case* const> cases, const wait_text& text, deadline until) {
    what = text.what;
    object = text.object;
    give_up = [](sched::abandonable& a) noexcept { static_cast<selection&>(a).end_early_(&stopped_); };
    when = until.at;
    expire = [](sched::timer& t) noexcept { static_cast<selection&>(t).end_early_(&timed_out_); };
    {
      sched::signal_wait here(*this, text.how, {.expiry = until.exists() ? this : nullptr});
      const struct withdrawn {
        std::span<select_case* const> cases;
        ~withdrawn() {
          for (select_case* c : cases) {
            if (c->of == nullptr) continue;
            const std::lock_guard hold(c->list.mutex);
            if (c->is == wait_state::waiting) c->list.withdraw(*c);
          }
        }
      } at_end{cases};
      if (!enter_(cases)) here.wait();
    }
    // Relaxed: nobody changes it any more.
    const void* const how = chosen_.load(base::memory_order_relaxed);
    if (how == &stopped_) throw cancelled();
    for (select_case* c : cases)
      if (c == how) return c;
    return nullptr;
  }

 private:
  /// Enters the lists, until something can be done. *Returns*: whether the caller has done it; else somebody
  /// sets the signal.
  bool enter_(std::span<select_case* const> cases) {
    bool done = false;
    first_of(cases, [&](select_case& c) {
      wait_entry* chain = nullptr;
      bool over = true;
      {
        const std::lock_guard hold(c.list.mutex);
        if (c.ready()) {
          if ((done = claim(&c))) c.act(chain);
        } else if (chosen_.load(base::memory_order_relaxed) == nullptr) {  // a hint: it saves the way
          c.of = this;
          c.wakes = this;
          c.list.append(c);
          over = false;
        }
      }
      waiter_list::tell(chain);
      return over;
    });
    return done;
  }
  void end_early_(const void* how) noexcept {
    if (claim(how)) sched::raise_signal(*this);
  }

  static constexpr char stopped_ = 0, timed_out_ = 0;
  base::atomic<const void*> chosen_{nullptr};
};

}  // namespace weft::inline WEFT_ABI::threads
