// SPDX-License-Identifier: BSL-1.0
// Fibonacci with XKaapi's kaapi++: three tasks per call by data flow, or spawn and wait. C++98, as its
// headers want.
#include "config.hpp"
#include "xkaapi_main.hpp"

#include <kaapi++>

struct sum_task : public ka::Task<3>::Signature<ka::W<long>, ka::R<long>, ka::R<long> > {};

template <>
struct TaskBodyCPU<sum_task> {
  void operator()(ka::pointer_w<long> r, ka::pointer_r<long> a, ka::pointer_r<long> b) { *r = *a + *b; }
};

struct flow_task : public ka::Task<2>::Signature<ka::W<long>, long> {};

template <>
struct TaskBodyCPU<flow_task> {
  void operator()(ka::Thread* thread, ka::pointer_w<long> r, long n) {
    if (n < 2) {
      *r = n;
      return;
    }
    ka::auto_variable<long> a(thread);
    ka::auto_variable<long> b(thread);
    thread->Spawn<flow_task>()(&a, n - 1);
    thread->Spawn<flow_task>()(&b, n - 2);
    thread->Spawn<sum_task>()(r, &a, &b);
  }
};

struct join_task : public ka::Task<2>::Signature<ka::W<long>, long> {};

template <>
struct TaskBodyCPU<join_task> {
  void operator()(ka::Thread* thread, ka::pointer_w<long> r, long n) {
    if (n < 2) {
      *r = n;
      return;
    }
    long a = 0;
    long b = 0;
    thread->Spawn<join_task>()(&a, n - 1);
    (*this)(thread, &b, n - 2);
    ka::Sync();
    *r = a + b;
  }
};

namespace weft_bench {
namespace {

long whole(const problem& p, int n) {
  long* value = ka::Alloca<long>(1);
  *value = 0;
  ka::pointer<long> r = value;
  if (is_fork_join(p))
    ka::Spawn<join_task>()(r, long(n));
  else
    ka::Spawn<flow_task>()(r, long(n));
  ka::Sync();
  return *value;
}

outcome body(int index) {
  const problem& p = problems[index];
  whole(p, warm_up_n);
  const stopwatch clock;
  const long value = whole(p, p.n);
  return plain_outcome(value, tasks(p), clock.seconds());
}

outcome run(int index, unsigned workers) { return xkaapi_main<body>(index, workers); }

const registration entry("xkaapi", run, fits_all);

}  // namespace
}  // namespace weft_bench
