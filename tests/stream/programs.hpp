// SPDX-License-Identifier: BSL-1.0
// Random programs that append to a stream, as data; how the serial program runs them is in
// serial_appends.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace stream_test {

/// One statement of a task's body. read: a child reads half of what there is, and delegates the rest to be
/// read; look: one that may not append does, and tells another; next: the next bytes at the position that all
/// such share; inspect: a run reads all. loop: a child calls its body several times.
struct statement {
  enum class kind {
    write,
    text,
    hook,
    append_child,
    loop,
    other_child,
    sync,
    guarded,
    fail,
    nap,
    run,
    read,
    look,
    next,
    inspect
  };
  kind what;
  std::string bytes;
  std::vector<statement> body{};  // of the child, or of the guarded part
  int times = 0;                  // of a loop
};
using program = std::vector<statement>;

/// Makes programs. `can_append`: the task has the right; `depth`: how deep children may nest.
class generator {
 public:
  explicit generator(std::uint64_t seed, bool throws, bool reads)
      : random_(seed), throws_(throws), reads_(reads) {}
  program make(int depth, bool can_append, bool may_guard = true) {
    program p;
    const int n = std::uniform_int_distribution(0, 5)(random_);
    for (int i = 0; i < n; ++i) {
      const int d = std::uniform_int_distribution(0, 99)(random_);
      using k = statement::kind;
      if (reads_ && can_append && std::uniform_int_distribution(0, 3)(random_) == 0) {
        constexpr k kinds[] = {k::read, k::look, k::next, k::next, k::inspect};
        p.push_back({kinds[std::uniform_int_distribution(0, 4)(random_)], {}});
      }
      if (d < 30 && can_append) {
        p.push_back({d < 22 ? k::write : d < 26 ? k::text : k::hook, bytes_()});
      } else if (d < 38 && depth > 0 && can_append) {
        p.push_back(
            {k::loop, {}, make(std::min(depth, 2) - 1, true), std::uniform_int_distribution(0, 6)(random_)});
      } else if (d < 62 && depth > 0 && can_append) {
        p.push_back({k::append_child, {}, make(depth - 1, true)});
      } else if (d < 80 && depth > 0) {
        p.push_back({k::other_child, {}, make(depth - 1, false)});
      } else if (d < 84) {
        p.push_back({k::sync, {}});
      } else if (d < 90 && may_guard && throws_) {
        p.push_back({k::guarded, {}, make(depth, can_append, false)});
      } else if (d < 93 && throws_) {
        p.push_back({k::fail, {}});
      } else if (d < 96 && can_append && depth > 0) {
        p.push_back({k::run, {}, make(depth - 1, true)});
      } else {
        p.push_back({k::nap, {}});
      }
    }
    return p;
  }

 private:
  std::string bytes_() {
    const int size = std::uniform_int_distribution(0, 19)(random_) == 0 ? 3000 : 6;
    return std::to_string(next_++) +
           std::string(std::size_t(std::uniform_int_distribution(0, size)(random_)), '.') + ' ';
  }
  std::mt19937_64 random_;
  bool throws_, reads_;
  int next_ = 0;
};

/// The exception of such programs.
struct planned : std::runtime_error {
  planned() : std::runtime_error("planned") {}
};

/// Whether tasks of a seed's program read the stream.
inline bool reads(std::uint64_t seed) { return seed % 3 == 0; }
/// The program of a seed.
inline program make(std::uint64_t seed, int depth) {
  return generator(seed, seed % 2 == 1, reads(seed)).make(depth, true);
}

/// What a task that reads writes about bytes that it has found.
inline std::string digest(const std::string& bytes) {
  std::uint64_t hash = 1469598103934665603ull;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return '<' + std::to_string(bytes.size()) + ':' + std::to_string(hash % 1'000'000'007) + "> ";
}
/// How many bytes `next` reads.
constexpr std::size_t next_bytes = 5;

/// What the serial program does: the bytes it appends, in short, and whether an exception leaves it.
struct result {
  std::uint64_t size = 0, hash = 1469598103934665603ull;
  bool throws = false;

  static result of(const std::string& bytes, bool throws) {
    result r{bytes.size(), 1469598103934665603ull, throws};
    for (const char c : bytes) r.hash = (r.hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    return r;
  }
  bool operator==(const result&) const = default;
};

}  // namespace stream_test
