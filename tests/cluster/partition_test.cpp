// SPDX-License-Identifier: BSL-1.0
// Partitioned steps of a cluster whose processes are threads, against the serial program.
#include "step_program.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/scratch.hpp"

#include <weft/cluster/migratable.hpp>
#include <weft/cluster/partition.hpp>
#include <weft/cluster/threads.hpp>
#include <weft/placement/dsc.hpp>
#include <weft/placement/etf.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <thread>

using namespace weft_test;
using weft::partition_options, weft::thread_cluster;

namespace {

constexpr int cells = 24, times = 14;  // of a stencil

/// Another placement each time it is asked.
weft::placement::method anywhere(std::uint32_t seed) {
  return [random = std::make_shared<std::minstd_rand>(seed)](const weft::placement::task_graph& g,
                                                             const weft::placement::machine& m) {
    std::vector<unsigned> on(g.costs.size());
    for (unsigned& p : on) p = static_cast<unsigned>((*random)() % m.processors);
    return weft::placement::list_schedule(g, m, on);
  };
}
/// A threshold that no placement misses: tasks move at each occasion.
constexpr double always = -1e9;

struct named {
  const char* name;
  weft::placement::method place;
};
const std::vector<named> methods{{"owner_computes", weft::placement::owner_computes},
                                 {"etf", weft::placement::etf},
                                 {"dsc", weft::placement::dsc},
                                 {"anywhere", anywhere(1)}};

/// What all processes got, and did.
struct outcome {
  std::vector<step_values> values;
  std::vector<std::string> thrown;
  weft::partition_counters sum;
};

outcome run_step(thread_cluster& c, const step_program& p, const partition_options& options,
                 const std::vector<std::uint64_t>& runs) {
  const auto size = static_cast<std::size_t>(c.size());
  outcome o{std::vector<step_values>(size), std::vector<std::string>(size), {}};
  std::vector<weft::partition_counters> counters(size);
  c.each([&](thread_cluster::process& here) {
    const auto at = static_cast<std::size_t>(here.rank());
    step_objects objects(p);
    weft::partitioned step(here, [&] { objects.fork(); }, options);
    try {
      for (const std::uint64_t n : runs) step.run(n);
    } catch (const std::runtime_error& e) {
      o.thrown[at] = e.what();
    }
    o.values[at] = objects.values();
    counters[at] = step.counters();
  });
  for (const auto& n : counters) {
    o.sum.steps += n.steps;
    o.sum.tasks += n.tasks;
    o.sum.messages += n.messages;
    o.sum.redistributions += n.redistributions;
    o.sum.checkpoints += n.checkpoints;
  }
  return o;
}

/// A thread that wants to go to the other process of two.
struct leaver {
  int left = 0;
  void operator()() {
    if (left++ == 0) weft::this_thread::migrate(1 - weft::this_thread::process());
  }
};

}  // namespace

TEST_CASE("a stencil is what it is serially, on any number of processes, by every method", "[partition]") {
  std::vector<double> expected(cells);
  {
    std::vector<double> v(cells), u(cells);
    std::iota(v.begin(), v.end(), 0.0);
    const auto sweep = [](const auto& a, auto& b) {
      for (int i = 0; i < cells; ++i)
        b[i] = a[(i + cells - 1) % cells] * .3 + a[i] * .5 + a[(i + 1) % cells] * .2;
    };
    for (int k = 0; k < times; ++k) sweep(v, u), sweep(u, v);
    expected = v;
  }
  for (const named& method : methods)
    for (const int processes : {1, 2, 3, 8}) {
      thread_cluster c(processes, {}, {.disorder = processes == 3 ? 5u : 0u});
      std::atomic<int> wrong{0};
      std::atomic<std::uint64_t> tasks{0}, messages{0};
      c.each([&](thread_cluster::process& here) {
        std::vector<std::unique_ptr<weft::shared<double>>> v, u;
        for (int i = 0; i < cells; ++i) {
          v.push_back(std::make_unique<weft::shared<double>>(i));
          u.push_back(std::make_unique<weft::shared<double>>(0.0));
        }
        const auto sweep = [](auto& a, auto& b) {
          for (int i = 0; i < cells; ++i)
            weft::fork([](double l, double m, double r, double& to) { to = l * .3 + m * .5 + r * .2; },
                       weft::read(*a[(i + cells - 1) % cells]), weft::read(*a[i]),
                       weft::read(*a[(i + 1) % cells]), weft::write(*b[i]));
        };
        weft::partitioned step(here, [&] { sweep(v, u), sweep(u, v); }, {.method = method.place});
        step.run(times / 2);
        step.run(times - times / 2);
        for (int i = 0; i < cells; ++i) wrong += v[i]->get() != expected[i];
        tasks += step.counters().tasks;
        messages += step.counters().messages;
      });
      INFO(method.name << ", " << processes << " processes");
      CHECK(wrong == 0);
      CHECK(tasks == 2u * cells * times);
      CHECK((messages > 0) == (processes > 1));
    }
}

