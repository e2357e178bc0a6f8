// SPDX-License-Identifier: BSL-1.0
// Windows of a job: every operation, backend and kind of lock, from several threads too; what is refused. Run
// by mpiexec; process 0 prints "right" if all processes found everything right. usage: window_program [leave
// | hold | uncaught | die]: a process ends the job by an exception, by a window that it destroys with a lock,
// by an exception that nobody catches, or is killed while it has a lock that another one waits for; or
// window_program [faulty | none | foreign]: the MPI has operations that crash, or none, or was started by the
// program itself.
#include <weft/rma.hpp>
#include <weft/rma/transfer_queue.hpp>
#include <weft/weft.hpp>

#include <dirent.h>
#include <sched.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace rma = weft::rma;

namespace {

int failures = 0;

void check(bool right, const char* what, int line) {
  if (right) return;
  ++failures;
  std::fprintf(stderr, "line %d: %s\n", line, what);
}
#define CHECK(...) check((__VA_ARGS__), #__VA_ARGS__, __LINE__)

template <class Exception>
std::string refusal(const auto& f) {
  try {
    f();
  } catch (const Exception& e) {
    return e.what();
  }
  return "nothing was thrown";
}

struct wide {
  std::array<double, 3> of;
  bool operator==(const wide&) const = default;
};

/// What process p puts at place i.
template <class T>
T value(int p, std::size_t i) {
  if constexpr (std::is_same_v<T, wide>)
    return {{p + 1.0, static_cast<double>(i), 0.5}};
  else
    return static_cast<T>(static_cast<T>(p + 1) * static_cast<T>(7) + static_cast<T>(i));
}

template <class T>
void elements(const weft::mpi::communicator& world, rma::backend backend) {
  constexpr std::size_t size = 37;
  rma::window<T> w(world, size, {.lock = rma::lock_kind::d_mcs, .backend = backend});
  CHECK(w.backend() == backend);
  CHECK(w.size() == size);
  for (const T& t : w.local()) CHECK(t == T{});
  world.barrier();
  const int me = world.rank(), n = world.size(), next = (me + 1) % n;
  for (std::size_t i = 0; i < size; ++i) w.put(next, i, value<T>(me, i));
  world.barrier();
  for (int p = 0; p < n; ++p)
    for (std::size_t i = 0; i < size; ++i) CHECK(w.get(p, i) == value<T>((p + n - 1) % n, i));
  CHECK(w.local()[5] == w.get(me, 5));
  std::array<T, 9> some{};
  w.get(next, 20, some);
  for (std::size_t i = 0; i < some.size(); ++i) CHECK(some[i] == value<T>(me, 20 + i));
  world.barrier();
  for (std::size_t i = 0; i < some.size(); ++i) some[i] = value<T>(me + 1, i);
  w.put(next, 1, some);
  world.barrier();
  for (std::size_t i = 0; i < some.size(); ++i) CHECK(w.get(next, 1 + i) == value<T>(me + 1, i));
  CHECK(w.get(next, 10) == value<T>(me, 10));
  for (const auto& [target, index] : {std::pair<int, std::size_t>{n, 0}, {-1, 0}, {0, size}})
    CHECK(refusal<std::out_of_range>([&] { w.get(target, index); }).find("in a window of 37 elements") !=
          std::string::npos);
  CHECK(refusal<std::out_of_range>([&] { w.put(0, 30, some); }).find("elements 30 to 39") !=
        std::string::npos);
  for (const int target : {-1, n}) {
    CHECK(refusal<std::out_of_range>([&] { w.finish(target); }).find("in a window of 37") !=
          std::string::npos);
    CHECK(refusal<std::out_of_range>([&] { w.direct(target); }).find("in a window of 37") !=
          std::string::npos);
  }
  world.barrier();
}

template <class T>
void atomics(const weft::mpi::communicator& world, rma::backend backend) {
  rma::window<T> w(world, 4, {.lock = rma::lock_kind::d_mcs, .backend = backend});
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
  CHECK(static_cast<std::uint64_t>(w.get(0, 0)) == all);
  CHECK(world.sum(sum) == all * (all - 1) / 2);  // each number once
  CHECK(static_cast<std::uint64_t>(w.get(0, 1)) == 2 * all);
  CHECK(w.get(0, 2) == static_cast<T>((T{1} << n) - 1));
  CHECK(world.sum(static_cast<std::uint64_t>(took)) + static_cast<std::uint64_t>(w.get(0, 3)) ==
        static_cast<std::uint64_t>(n * (n + 1) / 2));
  world.barrier();
}

/// Many elements at once, each combined atomically; operations that are begun, and finished later.
template <class T>
void together(const weft::mpi::communicator& world, rma::backend backend) {
  rma::window<T> w(world, 64, {.lock = rma::lock_kind::d_mcs, .backend = backend});
  const int n = world.size(), me = world.rank();
  std::vector<T> ones(64, static_cast<T>(1));
  for (int i = 0; i < 10; ++i) w.accumulate(0, 0, ones, rma::combine::sum);
  world.barrier();
  for (std::size_t i = 0; i < 64; ++i) CHECK(w.get(0, i) == static_cast<T>(10 * n));
  world.barrier();
  const T two = static_cast<T>(2), mine = static_cast<T>(me + 3);
  w.accumulate(0, 0, std::span<const T>(&two, 1), rma::combine::product);
  world.barrier();
  w.accumulate(0, 1, std::span<const T>(&mine, 1), rma::combine::maximum);
  w.accumulate(0, 2, std::span<const T>(&mine, 1), rma::combine::minimum);
  world.barrier();
  CHECK(w.get(0, 0) == static_cast<T>(10 * n * (1 << n)));
  CHECK(w.get(0, 1) == static_cast<T>(std::max(10 * n, n + 2)));
  CHECK(w.get(0, 2) == static_cast<T>(3));
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
    CHECK(w.get(0, 3) == static_cast<T>((1 << n) - 1));
    CHECK(w.get(0, 4) == static_cast<T>(~((1 << n) - 1)));
  } else {
    CHECK(refusal<weft::error>([&] { w.accumulate(0, 0, ones, rma::combine::bit_or); }).find("no bits") !=
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
      for (std::size_t i = 0; i < 8; ++i) CHECK(all[static_cast<std::size_t>(p) * 8 + i] == value<T>(p, i));
  }
  world.barrier();
}

/// Several threads of each process at once, as tasks are.
void threads(const weft::mpi::communicator& world, rma::backend backend) {
  rma::window<std::uint64_t> w(world, 40, {.lock = rma::lock_kind::d_mcs, .backend = backend});
  const int n = world.size();
  std::vector<std::thread> all;
  std::atomic<int> wrong{0};
  for (std::size_t t = 0; t < 3; ++t)
    all.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        w.fetch_add(0, 0, 1);
        const std::array<std::uint64_t, 4> some = {t, t + 1, t + 2, t + 3};
        const auto own = static_cast<std::size_t>(world.rank()) % 3 * 12 + 4 * t + 1;
        if (world.rank() >= 3) continue;
        w.put(n - 1, own, some);
        std::array<std::uint64_t, 4> back{};
        w.get(n - 1, own, back);
        wrong += back != some;
      }
    });
  for (std::thread& t : all) t.join();
  CHECK(wrong == 0);
  world.barrier();
  CHECK(w.get(0, 0) == static_cast<std::uint64_t>(n) * 90);
  world.barrier();
}

