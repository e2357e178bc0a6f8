// SPDX-License-Identifier: BSL-1.0
// Implementations of MPI whose one-sided operations end the job: a probe would, too.
#pragma once

#include <weft/mpi/environment.hpp>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace weft::inline WEFT_ABI::rma::detail {

/// A variable of the MPI that is a text; empty if there is no such variable.
inline std::string control_variable(const char* name) {
  int threads = 0, index = 0, count = 0;
  if (MPI_T_init_thread(MPI_THREAD_MULTIPLE, &threads) != MPI_SUCCESS) return {};
  std::string text;
  MPI_T_cvar_handle handle = nullptr;
  if (MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
    std::vector<char> value(static_cast<std::size_t>(count) + 1);
    if (MPI_T_cvar_read(handle, value.data()) == MPI_SUCCESS) text = value.data();
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  return text;
}

/// Whether a choice of components of Open MPI allows one of them: `a,b` names the only ones, `^a,b` those
/// that are set aside; an empty one allows all.
constexpr bool allows(std::string_view choice, std::string_view component) noexcept {
  const bool excludes = choice.starts_with('^');
  if (choice.empty()) return true;
  if (excludes) choice.remove_prefix(1);
  for (;;) {
    const std::size_t end = choice.find(',');
    if (choice.substr(0, end) == component) return !excludes;
    if (end == choice.npos) return excludes;
    choice.remove_prefix(end + 1);
  }
}

/// What forbids the one-sided operations and locks of this MPI, or null. Open MPI is asked for its variable
/// once, which takes 0.2 s, and only if no mpi::environment has started it. *Source*: open-mpi/ompi, issues
/// 7027 and 9146.
inline const char* known_fault() {
  static const char* const found = []() -> const char* {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    unsigned major = 0;
    if (MPI_Get_library_version(version, &length) != MPI_SUCCESS ||
        std::sscanf(version, "Open MPI v%u", &major) != 1 || major >= 5 ||
        !allows(mpi::detail::osc_components ? *mpi::detail::osc_components : control_variable("osc"), "rdma"))
      return nullptr;
    return "osc/rdma of this Open MPI crashes; set OMPI_MCA_osc=^rdma before MPI starts";
  }();
  return found;
}

}  // namespace weft::inline WEFT_ABI::rma::detail
