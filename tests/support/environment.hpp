// SPDX-License-Identifier: BSL-1.0
// What a run of the tests is told from outside: environment variables, the seed, the scale, the long mode.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

namespace weft_test {

/// Sets an environment variable for a scope, or unsets it when `value` is null.
class scoped_variable {
 public:
  scoped_variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~scoped_variable() { set(before_ ? before_->c_str() : nullptr); }
  scoped_variable(const scoped_variable&) = delete;
  scoped_variable& operator=(const scoped_variable&) = delete;

 private:
  void set(const char* value) {
    if (value != nullptr) {
      setenv(name_.c_str(), value, 1);
    } else {
      unsetenv(name_.c_str());
    }
  }
  std::string name_;
  std::optional<std::string> before_;
};

/// The seed of random tests: WEFT_TEST_SEED, else a fixed one. A failing test prints it.
inline std::uint64_t seed() {
  const char* text = std::getenv("WEFT_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : 20240229u;
}

/// True in a long run (WEFT_TEST_LONG), in which random tests try many more cases.
inline bool long_run() { return std::getenv("WEFT_TEST_LONG") != nullptr; }

/// How much slower than usual this build runs (sanitizers): for time limits, and to try fewer cases.
inline unsigned scale() {
  const char* text = std::getenv("WEFT_TEST_SCALE");
  return text != nullptr ? static_cast<unsigned>(std::atoi(text)) : 1;
}

}  // namespace weft_test
