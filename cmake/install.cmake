# SPDX-License-Identifier: BSL-1.0
# Installs the headers and the CMake package `weft`, which provides weft::weft, weft::compiled, weft::ooc,
# weft::mpi if the component `mpi` is asked for, weft::metis and weft::scotch in the same way; the
# program weft-report; and what GDB is to know of weft.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(weft_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/weft")  # headers only: nothing depends on the architecture

install(TARGETS weft EXPORT weft_targets FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT weft_targets NAMESPACE weft:: FILE weft-targets.cmake DESTINATION "${weft_package_dir}")

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/weft-config.cmake.in" "${CMAKE_CURRENT_BINARY_DIR}/weft-config.cmake"
  INSTALL_DESTINATION "${weft_package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  "${CMAKE_CURRENT_BINARY_DIR}/weft-config-version.cmake" COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(
  FILES "${CMAKE_CURRENT_BINARY_DIR}/weft-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/weft-config-version.cmake"
        "${CMAKE_CURRENT_LIST_DIR}/compiled.cmake" "${CMAKE_CURRENT_LIST_DIR}/compiled.cpp"
        "${CMAKE_CURRENT_LIST_DIR}/ooc.cmake" "${CMAKE_CURRENT_LIST_DIR}/mpi.cmake" "${CMAKE_CURRENT_LIST_DIR}/placement.cmake"
  DESTINATION "${weft_package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# weft-report finds its parts from where it lies itself, however the folders are called.
install(PROGRAMS "${CMAKE_CURRENT_LIST_DIR}/report/weft-report" DESTINATION "${CMAKE_INSTALL_BINDIR}")
file(GLOB weft_report_parts CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/report/weft_report/*.py")
install(FILES ${weft_report_parts} DESTINATION "${CMAKE_INSTALL_BINDIR}/../share/weft/weft_report")

install(FILES "${CMAKE_CURRENT_LIST_DIR}/gdb/weft-gdb.py" DESTINATION "${CMAKE_INSTALL_DATADIR}/weft/gdb")
