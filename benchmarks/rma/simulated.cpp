// SPDX-License-Identifier: BSL-1.0
// The locks on simulated machines: the steps that processes execute, each access at the cost that SimGrid
// finds for it on a platform file. All processes share one address space there and change only in calls of
// SimGrid, so an operation first costs its time and then happens at once. Built and run by benchmarks/papers.
// usage: simulated pairs <kind> <percent exclusive> <pairs>   random targets (Christgau, Schnor 2016, 6.2)
//        simulated hot <kind> <percent exclusive> <pairs>     all lock process 0
//        simulated writer <kind> <bytes> <pairs>              process 0 writes, the others want to read (6.4)
// Kinds are those of weft, and gbh_registers: gbh_backoff that waits between two looks at a register, too.
// It prints microseconds, separated by commas: the three quartiles of the measured times, the time of all,
// and how many accesses there were. Processes on hosts core<i> have their memory at mc<k>, as on the SCC;
// those on other hosts have it there.
#include <weft/rma/detail/d_mcs_lock.hpp>
#include <weft/rma/detail/gbh_lock.hpp>
#include <weft/rma/detail/mcs_wp_lock.hpp>
#include <weft/rma/detail/rma_rw_lock.hpp>

#include <mpi.h>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace s4u = simgrid::s4u;
namespace detail = weft::rma::detail;
using weft::rma::process;
using weft::rma::progress;

namespace {

/// Seconds. The SCC has no atomic operations: they are made of two accesses and a test-and-set register of
/// the core that the word belongs to. They take 1.6 us in all by the paper's Table 2: a shared lock and
/// unlock of GBH are two of them, and 3.35 us; accesses are a third of that.
constexpr double software_of_atomics = 1.1e-6;
/// On a cluster: words of the process itself are in its cache; other accesses are packets, of so many bytes.
constexpr double own_word = 0.05e-6, first_poll = 0.2e-6, last_poll = 2e-6;
constexpr std::uint64_t packet = 64;
/// Processes differ by so much for each number: nothing happens at the same time, so the order in which
/// SimGrid treats simultaneous events, which depends on addresses, does not matter.
constexpr double own_tick = 1e-12;
constexpr double first_pause = 1e-6, last_pause = 1e-3;  // of gbh_backoff
/// When the writer begins: all readers of mcs_wp wait then. With gbh_backoff they come back all the time, so
/// the moment varies.
constexpr double readers_have_come = 250e-6, moments = 100e-6;

/// What all processes see.
struct world {
  std::vector<std::vector<std::uint64_t>> words;
  std::vector<s4u::Host*> memory;
  std::vector<s4u::Host*> tile;       // where the test-and-set register of a core is
  std::vector<char> taken;            // these registers
  std::vector<int> writers, readers;  // inside, of each target
  std::vector<std::vector<double>> times;
  std::uint64_t accesses = 0;
  bool scc = false;
};

class simulated_words {
 public:
  /// `patient`: waits between two looks at a register.
  simulated_words(world& w, process self, bool patient)
      : world_(w), self_(self), patient_(patient), here_(s4u::this_actor::get_host()) {}
  process self() const { return self_; }
  std::uint64_t load(process p, std::uint32_t i) { return access_(p), at_(p, i); }
  void store(process p, std::uint32_t i, std::uint64_t v) { access_(p), at_(p, i) = v; }
  std::uint64_t fetch_add(process p, std::uint32_t i, std::uint64_t v) {
    return atomic_(p, i, [v](std::uint64_t now) { return now + v; });
  }
  std::uint64_t fetch_or(process p, std::uint32_t i, std::uint64_t v) {
    return atomic_(p, i, [v](std::uint64_t now) { return now | v; });
  }
  std::uint64_t exchange(process p, std::uint32_t i, std::uint64_t v) {
    return atomic_(p, i, [v](std::uint64_t) { return v; });
  }
  std::uint64_t compare_exchange(process p, std::uint32_t i, std::uint64_t expected, std::uint64_t v) {
    return atomic_(p, i, [=](std::uint64_t now) { return now == expected ? v : now; });
  }
  /// Writes bytes into the memory of a process: word by word on the SCC, at once on a cluster.
  void put(process p, int bytes) {
    if (!world_.scc) return s4u::Comm::sendto(here_, world_.memory[at(p)], static_cast<std::uint64_t>(bytes));
    for (int i = 0; i < bytes; i += 4) access_(p);
  }
  bool scc() const { return world_.scc; }

