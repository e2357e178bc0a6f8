// SPDX-License-Identifier: BSL-1.0
// Windows of a job: every operation, backend and kind of lock, from several threads too; what is refused. Run
// by mpiexec; process 0 prints "right" if all processes found everything right. usage: window_program [leave
// | go_on | leave_all | uncaught | hold | die]: a process leaves a window by an exception and ends, or goes
// on, or leaves the job so; ends by one that nobody catches, or by a window that it destroys with a lock; or
// is killed while it has a lock that another one waits for; or window_program [faulty | none | foreign]: the
// MPI has operations that crash, or none, or was started by the program itself.
#include "fault/waiting.hpp"
#include "window_cases.hpp"

#include <weft/rma.hpp>
#include <weft/rma/transfer_queue.hpp>
#include <weft/weft.hpp>

#include <dirent.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <new>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

/// How often this process has asked for variables of the MPI, which takes Open MPI 0.2 s.
static int asked = 0;
extern "C" int MPI_T_init_thread(int required, int* provided) {
  ++asked;
  return PMPI_T_init_thread(required, provided);
}

/// Whether this process has operations that fail.
static std::atomic<bool> fetches_fail{false};
extern "C" int MPI_Fetch_and_op(const void* with, void* was, MPI_Datatype type, int target, MPI_Aint at,
                                MPI_Op how, MPI_Win window) {
  if (fetches_fail) return MPI_ERR_OTHER;
  return PMPI_Fetch_and_op(with, was, type, target, at, how, window);
}

/// How many allocations of this thread succeed before one is refused; below 0: all.
static thread_local int until_refused = -1;
#ifndef WEFT_TEST_SANITIZED  // sanitizers have replacements of their own
// Not inlined, as GCC would warn of each free() of what is new.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (until_refused >= 0 && until_refused-- == 0) throw std::bad_alloc();
  void* const at = std::malloc(bytes != 0 ? bytes : 1);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}
[[gnu::noinline]] void operator delete(void* at) noexcept { std::free(at); }
[[gnu::noinline]] void operator delete(void* at, std::size_t) noexcept { std::free(at); }
#endif

namespace {

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
  RIGHT(wrong == 0);
  world.barrier();
  RIGHT(w.get(0, 0) == static_cast<std::uint64_t>(n) * 90);
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
    RIGHT(sum == size * pieces * (pieces + 1) / 2);
    // A failure leaves the run.
    RIGHT(refusal<std::out_of_range>([&] {
            rt.run([&] {
              weft::fork({.event = true}, [&] {
                queue.get(w, 0, pieces * size, std::span(back[0]), weft::this_task::hold());
              });
            });
          }).find("in a window of 1201 elements") != std::string::npos);
    RIGHT(refusal<std::out_of_range>([&] {
            queue.get(w, 0, pieces * size, std::span(back[0]), std::promise<void>());
          }) != "nothing was thrown");
  }
  world.barrier();
  RIGHT(w.get(0, pieces * size) == pieces * static_cast<std::uint64_t>(n));
  std::uint64_t numbers = 0;
  for (const std::uint64_t x : was) numbers += x;
  const std::uint64_t all = pieces * static_cast<std::uint64_t>(n);
  RIGHT(world.sum(numbers) == all * (all - 1) / 2);
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
  RIGHT(was == std::vector<std::uint32_t>{3, 3, 3, 8});
  RIGHT(back == std::vector<std::uint32_t>{7, 9, 8, 6});
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
  RIGHT(wrong == 0);
  world.barrier();
  RIGHT(w.get(0, 0) == all * static_cast<std::uint64_t>(n));
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
  for (std::size_t i = 0; i < size; i += 99) RIGHT(to[i] == value<std::uint64_t>((me + 1) % n, i));
}

/// What hints to MPI choose, and options that make no sense.
void options(const weft::mpi::communicator& world) {
  MPI_Info hints = MPI_INFO_NULL;
  RIGHT(rma::options_from(hints, {.lock = rma::lock_kind::d_mcs}).lock == rma::lock_kind::d_mcs);
  MPI_Info_create(&hints);
  RIGHT(rma::options_from(hints, {.lock = rma::lock_kind::d_mcs}).lock == rma::lock_kind::d_mcs);
  MPI_Info_set(hints, "PASSIVE_SYNC_MODE", "writer-precedence");
  RIGHT(rma::options_from(hints, {.lock = rma::lock_kind::d_mcs}).lock ==
        rma::lock_kind::mcs_writer_preference);
  MPI_Info_set(hints, "PASSIVE_SYNC_MODE", "full-support");
  RIGHT(rma::window<int>(world, 1, rma::options_from(hints)).lock() == rma::lock_kind::gbh_backoff);
  MPI_Info_set(hints, "PASSIVE_SYNC_MODE", "fair");
  RIGHT(refusal<weft::error>([&] { rma::options_from(hints); }).find("'fair'") != std::string::npos);
#ifndef MPICH  // crashes where a hint has been freed
  const MPI_Info freed = hints;
#endif
  MPI_Info_free(&hints);
#ifndef MPICH
  RIGHT(refusal<weft::mpi::error>([&] {
          rma::options_from(freed);
        }).starts_with("weft: MPI_Info_get failed: "));
#endif
  RIGHT(refusal<weft::error>([&] { rma::window<int>(world, 1, {.group = -1}); }) != "nothing was thrown");
  RIGHT(refusal<weft::error>([&] { rma::window<int>(world, 1, {.most_writers_in_a_row = 0}); }) !=
        "nothing was thrown");
}

