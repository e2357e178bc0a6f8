// SPDX-License-Identifier: BSL-1.0
// The tasks of the graphs with XKaapi's kaapi++, whose dependences are deduced from the modes of access.
// C++98, as its headers want. A task updates where it could only write: with two workers, a stencil whose
// tasks write gives wrong results.
#include "xkaapi_main.hpp"
#include "xkaapi_tasks.hpp"

#include <kaapi++>

using weft_bench::cell_number;

struct touch_task : public ka::Task<2>::Signature<ka::RW<long>, long> {};
template <>
struct TaskBodyCPU<touch_task> {
  void operator()(ka::pointer_rw<long> own, long steps) {
    *own = long(weft_bench::do_work(3 * cell_number(*own) + 1, steps));
  }
};

struct append_task : public ka::Task<2>::Signature<ka::RW<long>, long> {};
template <>
struct TaskBodyCPU<append_task> {
  void operator()(ka::pointer_rw<long> all, long i) { *all = long(3 * cell_number(*all) + cell_number(i)); }
};

struct meet_task : public ka::Task<4>::Signature<ka::R<long>, ka::R<long>, ka::RW<long>, long> {};
template <>
struct TaskBodyCPU<meet_task> {
  void operator()(ka::pointer_r<long> north, ka::pointer_r<long> west, ka::pointer_rw<long> own, long steps) {
    *own = long(
        weft_bench::do_work(cell_number(*own) + 3 * cell_number(*north) + 5 * cell_number(*west), steps));
  }
};

struct blend_task : public ka::Task<5>::Signature<ka::R<long>, ka::R<long>, ka::R<long>, ka::RW<long>, long> {
};
template <>
struct TaskBodyCPU<blend_task> {
  void operator()(ka::pointer_r<long> left, ka::pointer_r<long> middle, ka::pointer_r<long> right,
                  ka::pointer_rw<long> out, long steps) {
    *out = long(
        weft_bench::do_work(cell_number(*left) + 3 * cell_number(*middle) + 5 * cell_number(*right), steps));
  }
};

struct factor_task : public ka::Task<2>::Signature<ka::RW<double>, long> {};
template <>
struct TaskBodyCPU<factor_task> {
  void operator()(ka::pointer_rw<double> a, long edge) { weft_bench::do_factor(&*a, edge); }
};

struct solve_task : public ka::Task<3>::Signature<ka::R<double>, ka::RW<double>, long> {};
template <>
struct TaskBodyCPU<solve_task> {
  void operator()(ka::pointer_r<double> l, ka::pointer_rw<double> b, long edge) {
    weft_bench::do_solve(&*l, &*b, edge);
  }
};

struct multiply_task : public ka::Task<4>::Signature<ka::R<double>, ka::R<double>, ka::RW<double>, long> {};
template <>
struct TaskBodyCPU<multiply_task> {
  void operator()(ka::pointer_r<double> a, ka::pointer_r<double> b, ka::pointer_rw<double> c, long edge) {
    weft_bench::do_multiply(&*a, &*b, &*c, edge);
  }
};

namespace weft_bench {

static double* plain(const double* first) { return const_cast<double*>(first); }
static long* plain(const cell_number* n) { return reinterpret_cast<long*>(const_cast<cell_number*>(n)); }

void spawn_touch(cell_number* own, long steps) { ka::Spawn<touch_task>()(plain(own), steps); }
void spawn_append(cell_number* all, long i) { ka::Spawn<append_task>()(plain(all), i); }
void spawn_meet(const cell_number* north, const cell_number* west, cell_number* own, long steps) {
  ka::Spawn<meet_task>()(plain(north), plain(west), plain(own), steps);
}
void spawn_blend(const cell_number* left, const cell_number* middle, const cell_number* right,
                 cell_number* out, long steps) {
  ka::Spawn<blend_task>()(plain(left), plain(middle), plain(right), plain(out), steps);
}
void spawn_factor(double* a, long edge) { ka::Spawn<factor_task>()(a, edge); }
void spawn_solve(const double* l, double* b, long edge) { ka::Spawn<solve_task>()(plain(l), b, edge); }
void spawn_multiply(const double* a, const double* b, double* c, long edge) {
  ka::Spawn<multiply_task>()(plain(a), plain(b), c, edge);
}
void wait_for_spawned() { ka::Sync(); }

outcome run_main_task(int index, unsigned workers) { return xkaapi_main<graph_body>(index, workers); }

}  // namespace weft_bench
