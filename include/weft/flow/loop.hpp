// SPDX-License-Identifier: BSL-1.0
// fork_for: a loop as one task, which gives half of what is left away whenever thieves need work.
#pragma once

#include <weft/base/atomic.hpp>
#include <weft/flow/fork.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>

namespace weft::inline WEFT_ABI {

/// What a user may say of one loop. An aggregate for designated initialisers.
struct loop_options {
  const char* name = "loop";  ///< shown by reports; must outlive the loop (a string literal)
  int priority = 0;           ///< larger is more urgent; honoured among ready tasks
  std::size_t grain = 1;      ///< iterations between two looks at thieves; so few are not divided
};

/// Consecutive indices [first, last) of a loop, at least one: what a function gets that declares it in place
/// of one index, `grain` of them or fewer.
/// *Example*: `for (const long i : part) sum += v[i];`
template <std::integral I>
struct indices {
  I first;  ///< of the part
  I last;   ///< behind it

  /// Goes through the indices.
  class iterator {
   public:
    /// At an index.
    explicit iterator(I at) noexcept : at_(at) {}
    /// The index.
    I operator*() const noexcept { return at_; }
    /// The next index.
    iterator& operator++() noexcept {
      ++at_;
      return *this;
    }
    /// Whether both are at the same index.
    bool operator==(const iterator&) const noexcept = default;

   private:
    I at_;
  };
  /// The first one.
  iterator begin() const noexcept { return iterator(first); }
  /// Behind the last one.
  iterator end() const noexcept { return iterator(last); }
};

namespace flow {

/// Whether parts of a loop with such a right can run at the same time.
template <class Adaptor>
constexpr bool parts_may_meet() noexcept {
  if constexpr (requires { Adaptor::parts_meet; })
    return Adaptor::parts_meet;
  else if constexpr (requires { Adaptor::wanted; })
    return Adaptor::is_weak || Adaptor::wanted == right_kind::read || Adaptor::wanted == right_kind::reduce;
  else if constexpr (requires { typename Adaptor::element; })
    return Adaptor::element::weak || Adaptor::element::held == right_kind::read;
  else
    return true;
}

/// What the task of a loop asks for where the function called asks for Parameter: a right that can be handed
/// on, rather than the value.
template <class Parameter, class Argument>
constexpr auto choose_loop_parameter() {
  using bound = argument_adaptor<Parameter, Argument>;
  if constexpr (requires { typename bound::granted; })
    return std::type_identity<typename bound::granted>();
  else
    return std::type_identity<Parameter>();
}
template <class Parameter, class Argument>
using loop_parameter = typename decltype(choose_loop_parameter<Parameter, Argument>())::type;

/// What the function is given in one iteration for what the task of the loop holds.
template <class Parameter, class Held>
WEFT_ALWAYS_INLINE decltype(auto) in_iteration(Held& held) noexcept {
  if constexpr (right_of<Held>::held == right_kind::none || right_of<Held>::held == right_kind::reduce) {
    return std::as_const(held);
  } else {
    using bound = argument_adaptor<Parameter, Held&>;
    typename bound::kept kept = bound::keep(held);
    return bound::pass(kept);
  }
}

/// The callable of a loop's task, and of the tasks of its parts. `Divides`: into parts that may meet.
template <class I, class F, bool Divides, class... Parameters>
struct loop {
  static constexpr bool divides = Divides;
  using distance = std::make_unsigned_t<I>;

  loop_options options;
  I first, last;
  F f;
  /// Shared by all parts of a loop that was divided: the least index at which an exception was thrown. The
  /// greatest index there can be is that of no iteration, and stands for none.
  std::shared_ptr<base::atomic<I>> failed{};

  template <class... Held>
  void operator()(Held&&... held) {
    constexpr bool one = std::is_invocable_v<F&, I, decltype(in_iteration<Parameters>(held))...>;
    static_assert(one || std::is_invocable_v<F&, indices<I>, decltype(in_iteration<Parameters>(held))...>,
                  "weft: the function of the loop cannot be called with an index (or indices, of the same "
                  "type) and these arguments; values arrive as "
                  "const lvalues, objects held for reading as const T&, for writing or updating as T&");
    sched::strand& s = sched::current();
    constexpr std::uintmax_t most = std::numeric_limits<distance>::max();
    const std::size_t each = WEFT_RACES ? 1 : options.grain;
    const auto grain = static_cast<distance>(each == 0 ? 1 : each > most ? most : each);
    base::atomic<I>* const least = failed.get();  // may be null
    for (I i = first; i != last;) {
      const auto left = static_cast<distance>(static_cast<distance>(last) - static_cast<distance>(i));
      if (asked(s) && left > grain) return divide(s, i, left, held...);
      if (least != nullptr && least->load(base::memory_order_relaxed) < i) return;
      const I stop = left > grain ? static_cast<I>(static_cast<distance>(i) + grain) : last;
      try {
        if constexpr (one) {
          for (; i != stop; ++i) f(I(i), in_iteration<Parameters>(held)...);
        } else {
          f(indices<I>{i, stop}, in_iteration<Parameters>(held)...);
          i = stop;
        }
      } catch (...) {
        if (least != nullptr) note_failure(*least, i);
        throw;
      }
    }
  }

