// SPDX-License-Identifier: BSL-1.0
// Random data-flow programs give on the library what a sequential interpreter gives.
#include "batch.hpp"
#include "check.hpp"
#include "dependences.hpp"
#include "execute.hpp"
#include "interpret.hpp"
#include "shrink.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"
#include "support/record.hpp"
#include "support/scratch.hpp"

#include <weft/observe/graph_file.hpp>
#include <weft/observe/trace.hpp>
#include <weft/observe/work_and_span.hpp>
#include <weft/weft.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace property;

namespace {

constexpr unsigned usual_programs = 14000;

/// What has happened beside the library's counters.
struct noticed {
  std::uint64_t threw = 0, together = 0;
};

std::string run_once(weft::runtime& rt, const setup& how, noticed& n) {
  const program p = generate(how.seed);
  const std::string text = difference(rt, p, how, true, &n.together);
  n.threw += interpret(p).exception != 0;
  return text.empty() ? text : explain(rt, p, how, text);
}

/// Makes loops ordinary tasks.
void unroll(task& t) {
  t.times = 0;
  for (step& s : t.steps)
    for (task& c : s.child) unroll(c);
}

/// Each look at this clock is one tick later.
struct step_clock {
  void start(double) {}
  std::uint64_t pass() { return weft::observe::parts_of_tick; }
  void go_on(weft::observe::pace&) {}
};

double length_of_path(const auto& ws) {
  double sum = 0;
  for (const weft::observe::task_share& t : ws.types()) sum += t.on_path;
  return sum;
}

/// The first pair of tasks that only one of them orders; empty if there is none.
std::string difference_of(const std::vector<std::vector<bool>>& found,
                          const std::vector<std::vector<bool>>& expected) {
  for (std::size_t b = 0; b < expected.size(); ++b)
    for (std::size_t a = 0; a < expected.size(); ++a)
      if (found[b][a] != expected[b][a])
        return "fork " + std::to_string(b) + (expected[b][a] ? " must" : " must not") + " wait for fork " +
               std::to_string(a);
  return "";
}

/// The edges of a graph in JSON.
std::vector<std::pair<int, int>> read_edges(const std::string& path) {
  std::vector<std::pair<int, int>> edges;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    int from = 0, to = 0;
    if (std::sscanf(line.c_str(), "{\"from\":%d,\"to\":%d", &from, &to) == 2) edges.emplace_back(from, to);
  }
  return edges;
}

/// The number behind `key` in an event of a trace; 0 if there is none.
std::uint64_t number_of(std::string_view event, std::string_view key) {
  std::uint64_t n = 0;
  if (const std::size_t at = event.find(key); at != event.npos)
    std::from_chars(event.data() + at + key.size(), event.data() + event.size(), n);
  return n;
}
/// When it is, in nanoseconds.
std::uint64_t time_of(std::string_view event) {
  const std::string_view time = event.substr(std::min(event.find("\"ts\":"), event.size()));
  return 1000 * number_of(time, "\"ts\":") + number_of(time, ".");  // microseconds with three decimals
}

/// What is in a trace.
struct traced {
  /// A worker's slices of tasks and the ends of waits for which it went on: when these are.
  struct row {
    std::vector<std::uint64_t> begun{}, waited{};
  };
  std::map<std::uint64_t, row> rows{};
  std::vector<std::uint64_t> forked{}, ended{};  // arrows of stolen tasks: their beginnings, their ends,
  std::vector<std::uint64_t> taken{};            // and those that a thief has begun to take tasks with
  std::uint64_t slices = 0, waits = 0, dropped = UINT64_MAX;

