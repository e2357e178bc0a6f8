# SPDX-License-Identifier: BSL-1.0
# Explores all states of a Spin model: SPIN, COMPILER (of the program that Spin writes), MODEL, FOLDER to work in, SWITCH
# (-D..., the variant; may be empty), FAULT (whether one must be found).
file(MAKE_DIRECTORY "${FOLDER}")
execute_process(COMMAND "${SPIN}" -a ${SWITCH} "${MODEL}"
  WORKING_DIRECTORY "${FOLDER}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${COMPILER}" -x c -O2 -w -DSAFETY -DMEMLIM=1024 -o pan pan.c
  WORKING_DIRECTORY "${FOLDER}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${FOLDER}/pan" -m100000
  WORKING_DIRECTORY "${FOLDER}" OUTPUT_VARIABLE printed ERROR_VARIABLE printed RESULT_VARIABLE status)
if(NOT status STREQUAL "0" OR NOT printed MATCHES "errors: ([0-9]+)")
  message(FATAL_ERROR "the search itself failed: ${status}\n${printed}")
endif()
set(errors "${CMAKE_MATCH_1}")
string(REGEX MATCH "([0-9]+) states, stored" states "${printed}")
cmake_path(GET MODEL STEM name)
if(NOT errors STREQUAL "0")
  string(REGEX MATCH "pan:1: [^\n]*" what "${printed}")
endif()
if(FAULT AND errors STREQUAL "0")
  message(FATAL_ERROR "control ${name} ${SWITCH}: NOT REPORTED\n${printed}")
elseif(FAULT)
  message("control ${name} ${SWITCH}: reported, ${what}")
elseif(printed MATCHES "max search depth too small|out of memory|-w[^\n]*hash|Search not completed")
  message(FATAL_ERROR "model ${name}: not all states were explored\n${printed}")
elseif(NOT errors STREQUAL "0")
  message(FATAL_ERROR "model ${name}: ${what}\n${printed}")
else()
  message("model ${name}: ${states}, 0 faults")
endif()
