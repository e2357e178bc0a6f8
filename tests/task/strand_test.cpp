// SPDX-License-Identifier: BSL-1.0
// Objects of a strand's tasks: registered destructors, their order, and the limits that forks look at.
#include "support/catch.hpp"

#include <weft/task/strand.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

using weft::sched::cleanup;
using weft::sched::handle;
using weft::sched::no_inlining;
using weft::sched::object_mark;
using weft::sched::presence;
using weft::sched::strand;

namespace {

std::vector<int> destroyed;

struct object {
  cleanup note;
  int number;

  static void destroy(cleanup& c) noexcept { destroyed.push_back(reinterpret_cast<object&>(c).number); }
};

object& add(strand& s, int number, bool constructed = true) {
  auto* const o = ::new (s.objects.allocate(sizeof(object)))
      object{{s.cleanups, &object::destroy, constructed ? presence::present : presence::absent}, number};
  s.cleanups = &o->note;
  return *o;
}

}  // namespace

TEST_CASE("objects are destroyed youngest first, down to the mark") {
  destroyed.clear();
  strand s;
  add(s, 1);
  add(s, 2);
  const object_mark m = s.mark();
  add(s, 3);
  add(s, 4);
  release_objects(s, m);
  CHECK(destroyed == std::vector<int>{4, 3});
  CHECK(s.objects.top() == m.memory.top);
  release_objects(s, m);
  CHECK(destroyed == std::vector<int>{4, 3});
  release_objects(s, object_mark{});
  CHECK(destroyed == std::vector<int>{4, 3, 2, 1});
  CHECK(s.cleanups == nullptr);
}

TEST_CASE("an object that was never constructed is not destroyed") {
  destroyed.clear();
  strand s;
  add(s, 1);
  add(s, 2, false);
  add(s, 3);
  release_objects(s, object_mark{});
  CHECK(destroyed == std::vector<int>{3, 1});
}

