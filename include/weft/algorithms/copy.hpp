// SPDX-License-Identifier: BSL-1.0
// copy_if, unique_copy: some of the elements, in their order.
#pragma once

#include <weft/algorithms/detail/chain.hpp>
#include <weft/algorithms/detail/range.hpp>

#include <vector>

namespace weft::inline WEFT_ABI {

namespace algorithms {

/// Elements of [begin, ...) to be copied, where `wanted(index)` says which. Each is asked about once; again,
/// if that has thrown before its turn.
template <class I, class Out, class Wanted>
struct copy_step {
  using state = std::size_t;  // elements copied before
  struct summary {
    std::vector<unsigned char> wanted;  // not vector<bool>: bytes are faster to write and read
    std::size_t count = 0;
  };

  I begin;
  Out out;
  const Wanted& wanted;

  summary look(std::size_t first, std::size_t last) const {
    summary s;
    s.wanted.resize(last - first);
    for (std::size_t i = first; i != last; ++i) {
      const bool yes = wanted(i);
      s.wanted[i - first] = yes;
      s.count += yes;
    }
    return s;
  }
  state add(state before, const summary& s) const { return before + s.count; }
  state process(std::size_t first, std::size_t last, state before) const {
    auto to = at(out, before);
    for (; first != last; ++first)
      if (wanted(first)) {
        *to = *at(begin, first);
        ++to;
        ++before;
      }
    return before;
  }
  void finish(std::size_t first, std::size_t last, state before, const summary& s) const {
    auto to = at(out, before);
    auto e = at(begin, first);
    for (std::size_t i = 0; i != last - first; ++i, ++e)
      if (s.wanted[i] != 0) {
        *to = *e;
        ++to;
      }
  }
};

/// Copies the wanted of n elements. *Returns*: the iterator behind them.
template <class I, class Out, class Wanted>
Out copy_wanted(const char* name, I begin, std::size_t n, Out out, const Wanted& wanted) {
  refuse_bits<Out>();
  const copy_step<I, Out, Wanted> step{begin, out, wanted};
  if (runs_serially(WEFT_RACES))  // parts pass their places on by a lock, which races cannot know
    return at(out, step.process(0, n, 0));
  return at(out, chain(n, std::size_t{0}, step).run(name));
}

struct copy_if_function {
  template <range R, std::random_access_iterator Out, class Predicate, class Projection = std::identity>
  Out operator()(R&& r, Out out, Predicate predicate, Projection projection = {}) const {
    const auto begin = std::ranges::begin(r);
    return copy_wanted(
        "weft::copy_if", begin, static_cast<std::size_t>(std::ranges::size(r)), out, [&](std::size_t i) {
          return static_cast<bool>(std::invoke(predicate, std::invoke(projection, *at(begin, i))));
        });
  }
};

struct unique_copy_function {
  template <range R, std::random_access_iterator Out, class Equal = std::ranges::equal_to,
            class Projection = std::identity>
  Out operator()(R&& r, Out out, Equal equal = {}, Projection projection = {}) const {
    const auto begin = std::ranges::begin(r);
    const ordering<std::reference_wrapper<Equal>, std::reference_wrapper<Projection>> same{equal, projection};
    return copy_wanted("weft::unique_copy", begin, static_cast<std::size_t>(std::ranges::size(r)), out,
                       [&](std::size_t i) { return i == 0 || !same(*at(begin, i - 1), *at(begin, i)); });
  }
  template <range R, std::random_access_iterator Out, class Equal = std::ranges::equal_to,
            class Projection = std::identity>
  Out operator()(runtime& rt, R&& r, Out out, Equal equal = {}, Projection projection = {}) const {
    return rt.run([&] { return (*this)(r, out, std::move(equal), std::move(projection)); });
  }
};

}  // namespace algorithms

/// `copy_if(range, out, predicate, projection = {})`: copies the elements for which the predicate holds.
/// *Requires*: the predicate may be called for several elements at the same time; `out` has random access, is
/// large enough, and outside the range.
/// *Returns*: the iterator behind what was copied. *Throws*: what the predicate throws first in the order of
/// the range.
inline constexpr algorithms::algorithm<algorithms::copy_if_function> copy_if{};
/// `unique_copy(range, out, equal = {}, projection = {})`: copies the first of each group of equal
/// neighbours. *Requires*: `equal` is an equivalence; else as copy_if.
inline constexpr algorithms::algorithm<algorithms::unique_copy_function> unique_copy{};

}  // namespace weft::inline WEFT_ABI