TEST_CASE("random steps give what the serial program gives", "[partition]") {
  std::uint64_t compared = 0, redistributed = 0;
  const auto first = static_cast<std::uint32_t>(seed() % 1000000);
  for (std::uint32_t i = 0; i < 40; ++i) {
    const std::uint32_t s = i < 20 ? i + 1 : first + i;
    std::minstd_rand random(s);
    const step_program p = random_step(s, 1 + static_cast<unsigned>(random() % 40));
    const std::vector<std::uint64_t> runs{1 + random() % 5, 0, 1 + random() % 16};
    step_values expected = first_values(p);
    for (std::uint64_t k = 0; k < runs[0] + runs[2]; ++k) interpret(p, expected);
    const int processes = 1 + static_cast<int>(i % 8);
    const named& method = methods[random() % methods.size()];
    const auto disorder = random() % 3 == 0 ? 0u : static_cast<std::uint32_t>(1 + random() % 1000);
    thread_cluster c(processes, {.runtime = {.workers = 1 + i % 2}}, {.disorder = disorder});
    const outcome o = run_step(c, p, {.method = method.place, .threshold = i % 3 == 0 ? 0.2 : always}, runs);
    INFO("seed " << s << ", " << processes << " processes, disorder " << disorder << ", " << method.name);
    for (const step_values& v : o.values) CHECK(v.numbers == expected.numbers);
    for (const step_values& v : o.values) CHECK(v.texts == expected.texts);
    for (const std::string& t : o.thrown) CHECK(t == "");
    compared += o.values.size();
    redistributed += o.sum.redistributions;
  }
  std::printf("steps compared in %llu processes, tasks placed anew %llu times\n",
              static_cast<unsigned long long>(compared), static_cast<unsigned long long>(redistributed));
  CHECK(redistributed > 20);
}

TEST_CASE("all processes throw what the serial program throws first", "[partition]") {
  std::uint64_t threw = 0;
  const auto first = static_cast<std::uint32_t>(seed() % 1000000);
  weft::remote::register_exception<step_failure>();
  for (std::uint32_t i = 0; i < 48; ++i) {
    const std::uint32_t s = i < 32 ? i + 1 : first + i;
    std::minstd_rand random(s);
    const step_program p = random_step(s, 2 + static_cast<unsigned>(random() % 30), 1 + i % 4);
    const std::vector<std::uint64_t> runs{1 + random() % 16};
    std::string expected;
    try {
      step_values v = first_values(p);
      for (std::uint64_t k = 0; k < runs[0]; ++k) interpret(p, v);
    } catch (const step_failure& e) {
      expected = e.what();
    }
    threw += !expected.empty();
    const int processes = 1 + static_cast<int>(i % 8);
    const auto disorder = random() % 3 == 0 ? 0u : static_cast<std::uint32_t>(1 + random() % 1000);
    thread_cluster c(processes, {.runtime = {.workers = 1 + i / 2 % 2}}, {.disorder = disorder});
    const outcome o = run_step(c, p, {.method = anywhere(s), .threshold = always}, runs);
    INFO("seed " << s << ", " << processes << " processes, disorder " << disorder);
    for (const std::string& t : o.thrown) CHECK(t == expected);
  }
  std::printf("steps that threw: %llu of 48\n", static_cast<unsigned long long>(threw));
  CHECK(threw > 20);
}

