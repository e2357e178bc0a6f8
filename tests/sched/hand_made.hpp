// SPDX-License-Identifier: BSL-1.0
// Closures and frames made by hand, as fork would make them, for tests of the scheduler below fork.
#pragma once

#include <weft/sched/detail/drain.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <utility>

namespace weft_test {

using weft::sched::access_mode;

/// A right on an object.
struct access {
  const void* object;
  access_mode mode;
};
inline access reads(const auto& object) { return {&object, access_mode::read}; }
inline access writes(const auto& object) { return {&object, access_mode::write}; }
inline access updates(const auto& object) { return {&object, access_mode::update}; }

/// A contribution that was folded into its object.
struct folded {
  const weft::sched::closure* from;
  std::uint32_t part;
  bool operator==(const folded&) const = default;
};

/// A closure with up to four rights, and a body that the test may look at while it is not run.
class made_closure : public weft::sched::closure {
 public:
  /// How bodies that were never run have ended: counted by the drop of the descriptor.
  static inline int dropped = 0;
  /// Called for each contribution that is folded.
  static inline std::function<void(folded)> on_fold;

  made_closure(std::initializer_list<access> rights, std::function<void()> f, weft::sched::task_options o)
      : closure(what_), body_(std::move(f)), options_(o) {
    local = o.local;
    for (const access& a : rights) {
      objects_[what_.objects] = const_cast<void*>(a.object);
      modes_[what_.objects++] = a.mode;
    }
  }
  ~made_closure() = delete;  // run and drop destroy the body; the rest is memory of an arena

  /// Adds an access that is told to visitors only; up to four. *Returns*: the closure.
  made_closure& add_access(const weft::sched::access& a) {
    more_[more_count_++] = a;
    what_.plain = false;
    what_.more = &more_of_;
    what_.fold = &fold_;
    return *this;
  }

  /// Makes it a fence, which starts when all before it have ended. *Returns*: the closure.
  made_closure& as_fence() {
    what_.fence = local = true;
    return *this;
  }

  /// Lets its writes rename their objects, whose type is known by `kind`. *Returns*: the closure.
  made_closure& may_rename(const weft::sched::version_kind& kind) {
    for (std::size_t i = 0; i < what_.objects; ++i)
      if (modes_[i] == access_mode::write) kinds_[i] = &kind;
    what_.kinds = kinds_;
    return *this;
  }

 private:
  static void more_of_(closure& c, weft::sched::access_visitor& v) {
    auto& self = static_cast<made_closure&>(c);
    for (std::size_t i = 0; i < self.more_count_; ++i) v.see(v, self.more_[i]);
  }
  static void fold_(closure& c, std::uint32_t part) {
    if (on_fold && part != weft::sched::all_parts) on_fold({&c, part});
  }
  static void run_(closure& c) {
    auto& self = static_cast<made_closure&>(c);
    const std::function<void()> f = std::move(self.body_);
    std::destroy_at(&self.body_);
    f();
  }
  static void drop_(closure& c) noexcept {
    std::destroy_at(&static_cast<made_closure&>(c).body_);
    ++dropped;
  }
  static const weft::sched::task_options& options_of_(const closure& c) noexcept {
    return static_cast<const made_closure&>(c).options_;
  }

  void* objects_[4] = {};  // first: closure::objects() expects them right behind the closure
  union {
    std::function<void()> body_;
  };
  access_mode modes_[4] = {};
  const weft::sched::version_kind* kinds_[4] = {};
  weft::sched::descriptor what_{&run_, &drop_, modes_, 0, &options_of_};
  weft::sched::task_options options_;
  weft::sched::access more_[4] = {};
  std::size_t more_count_ = 0;
};

/// Makes a closure in the strand's memory.
inline made_closure& make_closure(weft::sched::arena& memory, std::initializer_list<access> rights = {},
                                  std::function<void()> body = {}, weft::sched::task_options options = {}) {
  void* const place = memory.allocate(sizeof(made_closure), alignof(made_closure));
  return *::new (place) made_closure(rights, std::move(body), options);
}

/// A strand in the hands of the test, which is its owner.
struct made_strand : weft::sched::strand {
  weft::sched::run_state run_of_all;

  made_strand() {
    run.store(&run_of_all, std::memory_order_relaxed);  // a single thread
    cap = UINT32_MAX;
    floor = top = &root;
  }

  /// Opens a frame above the innermost one, for the children of `running`, its claimed closure.
  weft::sched::frame& open(weft::sched::closure* running = nullptr) {
    if (running != nullptr) claim(*running);
    floor = top;
    open_frame(*this);
    return *top;
  }
  /// Appends a closure to the innermost frame.
  made_closure& add(std::initializer_list<access> rights = {}, std::function<void()> body = {},
                    weft::sched::task_options options = {}) {
    made_closure& c = make_closure(closures, rights, std::move(body), options);
    link(*top, c);
    return c;
  }
  /// Lets forks run tasks at once, from here on down for some more stack.
  void allow_inlining() {
    stack_limit = inline_limit = weft::context::stack_pointer() - 65'536;
    restore_window();
  }
  /// Makes `c` the one that the innermost frame executes.
  void claim(weft::sched::closure& c) { weft::base::owner_store(top->current, &c); }
};

}  // namespace weft_test
