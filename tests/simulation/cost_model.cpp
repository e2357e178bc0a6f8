// SPDX-License-Identifier: BSL-1.0
// The machine behind run_with_prices(): each thread has a clock of its own, and the one that is behind all
// others goes on.
#include "cost_model.hpp"

#include "machine.hpp"

#include <algorithm>

namespace simulation {
namespace {

using picoseconds = std::uint64_t;

constexpr picoseconds in_picoseconds(double nanoseconds) {
  return static_cast<picoseconds>(nanoseconds * 1'000);
}

/// Who has a cache line: all whose bit is set; one alone may write it.
struct line {
  std::uintptr_t number = 0;
  std::uint64_t holders = 0;
  picoseconds busy_until = 0;
};

struct priced_machine;
priced_machine* priced = nullptr;

struct priced_machine final : machine {
  explicit priced_machine(const prices& p)
      : hit(in_picoseconds(p.hit)),
        exchange(in_picoseconds(p.exchange)),
        fence(in_picoseconds(p.fence)),
        transfer(in_picoseconds(p.transfer)),
        occupancy(in_picoseconds(p.occupancy)),
        clock(in_picoseconds(p.clock)),
        pause(in_picoseconds(p.pause)),
        yield(in_picoseconds(p.yield)),
        process_fence(in_picoseconds(p.process_fence)),
        interrupt(in_picoseconds(p.interrupt)),
        sleep(in_picoseconds(p.sleep)),
        wake_call(in_picoseconds(p.wake)),
        wake_up(in_picoseconds(p.wake_up)),
        lines(1u << 18) {
    running->clock = in_picoseconds(1'000'000'000);  // nothing is at time 0 for a program
    result.of_thread.resize(flows.size());
    priced = this;
  }
  ~priced_machine() override { priced = nullptr; }

  flow& add(std::function<void()> body) override {
    flow& f = machine::add(std::move(body));
    result.of_thread.resize(flows.size());
    f.clock = running->clock + wake_up;
    horizon = std::min(horizon, f.clock);
    return f;
  }

  void point(action what, const void* place) override {
    ++points;
    ++result.of_thread[running->number].operations;
    picoseconds& time = running->clock;
    if (place != nullptr) time = fetch(what, place);
    switch (what) {
      case action::load:
      case action::store:
        time += hit;
        break;
      case action::exchange:
        time += exchange;
        break;
      case action::fence:
        time += fence;
        break;
      case action::clock:
        time += clock;
        break;
    }
    take_turns();
  }
  void give_way(bool long_time) override { compute(long_time ? yield : pause); }
  void fence_all() override {
    ++result.process_fences;
    for (const auto& f : flows)
      if (f->ready() && f.get() != running) f->clock += interrupt;
    horizon = 0;
    compute(process_fence);
  }
  std::uint64_t now() const override { return running->clock / 1'000; }
  bool spurious() override { return false; }

  void wait_until(const void* word, std::uint64_t end) override {
    ++result.sleeps;
    running->clock += sleep;
    running->waits_for = word;
    running->until = end == never ? never : end * 1'000;
    leave();
  }
  void wake(const void* word, int count) override {
    bool some = false;
    for (std::size_t i = 0; i < flows.size() && count > 0; ++i) {
      flow& f = *flows[i];
      if (f.waits_for != word) continue;
      f.go_on();
      f.clock = std::max(f.clock, running->clock + wake_call + wake_up);
      horizon = std::min(horizon, f.clock);
      some = true;
      --count;
    }
    if (some) running->clock += wake_call;
  }

  void leave() override {
    flow* first = nullptr;
    picoseconds earliest = never;
    horizon = never;
    for (const auto& f : flows) {
      const picoseconds t = f->ready() ? f->clock : f->ended ? never : std::max(f->until, f->clock);
      if (t < earliest) {
        horizon = earliest;
        earliest = t;
        first = f.get();
      } else {
        horizon = std::min(horizon, t);
      }
    }
    if (first == nullptr) give_up("nobody can go on", 0);
    if (!first->ready()) {
      first->go_on();
      first->clock = earliest + wake_up;
    }
    if (first != running) switch_to(*first);
  }

  void compute(picoseconds length) {
    running->clock += length;
    take_turns();
  }
  double time_here() const { return static_cast<double>(running->clock) / 1'000; }
  unsigned thread_here() const { return running->number; }

  bill result{};
  bill bill_of_all() {
    result.points = points;
    result.switches = switches;
    return result;
  }

  /// What a thread may be ahead of the others: less than a line takes to any of them.
  static constexpr picoseconds lead = 20'000;

  void take_turns() {
    if (running->clock > horizon && running->clock - horizon > lead) leave();
  }

  /// *Returns*: when the line is in the own cache.
  picoseconds fetch(action what, const void* place) {
    line& l = line_of(reinterpret_cast<std::uintptr_t>(place) >> 6);
    const std::uint64_t own = std::uint64_t{1} << running->number;
    if (l.holders == 0) l.holders = own;  // nobody has had it yet
    const bool alone = what != action::load;
    const picoseconds time = running->clock;
    if (alone ? l.holders == own : (l.holders & own) != 0) return time;
    ++result.transfers;
    ++result.of_thread[running->number].transfers;
    l.holders = alone ? own : l.holders | own;
    const picoseconds start = std::max(time, l.busy_until);
    l.busy_until = start + (alone ? transfer : occupancy);
    return start + transfer;
  }
  line& line_of(std::uintptr_t number) {
    if (2 * known_lines > lines.size()) {  // as if all caches were flushed
      lines.assign(lines.size(), {});
      known_lines = 0;
    }
    for (std::size_t i = (number * 0x9E3779B97F4A7C15ull) >> 40;; ++i) {
      line& l = lines[i % lines.size()];
      if (l.number == number) return l;
      if (l.number != 0) continue;
      ++known_lines;
      l.number = number;
      return l;
    }
  }

  const picoseconds hit, exchange, fence, transfer, occupancy, clock, pause, yield, process_fence, interrupt,
      sleep, wake_call, wake_up;
  picoseconds horizon = never;  // when another thread wants to go on
  std::vector<line> lines;
  std::size_t known_lines = 0;
};

}  // namespace

bill run_with_prices(const std::function<void()>& body, const prices& p) {
  priced_machine m(p);
  m.run(body);
  return m.bill_of_all();
}

void work(double nanoseconds) noexcept {
  if (priced != nullptr) priced->compute(in_picoseconds(nanoseconds));
}
double time_here() noexcept { return priced != nullptr ? priced->time_here() : 0; }
unsigned thread_here() noexcept { return priced->thread_here(); }
bill bill_here() { return priced->bill_of_all(); }

}  // namespace simulation
