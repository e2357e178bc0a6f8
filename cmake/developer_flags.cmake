# SPDX-License-Identifier: BSL-1.0
# Flags of weft's own tests, benchmarks and examples; users of weft::weft get none of them.
add_library(weft_developer_flags INTERFACE)
target_compile_options(weft_developer_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wundef -Wnon-virtual-dtor
  -fstack-clash-protection  # without it a large local jumps over the guard page of a task's stack, silently
  $<$<BOOL:${WEFT_WERROR}>:-Werror>)
