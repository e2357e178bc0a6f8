// SPDX-License-Identifier: BSL-1.0
// What the library of these tests offers, found by dlsym.
#pragma once

extern "C" {
/// Makes a runtime of its own, runs tasks there, and ends it. *Returns*: 0, or what went wrong.
[[gnu::visibility("default")]] int weft_plugin_run();
/// Forks tasks in the caller's task, waits for them, and repeats a graph. *Returns*: 0, or what went wrong.
[[gnu::visibility("default")]] int weft_plugin_fork();
/// Throws weft::option_error, in a task of the caller's task if there is one.
[[gnu::visibility("default")]] void weft_plugin_throw();
/// Lets a task of a runtime of its own overflow its stack.
[[gnu::visibility("default")]] void weft_plugin_overflow();
}