/// Tasks that end when what they have asked for is there.
void tasks(const weft::mpi::communicator& world, rma::backend backend) {
  constexpr std::size_t pieces = 12, size = 100;
  rma::window<std::uint64_t> w(world, pieces * size + 1, {.backend = backend});
  const int n = world.size(), next = (world.rank() + 1) % n;
  std::uint64_t sum = 0;
  std::vector<std::vector<std::uint64_t>> out(pieces), back(pieces);
  std::vector<std::uint64_t> was(pieces);
  {
    rma::transfer_queue queue;
    weft::runtime rt({.workers = 2});
    rt.run([&] {
      for (std::size_t i = 0; i < pieces; ++i) {
        weft::fork([i](std::vector<std::uint64_t>& v) { v.assign(size, i + 1); },
                   weft::write(weft::borrow(out[i])));
        weft::fork(
            {.event = true},
            [&, i](const std::vector<std::uint64_t>& v) {
              queue.put(w, next, i * size, std::span<const std::uint64_t>(v), weft::this_task::hold());
            },
            weft::read(weft::borrow(out[i])));
      }
      weft::sync();
      for (std::size_t i = 0; i < pieces; ++i) {
        weft::fork(
            {.event = true},
            [&, i](std::vector<std::uint64_t>& v) {
              v.resize(size);
              queue.get(w, next, i * size, std::span(v), weft::this_task::hold());
            },
            weft::update(weft::borrow(back[i])));
        weft::fork(
            [&](const std::vector<std::uint64_t>& v, std::uint64_t& s) {
              for (const std::uint64_t x : v) s += x;
            },
            weft::read(weft::borrow(back[i])), weft::update(weft::borrow(sum)));
        weft::fork(
            {.event = true},
            [&](std::uint64_t& before) {
              queue.fetch_add(w, 0, pieces * size, std::uint64_t{1}, before, weft::this_task::hold());
            },
            weft::update(weft::borrow(was[i])));
      }
    });
    CHECK(sum == size * pieces * (pieces + 1) / 2);
    // A failure leaves the run.
    CHECK(refusal<std::out_of_range>([&] {
            rt.run([&] {
              weft::fork({.event = true}, [&] {
                queue.get(w, 0, pieces * size, std::span(back[0]), weft::this_task::hold());
              });
            });
          }).find("in a window of 1201 elements") != std::string::npos);
    CHECK(refusal<std::out_of_range>([&] {
            queue.get(w, 0, pieces * size, std::span(back[0]), std::promise<void>());
          }) != "nothing was thrown");
  }
  world.barrier();
  CHECK(w.get(0, pieces * size) == pieces * static_cast<std::uint64_t>(n));
  std::uint64_t numbers = 0;
  for (const std::uint64_t x : was) numbers += x;
  const std::uint64_t all = pieces * static_cast<std::uint64_t>(n);
  CHECK(world.sum(numbers) == all * (all - 1) / 2);
  world.barrier();
}

