// SPDX-License-Identifier: BSL-1.0
// The sanitizers understand our switches: they find what is planted in a fiber and report nothing else.
#include "context/strand.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"

#include <cstdio>
#include <stdexcept>
#include <thread>

using weft::context::fiber;
using weft::context::stack;
using weft_test::contains;
using weft_test::strand;
namespace detail = weft::context::detail;

namespace {

/// Pages of address space of this process.
long mapped_pages() {
  long pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld", &pages) != 1) pages = -1;
  if (file != nullptr) std::fclose(file);
  return pages;
}

int shared_value = 0;

[[gnu::noinline]] void write_shared() { ++shared_value; }

/// The address escapes, or the compiler would prove the use harmless and leave it out of the instrumentation.
[[gnu::noinline]] void touch(volatile char* place) {
  asm volatile("" : "+r"(place) : : "memory");
  *place = 1;
}

}  // namespace

TEST_CASE("contexts that are destroyed leave no memory behind", "[context]") {
  if constexpr (detail::tsan_on) return;  // it keeps the history of threads by design
  const auto rounds = [](int count) {
    for (int i = 0; i < count; ++i) {
      strand s([] {
        volatile char room[256];
        touch(room);
      });
      s.run();
    }
  };
  rounds(10);
  const long before = mapped_pages();
  REQUIRE(before > 0);
  rounds(500);  // a fake stack of Address Sanitizer takes more than 1 MB
  const long after = mapped_pages();
  INFO("pages before " << before << ", after " << after);
  CHECK((after - before) * 4096 < 100'000'000);
}

TEST_CASE("memory of an ended context can be used again", "[context]") {
  // A frame that never returned leaves marks in the shadow memory; a new user of the stack must not meet
  // them.
  struct waits {
    fiber home;
    fiber away{stack(256 * 1024), &start, this};
    static void start(void* self) noexcept {
      volatile char room[100'000];  // too large for a fake stack
      touch(room);
      auto& here = *static_cast<waits*>(self);
      fiber::switch_to(here.away, here.home);
      touch(room);
    }
  } ended;
  fiber::switch_to(ended.home, ended.away);
  const stack memory = ended.away.release_stack();
  auto* const bytes = static_cast<volatile char*>(memory.lowest());
  for (std::size_t i = 0; i < memory.size(); ++i) bytes[i] = 0;
  SUCCEED();
}

TEST_CASE("control: a local array overrun inside a context is found by Address Sanitizer", "[context]") {
  if constexpr (!detail::asan_on) return;
  const auto report = weft_test::run_in_child([] {
    strand s([] {
      volatile char room[16];
      volatile int past = 16;
      touch(room + past);
    });
    s.run();
  });
  CHECK(report.exit_code != 0);
  CHECK_THAT(report.output, contains("stack-buffer-overflow"));
}

TEST_CASE("throwing inside a context does not confuse Address Sanitizer", "[context]") {
  if constexpr (!detail::asan_on) return;
  const auto report = weft_test::run_in_child([] {
    strand s([] {
      try {
        throw std::runtime_error("x");
      } catch (const std::runtime_error&) {
      }
    });
    s.run();
    s.run();
  });
  CHECK(report.exit_code == 0);
  CHECK(report.output.empty());
}

TEST_CASE("control: a race between contexts on two kernel threads is found by Thread Sanitizer",
          "[context]") {
  if constexpr (!detail::tsan_on) return;
  const auto report = weft_test::run_in_child([] {
    strand one(write_shared);
    strand two(write_shared);
    std::thread first([&] { one.run(); });
    std::thread second([&] { two.run(); });
    first.join();
    second.join();
    std::exit(0);  // the sanitizer's exit status comes with the ordinary end of a process
  });
  CHECK(report.exit_code != 0);
  CHECK_THAT(report.output, contains("data race"));
}