namespace {

/// What each process says of a step that `f` makes, `f(process)`.
template <class F>
std::vector<std::string> errors_of(thread_cluster& c, const F& f) {
  std::vector<std::string> said(static_cast<std::size_t>(c.size()));
  c.each([&](thread_cluster::process& here) {
    std::string& text = said[static_cast<std::size_t>(here.rank())];
    try {
      f(here);
      text = "nothing";
    } catch (const std::exception& e) {
      text = e.what();
    } catch (...) {
      text = "something";
    }
  });
  return said;
}
void require_all(const std::vector<std::string>& said, const std::string& part) {
  for (const std::string& s : said) {
    INFO(s);
    CHECK(s.find(part) != std::string::npos);
  }
}

struct pointer {
  int* to = nullptr;
};
void increase(int& v) { ++v; }
void decrease(int& v) { --v; }
struct only_moves {
  only_moves() = default;
  only_moves(only_moves&&) = default;
  only_moves& operator=(only_moves&&) = default;
};

}  // namespace

TEST_CASE("a step that cannot be divided is an error in all processes, which says why", "[partition]") {
  for (const int processes : {1, 3}) {
    thread_cluster c(processes);
    const auto make = [&c](const auto& fork) {
      return errors_of(c, [&fork](thread_cluster::process& here) {
        weft::shared<int> x(1);
        weft::partitioned step(here, [&] { fork(x, here.rank()); });
        step.run(3);
        if (x.get() < 0) throw std::logic_error("negative");
      });
    };
    const auto add = [](int& v) { ++v; };
    require_all(make([](auto& x, int) { weft::fork([](int v) { return v; }, weft::read(x)); }),
                "weft: task 0 ('task') of a partitioned step cannot be repeated");
    require_all(make([&](auto& x, int) {
                  weft::fork(add, weft::update(x));
                  weft::fork({.name = "eventful", .event = true}, add, weft::update(x));
                }),
                "weft: task 1 ('eventful') of a partitioned step cannot be repeated");
    require_all(make([](auto& x, int) {
                  weft::fork([](only_moves, int& v) { ++v; }, only_moves(), weft::update(x));
                }),
                "cannot be repeated");
    require_all(make([&](auto& x, int) { weft::fork([](auto) {}, weft::weak_update(x)); }),
                "weft: task 0 ('task') of a partitioned step cannot be repeated");
    require_all(errors_of(c,
                          [](thread_cluster::process& here) {
                            std::pair<int, int> x;
                            weft::partitioned step(here, [&] {
                              weft::fork([](auto& v) { v.first = 1; }, weft::update(weft::borrow(x)));
                              weft::fork([](int& v) { ++v; }, weft::update(weft::borrow(x.first)));
                            });
                            step.run(2);
                          }),
                "weft: task 1 of a partitioned step uses an object that begins where one of another type "
                "does, which task 0 uses");
    require_all(make([](auto&, int) { throw std::runtime_error("not today"); }), "not today");
    require_all(make([&](auto& x, int) { weft::fork(add, weft::update(x)); }), "nothing");
    require_all(errors_of(c,
                          [](thread_cluster::process& here) {
                            weft::shared<pointer> x;
                            weft::partitioned step(here,
                                                   [&] { weft::fork([](pointer&) {}, weft::update(x)); });
                            step.run(2);
                          }),
                processes == 1 ? "nothing"
                               : "weft: an object of a partitioned step is of a type that cannot be "
                                 "sent to other processes; task 0 ('task') is the first");
    if (processes == 1) continue;
    require_all(make([&](auto& x, int rank) {
                  for (int i = 0; i < 2 + rank; ++i) weft::fork(add, weft::update(x));
                }),
                "weft: the partitioned step has 3 tasks in process 1, and 2 in process 0");
    require_all(
        make([&](auto& x, int rank) {
          weft::fork(add, weft::update(x));
          if (rank == 2)
            weft::fork([](int& v) { --v; }, weft::update(x));
          else
            weft::fork(add, weft::update(x));
        }),
        "weft: task 1 ('task') of the partitioned step is another function in process 2 than in process 0");
    require_all(
        make([](auto& x, int rank) { weft::fork(rank == 1 ? increase : decrease, weft::update(x)); }),
        "weft: task 0 ('task') of the partitioned step is another function in process 1 than in process 0");
    require_all(make([](auto&, int rank) {
                  if (rank == 1) throw std::runtime_error("only here");
                }),
                "only here");
    require_all(errors_of(c,
                          [&add](thread_cluster::process& here) {
                            weft::shared<int> x(1);
                            weft::partitioned step(here, [&] { weft::fork(add, weft::update(x)); });
                            step.run(here.rank() == 2 ? 5 : 4);
                          }),
                "weft: process 2 runs the partitioned step 5 times, and process 0 4 times");
    const auto with = [&](const partition_options& options) {
      return errors_of(c, [&](thread_cluster::process& here) {
        weft::shared<int> x(1);
        weft::partitioned step(here, [&] { weft::fork(add, weft::update(x)); }, options);
        step.run(4);
      });
    };
    require_all(with({.costs = {1, 2}}), "weft: partition_options::costs has 2 costs for 1 tasks");
    require_all(with({.method = [](const auto&, const auto&) { return weft::placement::schedule(); }}),
                "weft: the method of a partitioned step has not placed all tasks");
    require_all(
        with({.method = [](const auto&, const auto&) { return weft::placement::schedule{{7}, {0}, 1}; }}),
        "weft: the method of a partitioned step has placed a task nowhere");
    require_all(with({.method = [](const auto&, const auto&) -> weft::placement::schedule {
                  throw std::logic_error("no idea");
                }}),
                "no idea");
  }
}

