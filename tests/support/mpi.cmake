# SPDX-License-Identifier: BSL-1.0
# weft_mpi_test: how tests run programs of several processes, with each MPI that the machine has.
#
# weft_mpis lists the implementations found (openmpi, mpich: those of Debian); weft_test_<one> is a library to link. No
# sanitizer: their libraries are not made for it.
set(weft_mpis "")
set(weft_mpi_places_openmpi "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/include" mpi)
set(weft_mpi_places_mpich "/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/mpich" mpich)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  foreach(mpi IN ITEMS openmpi mpich)
    list(GET weft_mpi_places_${mpi} 0 include)
    list(GET weft_mpi_places_${mpi} 1 library)
    find_program(WEFT_MPIEXEC_${mpi} "mpiexec.${mpi}")
    find_path(WEFT_MPI_INCLUDE_${mpi} mpi.h PATHS "${include}" NO_DEFAULT_PATH)
    find_library(WEFT_MPI_LIBRARY_${mpi} ${library} NO_DEFAULT_PATH
      PATHS "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/lib" "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
    mark_as_advanced(WEFT_MPIEXEC_${mpi} WEFT_MPI_INCLUDE_${mpi} WEFT_MPI_LIBRARY_${mpi})
    if(WEFT_MPIEXEC_${mpi} AND WEFT_MPI_INCLUDE_${mpi} AND WEFT_MPI_LIBRARY_${mpi})
      add_library(weft_test_${mpi} INTERFACE)
      target_include_directories(weft_test_${mpi} SYSTEM INTERFACE "${WEFT_MPI_INCLUDE_${mpi}}")
      target_compile_definitions(weft_test_${mpi} INTERFACE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
      target_link_libraries(weft_test_${mpi} INTERFACE "${WEFT_MPI_LIBRARY_${mpi}}")
      list(APPEND weft_mpis ${mpi})
    else()
      message(STATUS "weft: no ${mpi} here, its tests are skipped")
    endif()
  endforeach()
endif()

# weft_mpi_test(<name> <target> <mpi> <processes> <label> <regex of what it prints> [FAILS] [<argument>...])
function(weft_mpi_test name target mpi processes label expect)
  cmake_parse_arguments(PARSE_ARGV 6 arg "FAILS" "" "")
  set(oversubscribe "")
  if(mpi STREQUAL "openmpi")
    set(oversubscribe --oversubscribe)
  endif()
  set(arguments ${oversubscribe} -n ${processes} "$<TARGET_FILE:${target}>" ${arg_UNPARSED_ARGUMENTS})
  add_test(NAME ${name}
    COMMAND "${CMAKE_COMMAND}" "-DPROGRAM=${WEFT_MPIEXEC_${mpi}}" "-DARGUMENTS=${arguments}" "-DEXPECT=${expect}"
            "-DFAILS=${arg_FAILS}" -P "${WEFT_TEST_SUPPORT_DIR}/run_program.cmake")
  math(EXPR limit "60 * ${WEFT_TEST_TIMEOUT_FACTOR}")
  set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT ${limit} PROCESSORS 2
    ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
endfunction()
