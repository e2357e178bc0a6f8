// SPDX-License-Identifier: BSL-1.0
// The machine behind simulate(): who is there, who can go on, and the dice.
#include "simulate.hpp"

#include "support/random.hpp"

#include <weft/context/fiber.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace simulation {
namespace {

using weft::context::fiber;

constexpr std::uint64_t never = UINT64_MAX;

/// One simulated thread.
struct flow {
  unsigned number = 0;
  std::optional<fiber> context{};
  std::function<void()> body{};
  void* current = nullptr;  // the library's thread-local pointer
  bool ended = false;
  const void* waits_for = nullptr;  // null: it can go on
  std::uint64_t until = never;
  unsigned weight = 1;  // how often it is chosen

  bool ready() const { return !ended && waits_for == nullptr; }
};

struct machine {
  machine(std::uint64_t seed_of_world, std::uint64_t limit_of_points)
      : seed(seed_of_world), dice(seed_of_world), limit(limit_of_points) {
    // Worlds differ: one where turns are short or long, time passes fast or slowly, some threads starve.
    turn = std::uint64_t{1} << dice.below(8);
    tick = std::uint64_t{1} << dice.below(9);
    skewed = dice.one_in(2);
    add({});
    running = flows.front().get();
    running->context.emplace();
    running->current = weft::context::current();
  }

  flow& add(std::function<void()> body) {
    auto f = std::make_unique<flow>();
    f->number = static_cast<unsigned>(flows.size());
    f->body = std::move(body);
    f->weight = skewed ? 1u << dice.below(7) : 1;
    f->current = &weft::context::outside;
    flows.push_back(std::move(f));
    return *flows.back();
  }

  /// Somebody other than the caller, if anybody can go on.
  flow* other() {
    unsigned sum = 0;
    for (const auto& f : flows)
      if (f.get() != running && f->ready()) sum += f->weight;
    if (sum == 0) return nullptr;
    unsigned at = static_cast<unsigned>(dice.below(sum));
    for (const auto& f : flows) {
      if (f.get() == running || !f->ready()) continue;
      if (at < f->weight) return f.get();
      at -= f->weight;
    }
    return nullptr;
  }

  void pass() {
    ++result.points;
    time += tick;
    if (result.points > limit) give_up("no end in sight");
    if (time >= alarm) ring();
    note(running->number);
  }
  /// Ends the waits whose time is over.
  void ring() {
    alarm = never;
    for (const auto& f : flows) {
      if (f->until <= time) go_on(*f);
      alarm = std::min(alarm, f->until);
    }
  }
  static void go_on(flow& f) {
    f.waits_for = nullptr;
    f.until = never;
  }
  void note(std::uint64_t what) {
    result.hash = (result.hash ^ what) * 0x9E3779B97F4A7C15ull;
    result.hash ^= result.hash >> 29;
  }

  /// Leaves the running thread, which may wait or have ended.
  void leave() {
    flow* next = other();
    if (next == nullptr && running->ready()) return;
    while (next == nullptr) {  // all wait: time passes
      if (alarm == never) give_up("nobody can go on");
      time = std::max(time, alarm);
      ring();
      if (running->ready()) return;
      next = other();
    }
    switch_to(*next);
  }
  void switch_to(flow& next) {
    ++result.switches;
    flow& before = *running;
    before.current = weft::context::current();
    running = &next;
    weft::context::set_current(next.current);
    fiber::switch_to(*before.context, *next.context);
  }

  [[noreturn]] void give_up(const char* why) {
    std::fprintf(stderr, "simulation: %s, seed %llu, after %llu points\n", why,
                 static_cast<unsigned long long>(seed), static_cast<unsigned long long>(result.points));
    for (const auto& f : flows)
      std::fprintf(stderr, "  thread %u %s %p\n", f->number,
                   f->ended                  ? "has ended"
                   : f->waits_for != nullptr ? "waits for"
                   : f.get() == running      ? "runs"
                                             : "can go on",
                   f->waits_for);
    std::abort();
  }

  const std::uint64_t seed;
  weft_test::random dice;
  const std::uint64_t limit;
  std::uint64_t turn = 1, tick = 1, time = 1'000'000, alarm = never;
  bool skewed = false;
  std::vector<std::unique_ptr<flow>> flows{};
  flow* running = nullptr;
  trace result{};
};

machine* here = nullptr;

/// Stacks are kept: a seed needs several, and there are thousands of seeds.
std::vector<weft::context::stack> stacks;

weft::context::stack take_stack() {
  if (stacks.empty()) {
    machine* const paused = std::exchange(here, nullptr);  // no marked points in what only some worlds do
    stacks.emplace_back(1u << 18);
    here = paused;
  }
  weft::context::stack s = std::move(stacks.back());
  stacks.pop_back();
  return s;
}

void begin_flow(void* self) noexcept {
  flow& f = *static_cast<flow*>(self);
  f.body();
  f.body = nullptr;
  f.ended = true;
  wake(&f, 1 << 30);
  here->leave();
  std::abort();  // nobody goes on with it
}

}  // namespace

void point() noexcept {
  if (here == nullptr) return;
  machine& m = *here;
  m.pass();
  if (m.flows.size() > 1 && m.dice.below(m.turn) == 0) m.leave();
}

void give_way() noexcept {
  if (here == nullptr) return;
  here->pass();
  here->leave();
}

std::uint64_t now() noexcept { return here != nullptr ? here->time : 0; }

unsigned start(std::function<void()> body) {
  flow& f = here->add(std::move(body));
  f.context.emplace(take_stack(), &begin_flow, &f);
  return f.number;
}

void join(unsigned thread) noexcept {
  flow& f = *here->flows[thread];
  while (!f.ended) wait(&f);
  stacks.push_back(f.context->release_stack());
  f.context.reset();
}

void wait(const void* word) noexcept { wait_until(word, never); }

void wait_until(const void* word, std::uint64_t end) noexcept {
  here->running->waits_for = word;
  here->running->until = end;
  here->alarm = std::min(here->alarm, end);
  here->leave();
}

void wake(const void* word, int count) noexcept {
  if (here == nullptr) return;
  machine& m = *here;
  const std::size_t n = m.flows.size(), first = m.dice.below(n);
  for (std::size_t i = 0; i < n && count > 0; ++i) {
    flow& f = *m.flows[(first + i) % n];
    if (f.waits_for != word) continue;
    machine::go_on(f);
    --count;
  }
}

bool spurious() noexcept { return here != nullptr && here->dice.one_in(16); }

trace simulate(std::uint64_t seed, const std::function<void()>& body, std::uint64_t limit) {
  machine m(seed, limit);
  here = &m;
  body();
  here = nullptr;
  for (const auto& f : m.flows)
    if (f.get() != m.running && f->context) {
      std::fprintf(stderr, "simulation: thread %u was not joined\n", f->number);
      std::abort();
    }
  return m.result;
}

}  // namespace simulation
