// SPDX-License-Identifier: BSL-1.0
// A running body that gives parts of its work to thieves, who call a function for them.
#pragma once

#include <weft/task/signal.hpp>
#include <weft/task/strand.hpp>

namespace weft::inline WEFT_ABI::sched {

class engine;
class theft;

/// A task that a thief was given, in memory of its own: the root of the strand that executes it. The body
/// from which it was taken waits for it behind its own end, folds what it has contributed, and frees it.
///
/// Who may touch it when:
///  1. The thief that makes it, until the strand is submitted.
///  2. The strand that executes it, until `ended` is set.
///  3. From then on, and `older` always, the strand from which it was taken.
struct stolen_part : closure {
  /// `c`: the task, and `all`: its rights, both of which the derived object contains.
  stolen_part(closure& c, const access* all, std::size_t count) noexcept;
  virtual ~stolen_part() = default;
  /// Its place in reference order is here. `conditional`: settle() tells whether it counts.
  virtual void link(bool conditional) noexcept = 0;
  /// Whether it comes before all exceptions.
  virtual void settle(bool counts) noexcept = 0;

  closure& task;
  const access* rights;
  std::size_t right_count;
  std::uint32_t contributions = 0;  ///< of the task; kept until they are folded
  bool dropped = false;             ///< it never ran
  std::exception_ptr error;
  stolen_part* older = nullptr;  ///< taken before this one, and behind it in reference order
  signal ended;

 private:
  static const descriptor what_;
};

/// A body that thieves may ask for work while it runs. The object is a variable of the body. What thieves
/// have taken stands in reference order behind all that the body has forked when the object ends, each part
/// before those taken earlier.
class divisible_body {
 public:
  /// `give` is called by thieves with `context`, from now on, one at a time, and not after this object has
  /// ended. Contract violation outside tasks.
  divisible_body(void (*give)(void* context, theft&), void* context);
  divisible_body(const divisible_body&) = delete;
  divisible_body& operator=(const divisible_body&) = delete;
  /// Waits until a thief who is about to take something has it.
  ~divisible_body();

 private:
  friend class theft;
  friend class worker;

  void (*give_)(void*, theft&);
  void* context_;
  strand& home_;
  const bool listed_;               ///< there may be thieves
  divisible_body* next_ = nullptr;  ///< the next one further in
  stolen_part* newest_ = nullptr;
  int exceptions_;             ///< under way when it began
  std::exception_ptr thrown_;  ///< by the function, which is not called again
};

/// A thief's visit to a divisible body. *Thread safety*: one thread at a time.
class theft {
 public:
  theft(engine& e, divisible_body& b, std::uint32_t worker) noexcept
      : worker_number(worker), engine_(e), from_(b) {}
  theft(const theft&) = delete;
  theft& operator=(const theft&) = delete;

  const std::uint32_t worker_number;  ///< of the thief
  /// A strand is to execute the part. *Throws*: std::bad_alloc; then the part is the caller's as before.
  void add(stolen_part& p, int priority);

 private:
  friend class worker;
  engine& engine_;
  divisible_body& from_;
  strand* first_ = nullptr;  ///< what the thief executes itself; all others it submits
};

}  // namespace weft::inline WEFT_ABI::sched
