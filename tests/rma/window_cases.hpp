// SPDX-License-Identifier: BSL-1.0
// What is expected of a window, whatever its processes are: called by all of them, with their parts of the
// group.
#pragma once

#include "checks.hpp"

#include <weft/rma/locks.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rma = weft::rma;

struct wide {
  std::array<double, 3> of;
  bool operator==(const wide&) const = default;
};

/// Its place in memory has to begin a cache line.
struct alignas(64) aligned {
  std::array<double, 8> of;
  bool operator==(const aligned&) const = default;
};

/// What process p puts at place i.
template <class T>
T value(int p, std::size_t i) {
  if constexpr (std::is_same_v<T, wide>)
    return {{p + 1.0, static_cast<double>(i), 0.5}};
  else if constexpr (std::is_same_v<T, aligned>)
    return {{p + 1.0, static_cast<double>(i), 0, 0, 0, 0, 0, 0.5}};
  else
    return static_cast<T>(static_cast<T>(p + 1) * static_cast<T>(7) + static_cast<T>(i));
}

template <class T, class Group>
void elements(const Group& world, rma::backend backend) {
  constexpr std::size_t size = 37;
  rma::window<T, Group> w(world, size, {.lock = rma::lock_kind::d_mcs, .backend = backend});
  RIGHT(w.backend() == backend);
  RIGHT(w.size() == size);
  RIGHT(reinterpret_cast<std::uintptr_t>(w.local().data()) % alignof(T) == 0);
  for (const T& t : w.local()) RIGHT(t == T{});
  world.barrier();
  const int me = world.rank(), n = world.size(), next = (me + 1) % n;
  for (std::size_t i = 0; i < size; ++i) w.put(next, i, value<T>(me, i));
  world.barrier();
  for (int p = 0; p < n; ++p)
    for (std::size_t i = 0; i < size; ++i) RIGHT(w.get(p, i) == value<T>((p + n - 1) % n, i));
  RIGHT(w.local()[5] == w.get(me, 5));
  std::array<T, 9> some{};
  w.get(next, 20, some);
  for (std::size_t i = 0; i < some.size(); ++i) RIGHT(some[i] == value<T>(me, 20 + i));
  world.barrier();
  for (std::size_t i = 0; i < some.size(); ++i) some[i] = value<T>(me + 1, i);
  w.put(next, 1, some);
  world.barrier();
  for (std::size_t i = 0; i < some.size(); ++i) RIGHT(w.get(next, 1 + i) == value<T>(me + 1, i));
  RIGHT(w.get(next, 10) == value<T>(me, 10));
  for (const auto& [target, index] : {std::pair<int, std::size_t>{n, 0}, {-1, 0}, {0, size}})
    RIGHT(refusal<std::out_of_range>([&] { w.get(target, index); }).find("in a window of 37 elements") !=
          std::string::npos);
  RIGHT(refusal<std::out_of_range>([&] { w.put(0, 30, some); }).find("elements 30 to 39") !=
        std::string::npos);
  for (const int target : {-1, n}) {
    RIGHT(refusal<std::out_of_range>([&] { w.finish(target); }).find("in a window of 37") !=
          std::string::npos);
    RIGHT(refusal<std::out_of_range>([&] { w.direct(target); }).find("in a window of 37") !=
          std::string::npos);
  }
  world.barrier();
}

template <class T, class Group>
void atomics(const Group& world, rma::backend backend) {
  rma::window<T, Group> w(world, 4, {.lock = rma::lock_kind::d_mcs, .backend = backend});
  const T n = static_cast<T>(world.size()), me = static_cast<T>(world.rank());
  constexpr T each = 20;
  std::uint64_t sum = 0;
  for (T i = 0; i < each; ++i) {
    sum += static_cast<std::uint64_t>(w.fetch_add(0, 0, 1));
    for (T seen = w.get(0, 1);;) {
      const T was = w.compare_exchange(0, 1, seen, static_cast<T>(seen + 2));
      if (was == seen) break;
      seen = was;
    }
  }
  w.fetch_or(0, 2, static_cast<T>(T{1} << me));
  const T took = w.exchange(0, 3, static_cast<T>(me + 1));
  world.barrier();
  const auto all = static_cast<std::uint64_t>(n * each);
  RIGHT(static_cast<std::uint64_t>(w.get(0, 0)) == all);
  RIGHT(world.sum(sum) == all * (all - 1) / 2);  // each number once
  RIGHT(static_cast<std::uint64_t>(w.get(0, 1)) == 2 * all);
  RIGHT(w.get(0, 2) == static_cast<T>((T{1} << n) - 1));
  RIGHT(world.sum(static_cast<std::uint64_t>(took)) + static_cast<std::uint64_t>(w.get(0, 3)) ==
        static_cast<std::uint64_t>(n * (n + 1) / 2));
  world.barrier();
}