TEST_CASE("many objects are destroyed in order") {
  destroyed.clear();
  strand s;
  for (int i = 0; i < 10'000; ++i) add(s, i);
  release_objects(s, object_mark{});
  REQUIRE(destroyed.size() == 10'000);
  CHECK(destroyed.front() == 9999);
  CHECK(destroyed.back() == 0);
}

TEST_CASE("forks may run tasks at once while there is stack and no garbage") {
  strand s;
  CHECK(s.limit == no_inlining);
  const std::uintptr_t here = weft::context::stack_pointer();
  s.stack_limit = s.inline_limit = here - 65'536;
  s.restore_window();
  CHECK_FALSE(s.may_inline());
  s.restore_limit();
  CHECK(s.limit == s.inline_limit);
  CHECK(s.may_inline());
  s.stack_limit = s.limit = here + 65'536;
  CHECK_FALSE(s.may_inline());
  s.stack_limit = s.limit = s.inline_limit;
  s.attention.store(weft::sched::hungry);
  CHECK_FALSE(s.may_inline());
  s.attention.store(0);
  std::byte* const left = static_cast<std::byte*>(s.objects.allocate(8));
  s.floor = s.top = &s.root;
  s.root.objects = s.mark();
  std::byte* const kept = static_cast<std::byte*>(s.objects.allocate(8));
  s.left.note(left, kept);
  s.restore_limit();
  CHECK(s.limit == no_inlining);
  CHECK_FALSE(s.may_inline());
  s.release_deferred();  // something above it lives
  CHECK_FALSE(s.may_inline());
  s.objects.release_to(kept);
  s.release_deferred();
  CHECK(s.may_inline());
}

TEST_CASE(
    "forks near the root are asked whether they expose their tasks, unless there is nobody to take them") {
  strand s;
  const std::uintptr_t here = weft::context::stack_pointer();
  s.stack_limit = s.inline_limit = here - 65'536;
  s.exposed.begin(here + 16'384, weft::sched::exposure::unlimited);
  s.restore_limit();
  s.restore_window();
  CHECK(s.may_inline());
  CHECK_FALSE(s.exposes_task());
  s.wanted_surplus = 2;
  s.restore_window();
  CHECK_FALSE(s.may_inline());  // every depth counts
  s.visits.begin();
  CHECK(s.exposes_task());
  CHECK_FALSE(s.visits.goes_on());  // there is something for thieves
  while (s.exposes_task()) {
  }
  CHECK(s.may_inline());  // this one is too deep now
  s.exposed.begin(here + 1'024, 1'024);
  s.restore_window();
  CHECK_FALSE(s.may_inline());
  s.surplus = weft::sched::left_alone_surplus;
  s.restore_window();
  CHECK(s.may_inline());
  CHECK_FALSE(s.exposes_task());
  s.limit = no_inlining;
  CHECK_FALSE(s.may_inline());
}

namespace {

std::byte* allocate(strand& s) { return static_cast<std::byte*>(s.objects.allocate(16)); }

struct with_body : strand {
  with_body() {
    floor = top = &root;
    root.objects = mark();
  }
};

}  // namespace

TEST_CASE(
    "leftovers of a body are released as soon as nothing lives above them, in whatever order they came") {
  with_body s;
  std::byte* const all[] = {allocate(s), allocate(s), allocate(s), allocate(s), allocate(s), allocate(s)};
  for (const int i : {1, 2, 4, 3}) s.left.note(all[i], all[i] + 16);
  s.release_deferred();
  CHECK(s.objects.top() == all[5] + 16);
  s.left.note(all[5], all[5] + 16);
  s.release_deferred();
  CHECK(s.objects.top() == all[1]);
  CHECK_FALSE(s.left.any());
}

TEST_CASE("an object whose handle waited for children is destroyed once, before its memory is released") {
  with_body s;
  destroyed.clear();
  object& a = add(s, 1);
  object& b = add(s, 2);
  object& c = add(s, 3);
  object& d = add(s, 4, false);
  const auto end = [](object& o) { return reinterpret_cast<std::byte*>(&o + 1); };
  s.left.note(c.note, handle::waiting, end(c));
  s.left.note(a.note, handle::waiting, end(a));
  s.left.note(d.note, handle::waiting, end(d));
  s.release_deferred();
  CHECK(destroyed == std::vector<int>{3, 1});
  CHECK(s.cleanups == &b.note);
  CHECK(s.objects.top() == reinterpret_cast<std::byte*>(&c));
  CHECK(s.left.any());
  release_objects(s, s.root.objects);
  CHECK(destroyed == std::vector<int>{3, 1, 2});
}

TEST_CASE("a body that waits keeps its leftovers apart from those of its children") {
  with_body s;
  std::byte* const own = allocate(s);
  std::byte* const more = allocate(s);
  s.left.note(own, own + 16);
  std::byte* const last = allocate(s);
  s.left.note(last, last + 16);
  const auto aside = s.left.put_aside();
  CHECK_FALSE(s.left.any());
  s.left.begin_body();
  std::byte* const childs = allocate(s);
  allocate(s);
  s.left.note(childs, childs + 16);
  s.left.note(more, more + 16);  // nonsense, as a child leaves it behind
  s.objects.release_to(childs);
  s.left.begin_body();
  s.left.resume(aside);
  s.release_deferred();
  CHECK(s.objects.top() == last);
  CHECK(s.left.any());
  s.left.note(more, more + 16);
  s.release_deferred();
  CHECK(s.objects.top() == own);
  CHECK_FALSE(s.left.any());
}

TEST_CASE("leftovers of a task inside fork fall to the body around it if it leaves children") {
  with_body s;
  destroyed.clear();
  std::byte* const own = allocate(s);
  object& outer = add(s, 1);
  s.left.note(own, own + 16);
  const auto aside = s.left.put_aside(s.cleanups);
  object& inner = add(s, 2);
  std::byte* const other = allocate(s);
  s.left.note(other, other + 16);
  s.left.note(inner.note, handle::waiting, other);
  s.left.inherit(aside);
  s.release_deferred();
  CHECK(destroyed == std::vector<int>{2});
  CHECK(s.cleanups == &outer.note);
  CHECK(s.objects.top() == reinterpret_cast<std::byte*>(&inner));
  CHECK(s.left.any());
}

TEST_CASE("a task inside fork does not touch records below its own, whatever handles it ends") {
  with_body s;
  destroyed.clear();
  object& outer = add(s, 1);
  s.left.note(outer.note, handle::ended, reinterpret_cast<std::byte*>(&outer + 1));
  const auto aside = s.left.put_aside(s.cleanups);
  s.left.note(outer.note, handle::ended, reinterpret_cast<std::byte*>(&outer + 1));
  s.release_deferred();
  CHECK(s.cleanups == &outer.note);
  s.left.resume(aside);
}

TEST_CASE("who polls a strand reads no cache line that its owner writes with every task") {
  const strand s;
  const auto line = [](const auto& of, std::size_t last = 0) {
    return (reinterpret_cast<std::uintptr_t>(&of) + last) / 64;
  };
  const auto end = [&](const auto& of) { return line(of, sizeof(of) - 1); };
  for (const std::uintptr_t polled : {line(s.root.child), line(s.share), line(s.graphs), line(s.divisible),
                                      line(s.cooldown), end(s.cooldown), line(s.visits), end(s.visits)})
    for (const std::uintptr_t written :
         {line(s.limit), line(s.attention), line(s.surplus), line(s.exposed), end(s.exposed), line(s.objects),
          line(s.top), line(s.closures), line(s.live), line(s.left), line(s.recorded), end(s.thrown)})
      CHECK(polled != written);
}
