// SPDX-License-Identifier: BSL-1.0
// How many processors each of the processes of a machine has, if those that several may use are shared
// evenly.
#pragma once

#include <weft/base/config.hpp>

#include <cstddef>
#include <vector>

namespace weft::inline WEFT_ABI::base {

/// What process `mine` has. `allowed`: of each process of the machine, the processors that it may use, each
/// number once. *Returns*: one for each processor that no other may use, a half for each that one other may
/// use, and so on; 0 if it may use none.
///
/// *Cost*: linear in all these numbers. *Example*: {0, 1}, {0, 1}: 1 each. {0}, {1}: 1 each. {0, 1}, {1}: 1.5
/// and 0.5.
inline double processor_share(const std::vector<std::vector<unsigned>>& allowed, std::size_t mine) {
  std::vector<unsigned> users;  // of each processor
  for (const auto& processors : allowed)
    for (const unsigned p : processors) {
      if (p >= users.size()) users.resize(p + std::size_t{1});
      ++users[p];
    }
  double share = 0;
  for (const unsigned p : allowed[mine]) share += 1.0 / users[p];
  return share;
}

}  // namespace weft::inline WEFT_ABI::base
