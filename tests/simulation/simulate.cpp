// SPDX-License-Identifier: BSL-1.0
// The machine behind simulate(): a seed throws the dice for who goes on.
#include "simulate.hpp"

#include "machine.hpp"
#include "support/random.hpp"

#include <algorithm>

namespace simulation {
namespace {

struct seeded_machine final : machine {
  seeded_machine(std::uint64_t seed_of_world, std::uint64_t limit_of_points)
      : seed(seed_of_world), dice(seed_of_world), limit(limit_of_points) {
    // Worlds differ: one where turns are short or long, time passes fast or slowly, some threads starve, or
    // some are interrupted, wherever they are, until others have done very much.
    turn = std::uint64_t{1} << dice.below(8);
    tick = std::uint64_t{1} << dice.below(9);
    skewed = dice.one_in(2);
    interrupts = weft_test::random(seed ^ 0x9E3779B97F4A7C15ull).one_in(4);
    choose_weight(*running);
  }

  trace result() const { return {points, switches, hash}; }

  flow& add(std::function<void()> body) override {
    flow& f = machine::add(std::move(body));
    choose_weight(f);
    return f;
  }

  void point(action, const void*) override {
    pass();
    if (flows.size() < 2) return;
    const bool interrupted = interrupts && dice.below(512) == 0;
    if (interrupted) running->away_until = points + 4096;
    if (interrupted || dice.below(turn) == 0) leave();
  }
  void give_way(bool) override {
    pass();
    leave();
  }
  void fence_all() override { point(action::fence, nullptr); }
  std::uint64_t now() const override { return time; }
  bool spurious() override { return dice.one_in(16); }

  void wait_until(const void* word, std::uint64_t end) override {
    running->waits_for = word;
    running->until = end;
    alarm = std::min(alarm, end);
    leave();
  }
  void wake(const void* word, int count) override {
    const std::size_t n = flows.size(), first = dice.below(n);
    for (std::size_t i = 0; i < n && count > 0; ++i) {
      flow& f = *flows[(first + i) % n];
      if (f.waits_for != word) continue;
      f.go_on();
      --count;
    }
  }

  void leave() override {
    flow* next = other();
    if (next == nullptr && running->ready()) return;
    while (next == nullptr) {  // all wait: time passes
      if (alarm == never) give_up("nobody can go on", seed);
      time = std::max(time, alarm);
      ring();
      if (running->ready()) return;
      next = other();
    }
    switch_to(*next);
  }

  void choose_weight(flow& f) { f.weight = skewed ? 1u << dice.below(7) : 1; }

  /// Somebody other than the caller, if anybody can go on; who is away, if nobody else can.
  flow* other() {
    flow* const next = other(points);
    return next != nullptr || running->ready() ? next : other(never);
  }
  /// Somebody who is not away any more at that point.
  flow* other(std::uint64_t at_point) {
    const auto can = [&](const flow& f) { return &f != running && f.ready() && f.away_until <= at_point; };
    unsigned sum = 0;
    for (const auto& f : flows)
      if (can(*f)) sum += f->weight;
    if (sum == 0) return nullptr;
    unsigned at = static_cast<unsigned>(dice.below(sum));
    for (const auto& f : flows) {
      if (!can(*f)) continue;
      if (at < f->weight) return f.get();
      at -= f->weight;
    }
    return nullptr;
  }

  void pass() {
    ++points;
    time += tick;
    if (points > limit) give_up("no end in sight", seed);
    if (time >= alarm) ring();
    note(running->number);
  }
  /// Ends the waits whose time is over.
  void ring() {
    alarm = never;
    for (const auto& f : flows) {
      if (f->until <= time) f->go_on();
      alarm = std::min(alarm, f->until);
    }
  }
  void note(std::uint64_t what) {
    hash = (hash ^ what) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }

  const std::uint64_t seed;
  weft_test::random dice;
  const std::uint64_t limit;
  std::uint64_t turn = 1, tick = 1, time = 1'000'000, alarm = never, hash = 0;
  bool skewed = false, interrupts = false;
};

}  // namespace

trace simulate(std::uint64_t seed, const std::function<void()>& body, std::uint64_t limit) {
  seeded_machine m(seed, limit);
  m.run(body);
  return m.result();
}

}  // namespace simulation
