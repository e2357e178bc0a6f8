// SPDX-License-Identifier: BSL-1.0
// Records of runs: the tasks and edges of a graph file, and work and span, of programs that are known.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <weft/append.hpp>
#include <weft/observe.hpp>
#include <weft/observe/running_clock.hpp>
#include <weft/orwl.hpp>
#include <weft/weft.hpp>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace {

using weft::observe::graph_file;
using weft::observe::work_and_span;
using weft_test::contains;

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Takes so much time of the processor, however long others have it meanwhile.
void spin(std::chrono::microseconds t) {
  const auto end = std::clock() + static_cast<std::clock_t>(t.count() * CLOCKS_PER_SEC / 1'000'000);
  while (std::clock() < end) {
  }
}

void nothing(const int&) {}
void change(int&) {}

struct recorded_files {
  weft_test::scratch folder{weft_test::medium::memory};
  std::string dot = folder / "graph.dot", json = folder / "graph.json";
  weft::runtime rt{{.workers = 2}};
};

}  // namespace

TEST_CASE_METHOD(recorded_files, "a graph has a node for each task and an edge for each dependence") {
  graph_file graph(json);
  weft::shared<int> a(0), b(0);
  rt.run({.record = &graph}, [&] {
    weft::fork({.name = "first"}, change, weft::write(a));
    weft::fork({.name = "reader"}, nothing, weft::read(a));
    weft::fork({.name = "reader"}, nothing, weft::read(a));
    weft::fork({.name = "apart"}, change, weft::update(b));
    weft::fork({.name = "last"}, change, weft::update(a));
  });
  CHECK(graph.tasks() == 5);
  CHECK(graph.edges() == 4);  // "last" waits for the readers, and so for "first"
  graph.close();
  graph.close();
  const std::string text = content(json);
  CHECK_THAT(text, contains("{\"id\":0,\"name\":\"first\",\"parent\":null}"));
  CHECK_THAT(text, contains("{\"from\":0,\"to\":1,\"mode\":\"read\",\"object\":0}"));
  CHECK_THAT(text, contains("{\"from\":2,\"to\":4,\"mode\":\"update\",\"object\":0}"));
  CHECK_THAT(text, !contains("\"from\":0,\"to\":4"));
}

TEST_CASE_METHOD(recorded_files, "contributions by one operation need no order, those by two do") {
  graph_file graph(dot);
  weft::shared<int> sum(0);
  rt.run({.record = &graph}, [&] {
    for (int i = 0; i < 3; ++i) weft::fork([](auto s) { s += 1; }, weft::reduce(sum, std::plus<>{}));
    for (int i = 0; i < 2; ++i) weft::fork([](auto s) { s += 2; }, weft::reduce(sum, std::multiplies<>{}));
    for (int i = 0; i < 2; ++i) weft::fork([](int& s) { s += 1; }, weft::commute(sum));
  });
  CHECK(sum.get() == 14);
  CHECK(graph.tasks() == 7);
  CHECK(graph.edges() == 3 * 2 + 2 * 2);
}

TEST_CASE_METHOD(recorded_files, "results, nested tasks and weak rights are followed") {
  graph_file graph(json);
  weft::shared<int> a(0);
  rt.run({.record = &graph}, [&] {
    weft::fork(
        {.name = "parent"},
        [](weft::weak_update<int> w) { weft::fork({.name = "child"}, change, weft::update(w)); },
        weft::weak_update(a));
    auto r = weft::fork({.name = "maker"}, [](const int& v) { return v + 1; }, weft::read(a));
    weft::fork({.name = "user"}, nothing, weft::read(r));
  });
  CHECK(graph.tasks() == 4);
  CHECK(graph.edges() == 2);
  graph.close();
  const std::string text = content(json);
  CHECK_THAT(text, contains("{\"id\":1,\"name\":\"child\",\"parent\":0}"));
  CHECK_THAT(text, contains("{\"from\":1,\"to\":2,\"mode\":\"read\""));
  CHECK_THAT(text, contains("{\"from\":2,\"to\":3,\"mode\":\"read\""));
}

TEST_CASE_METHOD(recorded_files, "a large graph has one node for all tasks of a name") {
  graph_file graph(dot, {.most_tasks = 10});
  weft::shared<int> a(0);
  rt.run({.record = &graph}, [&] {
    for (int i = 0; i < 100; ++i) weft::fork({.name = "step"}, change, weft::update(a));
  });
  CHECK(graph.tasks() == 100);
  CHECK(graph.edges() == 99);
  graph.close();
  CHECK_THAT(content(dot), contains("n0 [label=\"step (100 tasks)\"]"));
  CHECK_THAT(content(dot), contains("n0 -> n0 [label=\"update, 99\"]"));
}

TEST_CASE_METHOD(recorded_files, "names that mean something to Graphviz are quoted") {
  {
    graph_file graph(dot);
    rt.run({.record = &graph}, [] {
      weft::fork({.name = "a\"b\\c\n\xff"
                          "d"},
                 [] {});
    });
  }
  CHECK_THAT(content(dot), contains("[label=\"a\\\"b\\\\c??d\"]"));
}

TEST_CASE_METHOD(recorded_files, "a graph that cannot be written is told") {
  CHECK_THROWS_AS(graph_file((folder.path() / "missing" / "graph.dot").string()), std::system_error);
  graph_file lost("/dev/full");
  rt.run({.record = &lost}, [] { weft::fork([] {}); });
  CHECK_THROWS_AS(lost.close(), std::system_error);
  CHECK_NOTHROW(lost.close());
}