/// Windows that are too large, or that processes make in different ways; errors of MPI.
void refused(const weft::mpi::communicator& world) {
  for (const std::size_t size : {std::size_t{1} << 61, std::size_t{1} << 60, ~std::size_t{0}})
    RIGHT(refusal<std::length_error>([&] { rma::window<std::uint64_t>(world, size); }) ==
          "weft: a window of " + std::to_string(size) + " elements is too large");
  RIGHT(refusal<std::length_error>([&] {
          rma::window<int>(world, 1, {.locks = ~0U});
        }).find("locks is too large") != std::string::npos);
  const auto me = static_cast<std::size_t>(world.rank());
  const std::string different = "weft: processes make one window with different sizes or options";
  if (world.size() > 1) {
    RIGHT(refusal<weft::error>([&] { rma::window<int>(world, 1 + me); }) == different);
    RIGHT(refusal<weft::error>([&] {
            rma::window<int>(world, 1, {.lock = me == 0 ? rma::lock_kind::gbh : rma::lock_kind::d_mcs});
          }) == different);
    RIGHT(refusal<weft::error>([&] { rma::window<int>(world, 1, {.group = static_cast<int>(me) + 1}); }) ==
          different);
  }
  const std::string said = refusal<weft::mpi::error>([&] { world.broadcast(1, world.size()); });
  RIGHT(said.starts_with("weft: MPI_Bcast failed: ") && said.size() > 30);
}

template <class T>
concept can_be_summed = requires(const weft::mpi::communicator& c, T t) { c.sum(t); };
static_assert(can_be_summed<double> && can_be_summed<char> && !can_be_summed<long double> &&
              !can_be_summed<bool>);

/// Two words of this process, whose operations lose something, or fail.
struct lossy final : rma::detail::remote_memory {
  enum kind { nothing, additions, replacements, bits, all } loses = nothing;
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
    if (loses == all) throw weft::mpi::error("MPI_Fetch_and_op", MPI_ERR_OTHER);
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
  RIGHT(found(lossy::nothing).wrong.empty());
  RIGHT(found(lossy::nothing).one_sided);
  RIGHT(found(lossy::additions).wrong == "MPI loses additions");
  RIGHT(found(lossy::replacements).wrong == "MPI loses replacements by comparison");
  RIGHT(found(lossy::bits).wrong == "MPI loses additions, replacements and bits");
  RIGHT(found(lossy::all).wrong.starts_with("MPI_Fetch_and_op failed: "));
  using rma::backend;
  using rma::detail::chosen;
  for (const lossy::kind k : {lossy::additions, lossy::replacements, lossy::bits, lossy::all}) {
    RIGHT(chosen(backend::between_nodes, found(k)) == backend::messages);
    RIGHT(refusal<weft::error>([&] { chosen(backend::mpi, found(k)); }) ==
          "weft: the one-sided operations of this MPI cannot be used: " + found(k).wrong);
  }
  RIGHT(chosen(backend::between_nodes, found(lossy::nothing)) == backend::mpi);
  RIGHT(chosen(backend::between_nodes, {.wrong = "", .one_sided = false}) == backend::messages);
  RIGHT(chosen(backend::mpi, {.wrong = "", .one_sided = false}) == backend::mpi);

  RIGHT(rma::detail::allows("", "rdma") && rma::detail::allows("^ucx,pt2pt", "rdma"));
  RIGHT(rma::detail::allows("sm,rdma", "rdma") && !rma::detail::allows("sm,pt2pt", "rdma"));
  RIGHT(!rma::detail::allows("^sm,rdma", "rdma") && !rma::detail::allows("^rdma", "rdma"));