  /// How many bodies these slices are of, if so many waits were with none on the stack. All that a wait has
  /// interrupted go on at the same time, the first one after its end. Where one does, it looks like one that
  /// begins: hence `parkings`.
  std::uint64_t bodies(std::uint64_t parkings) const {
    std::uint64_t go_on = waits - parkings;  // one of each, and then the others
    for (const auto& [worker, r] : rows)
      for (std::size_t i = 0; i < r.waited.size(); ++i) {
        const auto first = std::ranges::lower_bound(r.begun, r.waited[i]);
        if (first == r.begun.end() || (i + 1 < r.waited.size() && *first >= r.waited[i + 1])) continue;
        go_on += static_cast<std::uint64_t>(std::ranges::count(first, r.begun.end(), *first)) - 1;
      }
    return slices - go_on;
  }
};
traced read_trace(const std::string& path) {
  traced found;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto has = [&line](const char* text) { return line.find(text) != std::string::npos; };
    const auto row = [&]() -> traced::row& { return found.rows[number_of(line, "\"tid\":")]; };
    if (has("\"ph\":\"X\"") && has("\"cat\":\"task\"")) {
      ++found.slices;
      row().begun.push_back(time_of(line));
    }
    found.waits += has("\"ph\":\"b\"") && has("\"cat\":\"wait\"");
    if (has("\"ph\":\"f\"") && has("\"name\":\"goes on\"")) row().waited.push_back(time_of(line));
    if (has("\"name\":\"stolen\"")) {
      const std::uint64_t id = number_of(line, "\"id\":");
      if (has("\"ph\":\"s\"")) found.forked.push_back(id);
      if (has("\"ph\":\"f\"")) found.ended.push_back(id);
      // A worker that takes a task which it has forked itself, for a strand that has gone on elsewhere, makes
      // no arrow.
      if (has("\"ph\":\"t\"") && weft::observe::fork_stamp::worker(id) != number_of(line, "\"tid\":"))
        found.taken.push_back(id);
    }
    if (has("\"otherData\":{\"dropped_records\":0}")) found.dropped = 0;
  }
  for (auto& [worker, r] : found.rows) {
    std::ranges::sort(r.begun);
    std::ranges::sort(r.waited);
  }
  for (std::vector<std::uint64_t>* const ids : {&found.forked, &found.ended, &found.taken})
    std::ranges::sort(*ids);
  return found;
}

/// A program of ordinary tasks, whose order the oracle knows.
program generate_plain(std::uint64_t seed) {
  program p = generate(seed);
  unroll(p.root);
  spawn_nothing(p.root);
  drop_waits(p.root);
  legalise(p);
  return p;
}

void print_figure(const char* what, std::uint64_t times) {
  std::printf("%s %llu\n", what, static_cast<unsigned long long>(times));
}

}  // namespace

TEST_CASE("random programs give what the serial program gives") {
  result r;
  noticed n;
  run_all(usual_programs, r, [&n](weft::runtime& rt, const setup& how) { return run_once(rt, how, n); });
  const struct {
    const char* what;
    std::uint64_t times;
  } happened[] = {{"with an exception", n.threw},
                  {"contributors met another", n.together},  // so some contributions were kept apart
                  {"deferred", r.sum.deferred},
                  {"inlined", r.sum.inlined},
                  {"steals", r.sum.steals},
                  {"promotions", r.sum.promotions},
                  {"folds", r.sum.folds},
                  {"replayed", r.sum.replayed},
                  {"renames", r.sum.renames},
                  {"capped", r.sum.capped},
                  {"divisions of loops", r.sum.divisions},
                  {"parkings", r.sum.parkings},
                  {"suspensions", r.sum.suspensions},
                  {"dropped", r.sum.dropped}};
  print_figure("runs compared", r.compared);
  print_figure("demotions", r.sum.demotions);
  weft_test::figure("programs_compared", r.compared);
  CHECK(r.compared >= programs(usual_programs) * 6);
  for (const auto& h : happened) {
    print_figure(h.what, h.times);
    INFO(h.what);
    CHECK(h.times > 0);
  }
  for (const usage& u : launches()) {
    INFO(u.name);
    CHECK(u.times > 0);
  }
}

TEST_CASE("random programs of several callers do not disturb each other") {
  constexpr unsigned callers = 4;
  const std::uint64_t each = programs(usual_programs) / 14 + 1;
  for (const unsigned workers : {2u, 4u}) {
    const setup options = options_for(65 * workers, workers);
    weft::runtime rt(options.options());
    weft_test::record<std::string> failures;
    std::vector<std::thread> threads;
    for (unsigned c = 0; c < callers; ++c)
      threads.emplace_back([&, c] {
        setup how = options;
        for (std::uint64_t i = 0; i < each; ++i) {
          how.seed = weft_test::seed() + 1000000 * (c + 1) + i;
          const std::string text = difference(rt, generate(how.seed), how, false);
          if (!text.empty())
            failures.add(text + "\nwith other callers beside it; alone:\n  " + how.command());
        }
      });
    for (std::thread& t : threads) t.join();
    for (const std::string& f : failures.entries()) fail_with(f);
  }
}

