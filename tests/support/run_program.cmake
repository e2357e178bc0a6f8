# SPDX-License-Identifier: BSL-1.0
# Runs PROGRAM with ARGUMENTS and compares its end and what it printed with FAILS and EXPECT.
execute_process(COMMAND "${PROGRAM}" ${ARGUMENTS}
  RESULT_VARIABLE status OUTPUT_VARIABLE printed ERROR_VARIABLE printed)
message("${printed}")
if(FAILS AND status STREQUAL "0")
  message(FATAL_ERROR "${PROGRAM} ended with status 0, it should have failed")
elseif(NOT FAILS AND NOT status STREQUAL "0")
  message(FATAL_ERROR "${PROGRAM} ended with: ${status}")
endif()
if(NOT EXPECT STREQUAL "" AND NOT printed MATCHES "${EXPECT}")
  message(FATAL_ERROR "${PROGRAM} did not print what matches: ${EXPECT}")
endif()
