// SPDX-License-Identifier: BSL-1.0
// inclusive_scan, exclusive_scan: the running sums of a range.
#pragma once

#include <weft/algorithms/detail/chain.hpp>
#include <weft/algorithms/detail/range.hpp>

#include <optional>

namespace weft::inline WEFT_ABI {

namespace algorithms {

/// Sums of parts of [begin, ...), as projected, and the running sums within them.
template <class T, bool Inclusive, class I, class Out, class Operation, class Projection>
struct scan_step {
  using state = std::optional<T>;  // nothing: there is no initial value
  using summary = T;

  I begin;
  Out out;
  Operation& op;
  Projection& projection;

  T look(std::size_t first, std::size_t last) const {
    auto e = at(begin, first);
    const auto end = at(begin, last);
    T sum(std::invoke(projection, *e));
    for (++e; e != end; ++e) sum = std::invoke(op, std::move(sum), std::invoke(projection, *e));
    return sum;
  }
  state add(const state& before, const T& part) const {
    if (!before) return part;
    return std::invoke(op, *before, part);
  }
  state process(std::size_t first, std::size_t last, const state& before) const {
    auto e = at(begin, first);
    auto to = at(out, first);
    const auto end = at(begin, last);
    if (e == end) return before;
    if constexpr (Inclusive) {
      T sum =
          before ? T(std::invoke(op, *before, std::invoke(projection, *e))) : T(std::invoke(projection, *e));
      *to = sum;
      for (++e, ++to; e != end; ++e, ++to) {
        sum = std::invoke(op, std::move(sum), std::invoke(projection, *e));
        *to = sum;
      }
      return sum;
    } else {
      T sum = *before;
      for (; e != end; ++e, ++to) {
        T next = std::invoke(op, sum, std::invoke(projection, *e));
        *to = std::move(sum);
        sum = std::move(next);
      }
      return sum;
    }
  }
  void finish(std::size_t first, std::size_t last, const state& before, const T&) const {
    process(first, last, before);
  }
};

/// What stands behind the operation is a projection if it can be called with an element, else an initial
/// value; a value of the elements' own type is always the latter.
template <class P, class R>
concept projects =
    std::invocable<P&, std::ranges::range_reference_t<R>> && !std::same_as<P, std::ranges::range_value_t<R>>;

/// Of a sum without an initial value.
template <class R, class Projection>
struct sum_type : std::remove_cvref<std::invoke_result_t<Projection&, std::ranges::range_reference_t<R>>> {};
template <class R>
struct sum_type<R, std::identity> : std::type_identity<std::ranges::range_value_t<R>> {};

template <bool Inclusive>
struct scan_function {
  template <range R, std::random_access_iterator Out, class Operation = std::plus<>,
            projects<R> Projection = std::identity>
    requires Inclusive
  Out operator()(R&& r, Out out, Operation op = {}, Projection projection = {}) const {
    return scan_<typename sum_type<R, Projection>::type>(r, out, op, {}, projection);
  }
  template <range R, std::random_access_iterator Out, class Operation = std::plus<>, class T,
            class Projection = std::identity>
    requires(Inclusive && !projects<T, R>)
  Out operator()(R&& r, Out out, Operation op, T init, Projection projection = {}) const {
    return scan_<T>(r, out, op, std::move(init), projection);
  }
  template <range R, std::random_access_iterator Out, class T, class Operation = std::plus<>,
            class Projection = std::identity>
    requires(!Inclusive)
  Out operator()(R&& r, Out out, T init, Operation op = {}, Projection projection = {}) const {
    return scan_<T>(r, out, op, std::move(init), projection);
  }
  template <range R, std::random_access_iterator Out, class Operation = std::plus<>,
            projects<R> Projection = std::identity>
    requires Inclusive
  Out operator()(runtime& rt, R&& r, Out out, Operation op = {}, Projection projection = {}) const {
    return rt.run([&] { return (*this)(r, out, std::move(op), std::move(projection)); });
  }
  template <range R, std::random_access_iterator Out, class Operation = std::plus<>, class T,
            class Projection = std::identity>
    requires(Inclusive && !projects<T, R>)
  Out operator()(runtime& rt, R&& r, Out out, Operation op, T init, Projection projection = {}) const {
    return rt.run([&] { return (*this)(r, out, std::move(op), std::move(init), std::move(projection)); });
  }
  template <range R, std::random_access_iterator Out, class T, class Operation = std::plus<>,
            class Projection = std::identity>
    requires(!Inclusive)
  Out operator()(runtime& rt, R&& r, Out out, T init, Operation op = {}, Projection projection = {}) const {
    return rt.run([&] { return (*this)(r, out, std::move(init), std::move(op), std::move(projection)); });
  }

 private:
  template <class T, class R, class Out, class Operation, class Projection>
  static Out scan_(R& r, Out out, Operation& op, std::optional<T> init, Projection& projection) {
    refuse_bits<Out>();
    const auto begin = std::ranges::begin(r);
    const auto n = static_cast<std::size_t>(std::ranges::size(r));
    const scan_step<T, Inclusive, std::remove_cvref_t<decltype(begin)>, Out, Operation, Projection> step{
        begin, out, op, projection};
    if (runs_serially(WEFT_RACES))  // parts pass their sums on by a lock, which races cannot know
      step.process(0, n, init);
    else
      chain(n, std::move(init), step).run(Inclusive ? "weft::inclusive_scan" : "weft::exclusive_scan");
    return at(out, n);
  }
};

}  // namespace algorithms

/// `inclusive_scan(range, out, operation = std::plus<>(), projection = {})` and `inclusive_scan(range, out,
/// operation, init, projection = {})`: writes for each element what all up to it amount to, as projected and
/// combined in their order. (A fourth argument that can be called with an element is the projection.)
/// *Requires*: as transform_reduce; sums can be copied. `out` has random access, and may be the beginning of
/// the range.
/// *Returns*: the iterator behind what was written. *Throws*: what the operation or the projection throws
/// first in the serial algorithm; later sums may have been written.
/// *Cost*: with one worker, that of the serial algorithm; with several, up to twice as many operations and
/// calls of the projection.
/// *Example*: `weft::inclusive_scan(rt, orders, totals.begin(), {}, &order::price);`
/// *Source*: parts looked at ahead of the running sums, as in Traoré, Roch et al., Euro-Par'08.
inline constexpr algorithms::algorithm<algorithms::scan_function<true>> inclusive_scan{};
/// `exclusive_scan(range, out, init, operation = std::plus<>(), projection = {})`: writes for each element
/// what `init` and all before it amount to. As inclusive_scan.
inline constexpr algorithms::algorithm<algorithms::scan_function<false>> exclusive_scan{};

}  // namespace weft::inline WEFT_ABI