TEST_CASE("generated programs are legal, varied, and the same for the same seed") {
  std::uint64_t threw = 0, caught = 0, tasks = 0, never = 0, known = 0, unknown = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    const program p = generate(seed);
    REQUIRE(print(p) == print(generate(seed)));
    program again = p;
    legalise(again);
    REQUIRE(print(p) == print(again));
    expectation e;
    REQUIRE_NOTHROW(e = interpret(p));  // it throws if a step is not legal
    threw += e.exception != 0;
    caught += static_cast<std::uint64_t>(e.caught);
    never += static_cast<std::uint64_t>(e.barred);
    for (const runs r : e.tasks) tasks += static_cast<std::uint64_t>(r.least);
    for (const cell& c : e.objects) ++(c.known ? known : unknown);
  }
  std::printf(
      "4000 programs: %llu throw, %llu exceptions caught, %llu tasks, %llu must not run, %llu of %llu "
      "cells compared\n",
      static_cast<unsigned long long>(threw), static_cast<unsigned long long>(caught),
      static_cast<unsigned long long>(tasks), static_cast<unsigned long long>(never),
      static_cast<unsigned long long>(known), static_cast<unsigned long long>(known + unknown));
  CHECK(threw > 200);
  CHECK(caught > 150);
  CHECK(tasks > 30000);
  CHECK(never > 100);
  CHECK(known > unknown);
}

TEST_CASE("a wrong oracle is noticed, shrunk, and repeated by the printed command") {
  setup how;
  how.workers = 2;
  how.fault = planted::value;
  weft::runtime rt(how.options());
  std::string text;
  program p;
  for (how.seed = 1; text.empty(); ++how.seed) {
    p = generate(how.seed);
    if (size(p) < 60) continue;  // so that there is something to shrink
    text = difference(rt, p, how);
    if (!text.empty()) break;
  }
  const std::string report = explain(rt, p, how, text);
  INFO(report);
  const program small =
      shrink(p, [&](const program& q) { return !difference(rt, q, how).empty(); }, std::chrono::seconds(20));
  CHECK(size(small) <= 12);
  const std::size_t at = report.rfind("to repeat it:\n  ");
  REQUIRE(at != std::string::npos);
  std::string command = report.substr(at + 16);
  command.erase(command.find('\n'));
  std::string output;
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  char part[4096];
  for (std::size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) output.append(part, n);
  CHECK(pclose(pipe) != 0);
  CHECK_THAT(output, weft_test::contains("seed " + std::to_string(how.seed)));
  CHECK_THAT(output, weft_test::contains(text));
}

TEST_CASE("a wrong order of contributions is noticed and shrunk") {
  setup how;
  how.fault = planted::order_of_contributions;
  weft::runtime rt(how.options());
  std::uint64_t shrunk = 0;
  for (how.seed = 1; shrunk < 3; ++how.seed) {
    const program p = generate(how.seed);
    if (size(p) < 60 || difference(rt, p, how).empty()) continue;
    const program small = shrink(
        p, [&](const program& q) { return !difference(rt, q, how).empty(); }, std::chrono::seconds(20));
    INFO(print(small));
    CHECK(size(small) <= 20);
    ++shrunk;
  }
}

