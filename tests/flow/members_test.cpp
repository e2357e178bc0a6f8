// SPDX-License-Identifier: BSL-1.0
// Pointers to members can be forked and run, with the object as the first argument, as std::invoke has it.
#include "flow/runtimes.hpp"

#include <functional>
#include <memory>

using weft_test::on_each_runtime;

namespace {

struct account {
  long balance = 0;

  void add(long n) { balance += n; }
  void add_noexcept(long n) noexcept { balance += n; }
  long get() const { return balance; }
  void take(const long& from) { balance += from; }
  void show(long& to) const { to = balance; }
};

}  // namespace

TEST_CASE("member functions are called on a reference, a pointer, an object of the data flow") {
  on_each_runtime([](weft::runtime& rt) {
    account a;
    weft::shared<account> object;
    weft::shared<long> amount(1000L), shown;
    long got = 0;
    rt.run([&] {
      weft::fork(&account::add, std::ref(a), 1);
      weft::sync();
      weft::fork(&account::add, &a, 10);
      weft::sync();
      weft::fork(&account::add_noexcept, &a, 100);
      weft::sync();
      weft::fork(&account::add, weft::update(object), 5);
      weft::fork(&account::take, weft::update(object), weft::read(amount));
      weft::fork(&account::show, weft::read(object), weft::write(shown));
      auto balance = weft::fork(&account::get, weft::read(object));
      auto field = weft::fork(&account::balance, weft::read(object));
      weft::sync();
      got = balance.get() + field.get();
    });
    CHECK(a.balance == 111);
    CHECK(shown.get() == 1005);
    CHECK(got == 2 * 1005);
  });
}

TEST_CASE("run takes member functions") {
  weft::runtime rt({.workers = 2});
  account a;
  rt.run(&account::add, &a, 7);
  CHECK(rt.run(&account::get, std::cref(a)) == 7);
}
