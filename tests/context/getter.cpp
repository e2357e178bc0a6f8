// SPDX-License-Identifier: BSL-1.0
// What getter_code.py disassembles: reads of current(), alone, twice in a row, and around an opaque call.
#include "context/outside.hpp"

void opaque();  // in getter_main.cpp

extern "C" {
[[gnu::noinline, gnu::used, gnu::visibility("default")]] void* getter_once() {
  return weft::context::current();
}
/// Two reads with nothing between them are one.
[[gnu::noinline, gnu::used, gnu::visibility("default")]] void* getter_twice() {
  void* const first = weft::context::current();
  return first == weft::context::current() ? first : nullptr;
}
/// A call between them may have moved us: two reads.
[[gnu::noinline, gnu::used, gnu::visibility("default")]] bool getter_around() {
  void* const first = weft::context::current();
  opaque();
  return first == weft::context::current();
}
}
