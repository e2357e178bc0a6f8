// SPDX-License-Identifier: BSL-1.0
// Independent tasks in OpenMP, with and without a small OMPT tool, which keeps a time stamp, a kind and a
// number for each task that is made, begins or ends. A program of its own, which bench_observe starts.
#include "bodies.hpp"

#include <omp-tools.h>
#include <omp.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace {

struct event {
  std::uint64_t time, kind, task;
};

/// The events of a thread; later ones overwrite the oldest.
struct ring {
  static constexpr std::size_t size = 1 << 15;
  std::unique_ptr<event[]> events = std::make_unique<event[]>(size);
  std::uint64_t count = 0, tasks = 0;

  void add(std::uint64_t kind, std::uint64_t task) {
    events[count++ % size] = {__builtin_readcyclecounter(), kind, task};
  }
};
ring& mine() {
  thread_local ring r;
  return r;
}

void task_create(ompt_data_t*, const ompt_frame_t*, ompt_data_t* made, int, int, const void*) {
  ring& r = mine();
  made->value = reinterpret_cast<std::uintptr_t>(&r) + ++r.tasks;
  r.add(0, made->value);
}
void task_schedule(ompt_data_t* before, ompt_task_status_t status, ompt_data_t* next) {
  ring& r = mine();
  if (before != nullptr) r.add(1 + static_cast<std::uint64_t>(status), before->value);
  if (next != nullptr) r.add(0x100, next->value);
}

int begin_tool(ompt_function_lookup_t look_up, int, ompt_data_t*) {
  const auto set = reinterpret_cast<ompt_set_callback_t>(look_up("ompt_set_callback"));
  if (set == nullptr) return 0;
  set(ompt_callback_task_create, reinterpret_cast<ompt_callback_t>(&task_create));
  set(ompt_callback_task_schedule, reinterpret_cast<ompt_callback_t>(&task_schedule));
  return 1;
}
void end_tool(ompt_data_t*) {}

bool traced = false;

/// One thread makes all tasks.
void run(unsigned workers, int count, void (*body)()) {
#pragma omp parallel num_threads(workers)
#pragma omp single
  for (int i = 0; i < count; ++i) {
#pragma omp task firstprivate(body)
    body();
  }
}

}  // namespace

/// OpenMP's runtime asks for the tool when it begins.
extern "C" ompt_start_tool_result_t* ompt_start_tool(unsigned, const char*) {
  static ompt_start_tool_result_t tool{&begin_tool, &end_tool, {0}};
  return traced ? &tool : nullptr;
}

int main(int argc, char** argv) {
  using namespace weft_bench;
  traced = argc == 3 && std::strcmp(argv[2], "1") == 0;
  const auto times = [](unsigned workers, bool, std::vector<double>& long_ones,
                        std::vector<double>& empty_ones) {
    for (int i = 0; i < 6; ++i) {
      const double l = seconds_of([&] { run(workers, long_tasks, &ten_microseconds); });
      const double e = seconds_of([&] { run(workers, empty_tasks, [] {}); });
      if (i == 0) continue;  // warms up
      long_ones.push_back(l);
      empty_ones.push_back(e);
    }
    if (traced && mine().count == 0) {
      std::fprintf(stderr, "the OpenMP runtime has called no tool\n");
      std::exit(1);
    }
  };
  return print_times(argc, argv, times);
}
