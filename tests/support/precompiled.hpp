// SPDX-License-Identifier: BSL-1.0
// What most tests include, compiled once for all of them (weft_test.cmake says for which).
#pragma once

#include "flow/runtimes.hpp"

#include <weft/base/thread.hpp>  // of the headers that tests include beyond that, the one that asks for WEFT_PLATFORM

// A test that defines one of these would define it too late. The library's other switches are macros by now,
// and defining one again is an error.
#if !defined(WEFT_TSAN_NO_SYNC)
#pragma GCC poison WEFT_PLATFORM WEFT_PORTABLE_LOCAL WEFT_TSAN_NO_SYNC
#endif
