// SPDX-License-Identifier: BSL-1.0
// Gives every file of a directory to a fuzz target, where there is no libFuzzer.
//
// usage: replay <directory>
#include "support/scratch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

int main(int count, char** words) {
  if (count != 2) return 2;
  std::vector<std::string> paths;
  for (const auto& each : std::filesystem::directory_iterator(words[1]))
    paths.push_back(each.path().string());
  std::sort(paths.begin(), paths.end());
  std::size_t tries = 0;
  for (const std::string& path : paths) {
    std::string bytes = weft_test::slurp(path);
    const auto run = [&] {
      LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
      ++tries;
    };
    run();
    // Each flag turned as well: an input that one way refuses at once goes deeper on another.
    for (int bit = 0; bit < 6 && !bytes.empty(); ++bit) {
      bytes[0] = static_cast<char>(bytes[0] ^ (1 << bit));
      run();
      bytes[0] = static_cast<char>(bytes[0] ^ (1 << bit));
    }
  }
  std::printf("%zu inputs, %zu tries\n", paths.size(), tries);
  return paths.empty() ? 1 : 0;
}
