// SPDX-License-Identifier: BSL-1.0
// What a thief may take: the table of pending rights, and the search through frames that were made by hand.
#include "sched/hand_made.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"

#include <weft/sched/detail/readiness.hpp>

#include <cstdint>
#include <memory>
#include <vector>

using weft::sched::closure;
using weft::sched::closure_state;
using weft::sched::find_ready;
using weft::sched::frame;
using weft::sched::pending_rights;
using weft_test::access_mode;
using weft_test::made_strand;
using weft_test::reads;
using weft_test::updates;
using weft_test::writes;

namespace {

constexpr access_mode all_modes[] = {access_mode::read, access_mode::write, access_mode::update};

const void* address(std::uintptr_t a) { return reinterpret_cast<const void*>(a); }

void set(closure& c, closure_state s) { c.state.store(s, std::memory_order_relaxed); }  // a single thread

/// A strand and a thief's table.
struct search : made_strand {
  pending_rights table;
  int a = 0, b = 0, c = 0, d = 0;

  closure* find() { return find_ready(*this, table).ready; }
  /// Takes whatever is ready, one after the other, as thieves that end nothing.
  std::vector<closure*> take_all() {
    std::vector<closure*> all;
    while (closure* found = find()) {
      set(*found, closure_state::stolen);
      all.push_back(found);
    }
    return all;
  }
};

}  // namespace

TEST_CASE("only two reads do not conflict") {
  for (const access_mode earlier : all_modes)
    for (const access_mode later : all_modes)
      CHECK(weft::sched::conflict(earlier, later) ==
            (earlier != access_mode::read || later != access_mode::read));
}

TEST_CASE("an empty table conflicts with nothing") {
  const pending_rights p;
  int x = 0;
  for (const access_mode m : all_modes) {
    CHECK_FALSE(p.conflicts(&x, m));
    CHECK_FALSE(p.conflicts(nullptr, m));
  }
}

TEST_CASE("a pending right conflicts as the table of modes says, with its object only") {
  int x = 0, y = 0;
  for (const access_mode pending : all_modes)
    for (const access_mode later : all_modes) {
      pending_rights p;
      p.add(&x, pending);
      CHECK(p.conflicts(&x, later) == weft::sched::conflict(pending, later));
      CHECK_FALSE(p.conflicts(&y, later));
    }
}

TEST_CASE("the strongest pending right on an object counts") {
  int x = 0;
  for (const access_mode first : all_modes)
    for (const access_mode second : all_modes) {
      pending_rights p;
      p.add(&x, first);
      p.add(&x, second);
      p.add(&x, access_mode::read);
      CHECK(p.conflicts(&x, access_mode::read) ==
            (first != access_mode::read || second != access_mode::read));
      CHECK(p.conflicts(&x, access_mode::update));
    }
}

