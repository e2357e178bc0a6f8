// SPDX-License-Identifier: BSL-1.0
// Serial-append streams: what is written, how much of it, and how it is verified.
#pragma once

#include "records.hpp"
#include "rival.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

namespace weft_bench {

static const char* const kernel_name = "append";
static const char* const task_name = "append";
static const char* const reference_name = "serial";

enum kind { fib_plain, fib_parts, slot, rows, blocked, durable, bzip, open_segments, seek_segments };

struct problem {
  const char* name;
  kind what;
  int repetitions;
};

static const problem problems[] = {
    {"fib-plain", fib_plain, 5},     {"fib-parts", fib_parts, 5},
    {"slot-at-fork", slot, 5},       {"csv-skewed", rows, 5},
    {"csv-uniform", rows, 5},        {"blocked", blocked, 3},
    {"durable-1MiB", durable, 5},    {"pbz", bzip, 3},
    {"open-10^6", open_segments, 5}, {"seek-10^6", seek_segments, 5},
};

inline bool is(int index, kind k) { return problems[index].what == k; }

/// A number that the environment may change.
inline long setting(const char* name, long usual) {
  const char* set = std::getenv(name);
  return set != nullptr && std::atol(set) > 0 ? std::atol(set) : usual;
}

// Fibonacci: every call appends 10 KB. The number of the call in serial order stands in front, so that no two
// appends can be exchanged without being noticed.
static const std::size_t append_size = 10240;
typedef std::array<char, append_size> appended;

inline int fib_number() { return int(setting("BENCH_APPEND_FIB", 20)); }
inline long long fib_calls(int n) {
  long long a = 1, b = 1;  // of n = 0 and n = 1
  for (int i = 1; i < n; ++i) {
    const long long next = a + b + 1;
    a = b;
    b = next;
  }
  return b;
}

/// What call number `index` appends.
inline void fill(appended& text, long long index) {
  static const std::string pattern(append_size, '.');
  std::memcpy(text.data(), pattern.data(), append_size);
  std::memcpy(text.data(), &index, sizeof index);
  text[append_size - 1] = '\n';
}

// Forks that append nothing.
static const int slot_batch = 1000;
static const int slot_rounds = 1000;

// Rows in groups of groups; with skew, one leaf in a hundred has fifty times as many rows.
inline records::collection collection_of(int index) {
  const bool skewed = std::strcmp(problems[index].name, "csv-skewed") == 0;
  const records::collection c = {1000, setting("BENCH_APPEND_ROWS", 4000) * (skewed ? 2 : 3) / 2, 100,
                                 skewed ? 50 : 1};
  return c;
}

// Tasks of a megabyte each, in appends of 10 KB, behind one that ends when all others have.
static const long appends_of_a_task = 100;
inline long blocked_tasks() { return setting("BENCH_APPEND_BLOCKED_MB", 1000); }

// Appends of 10 KB, on the device after each megabyte.
static const std::size_t commit_size = std::size_t(1) << 20;
inline long durable_appends() {
  return setting("BENCH_APPEND_DURABLE_MB", 64) * 1000 * 1000 / long(append_size);
}

// A stream in a million pieces, and reads of eight bytes.
static const long segment_count = 1000000;
static const std::size_t segment_length = 64;
static const long seeks = 1000000;
inline unsigned long long seek_offset(long i) {
  return records::scatter(static_cast<unsigned long long>(i) + 1) % (segment_count * segment_length - 8);
}

}  // namespace weft_bench