/// Many elements at once, each combined atomically; operations that are begun, and finished later.
template <class T, class Group>
void together(const Group& world, rma::backend backend) {
  rma::window<T, Group> w(world, 64, {.lock = rma::lock_kind::d_mcs, .backend = backend});
  const int n = world.size(), me = world.rank();
  std::vector<T> ones(64, static_cast<T>(1));
  for (int i = 0; i < 10; ++i) w.accumulate(0, 0, ones, rma::combine::sum);
  world.barrier();
  for (std::size_t i = 0; i < 64; ++i) RIGHT(w.get(0, i) == static_cast<T>(10 * n));
  world.barrier();
  const T two = static_cast<T>(2), mine = static_cast<T>(me + 3);
  w.accumulate(0, 0, std::span<const T>(&two, 1), rma::combine::product);
  world.barrier();
  w.accumulate(0, 1, std::span<const T>(&mine, 1), rma::combine::maximum);
  w.accumulate(0, 2, std::span<const T>(&mine, 1), rma::combine::minimum);
  world.barrier();
  RIGHT(w.get(0, 0) == static_cast<T>(10 * n * (1 << n)));
  RIGHT(w.get(0, 1) == static_cast<T>(std::max(10 * n, n + 2)));
  RIGHT(w.get(0, 2) == static_cast<T>(3));
  if constexpr (std::is_integral_v<T>) {
    world.barrier();
    const T bit = static_cast<T>(T{1} << me);
    w.put(0, 3, static_cast<T>(0));
    w.put(0, 4, static_cast<T>(-1));
    world.barrier();
    w.accumulate(0, 3, std::span<const T>(&bit, 1), rma::combine::bit_xor);
    world.barrier();
    const T others = static_cast<T>(~bit);
    w.accumulate(0, 4, std::span<const T>(&others, 1), rma::combine::bit_and);
    world.barrier();
    RIGHT(w.get(0, 3) == static_cast<T>((1 << n) - 1));
    RIGHT(w.get(0, 4) == static_cast<T>(~((1 << n) - 1)));
  } else {
    RIGHT(refusal<weft::error>([&] { w.accumulate(0, 0, ones, rma::combine::bit_or); }).find("no bits") !=
          std::string::npos);
  }
  world.barrier();
  // A table of pieces, written to everybody before one of them is finished, and read in the same way.
  std::vector<T> pieces(8);
  for (std::size_t i = 0; i < 8; ++i) pieces[i] = value<T>(me, i);
  if (static_cast<std::size_t>(n) * 8 <= 64) {
    for (int p = 0; p < n; ++p) w.start_put(p, static_cast<std::size_t>(me) * 8, pieces);
    for (int p = 0; p < n; ++p) w.finish(p);
    world.barrier();
    std::vector<T> all(static_cast<std::size_t>(n) * 8);
    for (int p = 0; p < n; ++p)
      w.start_get(p, static_cast<std::size_t>(p) * 8,
                  std::span<T>(all).subspan(static_cast<std::size_t>(p) * 8, 8));
    for (int p = 0; p < n; ++p) w.finish(p);
    for (int p = 0; p < n; ++p)
      for (std::size_t i = 0; i < 8; ++i) RIGHT(all[static_cast<std::size_t>(p) * 8 + i] == value<T>(p, i));
  }
  world.barrier();
}

