# SPDX-License-Identifier: BSL-1.0
# weft::ooc: weft::weft for programs that include weft/ooc.hpp, with liburing where it is installed. Without it the
# threads of the library read and write files.
if(NOT TARGET weft_ooc)
  find_path(WEFT_LIBURING_INCLUDE liburing.h)
  find_library(WEFT_LIBURING_LIBRARY uring)
  mark_as_advanced(WEFT_LIBURING_INCLUDE WEFT_LIBURING_LIBRARY)
  add_library(weft_ooc INTERFACE)
  target_link_libraries(weft_ooc INTERFACE weft::weft)
  if(WEFT_LIBURING_INCLUDE AND WEFT_LIBURING_LIBRARY)
    target_include_directories(weft_ooc SYSTEM INTERFACE "${WEFT_LIBURING_INCLUDE}")
    target_compile_definitions(weft_ooc INTERFACE WEFT_LIBURING=1)
    target_link_libraries(weft_ooc INTERFACE "${WEFT_LIBURING_LIBRARY}")
  endif()
  add_library(weft::ooc ALIAS weft_ooc)
endif()
