// SPDX-License-Identifier: BSL-1.0
// Frames at the ends of blocks: popping one leaves the closure arena as it was, wherever the next block lies.
#include "sched/hand_made.hpp"
#include "support/catch.hpp"

#include <cstddef>
#include <cstring>

using weft::sched::arena_mark;
using weft::sched::frame;
using weft_test::made_strand;

namespace {

/// Fills the current block but for `left` bytes.
void fill(weft::sched::arena& a, std::size_t left) {
  a.allocate(8);
  while (a.fits(8 + left)) a.allocate(8);
}

/// A position from which no allocation leaves a block: both ends in one block, in order.
bool sensible(const arena_mark& m) {
  const auto room = m.end - m.top;
  return room >= 0 && static_cast<std::size_t>(room) <= weft::sched::arena::largest_block;
}

}  // namespace

TEST_CASE("opening and popping a frame restores the arena, whatever is left of the block") {
  for (std::size_t left = 0; left <= 2 * sizeof(frame); left += 8) {
    INFO(left << " bytes left");
    made_strand s;
    fill(s.closures, left);
    const arena_mark before = s.closures.mark();
    for (int round = 0; round < 3; ++round) {
      open_frame(s);
      REQUIRE(s.pending());
      pop_frame(s);
      CHECK_FALSE(s.pending());
      const arena_mark after = s.closures.mark();
      // Where it was, or in the next block: never the top of one block with the end of another.
      if (after.end == before.end) CHECK(after.top == before.top);
      CHECK(sensible(after));
    }
    for (int i = 0; i < 1000; ++i) std::memset(s.closures.allocate(104), 1, 104);
    CHECK(sensible(s.closures.mark()));
  }
}

TEST_CASE("an exception kept in the first frame of a block leaves the arena as it was") {
  for (std::size_t left = 0; left <= 2 * sizeof(frame); left += 8) {
    INFO(left << " bytes left");
    made_strand s;
    fill(s.closures, left);
    const arena_mark before = s.closures.mark();
    raise(s, std::make_exception_ptr(1));
    CHECK(s.top->first.load(std::memory_order_relaxed)->take_failure() != nullptr);
    pop_frame(s);
    const arena_mark after = s.closures.mark();
    if (after.end == before.end) CHECK(after.top == before.top);
    CHECK(sensible(after));
  }
}
