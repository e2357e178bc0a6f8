// SPDX-License-Identifier: BSL-1.0
// Where in the user's sources a call of the library stands, for the messages of checked builds.
#pragma once

#include <weft/base/config.hpp>

#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

namespace weft::inline WEFT_ABI::base {

/// An address in the function that calls this one, or into which that is inlined.
WEFT_NOINLINE inline const void* here() noexcept { return __builtin_return_address(0); }

/// The file with the debug information of some code, and where in it that code is found.
struct code_place {
  static constexpr const char* program = "/proc/self/exe";

  const char* file = nullptr;  ///< that, or a shared library; null: not known
  std::uintptr_t offset = 0;
};
inline code_place place_of(const void* returns_to) noexcept {
  struct search {
    std::uintptr_t address;
    code_place found;
  } s{reinterpret_cast<std::uintptr_t>(returns_to) - 1, {}};  // of the call, not of what follows it
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* data) {
        search& wanted = *static_cast<search*>(data);
        for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
          const auto& part = object->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || wanted.address - object->dlpi_addr - part.p_vaddr >= part.p_memsz)
            continue;
          const bool named = object->dlpi_name != nullptr && *object->dlpi_name != '\0';
          wanted.found = {named ? object->dlpi_name : code_place::program,
                          wanted.address - object->dlpi_addr};
          return 1;
        }
        return 0;
      },
      &s);
  return s.found;
}

/// What the command addr2line prints about some places of one file: that of LLVM, which reads the debug
/// information of both compilers, or that of GNU.
class source_lines {
 public:
  static constexpr std::size_t most_places = 32;

  explicit source_lines(std::span<const code_place> places) noexcept {
    char file[1024], offsets[most_places][2 + 2 * sizeof(std::uintptr_t) + 1];
    const char* arguments[4 + most_places + 1] = {"addr2line", "-i", "-e", places[0].file};
    if (places[0].file == code_place::program) {  // which is another one for who reads that link later
      const ssize_t length = ::readlink(places[0].file, file, sizeof file - 1);
      file[length > 0 ? length : 0] = '\0';
      arguments[3] = file;
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      std::snprintf(offsets[i], sizeof offsets[i], "0x%jx", static_cast<std::uintmax_t>(places[i].offset));
      arguments[4 + i] = offsets[i];
    }
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    for (const char* const command : {"llvm-addr2line", "addr2line"}) {
      char** const words = const_cast<char**>(arguments);  // which are not changed
      if (::posix_spawnp(&child_, command, &actions, nullptr, words, environ) == 0) break;
      child_ = -1;
    }
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    out_ = ::fdopen(ends[0], "r");
    if (out_ == nullptr) ::close(ends[0]);
  }
  source_lines(const source_lines&) = delete;
  source_lines& operator=(const source_lines&) = delete;
  ~source_lines() {
    if (out_ != nullptr) std::fclose(out_);
    if (child_ != -1) ::waitpid(child_, nullptr, 0);
  }

  /// The next line, as `file:line`; the calls into which a place was inlined follow it.
  bool next(std::span<char> line) noexcept {
    if (out_ == nullptr || std::fgets(line.data(), static_cast<int>(line.size()), out_) == nullptr)
      return false;
    line[std::strcspn(line.data(), "\n")] = '\0';
    if (char* const discriminator = std::strstr(line.data(), " (")) *discriminator = '\0';
    return true;
  }

 private:
  ::pid_t child_ = -1;
  std::FILE* out_ = nullptr;
};

/// Prints `weft:   <what> <file>:<line>` to the standard error stream for the innermost of these return
/// addresses (innermost first) that lies in a source file outside of this library; nothing where there is no
/// debug information, or no command addr2line. *Thread safety*: any thread; slow: for programs that are about
/// to end.
WEFT_COLD inline void print_source(const char* what, std::span<const void* const> calls) noexcept {
  constexpr std::size_t tail = sizeof "base/source_place.hpp" - 1;
  char line[1024], ours[sizeof __FILE__] = __FILE__;
  ours[sizeof ours - 1 - tail] = '\0';
  bool inside = false;  // where this library has no lines, the user's code has none
  for (std::size_t i = 0; i < calls.size();) {
    code_place places[source_lines::most_places];
    std::size_t n = 0;  // neighbours in one file
    while (n < source_lines::most_places && i + n < calls.size()) {
      places[n] = place_of(calls[i + n]);
      if (places[n].file != places[0].file) break;
      ++n;
    }
    i += n;
    if (places[0].file == nullptr) continue;
    source_lines lines({places, n});
    while (lines.next(line)) {
      if (std::strstr(line, ours) != nullptr) {
        inside = true;
      } else if (inside && std::strchr(line, '?') == nullptr) {
        std::fprintf(stderr, "weft:   %s %s\n", what, line);
        return;
      }
    }
  }
}

/// The same for the function that is running.
WEFT_COLD inline void print_running_source(const char* what) noexcept {
  struct walk {
    const void* calls[source_lines::most_places];
    std::size_t n = 0;
  } w;
  ::_Unwind_Backtrace(
      [](_Unwind_Context* at, void* data) {
        walk& so_far = *static_cast<walk*>(data);
        so_far.calls[so_far.n++] = reinterpret_cast<const void*>(::_Unwind_GetIP(at));
        return so_far.n < source_lines::most_places ? _URC_NO_REASON : _URC_END_OF_STACK;
      },
      &w);
  if (w.n != 0) print_source(what, {w.calls + 1, w.n - 1});  // but for this one
}

}  // namespace weft::inline WEFT_ABI::base
