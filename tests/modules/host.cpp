// SPDX-License-Identifier: BSL-1.0
// A program that uses weft and loads libraries that do: host <scenario> <library>... Ends with status 0 and
// "ok", or says what went wrong.
#include "modules/plugin.hpp"

#include <weft/weft.hpp>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

void expect(bool right, const char* what) {
  if (right) return;
  std::printf("wrong: %s\n", what);
  std::exit(1);
}

/// A library while it is loaded, seen by nobody else.
class library {
 public:
  explicit library(const char* path)
      : handle_(dlopen(std::strcmp(path, "linked") == 0 ? nullptr : path, RTLD_NOW | RTLD_LOCAL)) {
    expect(handle_ != nullptr, handle_ != nullptr ? "" : dlerror());
  }
  library(library&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~library() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  template <class F>
  F* find(const char* name) const {
    void* const found = dlsym(handle_, name);
    expect(found != nullptr, name);
    return reinterpret_cast<F*>(found);
  }

 private:
  void* handle_;
};

std::vector<library> load(char** paths) {
  std::vector<library> all;
  for (; *paths != nullptr; ++paths) all.emplace_back(*paths);
  return all;
}

int own_tasks() {
  std::vector<int> cells(300, 1);
  for (int& c : cells) weft::fork([](int& here) { here += 1; }, weft::update(weft::borrow(c)));
  weft::sync();
  for (int c : cells)
    if (c != 2) return 1;
  return 0;
}

/// Runtimes of their own in all libraries, loaded and unloaded again and again.
void run(char** paths) {
  weft::runtime rt({.workers = 3});
  for (int round = 0; round < 20; ++round) {
    const auto all = load(paths);
    for (const library& l : all) expect(l.find<int()>("weft_plugin_run")() == 0, "run in a library");
    expect(rt.run(&own_tasks) == 0, "run in the program");
    for (const library& l : all)
      expect(rt.run([f = l.find<int()>("weft_plugin_run")] { return f(); }) == 0, "run below a task");
  }
}

/// Libraries that fork in a task of the program.
void fork(char** paths) {
  weft::runtime rt({.workers = 3});
  for (int round = 0; round < 20; ++round) {
    const auto all = load(paths);
    for (const library& l : all)
      expect(rt.run([f = l.find<int()>("weft_plugin_fork")] { return f(); }) == 0, "fork in a library");
  }
}

template <class F>
bool throws_error(F f) {
  try {
    f();
  } catch (const weft::error& e) {
    return std::strcmp(e.what(), "thrown by the library") == 0;
  }
  return false;
}

/// Exceptions that libraries throw.
void catch_them(char** paths) {
  weft::runtime rt({.workers = 1});
  for (const library& l : load(paths)) {
    const auto f = l.find<void()>("weft_plugin_throw");
    expect(throws_error(f), "caught outside tasks");
    expect(throws_error([&] { rt.run(f); }), "caught by run");
  }
}

/// A fault after libraries with runtimes were unloaded.
void fault(char** paths) {
  std::signal(SIGSEGV, [](int) {
    static_cast<void>(!write(STDOUT_FILENO, "ok\n", 3));
    _exit(0);
  });
  for (const library& l : load(paths)) expect(l.find<int()>("weft_plugin_run")() == 0, "run in a library");
  int* volatile nowhere = nullptr;
  *nowhere = 1;
}

/// A fork of the process after libraries with runtimes were unloaded.
void process(char** paths) {
  weft::runtime rt({.workers = 1});
  for (const library& l : load(paths)) expect(l.find<int()>("weft_plugin_run")() == 0, "run in a library");
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      rt.run([] {});
    } catch (const weft::error&) {
      _exit(0);
    }
    _exit(1);
  }
  int status = 0;
  expect(waitpid(child, &status, 0) == child && status == 0, "a runtime knows that the process was forked");
}

/// Loads the libraries, and lets a task overflow its stack in the first.
void overflow(char** paths) {
  weft::runtime rt({.workers = 1});
  rt.run([] {});
  const auto all = load(paths);
  for (const library& l : all) expect(l.find<int()>("weft_plugin_run")() == 0, "run in a library");
  all.front().find<void()>("weft_plugin_overflow")();
}

}  // namespace

int main(int, char** arguments) {
  const std::map<std::string, void (*)(char**)> scenarios = {
      {"run", &run},     {"fork", &fork},       {"catch", &catch_them},
      {"fault", &fault}, {"process", &process}, {"overflow", &overflow},
  };
  scenarios.at(arguments[1])(arguments + 2);
  std::puts("ok");
}
