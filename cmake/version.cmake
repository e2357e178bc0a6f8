# SPDX-License-Identifier: BSL-1.0
# Reads the version out of the library's own header, so that it is stated once.

# weft_read_version(<header> <variable>): sets <variable> to major.minor.patch. It is an error when the header's
# text form differs from its three numbers.
function(weft_read_version header variable)
  file(READ "${header}" text)
  set(numbers "")
  foreach(part IN ITEMS major minor patch)
    if(NOT text MATCHES "version_${part} = ([0-9]+);")
      message(FATAL_ERROR "${header} does not state version_${part}")
    endif()
    list(APPEND numbers "${CMAKE_MATCH_1}")
  endforeach()
  list(JOIN numbers "." version)
  if(NOT text MATCHES "version_string\\[\\] = \"([0-9.]+)\"" OR NOT CMAKE_MATCH_1 STREQUAL version)
    message(FATAL_ERROR "${header}: version_string must be \"${version}\", as the three numbers say")
  endif()
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()