  // Operations that are done before process 0 comes back to MPI, or only when it does, or first come too
  // late.
  if (world.size() == 1) return;
  rma::window<std::uint64_t> w(world, 2, {.backend = rma::backend::shared});
  // Process 0 stays outside MPI until the last one has ended its operation, or has begun one that comes too
  // late.
  std::uint64_t turns = 0;
  const auto outside = [&](std::chrono::milliseconds) {
    for (++turns; w.fetch_add(0, 1, 0) < turns;) std::this_thread::yield();
  };
  const auto look = [&] {
    const std::uint64_t seen = w.get(0, 0);
    w.fetch_add(0, 1, 1);
    return seen;
  };
  const auto look_late = [&] {
    w.fetch_add(0, 1, 1);
    while (w.get(0, 0) == 0) std::this_thread::yield();
    return w.get(0, 0);
  };
  RIGHT(rma::detail::found_one_sided(world, w.local()[0], look, outside));
  int calls = 0;
  RIGHT(!rma::detail::found_one_sided(world, w.local()[0], [&] { return ++calls, look_late(); }, outside));
  RIGHT(calls == (world.rank() == world.size() - 1 ? 3 : 0));
  RIGHT(rma::detail::found_one_sided(
      world, w.local()[0], [&] { return ++calls == 4 ? look_late() : look(); }, outside));
  RIGHT(calls == (world.rank() == world.size() - 1 ? 5 : 0));
  RIGHT(!rma::detail::found_one_sided(
      world, w.local()[0],
      [&]() -> std::uint64_t {
        look();
        throw weft::mpi::error("MPI_Fetch_and_op", MPI_ERR_OTHER);
      },
      outside));
  world.barrier();
}

/// Operations of MPI that fail in the last process alone: all agree on messages.
void failing(const weft::mpi::communicator& world) {
  using rma::backend;
  if (world.size() == 1) return;
  const bool here = world.rank() == world.size() - 1;
  fetches_fail = here;
  RIGHT(rma::window<int>(world, 1, {.backend = backend::between_nodes}).backend() == backend::messages);
  RIGHT(refusal<weft::error>([&] { rma::window<int>(world, 1, {.backend = backend::mpi}); })
            .starts_with("weft: the one-sided operations of this MPI cannot be used: " +
                         std::string(here ? "MPI_Fetch_and_op failed: "
                                          : "MPI's operations fail in another process")));
  RIGHT(!rma::window<int>(world, 1, {.lock = rma::lock_kind::mpi, .backend = backend::shared}).one_sided());
  fetches_fail = false;
  RIGHT(rma::window<int>(world, 1, {.backend = backend::mpi}).backend() == backend::mpi);
}

/// Memory is refused to the last process alone while a window is made: all throw.
void refused_memory(const weft::mpi::communicator& world) {
  if (weft_test::sanitized) return;
  const bool here = world.rank() == world.size() - 1;
  for (const rma::backend backend : {rma::backend::shared, rma::backend::mpi})
    for (const rma::lock_kind lock : {rma::lock_kind::mcs_writer_preference, rma::lock_kind::mpi}) {
      int refusals = 0;
      for (bool refused = true; refused; refusals += refused) {
        bool threw = false;
        int left = 0;
        if (here) until_refused = refusals;
        try {
          const rma::window<int> w(world, 1, {.lock = lock, .backend = backend, .locks = 2});
          left = std::exchange(until_refused, -1);
        } catch (const std::bad_alloc&) {
          left = std::exchange(until_refused, -1);
          threw = true;
        }
        refused = world.max<int>(here && left < 0) != 0;
        RIGHT(threw == refused);
      }
      RIGHT(refusals >= 3);
    }
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
    RIGHT(w.one_sided());
    if (backend == rma::backend::between_nodes) RIGHT(w.backend() != rma::backend::between_nodes);
    stay(w, backend == rma::backend::shared ? 1 : 2);
  }
  // Locks of MPI may need the target, though the memory is shared.
  rma::window<std::uint64_t> w(world, 4, {.lock = rma::lock_kind::mpi, .backend = rma::backend::shared});
#ifdef MPICH
  RIGHT(!w.one_sided());
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
      if (!older.contains(id)) ++made, RIGHT(world.size() == 1 || ::sched_getscheduler(id) == SCHED_BATCH);
    RIGHT(made == 1);
  }
  ::sched_setscheduler(0, before, &none);
}

