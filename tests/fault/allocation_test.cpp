// SPDX-License-Identifier: BSL-1.0
// Memory runs out: the n-th allocation fails, for every n, once and from then on.
#include "fault/failing_allocations.hpp"
#include "fault/waiting.hpp"
#include "sched/hand_made.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"
#include "support/tracked.hpp"

#include <weft/observe.hpp>
#include <weft/orwl.hpp>
#include <weft/weft.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

/// Closures, results, shared objects, a wide frame, and a waiting body.
bool workload(weft::runtime& rt) {
  long sum = 0;
  rt.run([&sum] {
    weft::shared<weft_test::tracked> a(weft_test::tracked(1)), b;
    weft::shared<long> count(0L);
    for (long i = 0; i < 3000; ++i) weft::fork([](long& v) { ++v; }, weft::update(count));
    weft::fork([](const weft_test::tracked& from, weft_test::tracked& to) { to = from; }, weft::read(a),
               weft::write(b));
    auto f = weft::fork(weft_test::fib, 12L);
    weft::sync();
    sum = count.get() + f.get() + b.get().value;
  });
  return sum == 3000 + 144 + 1;
}

/// An overlay of tasks that read their neighbours, as declared or in canonical form.
bool overlay_workload(weft::runtime& rt, bool canonical) {
  constexpr std::size_t n = 6;
  constexpr int turns = 20;
  std::vector<weft::orwl::location<long>> cells(n);
  std::array<long, n> serial{};
  for (int k = 0; k < turns; ++k)
    for (std::size_t i = 0; i < n; ++i) serial[i] += serial[(i + 1) % n] % 7 + 1;
  weft::orwl::overlay o;
  for (std::size_t i = 0; i < n; ++i)
    o.task([](long& v, const long& w) { v += w % 7 + 1; }, weft::orwl::write(cells[i]),
           weft::orwl::read(cells[(i + 1) % n]));
  if (canonical) o.make_canonical();
  o.schedule();
  o.record();
  o.run(rt, turns);
  for (std::size_t i = 0; i < n; ++i)
    if (cells[i].get() != serial[i]) return false;
  return true;
}

/// A repeated graph with whole objects, parts of arrays, and lists of rights.
bool recorded_workload(weft::runtime& rt) {
  std::vector<long> v(60);
  weft::shared_array<long> a(10);
  rt.run([&] {
    weft::recorded step;
    for (int k = 0; k < 6; ++k)
      step([&] {
        for (long& x : v) weft::fork([](long& y) { ++y; }, weft::update(weft::borrow(x)));
        weft::fork([](std::span<long> s) { ++s[0]; }, weft::update(a.slice(2, 3)));
        weft::fork([](std::vector<weft::update<long>> all) { *all[0] += 1, *all[1] += 2; },
                   std::vector<weft::update<long>>{weft::borrow(v[0]), weft::borrow(v[1])});
      });
  });
  for (std::size_t i = 0; i < v.size(); ++i)
    if (v[i] != (i == 0 ? 12 : i == 1 ? 18 : 6)) return false;
  return a.get()[2] == 6;
}

/// Each piece of a body takes a tick.
struct even_clock {
  void start(double) {}
  std::uint64_t pass() { return weft::observe::parts_of_tick; }
  void go_on(weft::observe::pace&) {}
};
using counted = weft::observe::basic_work_and_span<even_clock>;
struct figures {
  std::uint64_t tasks = 0, others = 0, span = 0;
  bool operator==(const figures&) const = default;
};
figures figures_of(const counted& ws) { return {ws.tasks(), ws.work_ticks(), ws.span_ticks()}; }
figures figures_of(const weft::observe::graph_file& g) { return {g.tasks(), g.edges(), 0}; }

/// Many bodies inside each other, each with a result that waits there.
long nest(long depth) {
  auto beside = weft::fork([](long d) { return d; }, depth);
  auto below = weft::fork({.name = "nest"}, [](long d) { return d == 0 ? 0 : nest(d - 1); }, depth);
  weft::sync();
  return beside.get() + below.get();
}

/// Rights of all kinds, names, results that become objects and others that do not.
void told_program() {
  constexpr std::array<const char*, 3> names{"one", "two", "three"};
  weft::shared<long> a(0), sum(0);
  for (std::size_t i = 0; i < 40; ++i) {
    weft::fork({.name = names[i % 3]}, [](long& v) { ++v; }, weft::update(a));
    weft::fork(
        {.name = names[i % 2]}, [](const long& v, auto s) { s += v; }, weft::read(a),
        weft::reduce(sum, std::plus<>{}));
    weft::fork([] {
      auto result = weft::fork([] { return 1L; });
      weft::shared<long> own(0);
      weft::fork([](long& v) { ++v; }, weft::update(own));
      weft::sync();
    });
  }
  auto sum_of_depths = weft::fork(nest, 70L);
  weft::sync();
}

