// SPDX-License-Identifier: BSL-1.0
// What a second worker costs a program whose tasks are too short for it: everything is counted on a simulated
// machine, and compared with limits, so that a change that pulls fine-grained frames apart is seen.
#include "cost_model.hpp"
#include "support/catch.hpp"

#include <weft/weft.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

using simulation::work;

namespace {

constexpr std::size_t objects = 10'000;
constexpr int machines = 12;

/// What a program took, and what happened meanwhile.
struct costs {
  double time = 0;              ///< nanoseconds per task
  double operations = 0;        ///< per task: what its owner executes
  double owner = 0, thief = 0;  ///< lines that came to the owner, and to all others
  double steals = 0, fences = 0;
  long begun = 0;  ///< bodies that the owner had run when it had forked all
};
constexpr double costs::* all_costs[] = {&costs::time,  &costs::operations, &costs::owner,
                                         &costs::thief, &costs::steals,     &costs::fences};

/// With `deferred`, no task runs inside fork; with `pending`, moreover, a frame holds all its tasks, however
/// many.
enum class mode { as_forked, deferred, pending };

unsigned owner = 0;       // the thread that begins the program,
long begun_by_owner = 0;  // and how many bodies it has run

/// What each body does besides.
void compute() {
  if (simulation::thread_here() == owner) ++begun_by_owner;
  work(10);
}

struct shape {
  const char* name;
  void (*fork_all)(std::vector<long>&);
  double tasks;
};

costs run(unsigned workers, double transfer, mode how, const shape& s, std::vector<long>& of) {
  simulation::prices p;
  p.transfer = transfer;
  costs c;
  simulation::run_with_prices(
      [&] {
        weft::runtime_options o;
        o.workers = workers;
        o.inlining = how == mode::as_forked;
        if (how == mode::pending) o.cap = 2 * objects;
        weft::runtime rt(o);
        simulation::bill before, after;
        rt.run([&] {
          owner = simulation::thread_here();
          begun_by_owner = 0;
          before = simulation::bill_here();
          const double start = simulation::time_here();
          s.fork_all(of);
          c.begun = begun_by_owner;
          weft::sync();
          c.time = (simulation::time_here() - start) / s.tasks;
          after = simulation::bill_here();
        });
        const auto more = [](std::uint64_t a, std::uint64_t b) { return static_cast<double>(a - b); };
        for (unsigned i = 0; i < before.of_thread.size(); ++i)
          (i == owner ? c.owner : c.thief) +=
              more(after.of_thread[i].transfers, before.of_thread[i].transfers);
        c.operations = more(after.of_thread[owner].operations, before.of_thread[owner].operations) / s.tasks;
        c.fences = more(after.process_fences, before.process_fences);
        c.steals = static_cast<double>(rt.counters().steals);
      },
      p);
  return c;
}

void independent(std::vector<long>& of) {
  for (long& v : of) weft::fork([](long& x) { compute(), ++x; }, weft::update(weft::borrow(v)));
}

void chain(std::vector<long>& of) {
  for (std::size_t i = 0; i < of.size(); ++i)
    weft::fork([](long& x) { compute(), ++x; }, weft::update(weft::borrow(of[0])));
}

constexpr std::size_t side = 100;

void wavefront(std::vector<long>& of) {
  for (std::size_t i = side; i < of.size(); ++i)
    if (i % side != 0)
      weft::fork([](const long& up, const long& left, long& own) { compute(), own = up ^ left; },
                 weft::read(weft::borrow(of[i - side])), weft::read(weft::borrow(of[i - 1])),
                 weft::update(weft::borrow(of[i])));
}

/// Each task reads what three earlier ones have written.
void random_graph(std::vector<long>& of) {
  std::uint64_t state = 1;
  const auto earlier = [&](std::size_t than) -> const long& {
    state = state * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
    return of[(state >> 33) % than];
  };
  for (std::size_t i = 1; i < of.size(); ++i)
    weft::fork(
        [](const long& a, const long& b, const long& c, long& own) { compute(), own = a + (b ^ c) + 1; },
        weft::read(weft::borrow(earlier(i))), weft::read(weft::borrow(earlier(i))),
        weft::read(weft::borrow(earlier(i))), weft::update(weft::borrow(of[i])));
}

/// Tasks each of which forks nine that update one object in turn.
void tiny_frames(std::vector<long>& of) {
  for (std::size_t i = 0; i < of.size() / 10; ++i)
    weft::fork([&x = of[i]] {
      compute();
      for (int k = 0; k < 9; ++k)
        weft::fork([](long& y) { compute(), y = 3 * y + 1; }, weft::update(weft::borrow(x)));
    });
}

void fib(long n, weft::write<long> r) {
  compute();
  if (n < 2) {
    r = n;
    return;
  }
  weft::shared<long> a, b;
  weft::fork(fib, n - 1, a);
  weft::fork(fib, n - 2, b);
  weft::fork([](const long& x, const long& y, long& z) { compute(), z = x + y; }, weft::read(a),
             weft::read(b), weft::write(r));
}
void recursion(std::vector<long>& of) {
  weft::fork([&r = of[0]] {
    weft::shared<long> result;
    weft::fork(fib, 18, result);
    weft::sync();
    r = result.get();
  });
}

costs median_of(const std::vector<costs>& all) {
  costs c;
  for (double costs::* const m : all_costs) {
    std::vector<double> v;
    for (const costs& one : all) v.push_back(one.*m);
    std::sort(v.begin(), v.end());
    c.*m = v[v.size() / 2];
  }
  return c;
}

/// Runs it on machines that differ a little. *Returns*: the median of each cost.
costs median(const shape& s, mode how, unsigned workers) {
  constexpr const char* names[] = {"as forked", "all deferred", "all pending first"};
  std::vector<long> alone(objects, 1);
  run(1, 100, mode::as_forked, s, alone);
  std::vector<costs> all;
  for (int i = 0; i < (workers == 1 ? 1 : machines); ++i) {
    std::vector<long> of(objects, 1);
    all.push_back(run(workers, 100 + 2 * i, how, s, of));
    CHECK(of == alone);
    if (how == mode::pending) CHECK(all.back().begun == 0);
  }
  const costs c = median_of(all);
  const auto per = [&](double count) { return 1'000 * count / s.tasks; };
  std::printf(
      "%s, %s, %u workers: per task %.1f ns, %.1f operations of its owner; per 1,000 tasks lines to owner "
      "%.1f, to thieves %.1f, steals %.1f, process-wide fences %.2f\n",
      s.name, names[static_cast<int>(how)], workers, c.time, c.operations, per(c.owner), per(c.thief),
      per(c.steals), per(c.fences));
  return c;
}

constexpr shape independent_shape{"independent", independent, 10'000};
constexpr shape chain_shape{"chain", chain, 10'000};
constexpr shape wavefront_shape{"wavefront", wavefront, 99 * 99};
constexpr shape random_graph_shape{"random graph", random_graph, 9'999};
constexpr shape tiny_frames_shape{"tiny frames", tiny_frames, 10'000};
constexpr shape recursion_shape{"fib", recursion, 12'541};

const struct {
  const shape& what;
  mode how;
} programs[] = {{independent_shape, mode::as_forked},  {independent_shape, mode::pending},
                {chain_shape, mode::as_forked},        {chain_shape, mode::pending},
                {wavefront_shape, mode::as_forked},    {wavefront_shape, mode::pending},
                {random_graph_shape, mode::as_forked}, {random_graph_shape, mode::pending},
                {tiny_frames_shape, mode::as_forked},  {tiny_frames_shape, mode::pending},
                {recursion_shape, mode::as_forked},    {recursion_shape, mode::deferred}};

}  // namespace

TEST_CASE("frames of tiny tasks are left to their owner") {
  // For medians, per task but for steals and fences, which are per thousand. What is seen with GCC and Clang,
  // -O1 to -O3, is up to three quarters of the limits of time and operations, a third of the others; it
  // depends on where objects lie. A frame that is pulled apart costs some lines and a steal for each task.
  const struct {
    unsigned workers;
    costs limit;
  } rows[] = {{2, {.time = 40, .operations = 18, .owner = 0.2, .thief = 0.3, .steals = 100, .fences = 1}},
              {16, {.time = 160, .operations = 40, .owner = 0.5, .thief = 6, .steals = 300, .fences = 12}}};
  for (const auto& [workers, limit] : rows)
    for (const auto& [what, how] : programs) {
      const costs alone = median(what, how, 1);
      const costs c = median(what, how, workers);
      CAPTURE(what.name, static_cast<int>(how), workers);
      CHECK(alone.owner + alone.thief <= 10);
      CHECK(c.time <= limit.time);
      CHECK(c.operations <= limit.operations);
      CHECK(c.owner <= limit.owner * what.tasks);
      CHECK(c.thief <= limit.thief * what.tasks);
      CHECK(c.steals <= limit.steals * what.tasks / 1'000);
      CHECK(c.fences <= limit.fences * what.tasks / 1'000);
      CHECK(c.thief > 0);  // others have looked
    }
}