TEST_CASE(
    "tasks that use an object twice, read what nobody writes, or write nothing, are as they are serially",
    "[partition]") {
  thread_cluster c(3, {}, {.disorder = 3});
  std::atomic<int> right{0};
  c.each([&](thread_cluster::process& here) {
    weft::shared<int> x(3), sum(0);
    weft::shared<pointer> constant;  // never sent, since it is never written
    weft::shared<std::string> text;
    weft::partitioned step(
        here,
        [&] {
          weft::fork([](int a, int b, int& to) { to += a * b; }, weft::read(x), weft::read(x),
                     weft::update(sum));
          weft::fork([](const int&, const pointer&) {}, weft::read(sum), weft::read(constant));
          weft::fork([](pointer, weft::write<std::string> t) { t = std::string("again"); },
                     weft::read(constant), weft::write(text));
          weft::fork([] {});
          weft::fork({.name = "last", .priority = 3}, [](int& v) { v %= 1000; }, weft::update(sum));
        },
        {.method = anywhere(9), .threshold = always});
    step.run(50);
    right += sum.get() == 450 && x.get() == 3 && text.get() == "again";
    if (here.rank() == 0) right += step.tasks() == 5;
    right += step.placement().size() == 5;
  });
  CHECK(right == 7);
}

TEST_CASE("what the children of a task throw comes before what it throws itself", "[partition]") {
  for (const int processes : {1, 2, 3})
    for (const unsigned workers : {1u, 2u}) {
      thread_cluster c(processes, {.runtime = {.workers = workers}});
      const auto said = errors_of(c, [](thread_cluster::process& here) {
        weft::shared<int> x(0);
        weft::partitioned step(here, [&] {
          weft::fork(
              [](int& v) {
                weft::fork([at = ++v] {
                  if (at == 3) throw std::runtime_error("first");
                });
                if (v == 3) throw std::runtime_error("second");
              },
              weft::update(x));
        });
        step.run(10);
      });
      INFO(processes << " processes, " << workers << " workers");
      require_all(said, "first");
    }
}

