// SPDX-License-Identifier: BSL-1.0
// Random overlays against a model that shares nothing with them: queues as plain lists, in which every task
// posts its next requests when it releases. What the overlay accepts must take all its turns in the model,
// too, with the same values; what it refuses must get stuck there.
#include "support/random.hpp"

#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"

#include <weft/orwl.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using weft::orwl::location;

namespace {

struct request {
  std::size_t location;
  bool exclusive;
  int rank;
};

/// An overlay as data.
struct plan {
  std::size_t locations;
  std::vector<std::vector<request>> tasks;
  std::vector<int> places;

  std::string text() const {
    std::ostringstream s;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      s << "task " << t << " at " << places[t] << ":";
      for (const request& r : tasks[t])
        s << (r.exclusive ? " write " : " read ") << r.location << "/" << r.rank;
      s << "\n";
    }
    return s.str();
  }
};

plan generate(weft_test::random& dice) {
  plan p;
  p.locations = 1 + dice.below(6);
  p.tasks.resize(2 + dice.below(5));
  const bool ranked = dice.one_in(2);
  for (auto& task : p.tasks) {
    std::vector<std::size_t> all(p.locations);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    const std::size_t count = 1 + dice.below(std::min<std::size_t>(3, p.locations));
    for (std::size_t i = 0; i < count; ++i) {
      std::swap(all[i], all[i + dice.below(all.size() - i)]);
      task.push_back({all[i], dice.one_in(2), ranked ? static_cast<int>(dice.below(3)) : 0});
    }
    p.places.push_back(static_cast<int>(dice.below(4)));
  }
  return p;
}

/// What a turn does to a location that it writes. It does not commute.
long blend(long mine, long read, std::size_t task) {
  return (mine * 31 + read * 7 + static_cast<long>(task) + 1) % 1'000'003;
}

struct outcome {
  std::vector<long> values;
  bool stuck = false;
  std::size_t farthest = 0;  ///< how far neighbours were apart at most
};

/// Plays the queues step by step, in a random order of those that may go on.
outcome play(const plan& p, std::size_t turns, weft_test::random& dice) {
  struct entry {
    std::size_t task;
    bool exclusive;
  };
  std::vector<std::size_t> order(p.tasks.size());
  for (std::size_t t = 0; t < order.size(); ++t) order[t] = t;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return p.places[a] != p.places[b] ? p.places[a] < p.places[b] : a < b;
  });
  std::vector<std::vector<entry>> queues(p.locations);
  for (std::size_t l = 0; l < p.locations; ++l)
    for (int rank = 0; rank < 3; ++rank)
      for (const std::size_t t : order)
        for (const request& r : p.tasks[t])
          if (r.location == l && r.rank == rank) queues[l].push_back({t, r.exclusive});
  outcome o;
  o.values.assign(p.locations, 1);
  std::vector<std::size_t> done(p.tasks.size(), 0);
  const auto holds = [&](std::size_t task, const request& r) {
    const auto& q = queues[r.location];
    for (std::size_t i = 0; i < q.size(); ++i) {
      if (q[i].task == task) return !q[i].exclusive || i == 0;
      if (q[i].exclusive) return false;
    }
    return false;
  };
  for (;;) {
    std::vector<std::size_t> may;
    bool left = false;
    for (std::size_t t = 0; t < p.tasks.size(); ++t) {
      if (done[t] == turns) continue;
      left = true;
      if (std::ranges::all_of(p.tasks[t], [&](const request& r) { return holds(t, r); })) may.push_back(t);
    }
    if (may.empty()) {
      o.stuck = left;
      return o;
    }
    const std::size_t t = may[dice.below(may.size())];
    long read = 0;
    for (const request& r : p.tasks[t])
      if (!r.exclusive) read = read * 3 + o.values[r.location];
    for (const request& r : p.tasks[t])
      if (r.exclusive) o.values[r.location] = blend(o.values[r.location], read, t);
    ++done[t];
    for (const request& r : p.tasks[t]) {
      auto& q = queues[r.location];
      q.push_back({t, r.exclusive});
      q.erase(std::ranges::find_if(q, [&](const entry& e) { return e.task == t; }));
    }
    for (std::size_t u = 0; u < p.tasks.size(); ++u)
      for (const request& a : p.tasks[t])
        for (const request& b : p.tasks[u])
          if (a.location == b.location && (a.exclusive || b.exclusive) && u != t)
            o.farthest = std::max(o.farthest, done[t] > done[u] ? done[t] - done[u] : done[u] - done[t]);
  }
}