 private:
  static std::size_t at(process p) { return static_cast<std::size_t>(p); }
  std::uint64_t& at_(process p, std::uint32_t i) { return world_.words[at(p)][i]; }
  void access_(process p) {
    ++world_.accesses;
    if (!world_.scc && p == self_)
      s4u::this_actor::sleep_for(own_word + own_tick * self_);
    else
      s4u::Comm::sendto(world_.memory[at(p)], here_, world_.scc ? 4 : packet);
  }
  /// On the SCC: with the test-and-set register of a core, a read and a write. Who waits for the register
  /// reads it all the time, which loads the tile of that core and delays its own accesses.
  template <class F>
  std::uint64_t atomic_(process p, std::uint32_t i, F f) {
    if (!world_.scc) {
      access_(p);
      return std::exchange(at_(p, i), f(at_(p, i)));
    }
    s4u::this_actor::sleep_for(software_of_atomics + own_tick * self_);
    s4u::Host* tile = world_.tile[at(p)];
    for (double pause = first_pause;; pause = std::min(2 * pause, last_pause)) {
      s4u::Comm::sendto(tile, here_, 4);
      if (std::exchange(world_.taken[at(p)], char{1}) == 0) break;
      if (patient_) s4u::this_actor::sleep_for(pause);
    }
    access_(p);
    access_(p);
    const std::uint64_t was = std::exchange(at_(p, i), f(at_(p, i)));
    s4u::Comm::sendto(here_, tile, 4);
    world_.taken[at(p)] = 0;
    return was;
  }
  world& world_;
  process self_;
  bool patient_;
  s4u::Host* here_;
};

template <class Steps>
void execute(Steps&& steps, simulated_words& words, bool patient) {
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
  execute(steps, words, patient);
  if constexpr (requires { steps.was_contended(); })
    if (!context.contended && steps.was_contended()) seen.failed();
  return detail::token_of(steps);
}

void fail(const char* why) {
  std::fprintf(stderr, "simulated: %s\n", why);
  std::abort();
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
      execute(typename Lock::exclusive_release(t, context), words, patient);
    } else if constexpr (requires { typename Lock::shared; }) {
      lock<typename Lock::shared>(t, context, words, patient, here);
      inside(w, t, false, 1);
      inside(w, t, false, -1);
      execute(typename Lock::shared_release(t, context), words, patient);
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
      execute(typename Lock::exclusive_release(0, context), words, patient);
      times.push_back(now_us() - start);
    } else if constexpr (requires { typename Lock::shared; }) {
      MPI_Barrier(MPI_COMM_WORLD);
      lock<typename Lock::shared>(0, context, words, patient, seen);
      inside(w, 0, false, 1);
      words.put(0, bytes);  // a get takes as long
      inside(w, 0, false, -1);
      execute(typename Lock::shared_release(0, context), words, patient);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

template <class Lock>
void run(world& w, const std::string& what, const std::string& kind, int number, int count, int self,
         int processes) {
  const bool at_registers = kind == "gbh_registers", patient = at_registers || kind == "gbh_backoff";
  simulated_words words(w, self, at_registers);
  detail::lock_context context;
  context.processes = processes;
  context.group = std::min(processes, w.scc ? 12 : 16);  // of a memory controller, or of a node
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
  if (argc != 5) fail("usage: pairs | hot | writer, kind, percent or bytes, pairs");
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
        w->times.resize(n);
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
  if (kind == "gbh" || kind == "gbh_backoff" || kind == "gbh_registers")
    with(std::type_identity<detail::gbh_lock>());
  else if (kind == "mcs_wp")
    with(std::type_identity<detail::mcs_writer_preference_lock>());
  else if (kind == "d_mcs")
    with(std::type_identity<detail::d_mcs_lock>());
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
