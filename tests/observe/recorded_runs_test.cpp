// SPDX-License-Identifier: BSL-1.0
// Records of runs: the graph as a file, work and span by a clock that the test decides, and what fails.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <weft/append.hpp>
#include <weft/observe.hpp>
#include <weft/orwl.hpp>
#include <weft/sched/inlining.hpp>
#include <weft/weft.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using weft_test::contains;

namespace {

/// Each look at this clock is one tick later, but in the bodies that say otherwise.
struct step_clock {
  static inline std::uint64_t next = 1;
  void start(double) {}
  std::uint64_t pass() { return weft::observe::parts_of_tick * std::exchange(next, 1); }
  void go_on(weft::observe::pace&) {}
};
using counted = weft::observe::basic_work_and_span<step_clock>;

void diamond(int width) {
  weft::shared<int> source, sink(0);
  weft::fork({.name = "source"}, [](int& v) { v = 1; }, weft::write(source));
  for (int i = 0; i < width; ++i)
    weft::fork(
        {.name = "middle"}, [](const int& v, auto s) { s += v; }, weft::read(source),
        weft::reduce(sink, std::plus<>{}));
  weft::fork(
      {.name = "sink"},
      [width](int& v) {
        if (v != width) throw std::logic_error("wrong sum");
      },
      weft::update(sink));
}

std::string graph_of(const std::function<void()>& program, const std::string& name = "graph.dot",
                     const weft::observe::graph_options& options = {}) {
  const weft_test::scratch folder;
  const std::string path = folder / name;
  weft::observe::graph_file file(path, options);
  weft::runtime rt({.workers = 2});
  rt.run({.record = &file}, program);
  file.close();
  file.close();
  return weft_test::slurp(path);
}

std::size_t times(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}

}  // namespace

TEST_CASE("the graph has a node for each task and an edge for each wait") {
  const std::string dot = graph_of([] { diamond(2); });
  CHECK(dot ==
        "digraph run {\n"
        "  node [shape=box, fontname=\"sans-serif\"];\n"
        "  edge [fontname=\"sans-serif\", fontsize=9];\n"
        "  t0 [label=\"source\"];\n"
        "  t1 [label=\"middle\"];\n"
        "  t2 [label=\"middle\"];\n"
        "  t3 [label=\"sink\"];\n"
        "  t0 -> t1 [label=\"read x0\"];\n"
        "  t0 -> t2 [label=\"read x0\"];\n"
        "  t1 -> t3 [label=\"update x1\"];\n"
        "  t2 -> t3 [label=\"update x1\"];\n"
        "}\n");
  const std::string json = graph_of([] { diamond(1); }, "graph.json");
  CHECK(json ==
        "{\"tasks\":[\n"
        "{\"id\":0,\"name\":\"source\",\"parent\":null},\n"
        "{\"id\":1,\"name\":\"middle\",\"parent\":null},\n"
        "{\"id\":2,\"name\":\"sink\",\"parent\":null}],\"edges\":[\n"
        "{\"from\":0,\"to\":1,\"mode\":\"read\",\"object\":0},\n"
        "{\"from\":1,\"to\":2,\"mode\":\"update\",\"object\":1}\n"
        "]}\n");
}

TEST_CASE("a large graph has a node for each name") {
  const std::string dot = graph_of([] { diamond(50); }, "graph.dot", {.most_tasks = 20});
  CHECK(times(dot, " [label=\"middle (50 tasks)\"]") == 1);
  CHECK(times(dot, "->") == 2);
  CHECK_THAT(dot, contains("[label=\"read, 50\"]"));
  const std::string json = graph_of([] { diamond(50); }, "graph.json", {.most_tasks = 20});
  CHECK_THAT(json, contains("{\"id\":1,\"name\":\"middle\",\"count\":50}"));
  CHECK_THAT(json, contains("\"mode\":\"update\",\"count\":50}"));
}

TEST_CASE("names keep to the rules of the file") {
  const auto hostile = [] { weft::fork({.name = "a\"b\\c\n\xFF"}, [] {}); };
  CHECK_THAT(graph_of(hostile), contains("[label=\"a\\\"b\\\\c??\"]"));
  CHECK_THAT(graph_of(hostile, "graph.json"), contains("\"a\\\"b\\\\c\\u000a\\ufffd\""));
}

