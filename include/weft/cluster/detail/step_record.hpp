// SPDX-License-Identifier: BSL-1.0
// One step of a repeated program, as this process has recorded it: tasks that can be executed again, and
// their objects.
#pragma once

#include <weft/cluster/detail/code_address.hpp>
#include <weft/cluster/detail/repeatable.hpp>
#include <weft/cluster/detail/travel.hpp>
#include <weft/sched/definitions.hpp>
#include <weft/task/recorded_call.hpp>

#include <exception>
#include <memory>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// The tasks that the running body forks while this lives go to the record, and nowhere else.
class step_record : sched::recorded_call {
 public:
  using mode = sched::access_mode;
  struct use {
    std::uint32_t object;
    mode how;  ///< read, write or update
    bool operator==(const use&) const = default;
  };
  struct task {
    std::unique_ptr<repeatable> body;
    std::vector<use> uses;  ///< each object once
    sched::task_options options;
    std::uint64_t identity =
        0;  ///< differs where the type of the callable, the function it points to, or the uses do
  };
  struct object {
    void* at;
    const std::type_info* type;
    const value_kind* kind;  ///< null: it does not travel
    bool written = false;
    std::uint32_t first;  ///< the first task that uses it
  };

  step_record() noexcept { take = &take_; }

  /// Calls a function that forks a step. *Requires*: called in a task. *Throws*: what it throws; weft::error
  /// for a task that cannot be repeated.
  template <class F>
  void record(F& f) {
#if WEFT_RACES
    throw error("weft: a partitioned step cannot be made where races are looked for");
#endif
    sched::strand& s = sched::current();
    if (!s.pending()) sched::open_frame(s);
    // So that each fork takes the way that leads to `take`.
    const std::uint8_t before = s.attention.fetch_or(sched::observed, base::memory_order_relaxed);
    sched::recorded_call* const outer = std::exchange(s.recorded, static_cast<sched::recorded_call*>(this));
    struct ended {
      sched::strand& s;
      sched::recorded_call* outer;
      bool observed;
      ~ended() {
        s.recorded = outer;
        if (!observed)
          s.attention.fetch_and(static_cast<std::uint8_t>(~sched::observed), base::memory_order_relaxed);
      }
    } const at_end{s, outer, (before & sched::observed) != 0};
    f();
    if (broken_) std::rethrow_exception(broken_);
    if (broken) throw cancelled();
  }

  const std::vector<task>& tasks() const noexcept { return tasks_; }
  const std::vector<object>& objects() const noexcept { return objects_; }
  /// As a message calls a task.
  std::string name_of(std::uint32_t t) const {
    return "task " + std::to_string(t) + " ('" + tasks_[t].options.name + "')";
  }

 private:
  static void take_(sched::recorded_call& self, sched::closure& c) noexcept {
    auto& r = static_cast<step_record&>(self);
    try {
      if (!r.broken_) r.add_(c);
    } catch (...) {
      r.broken_ = std::current_exception();
    }
    c.what->drop(c);
  }
  void add_(const sched::closure& c) {
    const auto number = static_cast<std::uint32_t>(tasks_.size());
    task t;
    t.options = c.what->options(c);
    const sched::travel* how = nullptr;
    if (c.what->travels != nullptr && *c.what->travels != nullptr) how = (*c.what->travels)();
    if (how == nullptr || how->repeat == nullptr || t.options.event)
      throw error(
          "weft: task " + std::to_string(number) + " ('" + t.options.name +
          "') of a partitioned step cannot be repeated: it needs a callable and arguments that can be "
          "copied, no result, no option event, and rights on whole objects");
    t.body = how->repeat(c);
    t.identity = mix_(14695981039346656037ull, reinterpret_cast<const void*>(*c.what->travels));
    if (const void* const f = t.body->function()) t.identity = mix_(t.identity, f);
    for (const repeated_access& a : t.body->accesses()) {
      const std::uint32_t id = object_(a, number);
      const auto same = [id](const use& u) { return u.object == id; };
      if (const auto found = std::find_if(t.uses.begin(), t.uses.end(), same); found == t.uses.end())
        t.uses.push_back({id, a.mode});
      else if (found->how != a.mode)
        found->how = mode::update;
      objects_[id].written |= a.mode != mode::read;
    }
    for (const use& u : t.uses)
      t.identity = mix_(mix_(t.identity, u.object), static_cast<std::uint64_t>(u.how));
    tasks_.push_back(std::move(t));
  }
  std::uint32_t object_(const repeated_access& a, std::uint32_t user) {
    const auto [found, added] = ids_.emplace(a.object, static_cast<std::uint32_t>(objects_.size()));
    if (added)
      objects_.push_back({a.object, a.type, a.kind, false, user});
    else if (*a.type != *objects_[found->second].type)
      throw error(
          "weft: task " + std::to_string(user) +
          " of a partitioned step uses an object that begins where one of another type does, which task " +
          std::to_string(objects_[found->second].first) + " uses");
    return found->second;
  }
  static std::uint64_t mix_(std::uint64_t sum, std::uint64_t with) noexcept {
    return (sum ^ with) * 1099511628211ull;
  }
  static std::uint64_t mix_(std::uint64_t sum, const void* function) {
    const code_address at = loaded_code::at_start().find(function);
    return mix_(mix_(sum, at.module), at.offset);
  }

  std::vector<task> tasks_;
  std::vector<object> objects_;  // by first use
  std::unordered_map<void*, std::uint32_t> ids_;
  std::exception_ptr broken_;
};

}  // namespace weft::inline WEFT_ABI::remote
