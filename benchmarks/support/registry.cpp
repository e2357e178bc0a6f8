// SPDX-License-Identifier: BSL-1.0
// The list of registered rivals, those in separately built modules included.
#include "registry.hpp"

#include "isolate.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>

namespace weft_bench {

std::vector<rival>& rivals() {
  static std::vector<rival> all;
  return all;
}

registration::registration(const char* name, run_function run, fits_function fits) {
  rivals().push_back({name, run, fits});
}

namespace {

template <class function>
function symbol(const std::string& file, const char* name) {
  void* module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw std::runtime_error(dlerror());
  void* found = dlsym(module, name);
  if (found == nullptr) throw std::runtime_error(dlerror());
  return reinterpret_cast<function>(found);
}

}  // namespace

void add_modules(const std::vector<std::string>& names) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  for (const std::string& name : names) {
    const std::string file = self + "_" + name + ".so";
    if (!std::filesystem::exists(file)) continue;
    rival r;
    r.name = name;
    r.run = [file](int problem, unsigned workers) {
      return symbol<run_function>(file, "weft_bench_module_run")(problem, workers);
    };
    r.fits = [file](int problem, unsigned workers) {
      const isolated asked =
          isolate([&] {  // a child loads the module: two OpenMP runtimes never meet in one process
            const bool yes = symbol<fits_function>(file, "weft_bench_module_fits")(problem, workers);
            return plain_outcome(yes, 1, 0);
          });
      if (!asked.error.empty()) throw std::runtime_error(file + ": " + asked.error);
      return asked.result.value != 0;
    };
    rivals().push_back(std::move(r));
  }
}

}  // namespace weft_bench