TEST_CASE("one process ends a long run where a task throws or requests a stop", "[partition]") {
  for (const unsigned workers : {1u, 2u})
    for (const bool stop : {false, true}) {
      thread_cluster c(1, {.runtime = {.workers = workers}});
      int reached = 0;
      std::uint64_t tasks = 0;
      const auto said = errors_of(c, [&](thread_cluster::process& here) {
        weft::partitioned step(here, [&] {
          weft::fork(
              [stop](int& v) {
                if (++v != 5) return;
                if (stop) return static_cast<void>(weft::this_task::request_stop());
                throw std::runtime_error("the fifth");
              },
              weft::update(weft::borrow(reached)));
        });
        try {
          step.run(UINT64_MAX);
        } catch (const weft::cancelled&) {
          if (!stop) throw;
        }
        tasks = step.counters().tasks;
        if (stop) throw std::runtime_error("the fifth");
      });
      INFO(workers << " workers, " << (stop ? "stopped" : "thrown"));
      if (stop) CHECK(tasks == static_cast<std::uint64_t>(reached));
      CHECK(reached >= 5);
      require_all(said, "the fifth");
    }
}

namespace {

/// Some values of it cannot be written.
struct fragile {
  int value = 0;
  template <class A>
  void serialize(A& a) {
    if (std::is_same_v<A, weft::remote::writer> && value > 1 && value < 100)
      throw std::runtime_error("planned");
    a(value);
  }
};

}  // namespace

TEST_CASE("a value that cannot be packed is an exception of the task that writes it", "[partition]") {
  thread_cluster c(2);
  const auto run = [&c](int iterations) {
    return errors_of(c, [iterations](thread_cluster::process& here) {
      fragile x, y;
      weft::partitioned step(
          here,
          [&] {
            weft::fork([](const fragile& a, fragile& b) { b.value = a.value + 1; },
                       weft::read(weft::borrow(x)), weft::update(weft::borrow(y)));
            weft::fork([](const fragile& a, fragile& b) { b.value = a.value; }, weft::read(weft::borrow(y)),
                       weft::update(weft::borrow(x)));
          },
          {.method = [](const auto&, const auto&) { return weft::placement::schedule{{0, 1}, {0, 1}, 2}; }});
      step.run(static_cast<std::uint64_t>(iterations));
      if (x.value != iterations) throw std::logic_error("wrong");
    });
  };
  require_all(run(1), "nothing");
  require_all(run(2), "planned");
}

TEST_CASE(
    "a value that cannot go to others when a run ends is an exception in all processes, and the next run "
    "goes on",
    "[partition]") {
  const scratch folder(medium::memory);
  thread_cluster c(2);
  std::atomic<int> refused{0};
  const auto said = errors_of(c, [&](thread_cluster::process& here) {
    weft::shared<fragile> x;
    weft::shared<int> y;
    int next = 50;
    weft::partitioned step(
        here,
        [&] {
          weft::fork([&](fragile& f) { f.value = next; }, weft::update(x));
          weft::fork([](int& v) { ++v; }, weft::update(y));
        },
        {.method = [](const auto&, const auto&) { return weft::placement::schedule{{0, 1}, {0, 1}, 2}; },
         .checkpoint = folder / "state"});
    try {
      step.run(3);
    } catch (const std::runtime_error& e) {
      refused += std::string_view(e.what()) == "planned";
    }
    next = 1000;
    step.run(1);
    step.save();
    if (step.resume() != 1 || x.get().value != 1000)
      throw std::logic_error("wrong");  // the other run does not count
  });
  CHECK(refused == 2);
  require_all(said, "nothing");
}

TEST_CASE("a stop that a task requests cancels the step in all processes", "[partition]") {
  for (const std::uint32_t disorder : {0u, 1u, 2u, 3u}) {
    thread_cluster c(3, {}, {.disorder = disorder});
    std::atomic<int> cancelled{0}, went_on{0};
    c.each([&](thread_cluster::process& here) {
      std::vector<int> x(6);
      int stops = 1;
      weft::partitioned step(here,
                             [&] {
                               for (std::size_t i = 0; i < 6; ++i)
                                 weft::fork(
                                     [i](const int& from, const int& stop, int& to) {
                                       to = from + 1;
                                       if (stop != 0 && i == 3 && to > 20) weft::this_task::request_stop();
                                     },
                                     weft::read(weft::borrow(x[(i + 1) % 6])),
                                     weft::read(weft::borrow(stops)), weft::update(weft::borrow(x[i])));
                             },
                             {.method = anywhere(disorder)});
      try {
        step.run(1000000);
      } catch (const weft::cancelled&) {
        ++cancelled;
      }
      x.assign(6, 0);
      stops = 0;
      step.run(5);
      std::vector<int> expected(6);
      for (int k = 0; k < 5; ++k)
        for (std::size_t i = 0; i < 6; ++i) expected[i] = expected[(i + 1) % 6] + 1;
      went_on += x == expected;
    });
    CHECK(cancelled == 3);
    CHECK(went_on == 3);
  }
}