/// Everybody locks one target, so many of 100 exclusively.
template <class Group>
void hot(const Group& world, const rma::window_options& options, unsigned exclusive) {
  rma::window<std::uint64_t, Group> w(world, 2, options);
  std::mt19937 random(static_cast<unsigned>(world.rank()));
  std::uint64_t writes = 0;
  const bool is_slow = w.backend() == rma::backend::mpi || w.backend() == rma::backend::messages;
  const int rounds = is_slow ? 10 : 40;
  for (int i = 0; i < rounds; ++i)
    if (random() % 100 < exclusive) {
      const rma::exclusive_lock hold(w, 0);
      w.put(0, 0, w.get(0, 0) + 1);
      w.put(0, 1, w.get(0, 1) + 1);
      ++writes;
    } else {
      const rma::shared_lock hold(w, 0);
      RIGHT(w.get(0, 0) == w.get(0, 1));
    }
  RIGHT(world.sum(writes) == world.broadcast(w.local()[0]));
  world.barrier();
}

/// Several locks of one target do not know each other.
template <class Group>
void numbers(const Group& world, rma::backend backend) {
  rma::window<std::uint64_t, Group> w(world, 1, {.backend = backend, .locks = 4, .lock_all = true});
  using namespace std::chrono_literals;
  world.barrier();
  if (world.rank() == 0) {
    const rma::exclusive_lock first(w, 0), third(w, 0, 2U);
    const rma::shared_lock second(w, 0, 1U);
    const rma::shared_lock_all all(w, 3U);
    RIGHT(refusal<weft::error>([&] { w.lock_exclusive(0, 3); }) ==
          "weft: this process holds a lock of process 0 already");
    world.barrier();
    world.barrier();
  } else {
    world.barrier();
    RIGHT(!rma::exclusive_lock(w, 0, std::try_to_lock));
    RIGHT(!rma::exclusive_lock(w, 0, std::try_to_lock, 2U));
    RIGHT(!rma::exclusive_lock(w, 0, 1us, 1U));
    RIGHT(!rma::exclusive_lock(w, 0, std::try_to_lock, 3U));
    RIGHT(!rma::shared_lock(w, 0, 1us, 2U));
    RIGHT(rma::shared_lock(w, 0, std::try_to_lock, 1U).owns_lock());
    RIGHT(rma::shared_lock(w, 0, 10s, 3U).owns_lock());
    world.barrier();
  }
  world.barrier();
  // A limit that no clock reaches is none.
  if (world.rank() == 0) {
    w.lock_exclusive(0);
    world.barrier();
    std::this_thread::sleep_for(20ms);
    w.unlock_exclusive(0);
  } else {
    world.barrier();
    RIGHT(rma::exclusive_lock(w, 0, std::chrono::nanoseconds::max()).owns_lock());
    RIGHT(rma::shared_lock(w, 0, std::chrono::nanoseconds::max()).owns_lock());
  }
  RIGHT(refusal<std::out_of_range>([&] { rma::exclusive_lock(w, 0, 4U); }).find("with 4 locks") !=
        std::string::npos);
  world.barrier();
}

