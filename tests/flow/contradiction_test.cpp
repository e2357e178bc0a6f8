// SPDX-License-Identifier: BSL-1.0
// Checked builds: a task whose rights on one object contradict each other is stopped; other repetitions are
// not.
#include "flow/runtimes.hpp"
#include "support/child.hpp"

#include <array>
#include <functional>
#include <list>
#include <string>
#include <utility>
#include <vector>

using weft_test::contains;
using weft_test::on_each_runtime;

static_assert(WEFT_CHECKED);

namespace {

const weft::task_options named{.name = "both"};

struct objects {
  weft::shared<long> x{1L}, y{2L};
  weft::shared_array<int> a{10}, b{10};
};

/// Checks that forking a task with these arguments stops the program with this sentence.
template <class Arguments>
void check_stopped(const std::string& rights, Arguments arguments) {
  for (const auto& options : {weft_test::alone_and_inlining(), weft_test::two_and_deferring()}) {
    const auto end = weft_test::run_in_child([&] {
      weft::runtime rt(options);
      objects o;
      rt.run([&] {
        std::apply([](auto&&... a) { weft::fork(named, [](auto&&...) {}, std::move(a)...); }, arguments(o));
      });
    });
    INFO(rights << ": " << end.output);
    CHECK(end.aborted());
    CHECK_THAT(end.output,
               contains("weft: task 'both' is given the rights to " + rights + " the same object"));
  }
}

template <class Right, class... More>
std::vector<Right> list(Right first, More... more) {
  return {first, more...};
}

}  // namespace

TEST_CASE("writing and another right on one object") {
  check_stopped("read and to write",
                [](objects& o) { return std::tuple(weft::write(o.x), weft::read(o.x)); });
  check_stopped("read and to write",
                [](objects& o) { return std::tuple(weft::read(o.x), weft::read(o.y), weft::write(o.x)); });
  check_stopped("write and to update",
                [](objects& o) { return std::tuple(weft::update(o.x), weft::write(o.x)); });
  check_stopped("write and to commute",
                [](objects& o) { return std::tuple(weft::write(o.x), weft::commute(o.x)); });
  check_stopped("write and to reduce",
                [](objects& o) { return std::tuple(weft::write(o.x), weft::reduce(o.x, std::plus<>{})); });
}

TEST_CASE("contributing and another right on one object") {
  check_stopped("read and to reduce",
                [](objects& o) { return std::tuple(weft::reduce(o.x, std::plus<>{}), weft::read(o.x)); });
  check_stopped("update and to reduce",
                [](objects& o) { return std::tuple(weft::update(o.x), weft::reduce(o.x, std::plus<>{})); });
  check_stopped("reduce and to reduce", [](objects& o) {
    return std::tuple(weft::reduce(o.x, std::plus<>{}), weft::reduce(o.x, std::multiplies<>{}));
  });
}

TEST_CASE("weak rights contradict like others") {
  check_stopped("read and to write",
                [](objects& o) { return std::tuple(weft::weak_write(o.x), weft::weak_read(o.x)); });
  check_stopped("read and to write",
                [](objects& o) { return std::tuple(weft::read(o.x), weft::weak_write(o.x)); });
  check_stopped("write and to update", [](objects& o) {
    return std::tuple(weft::write(o.x), weft::weak_reduce(o.x, std::plus<>{}));
  });
}

TEST_CASE("elements of lists contradict each other and what stands beside the list") {
  check_stopped("read and to write", [](objects& o) {
    return std::tuple(list(weft::write(o.y), weft::write(o.x)), list(weft::read(o.x)));
  });
  check_stopped("write and to update",
                [](objects& o) { return std::tuple(list(weft::weak_write(o.x)), weft::update(o.x)); });
}

TEST_CASE("parts of an array contradict each other where they overlap") {
  check_stopped("read and to write", [](objects& o) {
    return std::tuple(weft::write(o.a.slice(0, 6)), weft::read(o.a.slice(5, 3)));
  });
  check_stopped("read and to write", [](objects& o) {
    return std::tuple(list(weft::write(o.b.slice(0, 9)), weft::write(o.a.slice(3, 1))),
                      weft::read(o.a.all()));
  });
  check_stopped("write and to update", [](objects& o) {  // a short one between
    return std::tuple(list(weft::update(o.a.slice(0, 8)), weft::update(o.a.slice(1, 1))),
                      weft::weak_write(o.a.slice(6, 1)));
  });
}

TEST_CASE("the first task of a run is checked, too") {
  const auto end = weft_test::run_in_child([] {
    weft::runtime rt({.workers = 1});
    weft::shared<long> x(1L);
    rt.run([](const long&, long&) {}, weft::read(x), weft::write(x));
  });
  CHECK(end.aborted());
  CHECK_THAT(end.output,
             contains("weft: task 'task' is given the rights to read and to write the same object"));
}

TEST_CASE("what does not contradict is not stopped") {
  on_each_runtime([](weft::runtime& rt) {
    objects o;
    rt.run([&] {
      weft::fork([](const long&, const long&) {}, weft::read(o.x), weft::read(o.x));
      weft::fork([](const long& v, long& w) { w += v; }, weft::read(o.x), weft::update(o.x));
      weft::fork([](long& v, long& w) { v = w = 1; }, weft::write(o.x), weft::write(o.x));
      weft::fork([](const long&, long& w) { ++w; }, weft::read(o.x), weft::commute(o.x));
      weft::fork([](const long& v, long& w) { w = v; }, weft::read(o.x), weft::write(o.y));
      weft::fork([](std::vector<weft::update<long>>) {}, list(weft::update(o.x), weft::update(o.x)));
      weft::fork([](std::list<weft::read<long>>, long& v) { v = 2; }, std::list<weft::read<long>>(),
                 weft::write(o.x));
      auto r = weft::fork([](const long& v) { return v; }, weft::read(o.x));
      weft::fork([](const long& v, auto sum) { sum += v; }, weft::read(r), weft::reduce(o.x, std::plus<>{}));
      // neighbours, other arrays, and empty parts
      weft::fork([](auto, auto, auto) {}, weft::write(o.a.slice(0, 5)), weft::read(o.a.slice(5, 5)),
                 weft::read(o.b.slice(0, 5)));
      weft::fork([](auto, auto) {}, weft::write(o.a.all()), weft::read(o.a.slice(5, 0)));
      weft::fork([](std::array<weft::write<int[]>, 2>, auto) {},
                 std::array{weft::write<int[]>(o.a.slice(0, 2)), weft::write<int[]>(o.a.slice(6, 4))},
                 weft::update(o.a.slice(2, 4)));
    });
    CHECK(o.x.get() == 4);
    CHECK(o.y.get() == 2);
  });
}
