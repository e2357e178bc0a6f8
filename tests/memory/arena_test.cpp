// SPDX-License-Identifier: BSL-1.0
// The bump stack: growth, marks, alignment, reuse of blocks, and what is left when memory is out.
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/random.hpp"

#include <weft/memory/arena.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

using weft::sched::arena;
using weft::sched::arena_mark;

#if !WEFT_TSAN  // it has replacements of its own

namespace {
bool no_memory = false;  // read and written by the only thread
}  // namespace

void* operator new(std::size_t n) {
  void* const p = no_memory ? nullptr : std::malloc(n != 0 ? n : 1);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return no_memory ? nullptr : std::malloc(n != 0 ? n : 1);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

#endif

namespace {

bool aligned(const void* p, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(p) % alignment == 0;
}

bool same(arena_mark a, arena_mark b) { return a.top == b.top && a.end == b.end; }

/// Allocations with a pattern of their own in every byte, so that any overlap shows.
class checked_arena {
 public:
  arena memory;

  void* add(std::size_t size, std::size_t alignment = arena::grain) {
    auto* const p = static_cast<unsigned char*>(memory.allocate(size, alignment));
    const auto pattern = static_cast<unsigned char>(++last_);
    std::memset(p, pattern, size);
    all_.push_back({p, size, pattern, aligned(p, alignment)});
    return p;
  }
  std::size_t count() const { return all_.size(); }
  /// Forgets all but the first n.
  void shrink(std::size_t n) { all_.resize(n); }
  /// How many of them are not as they were written.
  int damaged() const {
    int n = 0;
    for (const entry& e : all_) {
      bool whole = e.aligned;
      for (std::size_t i = 0; i < e.size; ++i) whole = whole && e.place[i] == e.pattern;
      n += !whole;
    }
    return n;
  }

 private:
  struct entry {
    unsigned char* place;
    std::size_t size;
    unsigned char pattern;
    bool aligned;
  };
  std::vector<entry> all_;
  unsigned last_ = 0;
};

}  // namespace

TEST_CASE("an arena that never allocated has no room") {
  arena a;
  CHECK_FALSE(a.fits(8));
  CHECK(a.try_allocate(8) == nullptr);
  CHECK(a.try_allocate(8, 64) == nullptr);
  CHECK(a.top() == nullptr);
  CHECK(a.allocate(8) != nullptr);
  CHECK(a.fits(8));
  CHECK(a.try_allocate(8) != nullptr);
}

TEST_CASE("allocations follow each other, rounded to the grain") {
  arena a;
  auto* const first = static_cast<std::byte*>(a.allocate(1));
  CHECK(aligned(first, arena::grain));
  CHECK(a.allocate(8) == first + 8);
  CHECK(a.allocate(9) == first + 16);
  CHECK(a.allocate(24) == first + 32);
  CHECK(a.top() == first + 56);
}

TEST_CASE("a block is filled to its last byte") {
  arena a;
  a.allocate(8);
  std::size_t bytes = 8;
  while (a.try_allocate(8) != nullptr) bytes += 8;
  CHECK(bytes == arena::first_block);
  CHECK(a.mark().top == a.mark().end);
  CHECK_FALSE(a.fits(1));
  CHECK(a.try_allocate(1) == nullptr);
}

TEST_CASE("an arena grows over many blocks and keeps what it has given") {
  checked_arena a;
  for (int i = 0; i < 4000; ++i) a.add(static_cast<std::size_t>(1 + i % 2000));
  CHECK(a.damaged() == 0);
}

TEST_CASE("blocks double up to the largest") {
  arena a;
  std::vector<std::size_t> sizes;
  while (sizes.size() < 9) {
    a.allocate(8);
    std::size_t bytes = 8;
    while (a.try_allocate(8) != nullptr) bytes += 8;
    sizes.push_back(bytes);
  }
  std::size_t expected = arena::first_block;
  for (const std::size_t s : sizes) {
    CHECK(s == expected);
    expected = expected * 2 < arena::largest_block ? expected * 2 : arena::largest_block;
  }
  CHECK(sizes.back() == arena::largest_block);
}

TEST_CASE("sizes above the largest block get a block of their own") {
  checked_arena a;
  a.add(100);
  a.add(arena::largest_block + 1);
  a.add(3 * arena::largest_block);
  a.add(100);
  CHECK(a.damaged() == 0);
  arena fresh;  // also where there is no block before
  auto* const p = static_cast<std::byte*>(fresh.allocate(2 * arena::largest_block));
  std::memset(p, 1, 2 * arena::largest_block);
  CHECK(fresh.top() >= p + 2 * arena::largest_block);
}

TEST_CASE("more than the usual alignment is respected, wherever the top is") {
  checked_arena a;
  for (std::size_t alignment = 8; alignment <= 4096; alignment *= 2)
    for (std::size_t before = 1; before < 200; before += 40) {
      a.add(before);
      a.add(alignment + 3, alignment);
    }
  CHECK(a.damaged() == 0);
  for (std::size_t alignment : {64u, 4096u}) {
    arena fresh;
    CHECK(aligned(fresh.allocate(8, alignment), alignment));
    while (fresh.try_allocate(8) != nullptr) {
    }
    CHECK_FALSE(fresh.fits(8, alignment));
    CHECK(aligned(fresh.allocate(8, alignment), alignment));
  }
}

TEST_CASE("release returns to a mark, also across blocks, and blocks are used again") {
  arena a;
  a.allocate(40);
  const arena_mark start = a.mark();
  std::vector<void*> first;
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> now;
    for (std::size_t i = 0; i < 3000; ++i) now.push_back(a.allocate(100 + i % 7));
    if (round == 0) first = now;
    CHECK(now == first);
    a.release_to(start);
    CHECK(same(a.mark(), start));
  }
}

