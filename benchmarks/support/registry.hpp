// SPDX-License-Identifier: BSL-1.0
// The list of registered rivals, those in separately built modules included.
#pragma once

#include "rival.hpp"

#include <functional>
#include <string>
#include <vector>

namespace weft_bench {

struct rival {
  std::string name;
  std::function<outcome(int, unsigned)> run;
  std::function<bool(int, unsigned)> fits;
};

/// Everything registered so far.
std::vector<rival>& rivals();

/// Adds the modules `<this program>_<name>.so` that lie beside the program, for each of `names`.
///
/// OpenMP programs of two compilers need two OpenMP runtimes that define the same symbols. Each is therefore
/// a module, loaded only inside the child process that measures it.
void add_modules(const std::vector<std::string>& names);

}  // namespace weft_bench
