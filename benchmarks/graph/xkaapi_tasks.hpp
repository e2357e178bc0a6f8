// SPDX-License-Identifier: BSL-1.0
// What the graphs need of XKaapi, plain enough for C++98, as its headers want.
#pragma once

#include "outcome.hpp"

namespace weft_bench {

/// Creates a task each; those before the last object are read, the last one is updated. `steps`: as work(). A
/// tile is known by its first value and its edge.
typedef unsigned long cell_number;
void spawn_touch(cell_number* own, long steps);
void spawn_append(cell_number* all, long i);
void spawn_meet(const cell_number* north, const cell_number* west, cell_number* own, long steps);
void spawn_blend(const cell_number* left, const cell_number* middle, const cell_number* right,
                 cell_number* out, long steps);
void spawn_factor(double* a, long edge);
void spawn_solve(const double* l, double* b, long edge);
void spawn_multiply(const double* a, const double* b, double* c, long edge);
void wait_for_spawned();

/// Runs graph_body as the main task. One run per process.
outcome run_main_task(int index, unsigned workers);
outcome graph_body(int index);

// What tasks do; compiled by the other file.
cell_number do_work(cell_number x, long steps);
void do_factor(double* a, long edge);
void do_solve(const double* l, double* b, long edge);
void do_multiply(const double* a, const double* b, double* c, long edge);

}  // namespace weft_bench
