// SPDX-License-Identifier: BSL-1.0
// Lists of processors as the kernel writes them, "0-3,8", and as users write them in an environment variable.
#pragma once

#include <weft/system/cpu_count.hpp>
#include <weft/system/detail/whole_number.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft::inline WEFT_ABI::base {

/// Reads numbers and ranges separated by commas, in the order of the text; a line end is passed over.
/// *Returns*: an empty list if the text is anything else, names a processor from `end` on, or more than so
/// many.
inline std::vector<unsigned> processor_list(std::string_view text, unsigned end = 1u << 16) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.empty() || text.ends_with(',')) return {};
  std::vector<unsigned> processors;
  while (!text.empty()) {
    const std::string_view range = detail::take_until(text, ',');
    const std::size_t dash = range.find('-');
    const auto first = whole_number(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : whole_number(range.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= end) return {};
    if (processors.size() + (*last - *first) >= end) return {};
    for (std::uint64_t i = *first; i <= *last; ++i) processors.push_back(static_cast<unsigned>(i));
  }
  return processors;
}

/// The same the other way round; neighbours that ascend become a range.
inline std::string to_text(const std::vector<unsigned>& processors) {
  std::string text;
  for (std::size_t i = 0, end; i < processors.size(); i = end) {
    end = i + 1;
    while (end < processors.size() && processors[end] == processors[end - 1] + 1) ++end;
    text.append(text.empty() ? "" : ",").append(std::to_string(processors[i]));
    if (end - i > 1) text.append("-").append(std::to_string(processors[end - 1]));
  }
  return text;
}

}  // namespace weft::inline WEFT_ABI::base
