// SPDX-License-Identifier: BSL-1.0
// Guarded stacks and their source: sizes, guards, reuse, counts, the high-water mark, and running out.
#include "context/outside.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"

#include <weft/context/stack.hpp>
#include <weft/context/stack_source.hpp>

#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using weft::context::page_size;
using weft::context::stack;
using weft::context::stack_source;
using weft_test::contains;
namespace detail = weft::context::detail;

namespace {

std::uintptr_t address(const void* place) { return reinterpret_cast<std::uintptr_t>(place); }

void touch(const stack& memory, std::size_t bytes_from_top) {
  *(static_cast<volatile char*>(memory.top()) - bytes_from_top) = 1;
}

/// Stacks that the registry knows.
std::size_t registered() {
  std::size_t count = 0;
  detail::guards.for_each([&count](std::uintptr_t, detail::stack_bounds, const void*) {
    ++count;
    return true;
  });
  return count;
}

/// Lines of /proc/self/maps, that is mappings.
std::size_t mappings() {
  std::size_t lines = 0;
  std::FILE* const file = std::fopen("/proc/self/maps", "r");
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) lines += c == '\n';
  std::fclose(file);
  return lines;
}

}  // namespace

static_assert(!std::is_copy_constructible_v<stack> && std::is_nothrow_move_constructible_v<stack> &&
              std::is_nothrow_move_assignable_v<stack>);

