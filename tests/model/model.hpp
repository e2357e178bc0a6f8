// SPDX-License-Identifier: BSL-1.0
// How a model is run: many random executions or all there are, and negative controls, which must be reported.
#pragma once

#include "model/platform.hpp"
//
#include "support/environment.hpp"

#include <weft/task/current.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace model {

/// What begins and ends with each execution; the first member of a model, so that it ends last.
class execution {
 public:
  execution() {
    pool<cell>::forget();
    pool<rl::var<long>>::forget();
    making = true;
    sequence = {};
    waiting_count = 0;
    time_now = 0;
    constexpr unsigned stretches[] = {1, 4, 16, 64};
    stretch = rl::ctx().is_random_sched() ? stretches[rl::rand(4)] : 1;
  }
  execution(const execution&) = delete;
  execution& operator=(const execution&) = delete;
  ~execution() {
    pool<cell>::destroy();
    pool<rl::var<long>>::destroy();
  }
};

/// A model is a class with `thread(unsigned)`, and maybe `after()`. It is made anew for each execution.
template <class Model, int threads>
struct suite : rl::test_suite<Model, threads> {
  static_assert(threads <= most_threads);
  static constexpr int thread_count = threads;
  void before() { making = false; }
  execution scope;
};

inline unsigned faults = 0;

/// What Relacy says of a fault, without the making of the model and the histories of single threads.
inline void print_history(const rl::ostringstream& report) {
  constexpr std::size_t most = 50'000;
  const rl::string text = report.str();
  const std::size_t begin = text.find("[BEFORE END]"), end = text.find("\nthread 0:");
  std::printf("%s...\n%s\n", text.substr(0, text.find("[0]")).c_str(),
              begin == text.npos ? "" : text.substr(begin, std::min(end - begin, most)).c_str());
}

/// One search. *Returns*: whether it found nothing. `report`: where the history of a fault goes.
template <class Model>
bool search(rl::scheduler_type_e how, std::uint64_t begin, std::uint64_t count, std::ostream& report,
            rl::test_params& p) {
  static std::ostream nowhere(nullptr);
  see_writes_before_fence = &see_writes_before<Model::thread_count>;
  bind_late = &bind_first_value<Model::thread_count>;
  p.search_type = how;
  p.iteration_count = begin + count;
  p.initial_state = how == rl::sched_random ? (std::to_string(begin + 1) + " ").c_str() : "";
  p.execution_depth_limit = 20'000;
  p.progress_stream = &nowhere;
  p.output_stream = &report;
  return rl::simulate<Model>(p);
}

/// Something that some executions must have done, or the model says nothing.
struct tally {
  const char* what;
  std::uint64_t count = 0;
};

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class Model>
void check_with(const char* name, const char* kind, rl::scheduler_type_e how, std::uint64_t count) {
  const auto start = std::chrono::steady_clock::now();
  rl::ostringstream report;  // not from memory that Relacy watches
  rl::test_params p;
  // Other executions with each seed; there are 2^32.
  const std::uint64_t begin = how == rl::sched_random ? weft_test::seed() % 4'000'000'000 : 0;
  broken = {};
  const bool good = search<Model>(how, begin, count, report, p);
  const std::uint64_t done = p.stop_iteration - begin;
  std::printf("model %s: %llu executions%s, %d faults, %.0f a second\n", name,
              static_cast<unsigned long long>(done), kind, good ? 0 : 1,
              static_cast<double>(done) / seconds_since(start));
  std::printf("figure model_executions %llu\n", static_cast<unsigned long long>(done));
  if (!good) print_history(report);
  faults += !good;
  std::fflush(stdout);
}

/// Prints how often something happened in what was run so far.
inline void must_have_happened(std::initializer_list<const tally*> all) {
  for (const tally* t : all) {
    std::printf("  %s: %llu times\n", t->what, static_cast<unsigned long long>(t->count));
    faults += t->count == 0;
  }
}

/// So many random executions, a hundred times as many in a long run, and few where the library is broken.
template <class Model>
void check(const char* name, std::uint64_t usual = 1'000'000) {
#ifdef WEFT_MUTANTS
  usual /= 10;
#endif
  const char* const count = std::getenv("WEFT_MODEL_EXECUTIONS");
  check_with<Model>(name, "", rl::sched_random,
                    count != nullptr        ? std::strtoull(count, nullptr, 0)
                    : weft_test::long_run() ? 100 * usual
                                            : usual);
}

/// All executions that differ in who goes on and in what loads find.
template <class Model>
void check_all(const char* name) {
  check_with<Model>(name, ", all there are", rl::sched_full, 0);
}

/// The same model with something broken.
template <class Model>
void control([[maybe_unused]] const char* name, [[maybe_unused]] const char* what,
             [[maybe_unused]] weakness w, [[maybe_unused]] rl::scheduler_type_e how = rl::sched_random) {
#ifndef WEFT_MUTANTS
  static std::string chosen;  // to try others
  if (const char* other = std::getenv("WEFT_MODEL_BREAK")) {
    what = other;
    chosen = other;
    const std::size_t colon = chosen.find(':');
    const std::string kind = chosen.substr(colon + 1);
    chosen.resize(colon);
    w = {chosen.c_str(), kind == "load"    ? operation::load
                         : kind == "store" ? operation::store
                         : kind == "rmw"   ? operation::rmw
                         : kind == "split" ? operation::atomicity
                                           : operation::fence};
  }
  // In a process of its own: what is broken may end it.
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child == 0) {
    rl::ostringstream report;  // not from memory that Relacy watches
    rl::test_params p;
    broken = w;
    const bool good = search<Model>(how, 0, 1'000'000, report, p);
    const auto executions = static_cast<unsigned long long>(p.stop_iteration);
    if (good) {
      std::printf("control %s (%s): NOT REPORTED in %llu executions\n", name, what, executions);
    } else {
      std::printf("figure model_controls 1\ncontrol %s (%s): reported after %llu executions: %s\n", name,
                  what, executions, rl::test_result_str(p.test_result));
      if (std::getenv("WEFT_MODEL_HISTORY") != nullptr) print_history(report);
    }
    std::fflush(stdout);
    ::_exit(good ? 1 : 0);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) std::abort();
  if (WIFSIGNALED(status))
    std::printf("figure model_controls 1\ncontrol %s (%s): reported by signal %d\n", name, what,
                WTERMSIG(status));
  else if (WEXITSTATUS(status) != 0)
    ++faults;
  std::fflush(stdout);
#endif
}

/// What main returns.
inline int exit_status() {
  std::printf(faults == 0 ? "all models hold\n" : "%u models or controls failed\n", faults);
  return faults != 0;
}

}  // namespace model