TEST_CASE("any number of processes goes on from a checkpoint", "[partition]") {
  struct jobs {
    int first, second;
  };
  for (const jobs& of : {jobs{1, 3}, jobs{2, 1}, jobs{3, 5}, jobs{4, 2}})
    for (const std::uint32_t disorder : {0u, 7u}) {
      const scratch folder(medium::memory);
      const partition_options options{.method = anywhere(disorder),
                                      .threshold = always,
                                      .checkpoint = folder / "state",
                                      .checkpoint_seconds = 0};
      const step_program p = random_step(static_cast<std::uint32_t>(of.first), 25);
      step_values expected = first_values(p);
      for (int k = 0; k < 60; ++k) interpret(p, expected);
      std::atomic<int> right{0};
      {
        thread_cluster c(of.first, {}, {.disorder = disorder});
        c.each([&](thread_cluster::process& here) {
          step_objects objects(p);
          weft::partitioned step(here, [&] { objects.fork(); }, options);
          step.run(1);
          step.run(9);
          step.save();
          step.save();  // nothing
          step.run(20);
          right += step.counters().checkpoints > 0;
        });
        CHECK(right == of.first);
      }
      thread_cluster c(of.second, {}, {.disorder = disorder});
      right = 0;
      c.each([&](thread_cluster::process& here) {
        step_objects objects(p);
        weft::partitioned step(here, [&] { objects.fork(); }, options);
        const std::uint64_t done = step.resume();
        right += done >= 10 && done < 30;
        step.run(60 - done);
        right += objects.values() == expected;
        step.save();
        right += step.resume() == 60 && objects.values() == expected;
      });
      CHECK(right == 3 * of.second);
      // Files of earlier ones are gone.
      const std::filesystem::directory_iterator all(folder.path());
      CHECK(std::distance(all, {}) == 1 + of.second);
    }
}

TEST_CASE("a step that has thrown goes back to its last checkpoint", "[partition]") {
  for (const int processes : {1, 2, 3}) {
    const scratch folder(medium::memory);
    thread_cluster c(processes);
    std::atomic<int> right{0};
    std::atomic<bool> thrown{false};
    c.each([&](thread_cluster::process& here) {
      weft::shared<int> x(0), y(0);
      weft::partitioned step(here,
                             [&] {
                               weft::fork([](int& v) { ++v; }, weft::update(x));
                               weft::fork(
                                   [&](const int& a, int& b) {
                                     if ((b += a) > 200 && !thrown.exchange(true))
                                       throw std::runtime_error("once");
                                   },
                                   weft::read(x), weft::update(y));
                             },
                             {.checkpoint = folder / "state", .checkpoint_seconds = 0});
      right += step.resume() == 0;
      step.run(5);
      step.save();
      try {
        step.run(45);
      } catch (const std::runtime_error&) {
        ++right;
      }
      try {
        step.save();
      } catch (const weft::error&) {
        ++right;
      }
      const std::uint64_t done = step.resume();
      right += done >= 5 && done < 20 && static_cast<std::uint64_t>(x.get()) == done;
      step.run(50 - done);
      right += x.get() == 50 && y.get() == 50 * 51 / 2;
      step.save();
      right += step.resume() == 50 && x.get() == 50;
    });
    CHECK(right == 6 * processes);
  }
}

