// SPDX-License-Identifier: BSL-1.0
// pipeline: items that pass through stages, several at the same time.
#pragma once

#include <weft/algorithms/detail/pipe.hpp>

namespace weft::inline WEFT_ABI {

/// A stage of a pipeline that takes one item at a time, in the order of the source.
template <class F>
constexpr auto serial_stage(F f) {
  return algorithms::stage<F, true>{std::move(f)};
}
/// A stage of a pipeline that takes any items at the same time.
template <class F>
constexpr auto parallel_stage(F f) {
  return algorithms::stage<F, false>{std::move(f)};
}

namespace algorithms {

struct pipeline_function {
  template <class Source, class... F, bool... Serial>
    requires(sizeof...(F) != 0)
  void operator()(std::size_t tokens, Source source, stage<F, Serial>... stages) const {
    if (tokens == 0) throw error("weft: a pipeline without tokens cannot take any item");
    if (runs_serially(WEFT_RACES)) {  // items pass from task to task by a lock, which races cannot know
      for (sched::strand& s = caller();;) {
        if (sched::look(s)) throw cancelled();
        auto item = std::invoke(source);
        if (!item) return;
        pass_through(std::move(*item), stages...);
      }
    }
    pipe<Source, stage<F, Serial>...>(tokens, source, stages...).run();
  }

 private:
  template <class Item, class First, class... Rest>
  static void pass_through(Item&& item, First& first, Rest&... rest) {
    if constexpr (sizeof...(Rest) == 0)
      std::invoke(first.f, std::forward<Item>(item));
    else {
      std::remove_cvref_t<std::invoke_result_t<decltype(first.f)&, Item>> next =
          std::invoke(first.f, std::forward<Item>(item));
      pass_through(std::move(next), rest...);
    }
  }
};

}  // namespace algorithms

/// `pipeline(tokens, source, stages...)`: takes items from `source()`, which returns a std::optional, until
/// it is empty, and passes each through all stages. A stage is called with what the one before has returned,
/// as an rvalue; what the last one returns is dropped. *Requires*: stages are made by serial_stage or
/// parallel_stage. What a parallel one does with two items may happen at the same time. *Effects*: at most
/// `tokens` items are under way. The source, and each serial stage, handles one item at a time, in the order
/// of the source. *Throws*: what the serial program throws: that of the first item in the order of the
/// source, from its first stage that fails. Items before have passed; items behind may be anywhere.
/// weft::error if there are no tokens. *Cost*: a lock for each stage of each item. *Example*:
/// `weft::pipeline(rt, 16, read, weft::parallel_stage(compress), weft::serial_stage(write));` *Source*:
/// token-based pipelines of oneTBB.
inline constexpr algorithms::algorithm<algorithms::pipeline_function> pipeline{};

}  // namespace weft::inline WEFT_ABI