/// The same plan as an overlay.
struct built {
  std::deque<location<long>> locations;
  std::deque<std::atomic<int>> turns;
  std::atomic<bool> fair{true};
  bool checks_turns = true;
  weft::orwl::overlay overlay;

  explicit built(const plan& p) : turns(p.tasks.size()) {
    for (std::size_t l = 0; l < p.locations; ++l) locations.emplace_back(1L);
    for (std::size_t t = 0; t < p.tasks.size(); ++t) declare(p, t, 0);
  }

  /// The turn of a task: `values` are those of its requests, in their order.
  template <class... V>
  void take(const plan& p, std::size_t t, V&... values) {
    long read = 0;
    const auto see = [&](auto& v) {
      if constexpr (std::is_const_v<std::remove_reference_t<decltype(v)>>) read = read * 3 + v;
    };
    (see(values), ...);
    const auto change = [&](auto& v) {
      if constexpr (!std::is_const_v<std::remove_reference_t<decltype(v)>>) v = blend(v, read, t);
    };
    (change(values), ...);
    if (!checks_turns) return;  // private copies let neighbours be farther apart
    const int mine = ++turns[t];
    for (std::size_t u = 0; u < p.tasks.size(); ++u)
      for (const request& a : p.tasks[t])
        for (const request& b : p.tasks[u])
          if (a.location == b.location && (a.exclusive || b.exclusive) &&
              std::abs(mine - turns[u].load()) > 1)
            fair = false;
  }
  template <class... Requests>
  void declare(const plan& p, std::size_t t, std::size_t next, Requests... so_far) {
    if (next == p.tasks[t].size()) {
      if constexpr (sizeof...(Requests) != 0)
        overlay.task([this, &p, t](weft::orwl::detail::passed<Requests>... v) { take(p, t, v...); },
                     so_far...);
      return;
    }
    if constexpr (sizeof...(Requests) < 3) {
      const request& r = p.tasks[t][next];
      location<long>& l = locations[r.location];
      if (r.exclusive)
        declare(p, t, next + 1, so_far..., weft::orwl::write(l, r.rank));
      else
        declare(p, t, next + 1, so_far..., weft::orwl::read(l, r.rank));
    }
  }
};

}  // namespace

TEST_CASE(
    "random overlays: what is accepted lives, what is refused gets stuck, and values are those of the "
    "queues") {
  const std::size_t count = weft_test::long_run() ? 300'000 : 3'000 / weft_test::scale() + 1;
  const unsigned workers[] = {1, 2, 3, 4, 8};
  std::deque<weft::runtime> runtimes;
  for (const unsigned w : workers) runtimes.emplace_back(weft::runtime_options{.workers = w});
  std::size_t accepted = 0, refused = 0, wrong = 0;
  for (std::size_t i = 0; i < count && wrong == 0; ++i) {
    const std::uint64_t seed = weft_test::seed() + i;
    weft_test::random dice(seed);
    const plan p = generate(dice);
    const std::size_t turns = 1 + dice.below(6);
    const outcome want = play(p, turns, dice);
    built b(p);
    std::string failure;
    try {
      b.overlay.schedule(p.places);
      ++accepted;
      if (want.stuck)
        failure = "accepted, but stuck in the model";
      else if (want.farthest > 1)
        failure = "neighbours are apart in the model";
      else
        b.overlay.run(runtimes[i % std::size(workers)], turns);
      const auto compare = [&](const char* which) {
        for (std::size_t l = 0; failure.empty() && l < p.locations; ++l)
          if (b.locations[l].get() != want.values[l])
            failure = std::string(which) + ": another value at location " + std::to_string(l);
      };
      compare("as declared");
      if (failure.empty()) {
        for (auto& l : b.locations) l.get() = 1;
        b.overlay.make_canonical(p.places);
        b.overlay.schedule();
        b.checks_turns = false;
        if (!b.overlay.is_canonical()) failure = "not canonical";
        b.overlay.run(runtimes[i % std::size(workers)], turns);
        compare("canonical");
      }
      if (!b.fair) failure = "neighbours are apart";
    } catch (const weft::orwl::cyclic_overlay& e) {
      ++refused;
      if (!play(p, 8, dice).stuck) failure = std::string("refused, but alive: ") + e.what();
    }
    if (!failure.empty()) {
      ++wrong;
      FAIL_CHECK(failure << "\nseed " << seed << ", workers " << workers[i % std::size(workers)] << ", turns "
                         << turns << "\n"
                         << p.text());
    }
  }
  CHECK(accepted > count / 4);
  CHECK(refused > count / 20);
}