TEST_CASE("a stack has whole pages, at least what was asked", "[context]") {
  const std::size_t page = page_size();
  for (const std::size_t asked :
       {stack::minimum, stack::minimum + 1, std::size_t{100'000}, std::size_t{1} << 20}) {
    const stack memory(asked);
    CHECK(memory.size() >= asked);
    CHECK(memory.size() < asked + page);
    CHECK(memory.size() % page == 0);
    CHECK(address(memory.top()) % page == 0);
    CHECK(address(memory.top()) - address(memory.lowest()) == memory.size());
    auto* const bytes = static_cast<volatile unsigned char*>(memory.lowest());
    bytes[0] = 1;
    bytes[memory.size() - 1] = 2;
    CHECK(bytes[0] + bytes[memory.size() - 1] == 3);
  }
}

TEST_CASE("a stack too small or absurdly large is refused", "[context]") {
  CHECK_THROWS_AS(stack(stack::minimum - 1), weft::option_error);
  CHECK_THROWS_AS(stack(0), weft::option_error);
  CHECK_THROWS_AS(stack_source(1), weft::option_error);
  CHECK_THROWS_AS(stack(SIZE_MAX), std::system_error);
  CHECK_THROWS_AS(stack(std::size_t{1} << 60), std::system_error);
  try {
    const stack refused(100);
    FAIL("a stack of 100 bytes");
  } catch (const weft::option_error& e) {
    CHECK(std::string(e.what()) ==
          "weft: a context stack of 100 bytes is too small; at least 32768 are needed "
          "(stack_size of runtime_options or spawn_options, WEFT_STACK_SIZE)");
  }
  CHECK(registered() == 0);
}

TEST_CASE("the page below a stack cannot be written, the page above the guard can", "[context]") {
  const auto write_at = [](std::ptrdiff_t offset) {
    return weft_test::run_in_child([offset] {
      std::signal(SIGSEGV, SIG_DFL);
      const stack memory(stack::minimum);
      *(static_cast<volatile char*>(memory.lowest()) + offset) = 1;
    });
  };
  const auto page = static_cast<std::ptrdiff_t>(page_size());
  CHECK(write_at(0).exit_code == 0);
  CHECK(write_at(-1).signal == SIGSEGV);
  CHECK(write_at(-page).signal == SIGSEGV);
}

TEST_CASE("a stack is moved with its memory and its guard", "[context]") {
  stack first(stack::minimum);
  void* const place = first.lowest();
  stack second(std::move(first));
  CHECK(second.lowest() == place);
  CHECK(registered() == 1);
  stack third(2 * stack::minimum);
  CHECK(registered() == 2);
  third = std::move(second);
  CHECK(third.lowest() == place);
  CHECK(third.size() == stack::minimum);
  CHECK(registered() == 1);
  third = stack();
  CHECK(third.size() == 0);
  CHECK(registered() == 0);
}

TEST_CASE("the registry finds the stack whose guard an address hits", "[context]") {
  const stack one(stack::minimum);
  const stack two(4 * stack::minimum);
  const std::size_t page = page_size();
  CHECK(detail::guards.find(address(one.lowest()) - 1).lowest == address(one.lowest()));
  CHECK(detail::guards.find(address(two.lowest()) - page).lowest == address(two.lowest()));
  CHECK(detail::guards.find(address(two.lowest()) - 1).size() == 4 * stack::minimum);
  CHECK(detail::guards.find(address(one.lowest())).size() == 0);
  CHECK(detail::guards.find(address(one.top()) - 1).size() == 0);
  CHECK(detail::guards.find(0).size() == 0);
  CHECK(detail::guards.find(address(&page)).size() == 0);
}

TEST_CASE("the registry grows beyond its first block and forgets what is gone", "[context]") {
  std::vector<stack> many;
  for (int i = 0; i < 2500; ++i) many.emplace_back(stack::minimum);
  CHECK(registered() == 2500);
  std::size_t found = 0;
  for (const stack& memory : many)
    found += detail::guards.find(address(memory.lowest()) - 1).lowest == address(memory.lowest());
  CHECK(found == 2500);
  const std::uintptr_t gone = address(many[7].lowest()) - 1;
  many.erase(many.begin() + 7);
  CHECK(detail::guards.find(gone).size() == 0);
  many.clear();
  CHECK(registered() == 0);
}

TEST_CASE("the registry is right while several threads make and destroy stacks", "[context]") {
  std::vector<std::thread> threads;
  std::vector<int> wrong(3, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&wrong, t] {
      for (int round = 0; round < 100; ++round) {
        std::vector<stack> some;
        for (int i = 0; i < 8; ++i) some.emplace_back(stack::minimum);
        for (const stack& memory : some)
          wrong[t] += detail::guards.find(address(memory.lowest()) - 1).lowest != address(memory.lowest());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>{0, 0, 0});
  CHECK(registered() == 0);
}

TEST_CASE("a source counts its stacks and unmaps what comes back", "[context]") {
  stack_source source(stack::minimum);
  CHECK(source.mapped() == 0);
  std::vector<stack> taken;
  for (int i = 0; i < 4; ++i) taken.push_back(source.acquire());
  CHECK(source.live() == 4);
  CHECK(source.mapped() == 4);
  CHECK(registered() == 4);
  for (stack& memory : taken) source.release(std::move(memory));
  CHECK(source.live() == 0);
  CHECK(registered() == 0);
  source.release(source.acquire());
  CHECK(source.mapped() == 5);
}

TEST_CASE("a source measures the deepest use in pages, of used and freed stacks", "[context]") {
  const std::size_t page = page_size();
  stack_source source(1 << 20);
  CHECK(source.high_water() == 0);
  stack one = source.acquire();
  stack two = source.acquire();
  touch(one, 1);
  CHECK(source.high_water() == page);  // in use
  touch(one, 10 * page);
  CHECK(source.high_water() == 10 * page);
  touch(two, 30 * page);
  touch(one, 200 * page);
  source.release(std::move(one));
  CHECK(source.high_water() == 200 * page);
  touch(two, 250 * page);
  source.release(std::move(two));
  CHECK(source.high_water() == 250 * page);
  stack_source other(1 << 20);
  CHECK(other.high_water() == 0);  // not those of another source
}

TEST_CASE("a stack that was not touched, or is no longer mapped, has no depth", "[context]") {
  CHECK(stack().high_water() == 0);
  std::uintptr_t lowest = 0;
  {
    const stack memory(8 << 20);  // more pages than one question to the kernel covers
    lowest = address(memory.lowest());
    CHECK(memory.high_water() == 0);
    touch(memory, 1);
    CHECK(memory.high_water() == page_size());
  }
  CHECK(detail::touched_bytes({lowest, lowest + (8 << 20)}) == 0);
}

TEST_CASE("a source serves several threads", "[context]") {
  stack_source source(stack::minimum);
  std::vector<std::thread> threads;
  std::vector<int> clashes(3, 0);
  for (std::size_t t = 0; t < clashes.size(); ++t) {
    threads.emplace_back([&source, &clashes, t] {
      for (int round = 0; round < 2000; ++round) {
        stack one = source.acquire();
        stack two = source.acquire();
        auto* const mark = static_cast<volatile std::size_t*>(one.lowest());
        *mark = t;
        *static_cast<volatile std::size_t*>(two.lowest()) = t;
        if (round % 100 == 0) std::this_thread::yield();
        clashes[t] += *mark != t;
        source.release(std::move(one));
        source.release(std::move(two));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(clashes == std::vector<int>{0, 0, 0});
  CHECK(source.live() == 0);
  CHECK(source.high_water() >= page_size());
}

TEST_CASE("a source that is misused ends the program with a sentence", "[context]") {
  const auto leaks = weft_test::run_in_child([] {
    stack kept;
    stack_source source(stack::minimum);
    kept = source.acquire();
  });
  CHECK(leaks.aborted());
  CHECK_THAT(leaks.output, contains("weft: a stack source is destroyed while 1 of its stacks are in use"));
  const auto stranger = weft_test::run_in_child([] {
    stack_source source(stack::minimum);
    source.release(stack(stack::minimum));
  });
  CHECK(stranger.aborted());
  CHECK_THAT(stranger.output, contains("weft: a stack source was given a stack that is not one of its own"));
  const auto nothing = weft_test::run_in_child([] {
    stack_source source(stack::minimum);
    const stack out = source.acquire();
    source.release(stack());
  });
  CHECK(nothing.aborted());
  CHECK_THAT(nothing.output, contains("weft: a stack source was given a stack that is not one of its own"));
}

namespace {

/// Takes stacks until none is left, three times; prints what went wrong, and the text of the first refusal.
void exhaust(std::size_t bytes) {
  stack_source source(bytes);
  std::vector<stack> taken;
  taken.reserve(100'000);
  source.release(source.acquire());
  const std::size_t before = mappings();
  std::size_t first = 0;
  for (int round = 0; round < 3; ++round) {
    try {
      while (taken.size() < taken.capacity()) taken.push_back(source.acquire());
      std::puts("never refused");
    } catch (const std::system_error& e) {
      if (round == 0) std::printf("%s\n", e.what());
      if (e.code() != std::errc::not_enough_memory) std::puts("another error");
    }
    if (round == 0) first = taken.size();
    if (taken.size() < 20 || taken.size() + 5 < first || taken.size() > first + 5)
      std::puts("another number");
    if (source.live() != taken.size() || registered() != taken.size()) std::puts("wrong counts");
    for (stack& memory : taken) source.release(std::move(memory));
    taken.clear();
    if (source.live() != 0 || registered() != 0) std::puts("wrong counts after return");
  }
  const std::size_t after = mappings();
  if (after > before + 2) std::printf("leaked: %zu mappings, then %zu\n", before, after);
  std::puts("done");
}

/// The first number in a file of the kernel's; 0 if there is none.
std::size_t number_in(const char* path) {
  unsigned long number = 0;
  std::FILE* const file = std::fopen(path, "r");
  if (file == nullptr || std::fscanf(file, "%lu", &number) != 1) number = 0;
  if (file != nullptr) std::fclose(file);
  return number;
}

}  // namespace

TEST_CASE("out of address space: an exception with a clear text, and nothing leaks", "[context]") {
  if constexpr (detail::asan_on || detail::tsan_on) return;  // they live on terabytes of address space
  const auto report = weft_test::run_in_child([] {
    const std::size_t present = number_in("/proc/self/statm") * page_size();
    const rlimit limit{present + (std::size_t{256} << 20), present + (std::size_t{256} << 20)};
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::puts("no limit set");
    exhaust(4 << 20);
  });
  CHECK(report.exit_code == 0);
  CHECK(report.output ==
        "weft: no memory or no mapping left for a context stack of 4194304 bytes: Cannot allocate "
        "memory\ndone\n");
}

TEST_CASE("very many stacks need few mappings: those beyond the guarded ones lie side by side", "[context]") {
  if constexpr (detail::asan_on || detail::tsan_on) return;  // tens of thousands of stacks are too slow there
  constexpr std::size_t many = stack_source::most_guarded + 40'000;
  stack_source source(stack::minimum);
  std::vector<stack> taken;
  taken.reserve(many);
  const std::size_t before = mappings();
  for (int round = 0; round < 2; ++round) {
    while (taken.size() < many) taken.push_back(source.acquire());
    CHECK(source.live() == many);
    CHECK(registered() == stack_source::most_guarded);
    CHECK(mappings() - before < 2 * stack_source::most_guarded + 2'000);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < many; i += 997) {
      auto* const bytes = static_cast<volatile unsigned char*>(taken[i].lowest());
      bytes[0] = static_cast<unsigned char>(i);
      bytes[stack::minimum - 1] = static_cast<unsigned char>(i);
      wrong += taken[i].size() != stack::minimum || address(taken[i].top()) % page_size() != 0;
    }
    for (std::size_t i = 0; i < many; i += 997) {
      auto* const bytes = static_cast<volatile unsigned char*>(taken[i].lowest());
      wrong += bytes[0] != static_cast<unsigned char>(i) || bytes[stack::minimum - 1] != bytes[0];
    }
    CHECK(wrong == 0);
    if (round == 0)  // every third comes back, and is used again
      for (std::size_t i = 0; i < many / 3; ++i) {
        source.release(std::move(taken[3 * i]));
        taken[3 * i] = source.acquire();
      }
    for (std::size_t i = 0; i < many; ++i) source.release(std::move(taken[round == 0 ? i : many - 1 - i]));
    taken.clear();
    CHECK(source.live() == 0);
    CHECK(registered() == 0);
    CHECK(mappings() <= before + 2);
  }
  CHECK(source.high_water() == stack::minimum);
}