/// Operations that other threads than those of a runtime wait for.
void promises(const weft::mpi::communicator& world, rma::backend backend) {
  rma::window<std::uint32_t> w(world, 4, {.backend = backend});
  const int next = (world.rank() + 1) % world.size();
  rma::transfer_queue queue;
  const auto wait = [](auto&& begin) {
    std::promise<void> promise;
    std::future<void> done = promise.get_future();
    begin(std::move(promise));
    done.get();
  };
  const std::vector<std::uint32_t> threes(4, 3);
  const std::span<const std::uint32_t> three = threes;
  std::vector<std::uint32_t> back(4), was(4);
  wait([&](auto p) { queue.put(w, next, 0, three, std::move(p)); });
  wait([&](auto p) { queue.fetch_or(w, next, 0, std::uint32_t{4}, was[0], std::move(p)); });
  wait([&](auto p) { queue.exchange(w, next, 1, std::uint32_t{9}, was[1], std::move(p)); });
  wait([&](auto p) { queue.compare_exchange(w, next, 2, 3U, 8U, was[2], std::move(p)); });
  wait([&](auto p) { queue.compare_exchange(w, next, 2, 3U, 7U, was[3], std::move(p)); });
  wait([&](auto p) { queue.accumulate(w, next, 3, three.first(1), rma::combine::sum, std::move(p)); });
  wait([&](auto p) { queue.get(w, next, 0, std::span(back), std::move(p)); });
  CHECK(was == std::vector<std::uint32_t>{3, 3, 3, 8});
  CHECK(back == std::vector<std::uint32_t>{7, 9, 8, 6});
  world.barrier();
}

/// Bodies of tasks, on several workers, that use a window themselves.
void bodies(const weft::mpi::communicator& world, rma::backend backend) {
  constexpr std::size_t all = 60;
  rma::window<std::uint64_t> w(world, all + 1, {.backend = backend});
  const int n = world.size(), next = (world.rank() + 1) % n;
  std::atomic<int> wrong{0};
  weft::runtime({.workers = 3}).run([&] {
    for (std::size_t i = 1; i <= all; ++i)
      weft::fork([&, i] {
        w.put(next, i, i);
        w.fetch_add(next, i, 1000);
        wrong += w.get(next, i) != 1000 + i;
        w.fetch_add(0, 0, 1);
      });
  });
  CHECK(wrong == 0);
  world.barrier();
  CHECK(w.get(0, 0) == all * static_cast<std::uint64_t>(n));
  world.barrier();
}

