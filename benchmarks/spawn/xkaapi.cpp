// SPDX-License-Identifier: BSL-1.0
// Empty tasks with XKaapi's kaapi++ (C++98), each with the right to update its slot.
#include "config.hpp"
#include "xkaapi_main.hpp"

#include <kaapi++>
#include <stdint.h>

struct touch_task : public ka::Task<1>::Signature<ka::RW<long> > {};

template <>
struct TaskBodyCPU<touch_task> {
  void operator()(ka::pointer_rw<long> v) { *v = *v + 1; }
};

/// The body of one round; the main task's own frame would keep what every round has spawned.
struct round_task : public ka::Task<1>::Signature<uintptr_t> {};

template <>
struct TaskBodyCPU<round_task> {
  void operator()(ka::Thread* thread, uintptr_t address) {
    long* value = reinterpret_cast<long*>(address);
    for (int i = 0; i < weft_bench::batch; ++i) {
      ka::pointer<long> v = &value[i];
      thread->Spawn<touch_task>()(v);
    }
  }
};

namespace weft_bench {
namespace {

void all_rounds(slots& s, int count) {
  for (int round = 0; round < count; ++round) {
    ka::Spawn<round_task>()(reinterpret_cast<uintptr_t>(s.value));
    ka::Sync();
  }
}

outcome body(int) {
  static slots warm;
  static slots s;
  all_rounds(warm, 10);
  const stopwatch clock;
  all_rounds(s, rounds);
  return slots_outcome(s, clock.seconds());
}

outcome run(int index, unsigned workers) { return xkaapi_main<body>(index, workers); }

bool fits(int index, unsigned) { return problems[index].style == data_flow; }

const registration entry("xkaapi", run, fits);

}  // namespace
}  // namespace weft_bench