TEST_CASE("a graph that cannot be written is an error with its path") {
  CHECK_THROWS_WITH(weft::observe::graph_file("/nonexistent/graph.dot"),
                    contains("'/nonexistent/graph.dot'"));
  weft::observe::graph_file full("/dev/full");
  CHECK_THROWS_AS(full.close(), std::system_error);
  CHECK_NOTHROW(full.close());
}

TEST_CASE("work is the sum of all bodies, span the longest chain") {
  counted ws({.steal = std::chrono::nanoseconds(1)});
  weft::runtime rt({.workers = 1});
  const auto lasting = [](std::uint64_t ticks) { return [ticks](int&) { step_clock::next = ticks; }; };
  rt.run({.record = &ws}, [&] {
    weft::shared<int> a(0), b(0);
    weft::fork({.name = "short"}, lasting(10), weft::update(a));  // begins at 1
    weft::fork({.name = "long"}, lasting(100), weft::update(b));  // 2
    weft::fork({.name = "short"}, lasting(10), weft::update(a));  // behind the first, at 11
    weft::fork(
        {.name = "last"}, [](int&, const int&) { step_clock::next = 5; }, weft::update(a), weft::read(b));
  });
  CHECK(ws.tasks() == 4);
  CHECK(ws.work_ticks() == 10 + 100 + 10 + 5 + 5);
  CHECK(ws.span_ticks() == 2 + 100 + 5);
  CHECK(ws.burdened_span() > ws.span());
  CHECK(ws.parallelism() == Approx(130.0 / 107));
  const auto types = ws.types();
  REQUIRE(types.size() == 4);
  CHECK(types[0].name == "long");
  CHECK(types[1].name == "last");
  CHECK(types[2].name == "run");
  CHECK(types[3].on_path == 0);
  CHECK(types[3].tasks == 2);
  CHECK(ws.speed_up(1) == 1);
  CHECK(ws.speed_up(2) >= 1);
  CHECK(ws.speed_up(1024) <= ws.parallelism());
  std::ostringstream table, csv;
  ws.print(table);
  CHECK_THAT(table.str(), contains("tasks          4\n"));
  CHECK_THAT(table.str(), contains("critical path"));
  ws.print_csv(csv);
  CHECK(times(csv.str(), "\n") == 12);
  CHECK(csv.str().starts_with("workers,speed_up\n1,1\n"));
}

TEST_CASE("a body that waits for its children goes on behind them") {
  counted ws;
  weft::runtime rt({.workers = 2});
  rt.run({.record = &ws}, [] {
    weft::fork([] { step_clock::next = 50; });
    weft::fork([] { step_clock::next = 60; });
    weft::sync();
    step_clock::next = 7;
  });
  CHECK(ws.span_ticks() == 2 + 60 + 7);
  CHECK(ws.work_ticks() == 50 + 60 + 7 + 3);
}

TEST_CASE("objects of different bodies are not confused, whatever their addresses") {
  counted ws;
  weft::runtime rt({.workers = 1});
  rt.run({.record = &ws}, [] {
    for (int i = 0; i < 8; ++i)
      weft::fork([] {
        weft::shared<int> own(0);
        weft::fork([](int&) { step_clock::next = 100; }, weft::update(own));
      });
  });
  CHECK(ws.span_ticks() < 120);
  CHECK(ws.work_ticks() > 800);
}

TEST_CASE("an object that ends in a body leaves nothing to the next one at its address") {
  counted ws;
  weft::runtime rt({.workers = 1});
  const auto longest = [&](auto body) {
    rt.run({.record = &ws}, [&] {
      for (int i = 0; i < 8; ++i) body();
    });
    return ws.span_ticks();
  };
  const auto work = [](auto&&...) { step_clock::next = 100; };
  CHECK(longest([] {
          weft::fork([] {
            step_clock::next = 100;
            return 1;
          });
        }) < 120);
  CHECK(longest([&] {
          weft::shared<int> x(0), y(0);
          weft::fork([&](int& v) { work(v); }, weft::update(x));
          weft::fork([&](int& v) { work(v); }, weft::update(y));
        }) < 120);
  CHECK(longest([&] {
          weft::shared<std::string> x;
          weft::fork([&](std::string& v) { work(v); }, weft::update(x));
        }) < 120);
  CHECK(longest([&] {
          weft::shared_array<int> x(100);
          weft::fork([&](weft::update<int[]> v) { work(v); }, weft::update(x.all()));
        }) < 120);
  // But while it lasts, also through results and from other bodies, nothing is forgotten.
  CHECK(longest([&] {
          weft::shared<int> x(0);
          weft::fork([&](int& v) { work(v); }, weft::update(x));
          {
            weft::shared<int> y(1);
          }
          weft::fork([&](const int& v) { work(v); }, weft::read(x));
        }) >= 200);
  CHECK(longest([&] {
          const auto made = weft::fork([] {
            step_clock::next = 100;
            return 1;
          });
          const auto other = weft::fork([] { return 2; });
          weft::fork([] { weft::shared<int> inner = weft::fork([] { return 3; }); });
          weft::fork([&](const int& v, const int& w) { work(v, w); }, weft::read(made), weft::read(other));
        }) >= 200);
}

