// SPDX-License-Identifier: BSL-1.0
// The start and the end of MPI in a process.
#pragma once

#include <weft/mpi/communicator.hpp>

#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

namespace weft::inline WEFT_ABI::mpi {

namespace detail {
/// From which components of Open MPI for one-sided operations it chooses, as an environment that has started
/// it knows; nothing if MPI was started in another way. Written once, before anything else uses MPI.
inline std::optional<std::string> osc_components;
}  // namespace detail

/// Starts MPI, and ends it when it is destroyed; one object, around everything else in main(). A process that
/// ends by an exception that nobody catches ends the whole job, since the other processes would wait for it
/// for ever, and prints the text of the exception. So does one that leaves the scope of the environment, or
/// of a window, by an exception: when it ends, or after a second, in which whoever has caught it can say why.
/// *Throws*: mpi::error.
class environment {
 public:
  /// Gives MPI the arguments of main(). Where MPI has been started before, it is not ended here either.
  environment(int& argc, char**& argv) : exceptions_(std::uncaught_exceptions()) {
    int before = 0;
    detail::check(MPI_Initialized(&before), "MPI_Initialized");
    if (before == 0) {
      // Open MPI 4.1: operations of its component rdma crash (open-mpi/ompi issues 7027 and 9146).
      ::setenv("OMPI_MCA_osc", "^rdma", 0);
      const char* const components = std::getenv("OMPI_MCA_osc");
      detail::osc_components = components != nullptr ? components : "";
      int threads = 0;
      detail::check(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads), "MPI_Init_thread");
      ends_ = true;
    }
    world_.emplace(MPI_COMM_WORLD);
    older_ = std::set_terminate(&terminate_);
  }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;
  ~environment() {
    if (std::uncaught_exceptions() > exceptions_) {
      end_job_soon("leaves the job by an exception");
      world_->abandon();
      return;
    }
    end_abandoned_job();
    std::set_terminate(older_);
    world_.reset();
    if (ends_) MPI_Finalize();
  }

  /// All processes of the job.
  communicator& world() noexcept { return *world_; }

 private:
  [[noreturn]] static void terminate_() {
    try {
      if (const std::exception_ptr e = std::current_exception()) std::rethrow_exception(e);
    } catch (const std::exception& e) {
      end_job(std::string("ends by an exception: ") + e.what());
    } catch (...) {
      end_job("ends by an exception");
    }
    end_job("ends by std::terminate");
  }

  int exceptions_;
  bool ends_ = false;
  std::optional<communicator> world_;
  std::terminate_handler older_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::mpi
