// SPDX-License-Identifier: BSL-1.0
// The machine behind run_in_virtual_time(): each thread has a clock of its own, and the one that is behind
// all others goes on.
#include "virtual_time.hpp"

#include "machine.hpp"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <vector>

namespace simulation {
namespace {

using picoseconds = std::uint64_t;

/// Prices, of the order of those in cost_model.hpp; a line that another processor may have is never far away.
constexpr picoseconds plain = 500, exchange = 10'000, fence = 8'000, look_at_clock = 20'000, pause = 40'000,
                      yield = 1'000'000, process_fence = 5'000'000, begin_to_sleep = 1'000'000,
                      wake_call = 2'000'000, wake_up = 10'000'000;
/// What a thread may be ahead of the others: less than a message takes.
constexpr picoseconds lead = 500'000;

class clocked_machine;
clocked_machine* clocked = nullptr;

class clocked_machine final : public machine {
 public:
  explicit clocked_machine(std::uint64_t limit) : limit_(limit * 1'000) {
    running->clock = 1'000'000'000'000;  // nothing is at time 0 for a program
    clocked = this;
  }
  ~clocked_machine() override { clocked = nullptr; }

  flow& add(std::function<void()> body) override {
    flow& f = machine::add(std::move(body));
    f.clock = running->clock + wake_up;
    plan_(f, f.clock);
    return f;
  }

  void point(action what, const void*) override {
    ++points;
    switch (what) {
      case action::load:
      case action::store:
        return compute(plain);
      case action::exchange:
        return compute(exchange);
      case action::fence:
        return compute(fence);
      case action::clock:
        return compute(look_at_clock);
    }
  }
  void give_way(bool long_time) override { compute(long_time ? yield : pause); }
  void fence_all() override { compute(process_fence); }
  std::uint64_t now() const override { return running->clock / 1'000; }
  bool spurious() override { return false; }

  void wait_until(const void* word, std::uint64_t end) override {
    running->clock += begin_to_sleep;
    wait_(word, end == never ? never : end * 1'000 + wake_up);
  }
  void poll_until(const void* word, std::uint64_t end) { wait_(word, end * 1'000); }
  void wake(const void* word, int count) override {
    const auto found = waiting_.find(word);
    if (found == waiting_.end()) return;
    std::vector<flow*>& all = found->second;
    const auto some = std::min(all.size(), static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < some; ++i) {
      flow& f = *all[i];
      f.go_on();
      f.clock = std::max(f.clock, running->clock + wake_call + wake_up);
      plan_(f, f.clock);
    }
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(some));
    if (all.empty()) waiting_.erase(found);
    running->clock += wake_call;
  }
  void wake_at(const void* word, std::uint64_t time) {
    const auto found = waiting_.find(word);
    if (found == waiting_.end()) return;
    for (flow* const f : found->second) {
      if (f->until <= time * 1'000) continue;
      f->until = time * 1'000;
      plan_(*f, f->until);
    }
  }

  void leave() override {
    if (running->ready()) plan_(*running, running->clock);
    forget_old_();
    if (plans_.empty()) give_up("nobody can go on", 0);
    const plan next = plans_.top();
    plans_.pop();
    forget_old_();
    flow& f = *flows[next.thread];
    if (!f.ready()) {  // it has waited for this time
      stop_waiting_(f);
      f.clock = std::max(f.clock, next.time);
    }
    ++versions_[f.number];  // nothing is planned for who runs
    if (f.clock > limit_) give_up("no end in sight", 0);
    note_(next.time ^ next.thread);
    if (&f != running) switch_to(f);
  }

  void compute(picoseconds length) {
    running->clock += length;
    if (running->clock > horizon_ && running->clock - horizon_ > lead) leave();
  }
  passed result() const { return {points, switches, hash_}; }

 private:
  /// When a thread wants to go on; void if the thread has a newer one.
  struct plan {
    picoseconds time;
    unsigned thread;
    std::uint32_t version;
    bool operator<(const plan& other) const {  // the queue has the greatest at the front
      return time != other.time ? time > other.time : thread > other.thread;
    }
  };

  void plan_(const flow& f, picoseconds time) {
    if (versions_.size() <= f.number) versions_.resize(f.number + 1);
    plans_.push({time, f.number, ++versions_[f.number]});
    horizon_ = std::min(horizon_, time);
  }
  void forget_old_() {
    while (!plans_.empty() && plans_.top().version != versions_[plans_.top().thread]) plans_.pop();
    horizon_ = plans_.empty() ? never : plans_.top().time;
  }
  void wait_(const void* word, picoseconds end) {
    running->waits_for = word;
    running->until = end;
    waiting_[word].push_back(running);
    if (end != never) plan_(*running, std::max(end, running->clock));
    leave();
  }
  void stop_waiting_(flow& f) {
    const auto found = waiting_.find(f.waits_for);
    std::vector<flow*>& all = found->second;
    all.erase(std::find(all.begin(), all.end(), &f));
    if (all.empty()) waiting_.erase(found);
    f.go_on();
  }
  void note_(std::uint64_t what) {
    hash_ = (hash_ ^ what) * 0x9E3779B97F4A7C15ull;
    hash_ ^= hash_ >> 29;
  }

  const picoseconds limit_;
  picoseconds horizon_ = never;  // when another thread wants to go on
  std::priority_queue<plan> plans_{};
  std::vector<std::uint32_t> versions_ = std::vector<std::uint32_t>(1);  // of the plan of each thread
  std::unordered_map<const void*, std::vector<flow*>> waiting_{};        // only looked up in
  std::uint64_t hash_ = 0;
};

}  // namespace

passed run_in_virtual_time(const std::function<void()>& body, std::uint64_t limit) {
  clocked_machine m(limit);
  m.run(body);
  return m.result();
}

void work(double nanoseconds) noexcept {
  if (clocked != nullptr) clocked->compute(static_cast<picoseconds>(nanoseconds * 1'000));
}
std::uint64_t time_here() noexcept { return clocked != nullptr ? clocked->now() : 0; }
void poll_until(const void* word, std::uint64_t end) noexcept { clocked->poll_until(word, end); }
void wake_at(const void* word, std::uint64_t time) noexcept { clocked->wake_at(word, time); }

}  // namespace simulation