/// What was begun and not finished is complete when the window has ended.
void abandoned(const weft::mpi::communicator& world, rma::backend backend) {
  constexpr std::size_t size = 300000;
  const int me = world.rank(), n = world.size();
  const std::vector<std::uint64_t> from(size);
  std::vector<std::uint64_t> to(size);
  {
    rma::window<std::uint64_t> w(world, 2 * size, {.backend = backend});
    for (std::size_t i = 0; i < size; ++i) w.local()[i] = value<std::uint64_t>(me, i);
    world.barrier();
    w.start_put((me + 1) % n, size, from);
    w.start_get((me + 1) % n, 0, to);
  }
  for (std::size_t i = 0; i < size; i += 99) CHECK(to[i] == value<std::uint64_t>((me + 1) % n, i));
}

/// Everybody locks one target, so many of 100 exclusively.
void hot(const weft::mpi::communicator& world, const rma::window_options& options, unsigned exclusive) {
  rma::window<std::uint64_t> w(world, 2, options);
  std::mt19937 random(static_cast<unsigned>(world.rank()));
  std::uint64_t writes = 0;
  for (int i = 0; i < 40; ++i)
    if (random() % 100 < exclusive) {
      const rma::exclusive_lock hold(w, 0);
      w.put(0, 0, w.get(0, 0) + 1);
      w.put(0, 1, w.get(0, 1) + 1);
      ++writes;
    } else {
      const rma::shared_lock hold(w, 0);
      CHECK(w.get(0, 0) == w.get(0, 1));
    }
  CHECK(world.sum(writes) == world.broadcast(w.local()[0]));
  world.barrier();
}

/// Several locks of one target do not know each other.
void numbers(const weft::mpi::communicator& world, rma::backend backend) {
  rma::window<std::uint64_t> w(world, 1, {.backend = backend, .locks = 4, .lock_all = true});
  using namespace std::chrono_literals;
  world.barrier();
  if (world.rank() == 0) {
    const rma::exclusive_lock first(w, 0), third(w, 0, 2U);
    const rma::shared_lock second(w, 0, 1U);
    const rma::shared_lock_all all(w, 3U);
    CHECK(refusal<weft::error>([&] { w.lock_exclusive(0, 3); }) ==
          "weft: this process holds a lock of process 0 already");
    world.barrier();
    world.barrier();
  } else {
    world.barrier();
    CHECK(!rma::exclusive_lock(w, 0, std::try_to_lock));
    CHECK(!rma::exclusive_lock(w, 0, std::try_to_lock, 2U));
    CHECK(!rma::exclusive_lock(w, 0, 1us, 1U));
    CHECK(!rma::exclusive_lock(w, 0, std::try_to_lock, 3U));
    CHECK(!rma::shared_lock(w, 0, 1us, 2U));
    CHECK(rma::shared_lock(w, 0, std::try_to_lock, 1U).owns_lock());
    CHECK(rma::shared_lock(w, 0, 10s, 3U).owns_lock());
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
    CHECK(rma::exclusive_lock(w, 0, std::chrono::nanoseconds::max()).owns_lock());
    CHECK(rma::shared_lock(w, 0, std::chrono::nanoseconds::max()).owns_lock());
  }
  CHECK(refusal<std::out_of_range>([&] { rma::exclusive_lock(w, 0, 4U); }).find("with 4 locks") !=
        std::string::npos);
  world.barrier();
}