/// Counters that only locks protect, and two words that belong together.
template <class Group>
void locks(const Group& world, const rma::window_options& options) {
  const rma::lock_kind kind = options.lock;
  rma::window<std::uint64_t, Group> w(world, 2, options);
  const int n = world.size();
  const bool tries = kind != rma::lock_kind::mpi;
  const bool locks_all = rma::has_lock_all(kind) || (options.lock_all && rma::has_shared(kind));
  std::mt19937 random(17 + static_cast<unsigned>(world.rank()));
  std::uint64_t writes = 0;
  bool whole = true;
  const auto write = [&](int target) {
    const std::uint64_t v = w.get(target, 0);
    w.put(target, 0, v + 1);
    w.put(target, 1, v + 1);
    ++writes;
  };
  for (int i = 0; i < 150; ++i) {
    const int target = i % 3 == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(n));
    const auto what = static_cast<unsigned>(random() % 20);
    if (what < 5 || (!rma::has_shared(kind) && what < 16)) {
      const rma::exclusive_lock hold(w, target);
      write(target);
    } else if (what == 15 && locks_all) {
      const rma::shared_lock_all hold(w);
      for (int p = 0; p < n; ++p) whole &= w.get(p, 0) == w.get(p, 1);
    } else if (what == 14 && locks_all && tries) {
      if (const rma::shared_lock_all hold(w, std::try_to_lock); hold)
        for (int p = 0; p < n; ++p) whole &= w.get(p, 0) == w.get(p, 1);
    } else if (what == 16 && tries) {
      if (const rma::exclusive_lock hold(w, target, std::try_to_lock); hold) write(target);
    } else if (what == 17 && tries) {
      if (const rma::exclusive_lock hold(w, target, std::chrono::milliseconds(5)); hold.owns_lock())
        write(target);
    } else if (what == 18 && tries && rma::has_shared(kind)) {
      if (const rma::shared_lock hold(w, target, std::try_to_lock); hold)
        whole &= w.get(target, 0) == w.get(target, 1);
    } else if (rma::has_shared(kind)) {
      const rma::shared_lock hold(w, target);
      whole &= w.get(target, 0) == w.get(target, 1);
    }
  }
  RIGHT(whole);
  const std::uint64_t wanted = world.sum(writes);
  RIGHT(world.sum(w.local()[0]) == wanted);
  RIGHT(world.sum(w.local()[1]) == wanted);
  // Several targets at once, in the order of their numbers.
  for (int p = 0; p < n; ++p) w.lock_exclusive(p);
  for (int p = 0; p < n; ++p) w.put(p, 1, w.get(p, 1) + 1);
  for (int p = 0; p < n; ++p) w.unlock_exclusive(p);
  world.barrier();
  RIGHT(w.local()[1] == w.local()[0] + static_cast<std::uint64_t>(n));
  // A try fails while another process has the lock, and succeeds when nobody has it.
  if (tries && n > 1) {
    if (world.rank() == 0) {
      const rma::exclusive_lock hold(w, 0, std::try_to_lock);
      RIGHT(hold.owns_lock());
      world.barrier();
      world.barrier();
    } else {
      world.barrier();
      RIGHT(!rma::exclusive_lock(w, 0, std::try_to_lock).owns_lock());
      RIGHT(!rma::exclusive_lock(w, 0, std::chrono::milliseconds(3)).owns_lock());
      if (rma::has_shared(kind)) RIGHT(!rma::shared_lock(w, 0, std::chrono::microseconds(50)).owns_lock());
      if (locks_all) RIGHT(!rma::shared_lock_all(w, std::try_to_lock));
      if (locks_all) RIGHT(!rma::shared_lock_all(w, std::chrono::microseconds(50)).owns_lock());
      world.barrier();
    }
    world.barrier();
    if (world.rank() == 1) RIGHT(rma::exclusive_lock(w, 0, std::chrono::seconds(10)).owns_lock());
    world.barrier();
    if (locks_all) {
      const rma::shared_lock_all first(w, std::chrono::nanoseconds::max());
      RIGHT(first.owns_lock());
      RIGHT(refusal<weft::error>([&] { w.try_lock_shared_all(); }) ==
            "weft: this process holds other locks of the window");
      world.barrier();
    }
    world.barrier();
  }
  if (!tries)
    RIGHT(refusal<weft::error>([&] { w.try_lock_exclusive(0); }) ==
          "weft: MPI_Win_lock cannot be tried, only waited for");
  if (!tries)
    RIGHT(refusal<weft::error>([&] { w.try_lock_shared_all(); }) ==
          "weft: MPI_Win_lock cannot be tried, only waited for");
  {
    const rma::exclusive_lock hold(w, world.rank());
    RIGHT(refusal<weft::error>([&] { w.lock_exclusive(world.rank()); }) ==
          "weft: this process holds a lock of process " + std::to_string(world.rank()) + " already");
    RIGHT(refusal<weft::error>([&] { w.unlock_shared(world.rank()); }) ==
          "weft: this process does not hold the lock");
    if (locks_all)
      RIGHT(refusal<weft::error>([&] { w.lock_shared_all(); }) ==
            "weft: this process holds other locks of the window");
  }
  if (!rma::has_shared(kind))
    RIGHT(refusal<weft::error>([&] { w.lock_shared(0); }) == "weft: locks of the kind d_mcs are exclusive");
  if (!locks_all)
    RIGHT(refusal<weft::error>([&] {
            w.try_lock_shared_all();
          }).starts_with(std::string("weft: locks of the kind ") + rma::name(kind)));
  RIGHT(refusal<std::out_of_range>([&] { w.lock_exclusive(n); }) != "nothing was thrown");
  world.barrier();
}
