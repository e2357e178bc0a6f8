// SPDX-License-Identifier: BSL-1.0
// Objects of a strand's tasks: registered destructors, their order, and the limits that forks look at.
#include "support/catch.hpp"

#include <weft/sched/strand.hpp>

#include <vector>

using weft::sched::cleanup;
using weft::sched::no_inlining;
using weft::sched::object_mark;
using weft::sched::strand;

namespace {

std::vector<int> destroyed;

struct object {
  cleanup note;
  int number;

  static void destroy(cleanup& c) noexcept { destroyed.push_back(reinterpret_cast<object&>(c).number); }
};

object& add(strand& s, int number, bool constructed = true) {
  auto* const o =
      ::new (s.objects.allocate(sizeof(object))) object{{s.cleanups, &object::destroy, constructed}, number};
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

TEST_CASE("forks may run tasks at once while there is surplus and no garbage") {
  strand s;
  CHECK(s.limit == no_inlining);
  s.inline_limit = 4096;
  s.wanted_surplus = 2;
  s.surplus = 1;
  s.restore_limit();
  CHECK(s.limit == no_inlining);
  s.surplus = 2;
  s.restore_limit();
  CHECK(s.limit == 4096);
  CHECK(s.may_inline());
  s.attention.store(weft::sched::hungry);
  CHECK_FALSE(s.may_inline());
  s.attention.store(0);
  s.leave_garbage();
  CHECK(s.limit == no_inlining);
  CHECK_FALSE(s.may_inline());
  s.restore_limit();
  CHECK(s.limit == no_inlining);
}