/// Whether a record that lacks memory is empty, and the next one is right again. Where the program itself
/// lacks memory, e.g. for the first block of an arena, the record holds what had run until then. Returns how
/// many allocations were made to fail.
template <class Recorder, class... A>
long fail_recorded(bool from_then_on, const A&... arguments) {
  weft::runtime rt({.workers = 1});
  std::optional<Recorder> record;
  const auto run = [&] {
    rt.run({.record = &*record}, told_program);
    return figures_of(*record);
  };
  record.emplace(arguments...);
  const figures expected = run();
  REQUIRE(expected.tasks > 40 * 5 + 2 * 70);
  bool told = false;
  long partial = 0;
  const long points = fail_each(
      from_then_on,
      [&] {
        told = true;
        record.reset();
        record.emplace(arguments...);
        const bool right = run() == expected;
        told = false;
        return right;
      },
      [&](long) {
        if (!record) record.emplace(arguments...);
        if (told && figures_of(*record) != figures()) {
          ++partial;
          CHECK(figures_of(*record).tasks < expected.tasks);
        }
        CHECK(run() == expected);
      });
  CHECK(partial <= 2);
  return points;
}

}  // namespace

TEST_CASE("an allocation may fail while a runtime is made, used and destroyed") {
  if (!replaced) return;
  for (const bool from_then_on : {false, true})
    for (const unsigned workers : {1u, 3u}) {
      weft_test::tracked::reset();
      const auto everything = [=] {
        weft::runtime rt({.workers = workers, .inlining = workers == 1});
        return workload(rt);
      };
      REQUIRE(everything());  // what is made once per process is made now
      const long points = fail_each(from_then_on, everything, [](long left) { CHECK(left == 0); });
      weft_test::figure("allocation_faults", static_cast<std::uint64_t>(points));
      CHECK(points >= 15);
    }
}

TEST_CASE("an allocation may fail during a run; the runtime stays usable") {
  if (!replaced) return;
  for (const bool from_then_on : {false, true})
    for (const unsigned workers : {1u, 3u}) {
      weft_test::tracked::reset();
      long points = 0;
      for (const bool inlining : {true, false}) {
        weft::runtime rt({.workers = workers, .inlining = inlining});
        points +=
            fail_each(from_then_on, [&] { return workload(rt); }, [&](long) { CHECK(weft_test::works(rt)); });
      }
      weft_test::figure("allocation_faults", static_cast<std::uint64_t>(points));
      CHECK(points >= 2);  // those of the arenas; others depend on which bodies are stolen
    }
}

TEST_CASE("an allocation may fail while an overlay, or a repeated graph, is made and run") {
  if (!replaced) return;
  long points = 0;
  for (const bool from_then_on : {false, true})
    for (const unsigned workers : {1u, 3u}) {
      weft::runtime rt({.workers = workers, .inlining = false});
      const auto usable = [&](long) { CHECK(weft_test::works(rt)); };
      for (const bool canonical : {false, true})
        points += fail_each(from_then_on, [&] { return overlay_workload(rt, canonical); }, usable);
      points += fail_each(from_then_on, [&] { return recorded_workload(rt); }, usable);
    }
  weft_test::figure("allocation_faults", static_cast<std::uint64_t>(points));
  CHECK(points >= 100);
}

TEST_CASE("an allocation may fail while a run is recorded") {
  if (!replaced || WEFT_CHECKED) return;  // checked builds allocate for rights, too: not all is the record's
  const weft_test::scratch folder;
  for (const bool from_then_on : {false, true}) {
    const long spans = fail_recorded<counted>(from_then_on);
    const long graphs = fail_recorded<weft::observe::graph_file>(from_then_on, folder / "graph.dot");
    weft_test::figure("allocation_faults", static_cast<std::uint64_t>(spans + graphs));
    CHECK(spans >= 20);
    CHECK(graphs >= 100);
  }
}

TEST_CASE("an allocation of a task's own may fail") {
  if (!replaced) return;
  weft::runtime rt({.workers = 2});
  const long points = fail_each(
      false,
      [&] {
        long seen = 0;
        rt.run([&] {
          weft::shared<std::vector<long>> v;
          weft::fork([](std::vector<long>& out) { out.assign(100, 1); }, weft::write(v));
          weft::fork([&](const std::vector<long>& in) { seen = static_cast<long>(in.size()); },
                     weft::read(v));
        });
        return seen == 100;
      },
      [&](long) { CHECK(weft_test::works(rt)); });
  weft_test::figure("allocation_faults", static_cast<std::uint64_t>(points));
  CHECK(points >= 1);
}

