// SPDX-License-Identifier: BSL-1.0
// Where processors are: hardware threads of cores, cores of packages; and orders in which neighbours are near
// or far.
#pragma once

#include <weft/system/processor_list.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::base {

/// A processor, and what it is a part of.
struct processor_place {
  unsigned processor;
  unsigned package;           ///< 0 if the kernel does not say
  unsigned core;              ///< the lowest processor of its core; itself if the kernel does not say
  unsigned sibling_rank = 0;  ///< how many processors of the list are before it on its core,
  unsigned core_rank = 0;     ///< and how many cores of the list are before its own in its package
};

namespace detail {

/// Orders by the first key, then the next. Lists are short, and almost in order; std::sort would take every
/// program longer to compile.
inline void sort_places(std::vector<processor_place>& places,
                        const std::array<unsigned processor_place::*, 3>& keys) {
  const auto before = [&](const processor_place& a, const processor_place& b) {
    for (const auto key : keys)
      if (a.*key != b.*key) return a.*key < b.*key;
    return false;
  };
  for (std::size_t i = 1; i < places.size(); ++i)
    for (std::size_t j = i; j > 0 && before(places[j], places[j - 1]); --j)
      std::swap(places[j], places[j - 1]);
}

inline std::vector<unsigned> processors_of(const std::vector<processor_place>& places) {
  std::vector<unsigned> processors;
  processors.reserve(places.size());
  for (const processor_place& p : places) processors.push_back(p.processor);
  return processors;
}

}  // namespace detail

/// *Returns*: the processors with their places, package by package, core by core. `root` is put before every
/// path that is read, for tests; empty: the system itself. *Throws*: std::bad_alloc. *Cost*: reads two small
/// files for each.
inline std::vector<processor_place> processor_places(const std::vector<unsigned>& processors,
                                                     const std::string& root = {}) {
  std::vector<processor_place> places;
  for (const unsigned p : processors) {
    const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(p) + "/topology/";
    const std::string package = detail::read_file(folder + "physical_package_id");
    std::string_view number = package;
    const std::vector<unsigned> siblings = processor_list(detail::read_file(folder + "thread_siblings_list"));
    places.push_back({.processor = p,
                      .package = static_cast<unsigned>(whole_number(detail::take_word(number)).value_or(0)),
                      .core = siblings.empty() ? p : siblings.front()});
  }
  using place = processor_place;
  detail::sort_places(places, {&place::package, &place::core, &place::processor});
  for (std::size_t i = 1; i < places.size(); ++i) {
    const place& before = places[i - 1];
    place& p = places[i];
    if (p.package != before.package) continue;
    p.sibling_rank = p.core == before.core ? before.sibling_rank + 1 : 0;
    p.core_rank = p.core == before.core ? before.core_rank : before.core_rank + 1;
  }
  return places;
}

/// Processors in an order in which neighbours share as much as possible: the hardware threads of a core, then
/// the next core of the package, then the next package. *Throws*: std::bad_alloc.
inline std::vector<unsigned> compact_order(const std::vector<unsigned>& processors,
                                           const std::string& root = {}) {
  return detail::processors_of(processor_places(processors, root));
}

/// Processors in an order in which neighbours share as little as possible: packages in turn, and no core
/// twice before each was there once. *Throws*: std::bad_alloc.
inline std::vector<unsigned> scatter_order(const std::vector<unsigned>& processors,
                                           const std::string& root = {}) {
  auto places = processor_places(processors, root);
  using place = processor_place;
  detail::sort_places(places, {&place::sibling_rank, &place::core_rank, &place::package});
  return detail::processors_of(places);
}

}  // namespace weft::inline WEFT_ABI::base