TEST_CASE("loops, weak rights, recorded graphs, events and results are followed") {
  counted ws;
  weft::runtime rt({.workers = 2});
  std::atomic<int> indices{0};
  rt.run({.record = &ws},
         [&] { weft::fork_for({.name = "loop", .grain = 4}, 0, 64, [&](int) { ++indices; }); });
  CHECK(indices == 64);
  CHECK(ws.tasks() >= 16);

  rt.run({.record = &ws}, [] {
    weft::shared<int> x(0);
    weft::fork(
        [](weft::weak_update<int> w) {
          weft::fork([](int&) { step_clock::next = 40; }, weft::update(w));
          weft::fork([](int&) { step_clock::next = 40; }, weft::update(w));
          step_clock::next = 100;  // holds nobody up
        },
        weft::weak_update(x));
    weft::fork([](int&) { step_clock::next = 40; }, weft::update(x));
  });
  CHECK(ws.span_ticks() >= 120);
  CHECK(ws.span_ticks() < 140);

  rt.run({.record = &ws}, [] {
    weft::shared<int> x(0);
    weft::recorded step;
    for (int i = 0; i < 5; ++i)
      step([&] { weft::fork([](int&) { step_clock::next = 10; }, weft::update(x)); });
  });
  CHECK(ws.tasks() == 5);
  CHECK(ws.span_ticks() >= 50);

  const int result = rt.run({.record = &ws}, [] {
    std::thread outside;
    weft::fork({.event = true}, [&] {
      outside = std::thread([done = weft::this_task::hold()]() mutable { done.complete(); });
    });
    auto a = weft::fork([] { return 20; });
    const auto b = weft::fork([](const int& v) { return v + 1; }, weft::read(a));
    weft::sync();
    outside.join();
    return a.get() + b.get();
  });
  CHECK(result == 41);
  CHECK(ws.tasks() == 3);
}

TEST_CASE("who reads a stream waits for all that append before, and nobody waits for readers") {
  const weft_test::scratch folder;
  weft::append_file out(folder / "stream", {.readable = true});
  const auto append = [&out] {
    weft::fork(
        {.name = "append"},
        [](weft::append s) {
          step_clock::next = 40;
          s.write("x");
        },
        out);
  };
  const auto read = [&out](weft::file_pointer p) {
    weft::fork({.name = "read"}, [](weft::stream_reader) { step_clock::next = 40; }, weft::read(out, p));
  };
  const auto two_and_one = [&] {
    append();
    append();
    read(weft::file_pointer::local);
    append();
  };
  counted ws;
  weft::runtime rt({.workers = 2});
  rt.run({.record = &ws}, two_and_one);
  CHECK(ws.tasks() == 4);
  CHECK(ws.span_ticks() >= 80);
  CHECK(ws.span_ticks() < 90);
  rt.run({.record = &ws}, [&] {
    append();
    read(weft::file_pointer::global);
    read(weft::file_pointer::global);  // goes on where the other one ends
  });
  CHECK(ws.span_ticks() >= 120);
  CHECK(ws.span_ticks() < 130);
  const std::string dot = graph_of(two_and_one);
  CHECK(times(dot, "->") == 2);
  CHECK_THAT(dot, contains("t0 -> t2 [label=\"read x0\"]") && contains("t1 -> t2 [label=\"read x0\"]"));
  out.close();
}

