// SPDX-License-Identifier: BSL-1.0
// A folder with the files of another system's kernel.
#pragma once

#include "support/catch.hpp"

#include <weft/system/cpu_count.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace weft_test {

/// A folder that stands for "/", gone at the end.
class fake_system {
 public:
  fake_system() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weft_system_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) FAIL("mkdtemp");
    root_ = pattern;
  }
  ~fake_system() { std::filesystem::remove_all(root_); }
  fake_system(const fake_system&) = delete;
  fake_system& operator=(const fake_system&) = delete;

  /// Writes a file; `path` starts with a slash.
  fake_system& file(const std::string& path, const std::string& text) {
    const std::filesystem::path place = root_ + path;
    std::filesystem::create_directories(place.parent_path());
    std::ofstream(place) << text;
    return *this;
  }
  auto quota() const { return weft::base::quota_cpus(root_); }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

}  // namespace weft_test
