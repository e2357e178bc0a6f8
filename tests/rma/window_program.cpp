// SPDX-License-Identifier: BSL-1.0
// Windows of a job: every operation, backend and kind of lock; what is refused. Run by mpiexec; process 0
// prints "right" if all processes found everything right. usage: window_program [leave | hold | uncaught]: a
// process ends the job by an exception, by a window that it destroys with a lock, or by an exception that
// nobody catches.
#include <weft/rma.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>

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

/// Counters that only locks protect, and two words that belong together.
void locks(const weft::mpi::communicator& world, rma::backend backend, rma::lock_kind kind) {
  rma::window<std::uint64_t> w(world, 2, {.lock = kind, .backend = backend});
  const int n = world.size();
  std::mt19937 random(17 + static_cast<unsigned>(world.rank()));
  std::uint64_t writes = 0;
  bool whole = true;
  for (int i = 0; i < 150; ++i) {
    const int target = i % 3 == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(n));
    const unsigned what = random() % 16;
    if (what < 6 || !rma::has_shared(kind)) {
      const rma::exclusive_lock hold(w, target);
      const std::uint64_t v = w.get(target, 0);
      w.put(target, 0, v + 1);
      w.put(target, 1, v + 1);
      ++writes;
    } else if (what == 15 && rma::has_lock_all(kind)) {
      const rma::shared_lock_all hold(w);
      for (int p = 0; p < n; ++p) whole &= w.get(p, 0) == w.get(p, 1);
    } else {
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
  {
    const rma::exclusive_lock hold(w, world.rank());
    CHECK(refusal<weft::error>([&] { w.lock_exclusive(world.rank()); }) ==
          "weft: this process holds a lock of process " + std::to_string(world.rank()) + " already");
    CHECK(refusal<weft::error>([&] { w.unlock_shared(world.rank()); }) ==
          "weft: this process does not hold the lock");
    if (rma::has_lock_all(kind))
      CHECK(refusal<weft::error>([&] { w.lock_shared_all(); }) ==
            "weft: this process holds other locks of the window");
  }
  if (!rma::has_shared(kind))
    CHECK(refusal<weft::error>([&] { w.lock_shared(0); }) == "weft: locks of the kind d_mcs are exclusive");
  if (!rma::has_lock_all(kind))
    CHECK(refusal<weft::error>([&] { w.lock_shared_all(); }) ==
          std::string("weft: locks of the kind ") + rma::name(kind) + " are for single targets");
  CHECK(refusal<std::out_of_range>([&] { w.lock_exclusive(n); }) != "nothing was thrown");
  world.barrier();
}

}  // namespace

int main(int argc, char** argv) {
  weft::mpi::environment mpi(argc, argv);
  weft::mpi::communicator& world = mpi.world();
  const std::string how = argc > 1 ? argv[1] : "";
  if (how == "leave" || how == "uncaught" || how == "hold") {
    const auto end = [&] {
      rma::window<int> w(world, 1);
      if (world.rank() == world.size() - 1) {
        if (how != "hold") throw std::runtime_error("the disk is on fire");
        w.lock_exclusive(0);
        return;
      }
      world.barrier();  // never returns
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
  for (const rma::backend backend : {rma::backend::shared, rma::backend::mpi}) {
    elements<std::uint64_t>(world, backend);
    elements<double>(world, backend);
    elements<std::int16_t>(world, backend);
    elements<char>(world, backend);
    elements<wide>(world, backend);
    atomics<std::uint64_t>(world, backend);
    atomics<std::int32_t>(world, backend);
    for (const rma::lock_kind kind : {rma::lock_kind::mpi, rma::lock_kind::gbh, rma::lock_kind::gbh_backoff,
                                      rma::lock_kind::mcs_writer_preference, rma::lock_kind::d_mcs})
      locks(world, backend, kind);
  }
  CHECK(rma::window<int>(world, 1).backend() == rma::backend::shared);
  const int all = world.sum(failures);
  if (world.rank() == 0 && all == 0) std::printf("right\n");
  return all == 0 ? 0 : 1;
}