TEST_CASE("an allocation may fail while a graph is made; every task is run once, in a legal order") {
  if (!replaced) return;
  using weft::sched::graph_entry;
  using weft::sched::graph_node;
  constexpr std::size_t tasks = 600, objects = 100;
  for (const bool from_then_on : {false, true}) {
    weft_test::made_strand s;
    s.open();
    std::vector<int> data(objects);
    weft_test::random dice(weft_test::seed());
    for (std::size_t i = 0; i < tasks; ++i) {
      const auto pick = [&]() -> int& { return data[dice.below(objects)]; };
      s.add({weft_test::reads(pick()), weft_test::writes(pick()), weft_test::reads(pick())}, {},
            {.priority = static_cast<int>(dice.below(40)), .local = dice.one_in(10)})
          .add_access(
              {.object = &s, .mode = weft_test::access_mode::read, .sliced = true, .begin = i, .end = i + 2});
    }
    std::vector<const weft::sched::closure*> order;
    order.reserve(tasks);
    const auto execute = [&] {
      order.clear();
      for (weft::sched::closure* c = s.top->first.load(); c != nullptr; c = c->next.load())
        c->state.store(weft::sched::closure_state::created);  // as if it had never run
      const auto g = std::make_unique<weft::sched::graph>();
      g->begin(s, *s.top, nullptr, 0);
      graph_node* held = nullptr;  // one more is running at any time
      for (std::size_t steps = 0; !g->all_ended() && steps < 2 * tasks; ++steps) {
        g->look_ahead(8, 100);
        graph_node* n = g->take_for_owner();
        if (n != nullptr) order.push_back(n->task);
        n = std::exchange(held, n);
        graph_entry* folds = nullptr;
        if (n != nullptr) g->finish(*n, folds);
      }
      const bool right = g->all_ended() && order.size() == tasks;
      g->end();
      return right;
    };
    const auto legal = [&] {
      std::map<const weft::sched::closure*, std::size_t> place;
      for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
      std::size_t wrong = 0, last_write[objects] = {}, last_use[objects] = {};
      for (const weft::sched::closure* c = s.top->first.load(); c != nullptr; c = c->next.load()) {
        const std::size_t at = place.at(c) + 1;
        for (std::size_t i = 0; i < 3; ++i) {
          const auto x = static_cast<std::size_t>(static_cast<int*>(c->objects()[i]) - data.data());
          wrong += at < (i == 1 ? last_use[x] : last_write[x]);
        }
        for (std::size_t i = 0; i < 3; ++i) {
          const auto x = static_cast<std::size_t>(static_cast<int*>(c->objects()[i]) - data.data());
          last_use[x] = std::max(last_use[x], at);
          if (i == 1) last_write[x] = std::max(last_write[x], at);
        }
      }
      return wrong == 0 && place.size() == tasks;
    };
    REQUIRE(execute());
    REQUIRE(legal());
    const long points = fail_each(from_then_on, execute, [&](long) {
      if (order.size() == tasks) CHECK(legal());
    });
    weft_test::figure("allocation_faults", static_cast<std::uint64_t>(points));
    CHECK(points >= 20);
  }
}

TEST_CASE("without memory, a graph waits for a stolen task, and runs none that has ended or failed") {
  if (!replaced) return;
  using weft::sched::closure_state;
  using weft::sched::graph_entry;
  using weft::sched::graph_node;
  for (const closure_state odd : {closure_state::stolen, closure_state::done, closure_state::failed}) {
    CAPTURE(static_cast<int>(odd));
    weft_test::made_strand s;
    s.open();
    const weft::sched::closure& first = s.add();
    weft::sched::closure& middle = s.add();
    const weft::sched::closure& last = s.add();
    if (odd == closure_state::failed) middle.set_failure(std::make_exception_ptr(1));
    middle.state.store(odd);
    weft::sched::graph g;
    g.begin(s, *s.top, nullptr, 0);
    std::array<const weft::sched::closure*, 4> order{};
    std::size_t count = 0, dropped = 0, waits = 0;
    persistent = true;
    until_failure = 0;
    armed = true;
    for (int round = 0; round < 8 && !g.all_ended(); ++round) {
      g.look_ahead(8, 100);
      graph_entry* folds = nullptr;
      if (graph_node* const n = g.take_for_owner()) {
        dropped += g.must_drop(*n);
        if (count < order.size()) order[count++] = n->task;
        g.finish(*n, folds);
      } else if (middle.state.load() == closure_state::noted) {
        ++waits;
        middle.state.store(closure_state::done);
        if (graph_node* const noted = g.take_stolen_node(middle)) g.finish(*noted, folds);
      }
    }
    armed = false;
    CHECK(g.all_ended());
    CHECK(count == 2);
    CHECK(order[0] == &first);
    CHECK(order[1] == &last);
    CHECK(waits == (odd == closure_state::stolen));
    CHECK(dropped == (odd == closure_state::failed));
    CHECK(g.failed() == (odd == closure_state::failed));
    g.take_failure();
    g.end();
  }
}