TEST_CASE("what a run has done that has thrown does not count in checkpoints", "[partition]") {
  const scratch folder(medium::memory);
  thread_cluster c(2);
  std::atomic<int> right{0};
  c.each([&](thread_cluster::process& here) {
    int x = -10;
    weft::partitioned step(here,
                           [&] {
                             weft::fork(
                                 [](int& v) {
                                   if (++v == 0) throw std::runtime_error("zero");
                                 },
                                 weft::update(weft::borrow(x)));
                           },
                           {.checkpoint = folder / "state"});
    try {
      step.run(20);
    } catch (const std::runtime_error&) {
      ++right;
    }
    x = 0;  // begins anew
    step.run(4);
    step.save();
    right += step.resume() == 4 && x == 4;
  });
  CHECK(right == 4);
}

TEST_CASE("a value that cannot be packed for a checkpoint ends the run in all processes", "[partition]") {
  const scratch folder(medium::memory);
  thread_cluster c(2);
  std::atomic<int> refused{0};
  const auto said = errors_of(c, [&](thread_cluster::process& here) {
    std::vector<fragile> x(2);
    weft::partitioned step(here,
                           [&] {
                             for (auto& v : x)
                               weft::fork([](fragile& f) { ++f.value; }, weft::update(weft::borrow(v)));
                           },
                           {.checkpoint = folder / "state", .checkpoint_seconds = 0});
    try {
      step.run(50);
    } catch (const std::runtime_error& e) {
      // Not only at the end, when the values go to all.
      refused += std::string_view(e.what()) == "planned" && x[0].value < 50 && x[1].value < 50;
    }
    x.assign(2, fragile{1000});
    step.run(20);
    step.save();
    if (step.resume() != 20 || x[0].value != 1020 || x[1].value != 1020) throw std::logic_error("wrong");
  });
  CHECK(refused == 2);
  require_all(said, "nothing");
}

TEST_CASE("values that could not be read from a checkpoint are not saved", "[partition]") {
  const scratch folder(medium::memory);
  thread_cluster c(2);
  std::atomic<int> right{0};
  const auto said = errors_of(c, [&](thread_cluster::process& here) {
    std::vector<long> x(2);
    weft::partitioned step(here,
                           [&] {
                             for (long& v : x)
                               weft::fork([](long& to) { ++to; }, weft::update(weft::borrow(v)));
                           },
                           {.checkpoint = folder / "state"});
    step.run(5);
    step.save();
    step.run(5);
    if (here.rank() == 0)
      for (const auto& f : std::filesystem::directory_iterator(folder.path()))
        if (f.path().filename() != "state") {
          std::string values = slurp(f.path().string());
          values.back() ^= 1;
          spill(f.path().string(), values);
        }
    try {
      step.resume();
    } catch (const weft::error&) {
      ++right;
    }
    step.save();
  });
  CHECK(right == 2);
  require_all(said, "that has thrown cannot be saved");
}

TEST_CASE("what is wrong with a checkpoint is an error in all processes", "[partition]") {
  const scratch folder(medium::memory);
  const std::string state = folder / "state";
  thread_cluster c(2);
  const auto make = [&c](const std::string& at, const auto& first, const auto& then) {
    return errors_of(c, [&](thread_cluster::process& here) {
      auto x = first;
      weft::partitioned step(here,
                             [&] {
                               for (auto& v : x)
                                 weft::fork([](auto& to) { ++to; }, weft::update(weft::borrow(v)));
                             },
                             {.checkpoint = at, .checkpoint_seconds = 0});
      then(step);
    });
  };
  const std::vector<long> two(2);
  const auto resume = [](weft::partitioned& step) { step.resume(); };
  const auto run = [](weft::partitioned& step) {
    step.run(20);
    step.save();
  };
  require_all(make(folder / "missing/state", two, run), "weft: cannot open '");
  require_all(make("", two, resume), "no checkpoints without partition_options::checkpoint");
  require_all(make(state, two, resume), "nothing");
  require_all(make(state, two, run), "nothing");
  require_all(make(state, two, resume), "nothing");
  require_all(make(state, std::vector<long>(3), resume), "is a checkpoint of another step");
  require_all(make(state, std::vector<int>(2), resume), "is a checkpoint of another step");
  const std::string whole = slurp(state);
  spill(state, "something else");
  require_all(make(state, two, resume), "is not a checkpoint of a partitioned step");
  for (const std::size_t size : {whole.size() - 1, whole.size() / 2}) {
    spill(state, whole.substr(0, size));
    require_all(make(state, two, resume), "is damaged");
  }
  spill(state, whole);
  std::string part;
  for (const auto& f : std::filesystem::directory_iterator(folder.path()))
    if (f.path() != state) part = f.path().string();
  std::string values = slurp(part);
  values.back() ^= 1;
  spill(part, values);
  require_all(make(state, two, resume), "is damaged: its size or its checksum is wrong");
  spill(part, values + "more");
  require_all(make(state, two, resume), "is damaged");
  std::filesystem::remove(part);
  require_all(make(state, two, resume), "No such file");
  // A directory that vanishes.
  std::filesystem::create_directory(folder / "gone");
  require_all(make(folder / "gone/state", two,
                   [&](weft::partitioned& step) {
                     step.run(1);
                     std::filesystem::remove_all(folder / "gone");
                     step.save();
                   }),
              "weft: cannot create '");
}

