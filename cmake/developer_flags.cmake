# SPDX-License-Identifier: BSL-1.0
# Flags of weft's own tests, benchmarks and examples; users of weft::weft get none of them.
add_library(weft_developer_flags INTERFACE)
target_compile_options(weft_developer_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wundef -Wnon-virtual-dtor
  -fstack-clash-protection  # without it a large local jumps over the guard page of a task's stack, silently
  $<$<BOOL:${WEFT_WERROR}>:-Werror>)

# What benchmarks and examples link to: weft::weft, as users do by default, or weft::compiled and with -O1, which halves the
# time to compile them where only that they compile and run is of interest.
option(WEFT_PROGRAMS_COMPILED "Benchmarks and examples use weft::compiled and little optimisation" OFF)
add_library(weft_for_programs INTERFACE)
target_link_libraries(weft_for_programs INTERFACE weft::$<IF:$<BOOL:${WEFT_PROGRAMS_COMPILED}>,compiled,weft>)
target_compile_options(weft_for_programs INTERFACE $<$<BOOL:${WEFT_PROGRAMS_COMPILED}>:-O1>)
