# SPDX-License-Identifier: BSL-1.0
# weft::compiled: the parts of weft that are no templates, compiled once in the project that uses them, with its flags.
# A target that links to it instead of weft::weft compiles faster. All targets of a program use the same one.
if(NOT TARGET weft_compiled)
  add_library(weft_compiled STATIC EXCLUDE_FROM_ALL "${CMAKE_CURRENT_LIST_DIR}/compiled.cpp")
  set_target_properties(weft_compiled PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(weft_compiled PUBLIC WEFT_COMPILED=1 PRIVATE WEFT_DEFINITIONS=1)
  target_link_libraries(weft_compiled PUBLIC weft::weft)
  add_library(weft::compiled ALIAS weft_compiled)
endif()