TEST_CASE("tasks that turn out to be longer than others are spread", "[partition]") {
  thread_cluster c(2);
  std::vector<std::vector<unsigned>> placed(2);
  std::atomic<std::uint64_t> redistributions{0};
  c.each([&](thread_cluster::process& here) {
    std::vector<std::unique_ptr<weft::shared<int>>> x;
    for (int i = 0; i < 8; ++i) x.push_back(std::make_unique<weft::shared<int>>(0));
    weft::partitioned step(here, [&] {
      for (std::size_t i = 0; i < 8; ++i)
        weft::fork(
            [i](int& v) {
              ++v;
              if (i < 4) std::this_thread::sleep_for(std::chrono::milliseconds(5));
            },
            weft::update(*x[i]));
    });
    step.run(10);
    placed[static_cast<std::size_t>(here.rank())] = step.placement();
    redistributions += step.counters().redistributions;
    for (auto& each : x) redistributions += each->get() == 10 ? 0 : 100;
  });
  CHECK(placed[0] == placed[1]);
  CHECK(placed[0][0] == 0);
  CHECK(placed[0][3] == 1);  // at first tasks 0 to 3 were in process 0
  CHECK(redistributions >= 2);
  CHECK(redistributions < 100);
}

TEST_CASE("a damaged message ends the step in all processes", "[partition]") {
  for (std::uint64_t which = 1; which <= 30; which += 1 + which / 8) {
    thread_cluster c(2, {}, {.damaged = which});
    const auto said = errors_of(c, [](thread_cluster::process& here) {
      weft::shared<int> x(0), y(0);
      weft::partitioned step(here, [&] {
        weft::fork([](const int& a, int& b) { b = a + 1; }, weft::read(x), weft::update(y));
        weft::fork([](const int& a, int& b) { b = a + 1; }, weft::read(y), weft::update(x));
      });
      step.run(40);
    });
    require_all(said, "is damaged");
  }
}

TEST_CASE("the bodies of a step are in the traces of their processes", "[partition]") {
  thread_cluster c(2, {.runtime = {.trace = "/dev/null"}});
  std::atomic<int> right{0};
  c.each([&](thread_cluster::process& here) {
    weft::shared<int> x(0);
    weft::partitioned step(here, [&] {
      for (int i = 0; i < 10; ++i) weft::fork([](int& v) { ++v; }, weft::update(x));
    });
    step.run(10);
    right += x.get() == 100;
  });
  CHECK(right == 2);
}

TEST_CASE("a thread cannot leave its process in a step", "[partition]") {
  const std::string error =
      "weft: a thread can go to another process during cluster::run only, not in a partitioned step";
  thread_cluster c(2);
  std::vector<std::string> in_step(2);
  c.each([&](thread_cluster::process& here) {
    weft::shared<int> x{0};
    weft::partitioned step(
        here, [&x] { weft::fork([](int&) { weft::spawn(weft::migratable, leaver{}); }, weft::update(x)); });
    try {
      step.run();
    } catch (const std::runtime_error& e) {
      in_step[static_cast<std::size_t>(here.rank())] = e.what();
    }
  });
  for (const std::string& text : in_step) CHECK(text == error);
  CHECK_NOTHROW(c.run([] { weft::spawn(weft::migratable, leaver{}); }));
}
