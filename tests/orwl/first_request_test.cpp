// SPDX-License-Identifier: BSL-1.0
// While a handle lives that has made a request, the forks of all tasks defer; alone in a process of its own.
#include "flow/runtimes.hpp"

#include <weft/orwl.hpp>

#include <atomic>
#include <optional>
#include <thread>

namespace {

bool runs_inside_fork() {
  bool ran = false;
  weft::fork([&] { ran = true; });
  const bool now = ran;
  weft::sync();
  return now && ran;
}

}  // namespace

TEST_CASE("from a handle's first request to its end, forks defer, also those of tasks that run already") {
  if (WEFT_RACES) return;
  weft::orwl::location<int> l(0);
  weft::runtime rt({.workers = 1}), other({.workers = 1});
  std::atomic<bool> begun{false}, requested{false}, looked{false};
  bool before = false, after = true, beside_before = false, beside_after = true, met = false;
  std::thread beside([&] {
    other.run([&] {
      beside_before = runs_inside_fork();
      begun = true;
      met = weft_test::wait_until([&] { return requested.load(); });
      beside_after = runs_inside_fork();
      looked = true;
    });
  });
  bool with_one_left = true, at_the_end = false;
  rt.run([&] {
    weft_test::wait_until([&] { return begun.load(); });
    before = runs_inside_fork();
    std::optional<weft::orwl::handle<int>> h(std::in_place), second(std::in_place);
    h->request_write(l);
    requested = true;
    after = runs_inside_fork();
    h->acquire();
    h->write() = 1;
    weft_test::wait_until([&] { return looked.load(); });
    second->request_read(l);
    h.reset();
    with_one_left = runs_inside_fork();
    second.reset();
    at_the_end = runs_inside_fork();
  });
  beside.join();
  CHECK(met);
  CHECK(before);
  CHECK(beside_before);
  CHECK_FALSE(after);
  CHECK_FALSE(beside_after);
  CHECK_FALSE(with_one_left);
  CHECK(at_the_end);
  CHECK(l.get() == 1);
  bool later = false, later_beside = false;
  rt.run([&] { later = runs_inside_fork(); });
  other.run([&] { later_beside = runs_inside_fork(); });
  CHECK(later);
  CHECK(later_beside);
}

TEST_CASE("a handle without a request lets tasks run inside fork") {
  if (WEFT_RACES) return;
  weft::runtime rt({.workers = 1});
  weft::orwl::handle<int> h;
  bool inside = false;
  rt.run([&] { inside = runs_inside_fork(); });
  CHECK(inside);
}
