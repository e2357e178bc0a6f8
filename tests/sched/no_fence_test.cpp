// SPDX-License-Identifier: BSL-1.0
// A system on which no thread can fence for another: the runtime is refused, with a sentence.
#include "support/catch.hpp"

#include <weft/weft.hpp>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdarg>
#include <string>

namespace {

/// While true, membarrier is refused, and pages to fence with are.
bool starting = true;
const bool started = [] { return !(starting = false); }();  // after weft's own

}  // namespace

extern "C" long syscall(long number, ...) noexcept {
  using function = long (*)(long, ...);
  static const function real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "syscall"));
  if (number == SYS_membarrier) {
    errno = EPERM;
    return -1;
  }
  std::va_list values;
  va_start(values, number);
  long argument[6];  // those that the caller did not give are not looked at
  for (long& one : argument) one = va_arg(values, long);
  va_end(values);
  return real(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}
extern "C" void* mmap(void* at, std::size_t size, int protection, int flags, int file,
                      off_t offset) noexcept {
  using function = void* (*)(void*, std::size_t, int, int, int, off_t);
  static const function real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "mmap"));
  if (starting && size == 4096 && (flags & MAP_ANONYMOUS) != 0) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return real(at, size, protection, flags, file, offset);
}

TEST_CASE("a runtime needs a fence for other threads") {
  REQUIRE(started);
  if (weft::base::heavy_fence_works()) return;  // both sides fence in this build
  std::string said;
  try {
    weft::runtime rt(weft::runtime_options{.workers = 2});
  } catch (const weft::error& e) {
    said = e.what();
  }
  CHECK(said == "weft: this kernel offers no membarrier, which the runtime needs here");
}
