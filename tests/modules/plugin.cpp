// SPDX-License-Identifier: BSL-1.0
// A shared library that uses weft; compiled in several ways.
#include "modules/plugin.hpp"

#include <weft/weft.hpp>

#include <vector>

namespace {

constexpr int tasks = 300;  // enough to make the frame large

int use_everything() {
  std::vector<int> cells(tasks, 1);
  for (int& c : cells)
    weft::fork({.name = "cell"}, [](int& here) { here += 1; }, weft::update(weft::borrow(c)));
  weft::shared<int> sum = weft::fork([](int a, int b) { return a + b; }, 1, 2);
  weft::sync();
  if (sum.get() != 3) return 1;
  for (int c : cells)
    if (c != 2) return 2;

  weft::recorded graph;
  for (int round = 0; round < 3; ++round)
    graph([&] {
      for (int& c : cells) weft::fork([](int& here) { here *= 2; }, weft::update(weft::borrow(c)));
    });
  weft::sync();
  for (int c : cells)
    if (c != 16) return 3;
  return 0;
}

[[gnu::noinline]] int fall(int depth) {
  volatile char room[1024] = {};
  room[depth % 1024] = 1;
  return depth < 0 ? 0 : fall(depth + 1) + room[0];
}

}  // namespace

int weft_plugin_run() {
  weft::runtime rt({.workers = 3});
  return rt.run(&use_everything);
}

int weft_plugin_fork() { return use_everything(); }

void weft_plugin_throw() {
  if (weft::this_task::name() == nullptr) throw weft::option_error("thrown by the library");
  weft::fork([] { throw weft::option_error("thrown by the library"); });
  weft::sync();
}

void weft_plugin_overflow() {
  weft::runtime rt({.workers = 1});
  rt.run([] {
    weft::fork({.name = "deep"}, [] { static_cast<void>(fall(0)); });
    weft::sync();
  });
}
