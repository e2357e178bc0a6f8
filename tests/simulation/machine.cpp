// SPDX-License-Identifier: BSL-1.0
// The threads of simulated machines, and the way from the platform to the machine that runs.
#include "machine.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace simulation {
namespace {

machine* here = nullptr;

/// Stacks are kept: a machine needs several, and there are thousands of machines.
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

}  // namespace

machine::machine() {
  running = &machine::add({});
  running->context.emplace();
  running->current = weft::context::current();
}

flow& machine::add(std::function<void()> body) {
  auto f = std::make_unique<flow>();
  f->number = static_cast<unsigned>(flows.size());
  f->body = std::move(body);
  f->current = &weft::context::outside;
  flows.push_back(std::move(f));
  return *flows.back();
}

void machine::start(flow& f) { f.context.emplace(take_stack(), &begin_flow, &f); }

void machine::join(unsigned thread) {
  flow& f = *flows[thread];
  while (!f.ended) wait_until(&f, never);
  stacks.push_back(f.context->release_stack());
  f.context.reset();
}

void machine::begin_flow(void* self) noexcept {
  flow& f = *static_cast<flow*>(self);
  f.body();
  f.body = nullptr;
  f.ended = true;
  here->wake(&f, 1 << 30);
  here->leave();
  std::abort();  // nobody goes on with it
}

void machine::switch_to(flow& next) {
  ++switches;
  flow& before = *running;
  before.current = weft::context::current();
  running = &next;
  weft::context::set_current(next.current);
  weft::context::fiber::switch_to(*before.context, *next.context);
}

void machine::run(const std::function<void()>& body) {
  here = this;
  body();
  here = nullptr;
  for (const auto& f : flows)
    if (f.get() != running && f->context) {
      std::fprintf(stderr, "simulation: thread %u was not joined\n", f->number);
      std::abort();
    }
}

void machine::give_up(const char* why, std::uint64_t seed) const {
  std::fprintf(stderr, "simulation: %s, seed %llu, after %llu points\n", why,
               static_cast<unsigned long long>(seed), static_cast<unsigned long long>(points));
  for (const auto& f : flows)
    std::fprintf(stderr, "  thread %u %s %p\n", f->number,
                 f->ended                  ? "has ended"
                 : f->waits_for != nullptr ? "waits for"
                 : f.get() == running      ? "runs"
                                           : "can go on",
                 f->waits_for);
  std::abort();
}

void point(action what, const void* place) noexcept {
  if (here != nullptr) here->point(what, place);
}
void give_way(bool long_time) noexcept {
  if (here != nullptr) here->give_way(long_time);
}
void fence_all() noexcept {
  if (here != nullptr) here->fence_all();
}
std::uint64_t now() noexcept { return here != nullptr ? here->now() : 0; }

unsigned start(std::function<void()> body) {
  flow& f = here->add(std::move(body));
  here->start(f);
  return f.number;
}
void join(unsigned thread) noexcept { here->join(thread); }

void wait(const void* word) noexcept { here->wait_until(word, never); }
void wait_until(const void* word, std::uint64_t end) noexcept { here->wait_until(word, end); }
void wake(const void* word, int count) noexcept {
  if (here != nullptr) here->wake(word, count);
}
bool spurious() noexcept { return here != nullptr && here->spurious(); }

}  // namespace simulation
