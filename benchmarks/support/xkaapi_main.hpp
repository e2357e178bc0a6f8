// SPDX-License-Identifier: BSL-1.0
// Starts XKaapi in a measurement's process and runs a kernel's body as its main task (C++98).
#pragma once

#include "outcome.hpp"

#include <kaapi++>
#include <stdio.h>
#include <stdlib.h>

namespace weft_bench {

/// The main task takes no arguments of ours, so they wait here. One run per process.
struct xkaapi_call {
  int problem;
  outcome result;
};

inline xkaapi_call& current_call() {
  static xkaapi_call call;
  return call;
}

template <outcome (*body)(int)>
struct xkaapi_body {
  void operator()(int, char**) { current_call().result = body(current_call().problem); }
};

/// XKaapi reads its number of workers from the environment, once per process.
template <outcome (*body)(int)>
outcome xkaapi_main(int problem, unsigned workers) {
  char count[16];
  snprintf(count, sizeof count, "%u", workers);
  setenv("KAAPI_CPUCOUNT", count, 1);
  char program[] = "benchmark";
  char* arguments[] = {program, 0};
  char** argv = arguments;
  int argc = 1;
  ka::Community all = ka::System::join_community(argc, argv);
  current_call().problem = problem;
  ka::SpawnMain<xkaapi_body<body> >()(argc, argv);
  all.leave();
  return current_call().result;
}

}  // namespace weft_bench
