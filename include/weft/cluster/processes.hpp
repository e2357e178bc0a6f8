// SPDX-License-Identifier: BSL-1.0
// A cluster: the processes of an MPI job that execute the tasks of one program together.
#pragma once

#include <weft/cluster/detail/member.hpp>
#include <weft/cluster/detail/mpi_transport.hpp>
#include <weft/cluster/detail/step_message.hpp>
#include <weft/cluster/exceptions.hpp>
#include <weft/mpi/environment.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace weft::inline WEFT_ABI {

/// The processes of an MPI job, each with a runtime. Every process makes one, at the beginning of main(), and
/// calls run() equally often. *Thread safety*: one thread at a time. *Source*: the distributed work stealing
/// of KAAPI (Gautier, Besseron, Pigeon, PASCO'07).
class cluster {
 public:
  /// Starts MPI with the arguments of main(), and the workers of this process. Where the program has started
  /// MPI before, MPI_THREAD_FUNNELED suffices: the cluster calls MPI in the threads that make it, call its
  /// functions and those of steps, and destroy them. *Throws*: mpi::error;
  /// weft::error if the processes run different programs; as weft::runtime.
  cluster(int& argc, char**& argv, const cluster_options& options = {})
      : mpi_(argc, argv),
        transport_(mpi_.world().handle()),
        member_(transport_, share_(options)),
        exceptions_(std::uncaught_exceptions()) {}
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;
  /// Waits until the other processes are here, too. *Effects*: where another one is in a run, or begins one,
  /// the job ends with a message: this process does not take part. An exception that leaves the scope of the
  /// cluster ends the job as that of the mpi::environment does, and nothing is waited for.
  ~cluster() {
    if (std::uncaught_exceptions() > exceptions_) {
      mpi::end_job_soon("leaves the job by an exception");  // before what is collective
      return;
    }
    try {
      member_.leave();
    } catch (...) {
      transport_.fail(remote::detail::look_at(std::current_exception()).text);
    }
  }

  /// Process 0 runs `f` with the arguments as runtime::run does. The other processes execute what they steal:
  /// tasks whose callable, arguments and objects can be sent (docs/tutorial/from-one-machine-to-many.md).
  /// *Returns*: in every process what `f` has returned. *Throws*: in every process what the serial program
  /// would have thrown first; types that are not registered arrive as weft::remote_error elsewhere;
  /// weft::cancelled if a task, in whatever process, has requested a stop. A process that fails ends the job.
  /// *Suspends*: it blocks the calling thread, which sends and receives meanwhile. *Cost*: where there is one
  /// process, that of runtime::run.
  template <class F, class... A>
  auto run(F&& f, A&&... arguments) {
    return member_.run(std::forward<F>(f), std::forward<A>(arguments)...);
  }

  /// The next run does not execute again what is recorded in the files that a killed job has left in this
  /// directory (cluster_options::checkpoint): a job of any number of processes, and of the same program. All
  /// processes call it, before run(). *Returns*: in every process how many tasks are recorded; 0 if there are
  /// no such files. *Throws*: in all processes, where one of them does: weft::error for a file of another
  /// program or version, and for one that is damaged, which it names; std::system_error, std::bad_alloc.
  std::size_t resume(const std::string& directory) {
    std::size_t found = 0;
    std::exception_ptr thrown;
    try {
      found = member_.resume(directory);
    } catch (...) {
      thrown = std::current_exception();
    }
    const auto failed = transport_.group().gather(static_cast<char>(thrown != nullptr));
    if (thrown) std::rethrow_exception(thrown);
    for (std::size_t i = 0; i < failed.size(); ++i)
      if (failed[i] != 0)
        throw error("weft: process " + std::to_string(i) + " of the cluster cannot read the checkpoints");
    return found;
  }

  /// The number of this process, from 0.
  int rank() const noexcept { return transport_.rank(); }
  /// How many processes there are.
  int size() const noexcept { return transport_.size(); }
  /// The runtime of this process. *Requires*: it is not resized, and has no other run while the cluster has.
  weft::runtime& runtime() noexcept { return member_.runtime(); }
  /// What this process has exchanged with others. *Requires*: no run is going on.
  cluster_counters counters() const noexcept { return member_.counters(); }

 private:
  /// The options of this process, after a look at the others.
  cluster_options share_(cluster_options options) {
    const mpi::communicator& all = transport_.group();
    const auto programs = all.gather(remote::loaded_code::at_start().identity());
    for (std::size_t i = 1; i < programs.size(); ++i)
      if (programs[i] != programs[0])
        throw error("weft: process " + std::to_string(i) +
                    " of the cluster runs another program than process 0; start the same file everywhere");
    transport_.find_machines();
    if (options.runtime.workers == 0)
      options.runtime.workers = std::max(1u, static_cast<unsigned>(transport_.processors().share + 0.001));
    return options;
  }

  friend class partitioned;
  remote::step_place place_for_steps_() {
    return member_.place_for_steps(
        std::make_unique<remote::mpi_transport>(mpi_.world().handle(), transport_.processors()));
  }

  mpi::environment mpi_;
  remote::mpi_transport transport_;
  remote::member member_;
  int exceptions_;  // that were under way when it was made
};

}  // namespace weft::inline WEFT_ABI
