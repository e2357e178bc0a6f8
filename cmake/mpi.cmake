# SPDX-License-Identifier: BSL-1.0
# weft::mpi: weft::weft for programs that include weft/rma.hpp, with the MPI that CMake finds. Without one there is no such
# target.
if(NOT TARGET weft_mpi)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    add_library(weft_mpi INTERFACE)
    target_link_libraries(weft_mpi INTERFACE weft::weft MPI::MPI_CXX)
    add_library(weft::mpi ALIAS weft_mpi)
  endif()
endif()