TEST_CASE("the graph of a random program has the tasks and the order of the oracle") {
  const weft_test::scratch folder(weft_test::medium::memory);
  const std::string path = folder / "graph.json";
  const std::uint64_t seeds = 10000 / weft_test::scale() + 1;
  std::uint64_t compared = 0, tasks = 0, edges = 0;
  weft::runtime serial({.workers = 1}), several({.workers = 2});
  for (std::uint64_t seed = 1; compared < seeds; ++seed) {
    const program p = generate_plain(seed);
    const expectation e = interpret(p);
    if (e.exception != 0 || e.caught != 0) continue;
    ++compared;
    weft::observe::graph_file graph(path, {.most_tasks = 100000});
    const observation seen = execute_plain(compared % 2 != 0 ? serial : several, p, e, &graph);
    REQUIRE(seen.exception == 0);
    REQUIRE(seen.value == e.value);
    graph.close();
    const execution ideal = execute_ideally(p);
    const std::vector<forked_task>& expected = ideal.tasks;
    INFO(seed << "\n" << print(p));
    REQUIRE(graph.tasks() == expected.size());
    REQUIRE(difference_of(order_of(expected, read_edges(path)), order_of(expected)) == "");
    weft::observe::basic_work_and_span<step_clock> ws;
    execute_plain(serial, p, e, &ws);
    REQUIRE(ws.tasks() == expected.size());
    REQUIRE(ws.work_ticks() == ideal.work);
    REQUIRE(ws.span_ticks() == ideal.span);
    REQUIRE(length_of_path(ws) == Approx(ws.span()));
    tasks += graph.tasks();
    edges += graph.edges();
  }
  std::printf("%llu graphs compared, %llu tasks, %llu edges\n", static_cast<unsigned long long>(compared),
              static_cast<unsigned long long>(tasks), static_cast<unsigned long long>(edges));
  CHECK(tasks > 4 * compared);
  CHECK(edges > compared);
}

TEST_CASE("the trace of a random program has the tasks of the oracle") {
  const weft_test::scratch folder(weft_test::medium::memory);
  const std::uint64_t seeds = 10000 / weft_test::scale() + 1;
  std::uint64_t compared = 0, traces = 0, tasks = 0, waits = 0, parkings = 0, thefts = 0, taken = 0,
                arrows = 0;
  for (std::uint64_t seed = 1; compared < seeds; ++seed) {
    const program p = generate_plain(seed);
    const expectation e = interpret(p);
    if (e.exception != 0 || e.caught != 0) continue;
    ++compared;
    const std::uint64_t expected = execute_ideally(p).tasks.size() + 1;  // and the root
    for (const unsigned workers : {1u, 3u}) {
      if (workers > 1 && compared % 5 != 0 && !weft_test::long_run()) continue;
      const std::string path =
          folder / ("trace " + std::to_string(seed) + " " + std::to_string(workers) + ".json");
      weft::counters c{};
      {
        weft::runtime rt({.workers = workers, .trace = path});
        REQUIRE(execute_plain(rt, p, e).value == e.value);
        c = rt.counters();
      }
      const traced found = read_trace(path);
      std::filesystem::remove(path);  // of memory
      INFO(seed << " " << workers << "\n" << print(p));
      REQUIRE(found.dropped == 0);
      REQUIRE(found.waits == c.suspensions + c.parkings);
      REQUIRE(found.bodies(c.parkings) == expected);
      // Once for each stolen task, also for those that a thief takes several at a time.
      REQUIRE(found.forked == found.ended);
      REQUIRE(std::ranges::includes(found.forked, found.taken));
      REQUIRE((workers > 1 || (found.waits == 0 && found.forked.empty())));
      ++traces;
      tasks += expected;
      waits += found.waits;
      parkings += c.parkings;
      thefts += c.steals;
      taken += found.taken.size();
      arrows += found.forked.size();
    }
  }
  std::printf("%llu programs traced %llu times, %llu tasks, %llu waits, %llu of them without a body\n",
              static_cast<unsigned long long>(compared), static_cast<unsigned long long>(traces),
              static_cast<unsigned long long>(tasks), static_cast<unsigned long long>(waits),
              static_cast<unsigned long long>(parkings));
  std::printf("%llu tasks stolen, %llu arrows, %llu of them taken first\n",
              static_cast<unsigned long long>(thefts), static_cast<unsigned long long>(arrows),
              static_cast<unsigned long long>(taken));
  weft_test::figure("programs_traced", compared);
  CHECK(tasks > 8 * compared);
  CHECK(waits > 0);
  CHECK(taken > 0);
  CHECK(arrows > taken);
}

TEST_CASE("one program", "[.]") {
  noticed n;
  repeat_one([&n](weft::runtime& rt, const setup& how) { return run_once(rt, how, n); });
}