TEST_CASE_METHOD(recorded_files, "a recorded run gives the results of every other run, and its exceptions") {
  graph_file graph(dot);
  CHECK(rt.run({.record = &graph}, [] { return 42; }) == 42);
  CHECK(graph.tasks() == 0);
  const auto throwing = [] {
    weft::fork([] { throw std::runtime_error("planned"); });
    weft::fork([] {});
    weft::sync();
  };
  CHECK_THROWS_WITH(rt.run({.record = &graph}, throwing), "planned");
  CHECK(graph.tasks() == 1);  // what follows was dropped
  int ran = 0;
  rt.run({.record = &graph}, [&] { weft::fork([&] { ++ran; }); });
  CHECK(ran == 1);
  CHECK(graph.tasks() == 1);
}

TEST_CASE_METHOD(recorded_files, "streams and loops are followed") {
  graph_file graph(json);
  const std::string path = folder / "stream";
  int done = 0;
  {
    weft::append_file out(path);
    rt.run({.record = &graph}, [&] {
      for (int i = 0; i < 3; ++i) weft::fork([](weft::append s) { s.write("x"); }, out);
      weft::fork_for({.name = "loop", .grain = 10}, 0, 100, [&](int) { ++done; });
    });
    out.close();
  }
  CHECK(content(path) == "xxx");
  CHECK(done == 100);
  CHECK(graph.tasks() >= 4);
}

TEST_CASE_METHOD(recorded_files, "a run cannot be recorded while tasks may wait for one another") {
  graph_file graph(dot);
  weft::orwl::location<int> place(0);
  weft::orwl::handle<int> handle;
  handle.request_write(place);
  CHECK_THROWS_WITH(rt.run({.record = &graph}, [] { weft::fork([] {}); }), contains("cannot be recorded"));
}

TEST_CASE("work, span and the critical path of a diamond") {
  weft::runtime rt({.workers = 1});
  work_and_span ws;
  CHECK(ws.work() == 0);
  CHECK(ws.speed_up(4) == 0);
  weft::shared<int> a, sum(0);
  constexpr auto length = std::chrono::microseconds(2000);
  const auto diamond = [&] {
    weft::fork({.name = "source"}, [=](int& v) { spin(length), v = 1; }, weft::write(a));
    for (int i = 0; i < 6; ++i)
      weft::fork(
          {.name = "middle"}, [=](const int& v, auto s) { spin(length), s += v; }, weft::read(a),
          weft::reduce(sum, std::plus<>{}));
    weft::fork({.name = "sink"}, [=](int& v) { spin(length), v *= 2; }, weft::update(sum));
  };
  rt.run({.record = &ws}, diamond);
  CHECK(sum.get() == 12);
  CHECK(ws.tasks() == 8);
  CHECK(ws.span() > 0);
  CHECK(ws.span() < ws.work());
  CHECK(ws.span() < ws.burdened_span());
  const auto types = ws.types();
  REQUIRE(types.size() == 4);
  double on_path = 0, work = 0;
  for (const auto& t : types) {
    on_path += t.on_path, work += t.work;
    CHECK(t.on_path <= t.work * 1.000001);
    CHECK(t.tasks == (t.name == "middle" ? 6 : 1));
    CHECK((t.on_path > 0 || t.name == "run"));
  }
  CHECK(on_path == Approx(ws.span()));
  CHECK(work == Approx(ws.work()));
  CHECK(ws.speed_up(1) == 1);
  for (unsigned p = 2; p <= 1024; p *= 2) {
    CHECK(ws.speed_up(p) >= ws.speed_up(p / 2));
    CHECK(ws.speed_up(p) <= ws.parallelism());
    CHECK(ws.speed_up(p) <= p);
  }
  std::ostringstream table, csv;
  ws.print(table);
  ws.print_csv(csv);
  CHECK_THAT(table.str(), contains("parallelism") && contains("middle"));
  const std::string lines = csv.str();
  CHECK_THAT(lines, contains("workers,speed_up\n1,1\n") && contains("\n1024,"));
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 12);
}

TEST_CASE("time without a processor counts neither for the body around it nor for the next one") {
  const weft::observe::moment first;
  spin(std::chrono::microseconds(1000));
  const double rate = weft::observe::nanoseconds_per_tick(first, weft::observe::moment());
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  weft::observe::running_clock clock;
  weft::observe::pace long_ones;
  clock.start(rate);
  clock.go_on(long_ones);
  sleep();
  CHECK(static_cast<double>(clock.pass() / weft::observe::parts_of_tick) * rate < 10e6);
  sleep();  // between two bodies
  clock.go_on(long_ones);
  spin(std::chrono::microseconds(4000));
  const double body = static_cast<double>(clock.pass() / weft::observe::parts_of_tick) * rate;
  CHECK(body > 3e6);
  CHECK(body < 12e6);
}

TEST_CASE("a chain has no parallelism, also through sync and results") {
  weft::runtime rt({.workers = 1});
  work_and_span ws;
  weft::shared<int> a(0);
  rt.run({.record = &ws}, [&] {
    for (int i = 0; i < 50; ++i)
      weft::fork([](int& v) { spin(std::chrono::microseconds(200)), ++v; }, weft::update(a));
  });
  CHECK(ws.span() >= 0.99 * (ws.work() - ws.types().back().work));
  rt.run({.record = &ws}, [&] {
    for (int i = 0; i < 50; ++i) {
      weft::fork([] { spin(std::chrono::microseconds(200)); });
      weft::sync();
    }
  });
  CHECK(ws.tasks() == 50);
  CHECK(ws.span() >= 0.9 * ws.work());  // the body goes on beside each task, from its fork to sync
  rt.run({.record = &ws}, [&] {
    for (int i = 0; i < 50; ++i)
      weft::fork([](int& v) { spin(std::chrono::microseconds(200)), ++v; }, weft::commute(a));
  });
  CHECK(ws.span() >= 0.9 * ws.work());  // one at a time
}