TEST_CASE("the turns of an overlay are followed") {
  weft::orwl::location<int> first(0), second(0), third(0);
  weft::orwl::overlay pipeline;
  const auto turn = [] { step_clock::next = 100; };
  pipeline.task(
      {.name = "first"},
      [&](int& v) {
        turn();
        ++v;
      },
      weft::orwl::write(first));
  pipeline.task(
      {.name = "second"},
      [&](int& v, const int& before) {
        turn();
        v += before;
      },
      weft::orwl::write(second), weft::orwl::read(first));
  pipeline.task(
      {.name = "third"},
      [&](int& v, const int& before) {
        turn();
        v += before;
        if (v == 1 + 3 + 6) weft::fork({.name = "below"}, [] {});
      },
      weft::orwl::write(third), weft::orwl::read(second));
  pipeline.schedule();
  counted ws;
  weft::runtime rt({.workers = 2});
  CHECK(pipeline.run(rt, 10, {.record = &ws}) == 10);
  CHECK(third.get() == 220);
  CHECK(ws.tasks() == 31);
  // The first and the third take turns together, the second between.
  CHECK(ws.span_ticks() >= 2'100);
  CHECK(ws.span_ticks() < 2'200);
  CHECK(ws.work_ticks() >= 3'000);

  const weft_test::scratch folder;
  const std::string trace = folder / "trace.json";
  weft::runtime traced({.workers = 2, .trace = trace});
  pipeline.run(traced, 10, {.record = &ws});
  CHECK(ws.tasks() == 30);

  weft::observe::graph_file file(folder / "graph.dot");
  pipeline.run(rt, 2, {.record = &file});
  file.close();
  const std::string dot = weft_test::slurp(folder / "graph.dot");
  CHECK(times(dot, "[label=\"second\"]") == 2);
  CHECK(times(dot, "->") >= 6);

  weft::orwl::overlay fails;
  fails.task(
      [](weft::orwl::turn& t, int&) {
        if (t.iteration() == 1) throw std::runtime_error("planned");
      },
      weft::orwl::write(first));
  fails.schedule();
  CHECK_THROWS_WITH(fails.run(rt, 3, {.record = &ws}), "planned");
  CHECK(ws.tasks() == 2);
  CHECK(pipeline.run(rt, 1, {.record = &ws}) == 1);
  CHECK(ws.tasks() == 3);
}

TEST_CASE("what a steal costs is measured, and lengthens the burdened span") {
  const std::chrono::nanoseconds cost = weft::observe::steal_cost(50);
  CHECK(cost > std::chrono::nanoseconds(0));
  CHECK(cost < std::chrono::milliseconds(100));
  const auto burdened = [](std::chrono::nanoseconds steal) {
    weft::observe::basic_work_and_span<step_clock> ws({.steal = steal});
    weft::runtime rt({.workers = 1});
    rt.run({.record = &ws}, [] { weft::fork([] {}); });
    return ws.burdened_span() - ws.span();
  };
  CHECK(burdened(2 * cost) > burdened(cost));
}

TEST_CASE("what a recorded run throws leaves the runtime as it was") {
  counted ws;
  weft::runtime rt({.workers = 2});
  const auto fails = [] {
    weft::fork([] { throw std::runtime_error("planned"); });
    weft::fork([] {});
  };
  CHECK_THROWS_WITH(rt.run({.record = &ws}, fails), "planned");
  CHECK(ws.tasks() == 1);
  CHECK(rt.run([] { return 3; }) == 3);
  rt.run({.record = &ws}, [] { weft::fork([] {}); });
  CHECK(ws.tasks() == 1);
}

TEST_CASE("a run that cannot be followed says why") {
  counted ws;
  weft::runtime rt({.workers = 1, .stack_size = 64 * 1024});
  std::function<void(int)> deep = [&deep](int n) {
    if (n != 0) weft::fork([&deep, n] { deep(n - 1); });
  };
  CHECK_THROWS_WITH(rt.run({.record = &ws}, deep, 100000), contains("nest too deep"));
  weft::sched::inlining_disabled handles;
  handles.begin();
  CHECK_THROWS_WITH(rt.run({.record = &ws}, [] { weft::fork([] {}); }), contains("wait for one another"));
}

TEST_CASE("a record and a trace of the same run do not disturb each other") {
  const weft_test::scratch folder;
  counted ws;
  {
    weft::runtime rt({.workers = 2, .trace = folder / "trace.json"});
    rt.run({.record = &ws}, [] { diamond(10); });
    rt.run([] { diamond(10); });
  }
  CHECK(ws.tasks() == 12);
  CHECK(times(weft_test::slurp(folder / "trace.json"), "\"middle\"") == 10);
}