/// An MPI whose operations are not used: everything is done by messages, if `shares` says so also on one
/// node. A runtime beside it accepts the variable that asks for a report.
void without_operations(const weft::mpi::communicator& world, const std::string& fault, bool shares) {
  weft::runtime({.workers = 1}).run([] {});
  RIGHT(rma::window<int>(world, 1).backend() == (shares ? rma::backend::shared : rma::backend::messages));
  for (const rma::backend backend : {rma::backend::between_nodes, rma::backend::messages}) {
    RIGHT(rma::window<int>(world, 1, {.backend = backend}).backend() == rma::backend::messages);
    rma::window<std::uint64_t> w(world, 1, {.backend = backend});
    for (int i = 0; i < 20; ++i) {
      const rma::exclusive_lock hold(w, 0);
      w.put(0, 0, w.get(0, 0) + 1);
    }
    world.barrier();
    RIGHT(w.get(0, 0) == 20 * static_cast<std::uint64_t>(world.size()));
    world.barrier();
  }
  elements<std::uint64_t>(world, rma::backend::messages);
  RIGHT(refusal<weft::error>([&] {
          rma::window<int>(world, 1, {.backend = rma::backend::mpi});
        }).starts_with("weft: the one-sided operations of this MPI cannot be used: " + fault));
  RIGHT(refusal<weft::error>([&] {
          rma::window<int>(world, 1, {.lock = rma::lock_kind::mpi, .backend = rma::backend::messages});
        }).find(fault) != std::string::npos);
  if (!shares)
    RIGHT(refusal<weft::mpi::error>([&] {
            rma::window<int>(world, 1, {.backend = rma::backend::shared});
          }).starts_with("weft: MPI_Win_allocate_shared failed: "));
}

/// The last process leaves a window in a way that the others do not expect.
void leave(const weft::mpi::communicator& world, const std::string& how) {
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
}
/// Whether `f` throws; then it says what.
bool caught(const auto& f) {
  try {
    f();
    return false;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "caught: %s\n", e.what());
    return true;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  int threads_provided = 0;
  if (how == "foreign") MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads_provided);
  if (how == "leave_all") {
    caught([&] {
      weft::mpi::environment mpi(argc, argv);
      if (mpi.world().rank() == mpi.world().size() - 1) throw std::runtime_error("the disk is on fire");
      mpi.world().barrier();
    });
    return 0;
  }
  weft::mpi::environment mpi(argc, argv);
  weft::mpi::communicator& world = mpi.world();
  if (how == "faulty" || how == "none" || how == "foreign") {
    without_operations(world, how == "none" ? "MPI_Win_allocate failed" : "osc/rdma of this Open MPI crashes",
                       how == "foreign");
    RIGHT(asked == (how == "foreign" ? 1 : 0));
    const int all = world.sum(failures.load());
    if (world.rank() == 0 && all == 0) std::printf("right\n");
    if (how == "foreign") std::atexit([] { MPI_Finalize(); });
    return all == 0 ? 0 : 1;
  }
  if (how == "leave" || how == "go_on" || how == "uncaught" || how == "hold" || how == "die") {
    if (how != "leave" && how != "go_on") return leave(world, how), 0;
    const bool goes_on = caught([&] { leave(world, how); }) && how == "go_on";
    while (goes_on) std::this_thread::sleep_for(std::chrono::seconds(1));
    return 0;
  }

  RIGHT(world.sum(world.rank()) == world.size() * (world.size() - 1) / 2);
  RIGHT(world.max(world.rank()) == world.size() - 1);
  RIGHT(world.min(1.5 + world.rank()) == 1.5);
  RIGHT(world.broadcast(10 + world.rank(), world.size() - 1) == 9 + world.size());
  RIGHT(world.gather(world.rank() * 2).back() == 2 * (world.size() - 1));
  RIGHT(world.node().size() >= 1);
  for (const rma::backend backend : {rma::backend::shared, rma::backend::mpi, rma::backend::messages}) {
    elements<std::uint64_t>(world, backend);
    elements<double>(world, backend);
    elements<std::int16_t>(world, backend);
    elements<char>(world, backend);
    elements<wide>(world, backend);
    elements<aligned>(world, backend);
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
    for (const rma::lock_kind kind :
         {rma::lock_kind::mpi, rma::lock_kind::gbh, rma::lock_kind::gbh_backoff,
          rma::lock_kind::mcs_writer_preference, rma::lock_kind::d_mcs, rma::lock_kind::rma_rw}) {
      locks(world, {.lock = kind, .backend = backend});
      for (const unsigned exclusive : {0U, 50U, 100U})
        if (exclusive == 100 || rma::has_shared(kind))
          hot(world, {.lock = kind, .backend = backend}, exclusive);
    }
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
  failing(world);
  refused_memory(world);
  outside(world);
  policy(world);
  RIGHT(rma::window<int>(world, 1).backend() == rma::backend::shared);
  RIGHT(asked == 0);
  const int all = world.sum(failures.load());
  if (world.rank() == 0 && all == 0) std::printf("right\n");
  return all == 0 ? 0 : 1;
}