TEST_CASE("release to the empty mark begins anew with the first block") {
  arena a;
  void* const first = a.allocate(8);
  a.allocate(arena::first_block);
  a.release_to(arena_mark{});
  CHECK(a.top() == nullptr);
  CHECK(a.allocate(8) == first);
}

TEST_CASE("release of the last allocation makes its place free") {
  arena a;
  a.allocate(8);
  void* const p = a.allocate(24);
  a.release_to(p);
  CHECK(a.allocate(100) == p);
}

TEST_CASE("a block that is too small for a request is not lost") {
  checked_arena a;
  a.add(8);
  const arena_mark start = a.memory.mark();
  void* const in_second = a.add(arena::first_block);  // makes the second block, of the usual size
  a.memory.release_to(start);
  a.shrink(1);
  a.add(10 * arena::first_block);  // which this does not fit into
  CHECK(a.add(100) == in_second);
  CHECK(a.damaged() == 0);
}

TEST_CASE("random allocations, marks and releases leave everything whole") {
  weft_test::random dice(weft_test::seed());
  INFO("seed " << weft_test::seed());
  checked_arena a;
  struct level {
    arena_mark mark;
    std::size_t count;
  };
  std::vector<level> levels;
  int released = 0, crossed = 0;
  const int rounds = 20'000 / static_cast<int>(weft_test::scale());
  for (int i = 0; i < rounds; ++i) {
    switch (dice.below(8)) {
      case 0:
        levels.push_back({a.memory.mark(), a.count()});
        break;
      case 1:
        if (!levels.empty()) {
          const std::size_t n = dice.below(levels.size());
          crossed += a.memory.mark().end != levels[n].mark.end;
          a.memory.release_to(levels[n].mark);
          a.shrink(levels[n].count);
          levels.resize(n);
          ++released;
        }
        break;
      case 2:
        a.add(1 + dice.below(40), std::size_t{8} << dice.below(8));
        break;
      case 3:
        a.add(1 + dice.below(dice.one_in(50) ? 100'000 : 4000));
        break;
      default:
        a.add(1 + dice.below(200));
        break;
    }
    if (i % 1000 == 0) REQUIRE(a.damaged() == 0);
  }
  CHECK(a.damaged() == 0);
  CHECK(released > 20);
  CHECK(crossed > 0);
}

#if !WEFT_TSAN

TEST_CASE("where memory is out, a request fails and changes nothing") {
  arena a;
  no_memory = true;
  bool thrown = false;
  try {
    a.allocate(8);
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  no_memory = false;
  CHECK(thrown);
  CHECK(same(a.mark(), arena_mark{}));

  a.allocate(8);
  const arena_mark before = a.mark();
  no_memory = true;
  thrown = false;
  try {
    a.allocate(arena::first_block);
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  no_memory = false;
  CHECK(thrown);
  CHECK(same(a.mark(), before));
  CHECK(a.allocate(arena::first_block) != nullptr);
}

TEST_CASE("the last resort is like any request while there is memory") {
  arena a;
  auto* const p = static_cast<std::byte*>(a.allocate_last_resort(40));
  REQUIRE(p != nullptr);
  CHECK(a.allocate_last_resort(40) == p + 40);
  while (a.try_allocate(8) != nullptr) {
  }
  CHECK(a.allocate_last_resort(40) != nullptr);
  CHECK(a.fits(8));  // a block of the usual size, not the reserve
}

TEST_CASE("the last resort is the reserve of the block, and then nothing") {
  arena a;
  no_memory = true;
  void* const without_block = a.allocate_last_resort(8);
  no_memory = false;
  CHECK(without_block == nullptr);

  a.allocate(8);
  while (a.try_allocate(8) != nullptr) {
  }
  const arena_mark full = a.mark();
  no_memory = true;
  auto* const first = static_cast<unsigned char*>(a.allocate_last_resort(100));
  auto* const second = static_cast<unsigned char*>(a.allocate_last_resort(100));
  void* const third = a.allocate_last_resort(100);
  const bool more = a.try_allocate(8) != nullptr;
  no_memory = false;
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  CHECK(third == nullptr);  // 256 bytes were kept
  CHECK_FALSE(more);        // the reserve is for the last resort only
  std::memset(first, 1, 100);
  std::memset(second, 2, 100);
  CHECK((first[99] == 1 && second[0] == 2));

  CHECK(a.allocate(8) != nullptr);  // memory is back: the next block
  a.release_to(full);
  CHECK(same(a.mark(), full));
  CHECK(a.allocate(8) != nullptr);
}

#endif
