// SPDX-License-Identifier: BSL-1.0
// What a repeated graph looked like when it was recorded: its tasks, what they access, and who waits for
// whom.
#pragma once

#include <weft/graph/detail/record_order.hpp>
#include <weft/task/closure.hpp>

#include <new>
#include <span>

namespace weft::inline WEFT_ABI::sched {

/// One recorded iteration of a graph (graph/README.md, "Recorded graphs").
///
/// Who may touch it when:
///  1. `phase_` says who: while it is `recording`, the strand that began; that strand leaves it `empty` or
///     `ready` with release.
///  2. Whoever has read `ready` with acquire may read everything, at the same time as others: it is constant.
class record {
 public:
  record() = default;
  record(const record&) = delete;
  record& operator=(const record&) = delete;

  /// Begins to record. *Returns*: false if somebody else does, or has done so.
  bool begin() noexcept {
    phase expected = phase::empty;
    // Acquire pairs with abandon, by whomever.
    return phase_.compare_exchange_strong(expected, phase::recording, base::memory_order_acquire,
                                          base::memory_order_relaxed);
  }
  /// Notes the next task. *Requires*: it is recording. *Throws*: std::bad_alloc, what its rights throw.
  void add(closure& c) {
    const std::size_t objects = objects_.size() + c.what->objects;
    if (tasks_.size() >= most || objects >= most || more_.size() >= most) throw std::bad_alloc();
    tasks_.push_back({c.what->kind(), static_cast<std::uint32_t>(objects_.size()),
                      static_cast<std::uint32_t>(more_.size()), 0});
    objects_.insert(objects_.end(), c.objects(), c.objects() + c.what->objects);
    if (c.what->more == nullptr) return;
    collector v{{&collector::see_}, more_};
    c.what->more(c, v);
  }
  /// Finds out who waits for whom. *Throws*: std::bad_alloc.
  void complete() {
    tasks_.push_back(
        {nullptr, static_cast<std::uint32_t>(objects_.size()), static_cast<std::uint32_t>(more_.size()), 0});
    record_order order;
    for (std::uint32_t k = 0; k < size(); ++k) tell(k, [&order](const access& a) { order.announce(a); });
    order.begin();
    for (const bool again : {false, true})
      for (std::uint32_t k = 0; k < size(); ++k) {
        tell(k, [&order](const access& a) { order.add(a); });
        if (again) tasks_[k].before = static_cast<std::uint32_t>(before_.size());
        order.end_task(k, again ? &before_ : nullptr);
        if (before_.size() >= most) throw std::bad_alloc();
      }
    tasks_.back().before = static_cast<std::uint32_t>(before_.size());
    before_.shrink_to_fit();
    phase_.store(phase::ready, base::memory_order_release);  // pairs with ready
  }
  /// Forgets what was recorded.
  void abandon() noexcept {
    tasks_.clear();
    objects_.clear();
    more_.clear();
    before_.clear();
    phase_.store(phase::empty, base::memory_order_release);  // pairs with begin
  }

  /// Whether it can be replayed. Acquire pairs with complete.
  bool ready() const noexcept { return phase_.load(base::memory_order_acquire) == phase::ready; }
  /// How many tasks an iteration has.
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(tasks_.size() - 1); }
  /// For whom task k waits.
  std::span<const earlier_task> before(std::uint32_t k) const noexcept {
    return {before_.data() + tasks_[k].before, before_.data() + tasks_[k + 1].before};
  }
  /// Whether a closure is the kind of task that task k was.
  bool same_kind(std::uint32_t k, const closure& c) const noexcept {
    return tasks_[k].what == c.what->kind();
  }
  /// Whether it has the same rights as well. *Requires*: its arguments are there. *Throws*: what its rights
  /// throw.
  bool same(std::uint32_t k, closure& c) const {
    if (!same_objects(k, c)) return false;
    if (c.what->more == nullptr) return true;
    const task& t = tasks_[k];
    comparison v{{&comparison::see_}, more_.data() + t.more, more_.data() + tasks_[k + 1].more};
    c.what->more(c, v);
    return v.equal && v.next == v.end;
  }

  /// The same for one whose arguments are gone; false where they have told rights.
  bool same_ended(std::uint32_t k, const closure& c) const noexcept {
    return c.what->more == nullptr && same_objects(k, c);
  }

 private:
  /// Whether it is of the same kind, with the same whole objects among its arguments.
  bool same_objects(std::uint32_t k, const closure& c) const noexcept {
    const task& t = tasks_[k];
    if (t.what != c.what->kind()) return false;
    return std::equal(c.objects(), c.objects() + c.what->objects, objects_.data() + t.objects);
  }

  static constexpr std::size_t most = UINT32_MAX / 4;

  enum class phase : std::uint8_t { empty, recording, ready };
  struct task {
    const descriptor* what;
    // Where its share begins: the next task's is its end.
    std::uint32_t objects;
    std::uint32_t more;
    std::uint32_t before;
  };
  struct collector : access_visitor {
    std::vector<access>& all;
    static void see_(access_visitor& self, const access& a) {
      static_cast<collector&>(self).all.push_back(a);
    }
  };
  struct comparison : access_visitor {
    const access* next;
    const access* end;
    bool equal = true;
    static void see_(access_visitor& self, const access& a) {
      auto& v = static_cast<comparison&>(self);
      if (v.next == v.end) {
        v.equal = false;
        return;
      }
      const access& b = *v.next++;
      // Operations do not matter: contributions are replayed one after the other.
      if (a.object != b.object || a.mode != b.mode || a.sliced != b.sliced || a.begin != b.begin ||
          a.end != b.end)
        v.equal = false;
    }
  };

  template <class See>
  void tell(std::uint32_t k, See&& see) const {
    const task& t = tasks_[k];
    for (std::uint32_t i = 0; i < t.what->objects; ++i)
      see(access{.object = objects_[t.objects + i], .mode = t.what->modes[i]});
    for (std::uint32_t i = t.more; i < tasks_[k + 1].more; ++i) see(more_[i]);
  }

  base::atomic<phase> phase_{phase::empty};
  std::vector<task> tasks_;  // and one behind the last
  std::vector<void*> objects_;
  std::vector<access> more_;
  std::vector<earlier_task> before_;
};

}  // namespace weft::inline WEFT_ABI::sched