/// Counters that only locks protect, and two words that belong together.
void locks(const weft::mpi::communicator& world, const rma::window_options& options) {
  const rma::lock_kind kind = options.lock;
  rma::window<std::uint64_t> w(world, 2, options);
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
  CHECK(whole);
  const std::uint64_t wanted = world.sum(writes);
  CHECK(world.sum(w.local()[0]) == wanted);
  CHECK(world.sum(w.local()[1]) == wanted);
  // Several targets at once, in the order of their numbers.
  for (int p = 0; p < n; ++p) w.lock_exclusive(p);
  for (int p = 0; p < n; ++p) w.put(p, 1, w.get(p, 1) + 1);
  for (int p = 0; p < n; ++p) w.unlock_exclusive(p);
  world.barrier();
  CHECK(w.local()[1] == w.local()[0] + static_cast<std::uint64_t>(n));
  // A try fails while another process has the lock, and succeeds when nobody has it.
  if (tries && n > 1) {
    if (world.rank() == 0) {
      const rma::exclusive_lock hold(w, 0, std::try_to_lock);
      CHECK(hold.owns_lock());
      world.barrier();
      world.barrier();
    } else {
      world.barrier();
      CHECK(!rma::exclusive_lock(w, 0, std::try_to_lock).owns_lock());
      CHECK(!rma::exclusive_lock(w, 0, std::chrono::milliseconds(3)).owns_lock());
      if (rma::has_shared(kind)) CHECK(!rma::shared_lock(w, 0, std::chrono::microseconds(50)).owns_lock());
      world.barrier();
    }
    world.barrier();
    if (world.rank() == 1) CHECK(rma::exclusive_lock(w, 0, std::chrono::seconds(10)).owns_lock());
    world.barrier();
  }
  if (!tries)
    CHECK(refusal<weft::error>([&] { w.try_lock_exclusive(0); }) ==
          "weft: MPI_Win_lock cannot be tried, only waited for");
  {
    const rma::exclusive_lock hold(w, world.rank());
    CHECK(refusal<weft::error>([&] { w.lock_exclusive(world.rank()); }) ==
          "weft: this process holds a lock of process " + std::to_string(world.rank()) + " already");
    CHECK(refusal<weft::error>([&] { w.unlock_shared(world.rank()); }) ==
          "weft: this process does not hold the lock");
    if (locks_all)
      CHECK(refusal<weft::error>([&] { w.lock_shared_all(); }) ==
            "weft: this process holds other locks of the window");
  }
  if (!rma::has_shared(kind))
    CHECK(refusal<weft::error>([&] { w.lock_shared(0); }) == "weft: locks of the kind d_mcs are exclusive");
  if (!locks_all)
    CHECK(refusal<weft::error>([&] {
            w.lock_shared_all();
          }).starts_with(std::string("weft: locks of the kind ") + rma::name(kind)));
  CHECK(refusal<std::out_of_range>([&] { w.lock_exclusive(n); }) != "nothing was thrown");
  world.barrier();
}

/// What hints to MPI choose, and options that make no sense.
void options(const weft::mpi::communicator& world) {
  MPI_Info hints = MPI_INFO_NULL;
  CHECK(rma::options_from(hints, {.lock = rma::lock_kind::d_mcs}).lock == rma::lock_kind::d_mcs);
  MPI_Info_create(&hints);
  CHECK(rma::options_from(hints, {.lock = rma::lock_kind::d_mcs}).lock == rma::lock_kind::d_mcs);
  MPI_Info_set(hints, "PASSIVE_SYNC_MODE", "writer-precedence");
  CHECK(rma::options_from(hints, {.lock = rma::lock_kind::d_mcs}).lock ==
        rma::lock_kind::mcs_writer_preference);
  MPI_Info_set(hints, "PASSIVE_SYNC_MODE", "full-support");
  CHECK(rma::window<int>(world, 1, rma::options_from(hints)).lock() == rma::lock_kind::gbh_backoff);
  MPI_Info_set(hints, "PASSIVE_SYNC_MODE", "fair");
  CHECK(refusal<weft::error>([&] { rma::options_from(hints); }).find("'fair'") != std::string::npos);
#ifndef MPICH  // crashes where a hint has been freed
  const MPI_Info freed = hints;
#endif
  MPI_Info_free(&hints);
#ifndef MPICH
  CHECK(refusal<weft::mpi::error>([&] {
          rma::options_from(freed);
        }).starts_with("weft: MPI_Info_get failed: "));
#endif
  CHECK(refusal<weft::error>([&] { rma::window<int>(world, 1, {.group = -1}); }) != "nothing was thrown");
  CHECK(refusal<weft::error>([&] { rma::window<int>(world, 1, {.most_writers_in_a_row = 0}); }) !=
        "nothing was thrown");
}

/// Windows that are too large, or that processes make in different ways; errors of MPI.
void refused(const weft::mpi::communicator& world) {
  for (const std::size_t size : {std::size_t{1} << 61, std::size_t{1} << 60, ~std::size_t{0}})
    CHECK(refusal<std::length_error>([&] { rma::window<std::uint64_t>(world, size); }) ==
          "weft: a window of " + std::to_string(size) + " elements is too large");
  CHECK(refusal<std::length_error>([&] {
          rma::window<int>(world, 1, {.locks = ~0U});
        }).find("locks is too large") != std::string::npos);
  const auto me = static_cast<std::size_t>(world.rank());
  const std::string different = "weft: processes make one window with different sizes or options";
  if (world.size() > 1) {
    CHECK(refusal<weft::error>([&] { rma::window<int>(world, 1 + me); }) == different);
    CHECK(refusal<weft::error>([&] {
            rma::window<int>(world, 1, {.lock = me == 0 ? rma::lock_kind::gbh : rma::lock_kind::d_mcs});
          }) == different);
    CHECK(refusal<weft::error>([&] { rma::window<int>(world, 1, {.group = static_cast<int>(me) + 1}); }) ==
          different);
  }
  const std::string said = refusal<weft::mpi::error>([&] { world.broadcast(1, world.size()); });
  CHECK(said.starts_with("weft: MPI_Bcast failed: ") && said.size() > 30);
}