  /// Forks the task.
  /// *Requires*: first < last.
  template <class... Held>
  static void fork(const loop_options& o, I first, I last, F f, std::shared_ptr<base::atomic<I>> failed,
                   Held&&... held) {
    const task_options task{.name = o.name, .priority = o.priority};
    fork_kept<true, argument_adaptor<loop_parameter<Parameters, Held>, Held>...>(
        &task, loop{o, first, last, std::move(f), std::move(failed)},
        argument_adaptor<loop_parameter<Parameters, Held>, Held>::keep(std::forward<Held>(held))...);
  }

 private:
  /// Whether thieves need work.
  /// *Throws*: cancelled, if the run was stopped.
  WEFT_ALWAYS_INLINE static bool asked(sched::strand& s) {
    [[maybe_unused]] const sched::races::unseen library;
    if (sched::look(s)) throw cancelled();
    return Divides && (WEFT_RACES || (s.surplus == 0 && s.wanted_surplus != 0 &&
                                      (s.recorder != nullptr || s.exposes_task())));
  }
  template <class... Held>
  WEFT_NOINLINE void divide(sched::strand& s, I i, distance left, Held&... held) {
    const I middle = static_cast<I>(i + static_cast<I>(left / 2));
    sched::count_division(s);
    if (!WEFT_RACES) {
      s.exposed.owe();
      if (failed == nullptr) failed = std::make_shared<base::atomic<I>>(std::numeric_limits<I>::max());
    }
    fork(options, i, middle, f, failed, held...);
    fork(options, middle, last, std::move(f), std::move(failed), held...);
  }
  static void note_failure(base::atomic<I>& least, I at) noexcept {
    I before = least.load(base::memory_order_relaxed);
    while (at < before && !least.compare_exchange_weak(before, at, base::memory_order_relaxed)) {
    }
  }
};

template <std::size_t... N, class I, class F, class... A>
void fork_loop(std::index_sequence<N...>, const loop_options& o, I first, I last, F&& f, A&&... a) {
  using callable = std::decay_t<F>;
  static_assert(!signature<callable>::known || parameter_count<callable> == sizeof...(A) + 1,
                "weft: fork_for needs exactly one argument for each parameter of the function but the index");
  constexpr bool together =
      (parts_may_meet<argument_adaptor<typename parameter_of<callable, N + 1>::type, A>>() && ...);
  constexpr bool weak = weak_only<argument_adaptor<typename parameter_of<callable, N + 1>::type, A>...>;
  if (first < last)
    loop<I, callable, together && !weak, typename parameter_of<callable, N + 1>::type...>::fork(
        o, first, last, callable(std::forward<F>(f)), nullptr, std::forward<A>(a)...);
}

}  // namespace flow

/// Forks a loop as one task, and splits the remaining range lazily when another worker is idle. The task
/// calls `f(i, arguments...)` for all i from `first` on that are less than `last`, in this order.
///
/// *Requires*: as fork; `f` and arguments that are not objects can be copied.
///
/// *Effects*: as fork of the whole loop; rights are declared once, for all iterations. A loop that writes,
/// updates or commutes on an object, reads a stream, or has weak rights only, is not split. Each part that is
/// stolen has a copy of `f`, which keeps what earlier iterations of the part have changed; arguments that are
/// not objects arrive as const lvalues. An `f` that takes `indices<I>` is called for up to `grain` of them at
/// once. An exception ends the part that it is thrown in; parts behind it that nobody has begun are dropped,
/// and those that others have begun end soon. sync() in `f` waits for the children of all iterations of the
/// part so far. In a cluster, parts go to other processes, too, if `f` and the arguments can be sent; an
/// exception there does not end parts that have begun elsewhere.
///
/// *Throws*: as fork.
///
/// *Cost*: some instructions every `grain` iterations; splits are counted (counters::divisions).
///
/// *Example*:
/// @code
/// weft::fork_for(0, n, [](int i, weft::append out) { out.write(name(i)); }, file);
/// @endcode
///
/// *Source*: adaptive loops of KAAPI; lazy binary splitting (Tzannes et al., PPoPP'10), here through fork, so
/// that order, exceptions and streams are those of tasks.
template <std::integral I, class F, class... A>
  requires(!std::integral<std::remove_cvref_t<F>>)
void fork_for(std::type_identity_t<I> first, I last, F&& f, A&&... arguments) {
  flow::fork_loop(std::index_sequence_for<A...>{}, loop_options{}, first, last, std::forward<F>(f),
                  std::forward<A>(arguments)...);
}

/// The same, with options: `weft::fork_for({.name = "rows", .grain = 64}, 0, n, row);`
template <std::integral I, class F, class... A>
void fork_for(const loop_options& options, std::type_identity_t<I> first, I last, F&& f, A&&... arguments) {
  flow::fork_loop(std::index_sequence_for<A...>{}, options, first, last, std::forward<F>(f),
                  std::forward<A>(arguments)...);
}

}  // namespace weft::inline WEFT_ABI
