// SPDX-License-Identifier: BSL-1.0
// Checked builds, the log of rights delegated: what is a violation, what is not, and what is said then.
#include "support/catch.hpp"
#include "support/child.hpp"

#include <weft/task/delegated_rights.hpp>

#include <string>

using weft::sched::access_mode;
using weft::sched::delegated_rights;

namespace {

/// What the program says when `use` of `object` is a violation; empty if it is none.
std::string objection(const delegated_rights& log, const void* object, access_mode use,
                      const char* parent = "parent") {
  const auto child = weft_test::run_in_child([&] { log.check(object, use, parent); });
  return child.aborted() ? child.output : std::string(child.exit_code == 0 ? "" : "ended strangely");
}

}  // namespace

TEST_CASE("an empty log objects to nothing") {
  const delegated_rights log;
  int x = 0;
  log.check(&x, access_mode::update, "parent");
  log.check(nullptr, access_mode::read, nullptr);
  SUCCEED();
}

TEST_CASE("both tasks, both rights and the remedy are named") {
  delegated_rights log;
  int x = 0, y = 0;
  log.note(&y, access_mode::read, "other", nullptr);
  log.note(&x, access_mode::write, "child", nullptr);
  CHECK(objection(log, &x, access_mode::read)
            .starts_with("weft: task 'parent' reads an object after it delegated the right to change it to "
                         "task 'child'; call "
                         "weft::sync() first\n"));
  CHECK(objection(log, &x, access_mode::update)
            .starts_with("weft: task 'parent' changes an object after it delegated the right to change it to "
                         "task 'child'; call "
                         "weft::sync() first\n"));
  CHECK(objection(log, &y, access_mode::update)
            .starts_with("weft: task 'parent' changes an object after it delegated the right to read it to "
                         "task 'other'; call "
                         "weft::sync() first\n"));
  CHECK(objection(log, &y, access_mode::update, nullptr).starts_with("weft: task 'task' changes"));
}

TEST_CASE("a use is a violation exactly where the rights conflict") {
  int x = 0;
  for (const access_mode given : {access_mode::read, access_mode::write, access_mode::update})
    for (const access_mode use : {access_mode::read, access_mode::write, access_mode::update}) {
      delegated_rights log;
      log.note(&x, given, "child", nullptr);
      CHECK(objection(log, &x, use).empty() == !weft::sched::conflict(given, use));
    }
}

TEST_CASE("of several rights on an object each counts") {
  delegated_rights log;
  int x = 0;
  log.note(&x, access_mode::read, "reader", nullptr);
  log.note(&x, access_mode::write, "writer", nullptr);
  CHECK_THAT(objection(log, &x, access_mode::read), weft_test::contains("'writer'"));
  CHECK_THAT(objection(log, &x, access_mode::update), weft_test::contains("'reader'"));
}

TEST_CASE("sync restores full use of what this body delegated") {
  delegated_rights log;
  int x = 0;
  log.note(&x, access_mode::write, "child", nullptr);
  log.forget_children();
  CHECK(objection(log, &x, access_mode::update).empty());
  log.note(&x, access_mode::write, "second", nullptr);
  CHECK_THAT(objection(log, &x, access_mode::update), weft_test::contains("'second'"));
}

TEST_CASE("bodies inside bodies have logs of their own") {
  delegated_rights log;
  int outer = 0, inner = 0;
  log.note(&outer, access_mode::write, "outer child", nullptr);
  const auto mark = log.enter_body();
  CHECK(
      objection(log, &outer, access_mode::update).empty());  // the child that runs inside fork has the right
  log.note(&inner, access_mode::write, "inner child", nullptr);
  log.note(&outer, access_mode::read, "grandchild", nullptr);
  CHECK_FALSE(objection(log, &outer, access_mode::update).empty());
  const auto second = log.enter_body();
  CHECK(objection(log, &inner, access_mode::update).empty());
  log.leave_body(second);
  CHECK_THAT(objection(log, &inner, access_mode::read), weft_test::contains("'inner child'"));
  log.forget_children();  // a sync of the inner body
  CHECK(objection(log, &inner, access_mode::read).empty());
  log.note(&inner, access_mode::write, "again", nullptr);
  log.leave_body(mark);
  CHECK(objection(log, &inner, access_mode::read).empty());
  CHECK_THAT(objection(log, &outer, access_mode::read), weft_test::contains("'outer child'"));
}

TEST_CASE("an object that has ended is forgotten, others are not") {
  delegated_rights log;
  int x = 0, y = 0;
  log.note(&x, access_mode::write, "first", nullptr);
  log.note(&y, access_mode::write, "second", nullptr);
  log.note(&x, access_mode::read, "third", nullptr);
  log.forget_object(&x);
  CHECK(objection(log, &x, access_mode::update).empty());
  CHECK_FALSE(objection(log, &y, access_mode::update).empty());
}
