# SPDX-License-Identifier: BSL-1.0
# weft_test and weft_program_test: how every folder below tests/ declares its tests.
#
# Both take
#   NAME <name>        of the ctest; the executable's target is weft_test_<name>
#   SOURCES <file>...  relative to the calling folder
#   LABELS <label>...  default: the folder's name, and `unit` if that is a room of the library
#   ALSO <room>...     labels besides: other rooms in which it notices a change
#   TIMEOUT <seconds>  default 60; multiplied by WEFT_TEST_TIMEOUT_FACTOR
#   LIBRARIES, DEFINITIONS, OPTIONS  more to link, to define, to pass to the compiler
#   ENVIRONMENT <NAME=value>...
#   SERIAL             never beside another test
#   ALONE              nothing of it runs in parallel: left out where Thread Sanitizer looks for races
#   PLAIN              without precompiled header and compiled library: the sources define what weft's own headers define
# The target weft_tests_<label> builds all tests that carry the label.
set(WEFT_TEST_SUPPORT_DIR "${CMAKE_CURRENT_LIST_DIR}")
set(WEFT_TEST_COMPILED OFF CACHE STRING "Tests find in a compiled library what else their headers define: ON (all), unit (those with this label), OFF")
set(WEFT_TEST_UNIT_OPTIONS "" CACHE STRING "Compiler options of the tests labelled unit, fault or contract, before their own")
set(weft_test_switches SERIAL FAILS PLAIN ALONE)
set(weft_test_values NAME TIMEOUT EXPECT)
set(weft_test_lists SOURCES LABELS ALSO LIBRARIES DEFINITIONS OPTIONS ENVIRONMENT ARGUMENTS)

# weft_test(NAME <name> SOURCES <file>... [common]): a Catch2 executable, run as one ctest.
function(weft_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "${weft_test_switches}" "${weft_test_values}" "${weft_test_lists}")
  if(arg_ALONE AND CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
    return()
  endif()
  weft_test_executable(weft_test_main)
  if(weft_test_precompiled AND NOT (arg_PLAIN OR arg_DEFINITIONS OR arg_OPTIONS OR internal))
    target_precompile_headers("${target}" REUSE_FROM weft_test_support)
  endif()
  add_test(NAME "${arg_NAME}" COMMAND "${target}")
  weft_test_properties()
endfunction()

# weft_program_test(NAME <name> SOURCES <file>... [ARGUMENTS <word>...] [EXPECT <regex>] [FAILS] [common]): a program
# with its own main. What it prints (both streams) must match the CMake regex; it must end with status 0, or, with
# FAILS, in any other way.
function(weft_program_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "${weft_test_switches}" "${weft_test_values}" "${weft_test_lists}")
  weft_test_executable(weft_test_flags)
  add_test(NAME "${arg_NAME}" COMMAND "${CMAKE_COMMAND}"
    "-DPROGRAM=$<TARGET_FILE:${target}>" "-DARGUMENTS=${arg_ARGUMENTS}" "-DEXPECT=${arg_EXPECT}" "-DFAILS=${arg_FAILS}"
    -P "${WEFT_TEST_SUPPORT_DIR}/run_program.cmake")
  weft_test_properties()
endfunction()

# The two halves below work on the variables of the function that calls them.
macro(weft_test_executable base)
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCES)
    message(FATAL_ERROR "test '${arg_NAME}': NAME and SOURCES are required; unknown: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_LABELS)
    get_filename_component(arg_LABELS "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
    if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/include/weft/${arg_LABELS}")
      list(PREPEND arg_LABELS unit)
    endif()
  endif()
  list(APPEND arg_LABELS ${arg_ALSO})
  string(MAKE_C_IDENTIFIER "weft_test_${arg_NAME}" target)
  add_executable("${target}" ${arg_SOURCES})
  target_link_libraries("${target}" PRIVATE "${base}" ${arg_LIBRARIES})
  target_compile_definitions("${target}" PRIVATE ${arg_DEFINITIONS})
  if("unit" IN_LIST arg_LABELS OR "fault" IN_LIST arg_LABELS)
    target_compile_options("${target}" PRIVATE ${WEFT_TEST_UNIT_OPTIONS})
  endif()
  target_compile_options("${target}" PRIVATE ${arg_OPTIONS})
  set(internal "")
  if(WEFT_TEST_COMPILED AND NOT (arg_PLAIN OR arg_DEFINITIONS OR arg_OPTIONS)
      AND ("unit" IN_LIST arg_LABELS OR NOT WEFT_TEST_COMPILED STREQUAL "unit"))
    weft_test_compiled()
  endif()
endmacro()

# Lets the target find the library's definitions in a compiled library, which all targets without flags of their own share: to
# compile it once more for one other target would take longer than it saves. Sources that include what defines them keep
# them: `internal` is set then.
macro(weft_test_compiled)
  foreach(source IN LISTS arg_SOURCES)
    file(STRINGS "${source}" found REGEX "#include [<\"](weft/(sched|graph|blocking|inspect)|sched|simulation|model)/")
    list(APPEND internal ${found})
  endforeach()
  if(NOT internal)
    if(NOT TARGET weft_test_compiled)
      add_library(weft_test_compiled STATIC "${PROJECT_SOURCE_DIR}/cmake/compiled.cpp")
      target_link_libraries(weft_test_compiled PUBLIC weft_test_flags)
      target_compile_definitions(weft_test_compiled PRIVATE WEFT_DEFINITIONS=1 WEFT_COMPILED=1)
    endif()
    target_compile_definitions("${target}" PRIVATE WEFT_COMPILED=1)
    target_link_libraries("${target}" PRIVATE weft_test_compiled)
  endif()
endmacro()

macro(weft_test_properties)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  math(EXPR limit "${arg_TIMEOUT} * ${WEFT_TEST_TIMEOUT_FACTOR}")
  math(EXPR kill_after "${limit} + 5")  # the program's own watchdog comes first: it says what hung
  set_tests_properties("${arg_NAME}" PROPERTIES
    LABELS "${arg_LABELS}" TIMEOUT "${kill_after}" COST "${arg_TIMEOUT}" RUN_SERIAL "${arg_SERIAL}"
    ENVIRONMENT "WEFT_TEST_TIMEOUT=${limit};WEFT_TEST_SCALE=${WEFT_TEST_TIMEOUT_FACTOR};${arg_ENVIRONMENT}")
  foreach(label IN LISTS arg_LABELS)
    if(NOT TARGET "weft_tests_${label}")
      add_custom_target("weft_tests_${label}")
    endif()
    add_dependencies("weft_tests_${label}" "${target}")
  endforeach()
endmacro()