template <class T>
concept can_be_summed = requires(const weft::mpi::communicator& c, T t) { c.sum(t); };
static_assert(can_be_summed<double> && can_be_summed<char> && !can_be_summed<long double> &&
              !can_be_summed<bool>);

/// Two words of this process, whose operations lose something.
struct lossy final : rma::detail::remote_memory {
  enum kind { nothing, additions, replacements, bits } loses = nothing;
  int calls = 0;
  std::array<std::uint64_t, 2> of{};
  std::uint64_t& at(std::size_t offset) { return of[offset / sizeof(std::uint64_t)]; }
  bool lost(kind k) { return loses == k && ++calls % 7 == 0; }
  void start_get(int, std::size_t, void*, std::size_t) override {}
  void start_put(int, std::size_t, const void*, std::size_t) override {}
  void start_accumulate(int, std::size_t, const void*, std::size_t, rma::detail::number_type,
                        rma::combine) override {}
  void finish(int) override {}
  std::uint64_t load(int, std::size_t offset, rma::detail::number_type) override { return at(offset); }
  std::uint64_t fetch(int, std::size_t offset, rma::detail::number_type, rma::combine how,
                      std::uint64_t v) override {
    const std::uint64_t was = at(offset);
    const bool is_lost =
        (how == rma::combine::sum && lost(additions)) || (how == rma::combine::bit_or && loses == bits);
    if (!is_lost) at(offset) = rma::combined(how, was, v);
    return was;
  }
  std::uint64_t compare_exchange(int, std::size_t offset, rma::detail::number_type, std::uint64_t expected,
                                 std::uint64_t wanted) override {
    const std::uint64_t was = at(offset);
    if (was == expected && !lost(replacements)) at(offset) = wanted;
    return was;
  }
};

/// What the probe finds, and what follows from that.
void probes(const weft::mpi::communicator& world) {
  const weft::mpi::communicator alone(MPI_COMM_SELF);
  const auto found = [&](lossy::kind loses) {
    lossy memory;
    memory.loses = loses;
    return rma::detail::probe(rma::detail::memory_words(memory, 0), 0, memory.of[1], alone);
  };
  CHECK(found(lossy::nothing).wrong.empty());
  CHECK(found(lossy::nothing).one_sided);
  CHECK(found(lossy::additions).wrong == "MPI loses additions");
  CHECK(found(lossy::replacements).wrong == "MPI loses replacements by comparison");
  CHECK(found(lossy::bits).wrong == "MPI loses additions, replacements and bits");
  using rma::backend;
  using rma::detail::chosen;
  for (const lossy::kind k : {lossy::additions, lossy::replacements, lossy::bits}) {
    CHECK(chosen(backend::between_nodes, found(k)) == backend::messages);
    CHECK(refusal<weft::error>([&] { chosen(backend::mpi, found(k)); }) ==
          "weft: the one-sided operations of this MPI cannot be used: " + found(k).wrong);
  }
  CHECK(chosen(backend::between_nodes, found(lossy::nothing)) == backend::mpi);
  CHECK(chosen(backend::between_nodes, {.wrong = "", .one_sided = false}) == backend::messages);
  CHECK(chosen(backend::mpi, {.wrong = "", .one_sided = false}) == backend::mpi);

  CHECK(rma::detail::allows("", "rdma") && rma::detail::allows("^ucx,pt2pt", "rdma"));
  CHECK(rma::detail::allows("sm,rdma", "rdma") && !rma::detail::allows("sm,pt2pt", "rdma"));
  CHECK(!rma::detail::allows("^sm,rdma", "rdma") && !rma::detail::allows("^rdma", "rdma"));

  // Operations that are done before process 0 comes back to MPI, or only when it does, or first come too
  // late.
  if (world.size() == 1) return;
  rma::window<std::uint64_t> w(world, 1);
  const auto look = [&] { return w.get(0, 0); };
  const auto wait = [&] {
    while (look() == 0) std::this_thread::yield();
  };
  CHECK(rma::detail::found_one_sided(world, w.local()[0], look));
  int calls = 0;
  CHECK(!rma::detail::found_one_sided(world, w.local()[0], [&] {
    ++calls;
    wait();
    return look();
  }));
  CHECK(calls == (world.rank() == world.size() - 1 ? 3 : 0));
  CHECK(rma::detail::found_one_sided(world, w.local()[0], [&] {
    if (++calls == 4) wait();
    return look();
  }));
  world.barrier();
}