TEST_CASE("the table grows, whatever the distance of the objects") {
  for (const std::uintptr_t stride :
       {std::uintptr_t{1}, std::uintptr_t{8}, std::uintptr_t{64}, std::uintptr_t{4096},
        std::uintptr_t{1} << 20, std::uintptr_t{1} << 32, std::uintptr_t{1} << 44}) {
    INFO("stride " << stride);
    pending_rights p;
    constexpr std::uintptr_t n = 3000;
    for (std::uintptr_t i = 1; i <= n; ++i)
      p.add(address(2 * i * stride), i % 2 != 0 ? access_mode::write : access_mode::read);
    int wrong = 0;
    for (std::uintptr_t i = 1; i <= n; ++i) {
      wrong += p.conflicts(address(2 * i * stride), access_mode::read) != (i % 2 != 0);
      wrong += !p.conflicts(address(2 * i * stride), access_mode::write);
      wrong += p.conflicts(address((2 * i + 1) * stride), access_mode::write);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a cleared table has forgotten everything, however often it is cleared") {
  pending_rights p;
  int wrong = 0;
  for (std::uintptr_t round = 0; round < 2000; ++round) {
    for (std::uintptr_t i = 0; i < 40; ++i) p.add(address(8 * (round * 7 + i) + 8), access_mode::write);
    for (std::uintptr_t i = 0; i < 40; ++i)
      wrong += !p.conflicts(address(8 * (round * 7 + i) + 8), access_mode::read);
    p.clear();
    for (std::uintptr_t i = 0; i < 40; ++i)
      wrong += p.conflicts(address(8 * (round * 7 + i) + 8), access_mode::write);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a table that grows carries over nothing from before it was cleared") {
  pending_rights p;
  for (std::uintptr_t i = 1; i <= 30; ++i) p.add(address(8 * i), access_mode::write);
  p.clear();
  for (std::uintptr_t i = 1001; i <= 1200; ++i) p.add(address(8 * i), access_mode::write);
  int wrong = 0;
  for (std::uintptr_t i = 1; i <= 30; ++i) wrong += p.conflicts(address(8 * i), access_mode::write);
  for (std::uintptr_t i = 1001; i <= 1200; ++i) wrong += !p.conflicts(address(8 * i), access_mode::read);
  CHECK(wrong == 0);
}

TEST_CASE("the number of generations may run over") {
  if (!weft_test::long_run()) return;  // some seconds
  pending_rights p;
  int x = 0;
  p.add(&x, access_mode::write);
  for (std::uint64_t i = 0; i < (std::uint64_t{1} << 32); ++i) p.clear();
  CHECK_FALSE(p.conflicts(&x, access_mode::write));
  p.add(&x, access_mode::write);
  CHECK(p.conflicts(&x, access_mode::write));
}

TEST_CASE("a strand without frames, or with an empty one, has nothing ready") {
  search s;
  CHECK(s.find() == nullptr);
  s.open();
  CHECK(s.find() == nullptr);
}

TEST_CASE("independent closures are taken oldest first, each once") {
  search s;
  s.open();
  closure& first = s.add({writes(s.a)});
  closure& second = s.add();
  closure& third = s.add({writes(s.b), reads(s.c)});
  CHECK(s.take_all() == std::vector<closure*>{&first, &second, &third});
}

TEST_CASE("a closure waits for every earlier unfinished one it conflicts with") {
  for (const access_mode earlier : all_modes)
    for (const access_mode later : all_modes) {
      search s;
      s.open();
      closure& first = s.add({{&s.a, earlier}});
      closure& second = s.add({{&s.b, access_mode::read}, {&s.a, later}});
      CHECK(s.find() == &first);
      set(first, closure_state::stolen);
      CHECK(s.find() == (weft::sched::conflict(earlier, later) ? nullptr : &second));
      set(first, closure_state::awaited);
      CHECK(s.find() == (weft::sched::conflict(earlier, later) ? nullptr : &second));
      set(first, closure_state::done);
      CHECK(s.find() == &second);
    }
}

TEST_CASE("a closure that is not ready stands in the way of those behind it") {
  search s;
  s.open();
  closure& writer = s.add({writes(s.a)});
  s.add({reads(s.a), writes(s.b)});
  s.add({reads(s.b)});
  closure& other = s.add({reads(s.c)});
  CHECK(s.take_all() == std::vector<closure*>{&writer, &other});
}

TEST_CASE("readers of one object are ready together; the writer behind them waits for all") {
  search s;
  s.open();
  closure& one = s.add({reads(s.a)});
  closure& two = s.add({reads(s.a)});
  closure& writer = s.add({updates(s.a)});
  closure& last = s.add({reads(s.a)});
  CHECK(s.take_all() == std::vector<closure*>{&one, &two});
  set(two, closure_state::done);
  CHECK(s.find() == nullptr);
  set(one, closure_state::done);
  CHECK(s.take_all() == std::vector<closure*>{&writer});
  set(writer, closure_state::done);
  CHECK(s.take_all() == std::vector<closure*>{&last});
}

TEST_CASE("a task that names one object twice does not wait for itself") {
  search s;
  s.open();
  closure& twice = s.add({reads(s.a), writes(s.a)});
  CHECK(s.find() == &twice);
}

TEST_CASE("a local closure is not taken, and stands in the way") {
  search s;
  s.open();
  closure& local = s.add({writes(s.a)}, {}, {.local = true});
  closure& behind = s.add({reads(s.a)});
  closure& other = s.add({writes(s.b)});
  CHECK(s.take_all() == std::vector<closure*>{&other});
  set(local, closure_state::done);
  CHECK(s.find() == &behind);
}

TEST_CASE("behind an exception nothing is taken, before it everything is") {
  search s;
  s.open();
  closure& before = s.add({writes(s.a)});
  closure& failed = s.add();
  s.add({writes(s.b)});
  failed.set_failure(std::make_exception_ptr(1));
  set(failed, closure_state::failed);
  CHECK(s.take_all() == std::vector<closure*>{&before});
  set(before, closure_state::done);
  CHECK(s.find() == nullptr);
  CHECK(failed.take_failure() != nullptr);
}

TEST_CASE("in a closed frame nothing is taken, above it everything is") {
  search s;
  frame& closed = s.open();
  closure& running = s.add();
  s.add();
  s.open(&running);
  closure& child = s.add();
  closed.close(std::make_exception_ptr(1), &running);
  CHECK(s.take_all() == std::vector<closure*>{&child});
  CHECK(closed.take_failure().error != nullptr);
}

TEST_CASE("what the owner has claimed is not taken and stands in the way of later ones") {
  for (const closure_state state : {closure_state::created, closure_state::stolen, closure_state::awaited}) {
    search s;
    s.open();
    closure& ended = s.add({writes(s.b)});
    set(ended, closure_state::done);
    closure& claimed = s.add({writes(s.a)});
    s.add({reads(s.a)});
    closure& other = s.add({writes(s.b)});
    set(claimed, state);
    s.claim(claimed);
    CHECK(s.take_all() == std::vector<closure*>{&other});
  }
}

TEST_CASE("closures before the claimed one have ended, although the owner did not mark them") {
  search s;
  s.open();
  s.add({writes(s.a)});
  closure& claimed = s.add();
  closure& later = s.add({writes(s.a)});
  s.claim(claimed);
  CHECK(s.take_all() == std::vector<closure*>{&later});
}

TEST_CASE("behind a claimed closure that failed nothing is taken") {
  search s;
  s.open();
  closure& claimed = s.add();
  s.add({writes(s.b)});
  claimed.set_failure(std::make_exception_ptr(1));
  set(claimed, closure_state::failed);
  s.claim(claimed);
  CHECK(s.find() == nullptr);
  CHECK(claimed.take_failure() != nullptr);
}

TEST_CASE("the oldest frame comes first; a running task does not stand in its children's way") {
  search s;
  s.open();
  closure& parent = s.add({writes(s.a)});
  s.add({reads(s.a)});  // waits for the parent, that is, for its children
  closure& uncle = s.add({writes(s.b)});
  s.open(&parent);
  closure& child = s.add({writes(s.a)});
  s.add({updates(s.a)});  // waits for the child
  closure& grandparent_data = s.add({writes(s.c)});
  CHECK(s.take_all() == std::vector<closure*>{&uncle, &child, &grandparent_data});
}

TEST_CASE("frames are searched up to the innermost one") {
  search s;
  std::vector<std::unique_ptr<int>> data;
  std::vector<closure*> expected;
  for (int depth = 0; depth < 100; ++depth) {
    if (depth == 0)
      s.open();
    else
      s.open(s.top->first.load(std::memory_order_relaxed));
    s.add({writes(s.a)});
    s.add({reads(s.a)});
    data.push_back(std::make_unique<int>());
    expected.push_back(&s.add({writes(*data.back())}));
  }
  s.claim(*s.top->first.load(std::memory_order_relaxed));
  CHECK(s.take_all() == expected);
}

TEST_CASE("the search begins behind what has ended, and notes it") {
  search s;
  frame& f = s.open();
  std::vector<closure*> all;
  for (int i = 0; i < 10; ++i) all.push_back(&s.add({writes(s.a)}));
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(s.find() == all[i]);
    CHECK(f.scan == (i == 0 ? nullptr : all[i - 1]));
    set(*all[i], closure_state::done);
  }
  CHECK(s.find() == nullptr);
  CHECK(f.scan == all.back());
  closure& late = s.add({reads(s.a)});
  CHECK(s.find() == &late);
}

TEST_CASE("a frame is crowded by what stands in it and what has ended, each counted once") {
  search s;
  frame& f = s.open();
  const auto crowded = [&s, &f] { return find_ready(s, s.table).ready_above == f.parent; };
  for (unsigned i = 1; i < weft::sched::granularity::crowded_frame; ++i) {
    closure& c = s.add({writes(s.a)});
    CHECK_FALSE(crowded());
    CHECK_FALSE(crowded());  // who looks again counts nothing twice
    set(c, closure_state::done);
  }
  s.add({writes(s.a)});
  CHECK(crowded());
}

TEST_CASE("what is done behind an unfinished closure is passed over, not forgotten") {
  search s;
  frame& f = s.open();
  closure& first = s.add({reads(s.a)});
  closure& second = s.add({reads(s.a)});
  closure& third = s.add({writes(s.a)});
  set(first, closure_state::stolen);
  set(second, closure_state::done);
  CHECK(s.find() == nullptr);
  CHECK(f.scan == nullptr);
  set(first, closure_state::done);
  CHECK(s.find() == &third);
}

TEST_CASE("a search is bounded, and goes on where things have ended") {
  search s;
  s.open();
  std::vector<closure*> waiting;
  closure& first = s.add({writes(s.a)});
  set(first, closure_state::stolen);
  constexpr int many = 40'000;
  for (int i = 0; i < many; ++i) waiting.push_back(&s.add({reads(s.a)}));
  closure& free = s.add({writes(s.b)});
  CHECK(s.find() == nullptr);  // too far away
  for (closure* c : waiting) set(*c, closure_state::done);
  set(first, closure_state::done);
  CHECK(s.find() == &free);
}

TEST_CASE("many objects are pending in one frame") {
  search s;
  s.open();
  std::vector<int> data(4 * (weft::sched::granularity::large_frame / 2));
  std::vector<closure*> writers;
  for (std::size_t i = 0; i < data.size(); i += 4)
    writers.push_back(
        &s.add({writes(data[i]), writes(data[i + 1]), writes(data[i + 2]), writes(data[i + 3])}));
  for (std::size_t i = 0; i < data.size(); i += 4) s.add({reads(data[i + 3])});
  CHECK(s.take_all() == writers);
  set(*writers[12], closure_state::done);
  const closure* const reader = s.find();
  REQUIRE(reader != nullptr);
  CHECK(reader->objects()[0] == &data[51]);
}

TEST_CASE("a frame is large from WEFT_LARGE_FRAME unfinished closures on") {
  search s;
  frame& f = s.open();
  closure& first = s.add({writes(s.a)});
  for (unsigned i = 1; i + 1 < weft::sched::granularity::large_frame; ++i) s.add({reads(s.a)});
  CHECK(find_ready(s, s.table).large == nullptr);
  s.add({reads(s.a)});
  CHECK(find_ready(s, s.table).large == &f);
  CHECK(find_ready(s, s.table).ready == &first);
  set(first, closure_state::done);
  CHECK(find_ready(s, s.table).large == nullptr);  // one of them has ended
  s.add({reads(s.a)});
  CHECK(find_ready(s, s.table).large == &f);
}

TEST_CASE("the closure that the owner has claimed does not count towards a large frame") {
  search s;
  frame& f = s.open();
  closure& claimed = s.add();
  for (unsigned i = 1; i < weft::sched::granularity::large_frame; ++i) s.add();
  s.claim(claimed);
  CHECK(find_ready(s, s.table).large == nullptr);
  s.add();
  CHECK(find_ready(s, s.table).large == &f);
}

TEST_CASE("a ready closure is found in front of a large frame, and the large frame with it") {
  search s;
  s.open();
  closure& parent = s.add();
  s.open(&parent);
  for (unsigned i = 0; i < weft::sched::granularity::large_frame; ++i) s.add({writes(s.a)});
  frame& f = *s.top;
  weft::sched::findings found = find_ready(s, s.table);
  CHECK(found.large == &f);
  REQUIRE(found.ready != nullptr);
  set(*found.ready, closure_state::stolen);
  found = find_ready(s, s.table);
  CHECK(found.ready == nullptr);
  CHECK(found.large == &f);
}

TEST_CASE("all that is ready in a frame is found, but not what its owner is at, or what waits for another") {
  search s;
  frame& f = s.open();
  closure& at = s.add({writes(s.a)});
  closure& ready = s.add({writes(s.b)});
  s.add({reads(s.b)});
  closure& stolen = s.add({reads(s.c)});
  closure& beside = s.add({reads(s.c)});
  closure& reads_a = s.add({reads(s.a)});
  s.add({writes(s.c)});
  set(stolen, closure_state::stolen);
  closure* found[weft::sched::granularity::large_frame];
  const auto all = [&](weft::sched::thief_filter wanted = nullptr) {
    const unsigned n = find_all_ready(f, s.table, wanted, found);
    return std::vector<closure*>(found, found + n);
  };
  CHECK(all() == std::vector<closure*>{&at, &ready, &beside});
  s.claim(at);
  CHECK(all() == std::vector<closure*>{&ready, &beside});
  set(at, closure_state::done);
  CHECK(all() == std::vector<closure*>{&ready, &beside, &reads_a});
  CHECK(all([](const closure&) noexcept { return false; }).empty());
  s.add().local = true;
  CHECK(all().size() == 3);
  weft_test::made_closure& sliced = s.add();
  sliced.add_access({.object = &s.d, .mode = access_mode::read, .sliced = true, .begin = 0, .end = 4});
  s.add();
  CHECK(all().size() == 3);  // nothing behind rights beyond whole objects
  set(ready, closure_state::failed);
  CHECK(all().empty());
}

TEST_CASE("what a graph executes is not searched") {
  search s;
  frame& f = s.open();
  closure& parent = s.add();
  for (unsigned i = 0; i < weft::sched::granularity::large_frame; ++i) s.add();
  f.flags.fetch_or(frame::promoted, std::memory_order_relaxed);
  s.open(&parent);
  closure& child = s.add();
  const weft::sched::findings found = find_ready(s, s.table);
  CHECK(found.ready == &child);
  CHECK(found.large == nullptr);
}

TEST_CASE("a frame with rights beyond whole objects is found as if it were large, and nothing behind them") {
  search s;
  frame& f = s.open();
  closure& before = s.add({writes(s.a)});
  weft_test::made_closure& sliced = s.add();
  sliced.add_access({.object = &s.b, .mode = access_mode::read, .sliced = true, .begin = 0, .end = 4});
  s.add({writes(s.c)});
  weft::sched::findings found = find_ready(s, s.table);
  CHECK(found.ready == &before);
  CHECK(found.large == &f);
  set(before, closure_state::stolen);
  found = find_ready(s, s.table);
  CHECK(found.ready == nullptr);
  CHECK(found.large == &f);
}

TEST_CASE("a running strand's tiny tasks are left alone, with all that they have forked") {
  search s;
  s.open();
  closure& parent = s.add();
  closure& beside = s.add();
  frame& f = s.open(&parent);
  closure& tiny = s.add();
  s.open(&tiny);
  s.add();
  s.add();
  s.cooldown.begin(*f.parent);
  const auto far = [&] { return s.cooldown.covers(*f.parent); };
  s.status = weft::sched::strand_status::running;
  weft::sched::findings found = find_ready(s, s.table);
  CHECK(found.ready == &beside);  // below it
  set(beside, closure_state::stolen);
  for (;;) {
    s.cooldown.begin(*f.parent);
    found = find_ready(s, s.table);
    if (far()) break;  // else the test was too slow
  }
  CHECK(found.ready == nullptr);
  CHECK(found.cooldown);
  s.status = weft::sched::strand_status::waiting;
  CHECK(find_ready(s, s.table).ready != nullptr);
  s.status = weft::sched::strand_status::running;
  s.cooldown.end();
  CHECK(find_ready(s, s.table).ready != nullptr);
}

TEST_CASE("a search tells whether there was nothing but graphs") {
  search s;
  frame& below = s.open();
  closure& c = s.add({updates(s.a)});
  const auto only_graphs = [&s] { return find_ready(s, s.table).only_graphs; };
  CHECK_FALSE(only_graphs());
  below.flags.fetch_or(frame::promoted, std::memory_order_relaxed);  // a single thread
  CHECK(only_graphs());
  s.open(&c);
  s.add({updates(s.b)});
  CHECK_FALSE(only_graphs());
}
