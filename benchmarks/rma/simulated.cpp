// SPDX-License-Identifier: BSL-1.0
// The locks on simulated machines: the steps that processes execute, each access at the cost that SimGrid
// finds for it on a platform file. All processes share one address space there and change only in calls of
// SimGrid, so an operation first costs its time and then happens at once. Built and run by benchmarks/papers.
// usage: simulated pairs <kind> <percent exclusive> <pairs>   random targets (Christgau, Schnor 2016, 6.2)
//        simulated hot <kind> <percent exclusive> <pairs>     all lock process 0
//        simulated writer <kind> <bytes> <pairs>              process 0 writes, the others want to read (6.4)
//        simulated table <kind> <percent inserts> <operations> a hash table of weft's: random keys are
//        inserted and
//            found; its buckets have locks of the kind, or none if that is no kind
//        simulated win_lock <bare | read> <percent exclusive> <pairs>   random targets, MPI_Win_lock as
//        SimGrid has it, and a read of the target between lock and unlock
// Kinds are those of weft (table: without gbh_backoff, which waits in real time), and gbh_registers:
// gbh_backoff that waits between two looks at a register, too. It prints microseconds, separated by commas:
// the three quartiles of the measured times, the time of all, and how many accesses there were. Processes on
// hosts core<i> have their memory at mc<k>, as on the SCC; those on other hosts have it there.
#include "simulated_window.hpp"

#include <weft/rma/detail/d_mcs_lock.hpp>
#include <weft/rma/detail/gbh_lock.hpp>
#include <weft/rma/detail/mcs_wp_lock.hpp>
#include <weft/rma/detail/one_group_lock.hpp>
#include <weft/rma/detail/rma_rw_lock.hpp>

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace detail = weft::rma::detail;