/// A target that stays outside MPI until others have used it, costs them nothing: else this hangs.
void outside(const weft::mpi::communicator& world) {
  if (world.size() == 1) return;
  rma::window<std::uint64_t> over(world, 1, {.backend = rma::backend::shared});
  const auto stay = [&](rma::window<std::uint64_t>& w, std::uint64_t round) {
    world.barrier();
    if (world.rank() == 0) {
      const std::atomic_ref<std::uint64_t> now(over.local()[0]);
      while (now.load(std::memory_order_acquire) != round)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else if (world.rank() == 1) {
      for (std::uint64_t i = 0; i < 50; ++i) {
        const rma::exclusive_lock hold(w, 0);
        w.put(0, 1, i);
      }
      over.put(0, 0, round);
    }
    world.barrier();
  };
  for (const rma::backend backend : {rma::backend::shared, rma::backend::between_nodes}) {
    rma::window<std::uint64_t> w(world, 4, {.backend = backend});
    CHECK(w.one_sided());
    if (backend == rma::backend::between_nodes) CHECK(w.backend() != rma::backend::between_nodes);
    stay(w, backend == rma::backend::shared ? 1 : 2);
  }
  // Locks of MPI may need the target, though the memory is shared.
  rma::window<std::uint64_t> w(world, 4, {.lock = rma::lock_kind::mpi, .backend = rma::backend::shared});
#ifdef MPICH
  CHECK(!w.one_sided());
#endif
  if (w.one_sided()) stay(w, 3);
}

/// The thread that serves memory keeps the policy of scheduling that the program has chosen.
void policy(const weft::mpi::communicator& world) {
  const auto threads = [] {
    std::set<int> all;
    DIR* const tasks = ::opendir("/proc/self/task");
    while (const dirent* const entry = ::readdir(tasks))
      if (const int id = std::atoi(entry->d_name); id > 0) all.insert(id);
    ::closedir(tasks);
    return all;
  };
  const sched_param none{};
  const int before = ::sched_getscheduler(0);
  ::sched_setscheduler(0, SCHED_BATCH, &none);
  const std::set<int> older = threads();
  {
    rma::window<int> w(world, 1, {.backend = rma::backend::messages});
    w.put((world.rank() + 1) % world.size(), 0, 7);  // so the threads of all others have begun
    world.barrier();
    int made = 0;
    for (const int id : threads())
      if (!older.contains(id)) ++made, CHECK(world.size() == 1 || ::sched_getscheduler(id) == SCHED_BATCH);
    CHECK(made == 1);
  }
  ::sched_setscheduler(0, before, &none);
}

/// An MPI whose operations are not used: everything is done by messages, if `shares` says so also on one
/// node. A runtime beside it accepts the variable that asks for a report.
void without_operations(const weft::mpi::communicator& world, const std::string& fault, bool shares) {
  weft::runtime({.workers = 1}).run([] {});
  CHECK(rma::window<int>(world, 1).backend() == (shares ? rma::backend::shared : rma::backend::messages));
  for (const rma::backend backend : {rma::backend::between_nodes, rma::backend::messages}) {
    CHECK(rma::window<int>(world, 1, {.backend = backend}).backend() == rma::backend::messages);
    rma::window<std::uint64_t> w(world, 1, {.backend = backend});
    for (int i = 0; i < 20; ++i) {
      const rma::exclusive_lock hold(w, 0);
      w.put(0, 0, w.get(0, 0) + 1);
    }
    world.barrier();
    CHECK(w.get(0, 0) == 20 * static_cast<std::uint64_t>(world.size()));
    world.barrier();
  }
  elements<std::uint64_t>(world, rma::backend::messages);
  CHECK(refusal<weft::error>([&] {
          rma::window<int>(world, 1, {.backend = rma::backend::mpi});
        }).starts_with("weft: the one-sided operations of this MPI cannot be used: " + fault));
  CHECK(refusal<weft::error>([&] {
          rma::window<int>(world, 1, {.lock = rma::lock_kind::mpi, .backend = rma::backend::messages});
        }).find(fault) != std::string::npos);
  if (!shares)
    CHECK(refusal<weft::mpi::error>([&] {
            rma::window<int>(world, 1, {.backend = rma::backend::shared});
          }).starts_with("weft: MPI_Win_allocate_shared failed: "));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  int threads_provided = 0;
  if (how == "foreign") MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads_provided);
  weft::mpi::environment mpi(argc, argv);
  weft::mpi::communicator& world = mpi.world();
  if (how == "faulty" || how == "none" || how == "foreign") {
    without_operations(world, how == "none" ? "MPI_Win_allocate failed" : "osc/rdma of this Open MPI crashes",
                       how == "foreign");
    const int all = world.sum(failures);
    if (world.rank() == 0 && all == 0) std::printf("right\n");
    if (how == "foreign") std::atexit([] { MPI_Finalize(); });
    return all == 0 ? 0 : 1;
  }
  if (how == "leave" || how == "uncaught" || how == "hold" || how == "die") {
    const auto end = [&] {
      rma::window<int> w(world, 1);
      if (world.rank() == world.size() - 1) {
        if (how == "die") {
          w.lock_exclusive(0);
          world.barrier();
          std::raise(SIGKILL);
        }
        if (how != "hold") throw std::runtime_error("the disk is on fire");
        w.lock_exclusive(0);
        return;
      }
      world.barrier();  // returns only if a process is about to die with a lock
      w.lock_exclusive(0);
    };
    if (how == "leave") {
      try {
        weft::mpi::environment inner(argc, argv);
        end();
      } catch (const std::exception&) {
      }
    } else {
      end();
    }
    return 0;
  }

  CHECK(world.sum(world.rank()) == world.size() * (world.size() - 1) / 2);
  CHECK(world.max(world.rank()) == world.size() - 1);
  CHECK(world.min(1.5 + world.rank()) == 1.5);
  CHECK(world.broadcast(10 + world.rank(), world.size() - 1) == 9 + world.size());
  CHECK(world.gather(world.rank() * 2).back() == 2 * (world.size() - 1));
  CHECK(world.node().size() >= 1);
  for (const rma::backend backend : {rma::backend::shared, rma::backend::mpi, rma::backend::messages}) {
    elements<std::uint64_t>(world, backend);
    elements<double>(world, backend);
    elements<std::int16_t>(world, backend);
    elements<char>(world, backend);
    elements<wide>(world, backend);
    atomics<std::uint64_t>(world, backend);
    atomics<std::int32_t>(world, backend);
    together<std::int32_t>(world, backend);
    together<double>(world, backend);
    threads(world, backend);
    tasks(world, backend);
    promises(world, backend);
    bodies(world, backend);
    abandoned(world, backend);
    numbers(world, backend);
    for (const unsigned exclusive : {0U, 50U, 100U}) {
      hot(world, {.backend = backend}, exclusive);
      if (backend != rma::backend::shared) continue;  // the same machines, at less cost
      hot(world, {.lock = rma::lock_kind::gbh_backoff, .backend = backend}, exclusive);
      hot(world, {.lock = rma::lock_kind::rma_rw, .backend = backend}, exclusive);
    }
    for (const rma::lock_kind kind :
         {rma::lock_kind::mpi, rma::lock_kind::gbh, rma::lock_kind::gbh_backoff,
          rma::lock_kind::mcs_writer_preference, rma::lock_kind::d_mcs, rma::lock_kind::rma_rw})
      locks(world, {.lock = kind, .backend = backend});
    locks(world, {.lock = rma::lock_kind::mcs_writer_preference, .backend = backend, .lock_all = true});
    locks(world, {.lock = rma::lock_kind::rma_rw,
                  .backend = backend,
                  .lock_all = true,
                  .group = 1,
                  .most_writers_in_a_row = 2});
    locks(world, {.lock = rma::lock_kind::rma_rw, .backend = backend, .group = 2});
  }
  options(world);
  refused(world);
  probes(world);
  outside(world);
  policy(world);
  CHECK(rma::window<int>(world, 1).backend() == rma::backend::shared);
  const int all = world.sum(failures);
  if (world.rank() == 0 && all == 0) std::printf("right\n");
  return all == 0 ? 0 : 1;
}