namespace {

template <class Steps>
void simulate(Steps&& steps, simulated_words& words, bool patient) {
  double pause = first_pause, poll = first_poll;
  for (;;) switch (steps.step(words)) {
      case progress::more:
        break;
      case progress::wait:  // on the SCC, who waits does nothing else
        if (!words.scc()) s4u::this_actor::sleep_for(poll);
        poll = std::min(1.5 * poll, last_poll);
        break;
      case progress::retry:
        if (patient) s4u::this_actor::sleep_for(pause);
        pause = std::min(2 * pause, last_pause);
        break;
      case progress::done:
        return;
    }
}
/// Locks a target, as target_locks does. *Returns*: what the steps leave.
template <class Steps>
std::uint64_t lock(process target, detail::lock_context context, simulated_words& words, bool patient,
                   detail::contention& seen) {
  context.contended = !seen.tries();
  Steps steps(target, context);
  simulate(steps, words, patient);
  if constexpr (requires { steps.was_contended(); })
    if (!context.contended && steps.was_contended()) seen.failed();
  return detail::token_of(steps);
}

void inside(world& w, process target, bool writes, int change) {
  const auto t = static_cast<std::size_t>(target);
  (writes ? w.writers[t] : w.readers[t]) += change;
  if (w.writers[t] > 1 || (w.writers[t] == 1 && w.readers[t] != 0)) fail("a lock does not exclude");
}
double now_us() { return 1e6 * s4u::Engine::get_clock(); }

/// Locks and unlocks targets; `target(i)` and `writes(i)` say which and how.
template <class Lock>
void pairs(world& w, simulated_words& words, detail::lock_context context, bool patient, int count,
           auto target, auto writes, std::vector<double>& times) {
  std::vector<detail::contention> seen(w.words.size());
  for (int i = 0; i < count; ++i) {
    const process t = target(i);
    detail::contention& here = seen[static_cast<std::size_t>(t)];
    const double start = now_us();
    if (writes(i)) {
      context.token = lock<typename Lock::exclusive>(t, context, words, patient, here);
      inside(w, t, true, 1);
      inside(w, t, true, -1);
      simulate(typename Lock::exclusive_release(t, context), words, patient);
    } else if constexpr (requires { typename Lock::shared; }) {
      lock<typename Lock::shared>(t, context, words, patient, here);
      inside(w, t, false, 1);
      inside(w, t, false, -1);
      simulate(typename Lock::shared_release(t, context), words, patient);
    }
    times.push_back(now_us() - start);
  }
}
/// Process 0 has its lock before the others want to read; it writes, and unlocks. That is measured.
template <class Lock>
void writer(world& w, simulated_words& words, detail::lock_context context, bool patient, int bytes,
            int count, std::vector<double>& times) {
  std::mt19937 moment(1);
  detail::contention seen;
  for (int i = 0; i < count; ++i) {
    if (words.self() == 0) {
      context.token = lock<typename Lock::exclusive>(0, context, words, patient, seen);
      MPI_Barrier(MPI_COMM_WORLD);
      s4u::this_actor::sleep_for(readers_have_come + moments * static_cast<double>(moment() % 100) / 100);
      const double start = now_us();
      inside(w, 0, true, 1);
      words.put(0, bytes);
      inside(w, 0, true, -1);
      simulate(typename Lock::exclusive_release(0, context), words, patient);
      times.push_back(now_us() - start);
    } else if constexpr (requires { typename Lock::shared; }) {
      MPI_Barrier(MPI_COMM_WORLD);
      lock<typename Lock::shared>(0, context, words, patient, seen);
      inside(w, 0, false, 1);
      words.put(0, bytes);  // a get takes as long
      inside(w, 0, false, -1);
      simulate(typename Lock::shared_release(0, context), words, patient);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/// Each process has inserted keys of its own; then all insert and find those of all, which is measured.
void table(world& w, std::optional<weft::rma::lock_kind> lock, int inserts, int count, int self,
           int processes) {
  using number = std::uint64_t;
  constexpr number each = 16;
  const auto n = static_cast<number>(processes);
  const simulated_group group(w, self, processes);
  weft::rma::hash_table<number, number, weft::rma::hash_bytes<number>, simulated_group> t(
      group, {.buckets_per_process = 4 * each, .lock = lock, .ranges = 4});
  for (number i = 0; i < each; ++i) t.insert(i * n + static_cast<number>(self), i);
  group.barrier();
  std::mt19937 random(static_cast<unsigned>(self) + 1);
  for (int i = 0; i < count; ++i) {
    const number key = random() % (each * n);
    const double start = now_us();
    if (random() % 100 < static_cast<unsigned>(inserts)) {
      if (t.insert(key, key / n)) fail("a key was not there");
    } else if (t.find(key) != key / n) {
      fail("a value is wrong");
    }
    w.times[static_cast<std::size_t>(self)].push_back(now_us() - start);
  }
  if (t.size() != each * n) fail("a key is there twice");
}

/// Pairs of SimGrid's own MPI_Win_lock and MPI_Win_unlock; no part of weft.
void win_lock(world& w, bool reads, int exclusive, int count, int self, int processes) {
  std::uint64_t* memory = nullptr;
  std::uint64_t value = 0;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  *memory = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  std::mt19937 random(static_cast<unsigned>(self) + 1);
  for (int i = 0; i < count; ++i) {
    const auto target = static_cast<process>(random() % static_cast<unsigned>(processes));
    const bool writes = random() % 100 < static_cast<unsigned>(exclusive);
    const double start = now_us();
    MPI_Win_lock(writes ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, window);
    inside(w, target, writes, 1);
    if (reads) {
      MPI_Get(&value, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, window);
      MPI_Win_flush(target, window);
    }
    inside(w, target, writes, -1);
    MPI_Win_unlock(target, window);
    w.times[static_cast<std::size_t>(self)].push_back(now_us() - start);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&window);
}

/// Processes that are close to each other: of a memory controller, or of a node.
int group_of(const world& w, int processes) { return std::min(processes, w.scc ? 12 : 16); }

template <class Lock>
void run(world& w, const std::string& what, const std::string& kind, int number, int count, int self,
         int processes) {
  const bool at_registers = kind == "gbh_registers", patient = at_registers || kind == "gbh_backoff";
  simulated_words words(w, self, at_registers);
  detail::lock_context context;
  context.processes = processes;
  context.group = group_of(w, processes);
  context.most_in_a_row = 16;
  if (self == 0)
    w.words.assign(static_cast<std::size_t>(processes), std::vector<std::uint64_t>(Lock::words(processes)));
  MPI_Barrier(MPI_COMM_WORLD);
  std::mt19937 random(static_cast<unsigned>(self) + 1);
  std::vector<double>& times = w.times[static_cast<std::size_t>(self)];
  if (what == "writer") return writer<Lock>(w, words, context, patient, number, count, times);
  const bool hot = what == "hot";
  std::vector<process> targets;
  std::vector<bool> exclusive;
  for (int i = 0; i < count; ++i) {
    targets.push_back(hot ? 0 : static_cast<process>(random() % static_cast<unsigned>(processes)));
    exclusive.push_back(random() % 100 < static_cast<unsigned>(number));
  }
  pairs<Lock>(
      w, words, context, patient, count, [&](int i) { return targets[static_cast<std::size_t>(i)]; },
      [&](int i) { return exclusive[static_cast<std::size_t>(i)]; }, times);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5)
    fail("usage: pairs | hot | writer | table | win_lock, kind, percent or bytes, pairs or operations");
  int self = 0, processes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &self);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  world* w = self == 0 ? new world : nullptr;
  MPI_Bcast(&w, sizeof w, MPI_BYTE, 0, MPI_COMM_WORLD);  // one address space
  const auto n = static_cast<std::size_t>(processes);
  const std::string host = s4u::this_actor::get_host()->get_name();
  if (self == 0) {
    w->scc = host.rfind("core", 0) == 0;
    w->memory.resize(n), w->tile.resize(n), w->taken.resize(n), w->writers.resize(n), w->readers.resize(n),
        w->times.resize(n), w->values.resize(n);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (w->scc)
    w->tile[static_cast<std::size_t>(self)] =
        s4u::Host::by_name("tile" + std::to_string(std::atoi(host.c_str() + 4) / 2));
  w->memory[static_cast<std::size_t>(self)] =
      w->scc ? s4u::Host::by_name("mc" + std::string(s4u::this_actor::get_host()->get_property("memory")))
             : s4u::this_actor::get_host();
  MPI_Barrier(MPI_COMM_WORLD);

  const std::string what = argv[1], kind = argv[2];
  const int number = std::atoi(argv[3]), count = std::atoi(argv[4]);
  const double start = now_us();
  const auto with = [&]<class Lock>(std::type_identity<Lock>) {
    run<Lock>(*w, what, kind, number, count, self, processes);
  };
  if (what == "table") {
    std::optional<weft::rma::lock_kind> lock;
    for (const auto k : {weft::rma::lock_kind::gbh, weft::rma::lock_kind::mcs_writer_preference,
                         weft::rma::lock_kind::d_mcs, weft::rma::lock_kind::rma_rw})
      if (kind == name(k)) lock = k;
    table(*w, lock, number, count, self, processes);
  } else if (what == "win_lock")
    win_lock(*w, kind == "read", number, count, self, processes);
  else if (kind == "gbh" || kind == "gbh_backoff" || kind == "gbh_registers")
    with(std::type_identity<detail::gbh_lock>());
  else if (kind == "mcs_wp")
    with(std::type_identity<detail::mcs_writer_preference_lock>());
  else if (kind == "d_mcs")
    with(std::type_identity<detail::d_mcs_lock>());
  else if (kind == "rma_rw" && group_of(*w, processes) == processes)
    with(std::type_identity<detail::one_group_lock>());
  else if (kind == "rma_rw")
    with(std::type_identity<detail::rma_rw_lock>());
  else
    fail("no such kind");
  MPI_Barrier(MPI_COMM_WORLD);
  if (self == 0) {
    std::vector<double> all;
    for (const auto& some : w->times) all.insert(all.end(), some.begin(), some.end());
    std::sort(all.begin(), all.end());
    const auto quartile = [&all](std::size_t q) { return all[(all.size() - 1) * q / 4]; };
    std::printf("%.3f,%.3f,%.3f,%.1f,%llu\n", quartile(1), quartile(2), quartile(3), now_us() - start,
                static_cast<unsigned long long>(w->accesses));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}
