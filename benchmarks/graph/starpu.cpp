// SPDX-License-Identifier: BSL-1.0
// The graphs with StarPU: a data handle per object, dependences deduced from the modes of access. One more
// thread submits the tasks.
#include "config.hpp"
#include "stencil.hpp"
#include "tiles.hpp"

#include <starpu.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft_bench {
namespace {

using handle = starpu_data_handle_t;

/// What travels with a task beside its handles.
struct argument {
  long number;
};

template <class T>
T& object(void* buffer) {
  return *reinterpret_cast<T*>(STARPU_VARIABLE_GET_PTR(buffer));
}
long number_of(void* a) { return static_cast<const argument*>(a)->number; }

void touch_it(void* b[], void* steps) {
  object<number>(b[0]) = work(3 * object<number>(b[0]) + 1, number_of(steps));
}
void append_it(void* b[], void* i) { append(object<number>(b[0]), int(number_of(i))); }
void meet_it(void* b[], void* steps) {
  number& own = object<number>(b[2]);
  own = work(own + 3 * object<number>(b[0]) + 5 * object<number>(b[1]), number_of(steps));
}
void blend_it(void* b[], void* steps) {
  blend(object<number>(b[0]), object<number>(b[1]), object<number>(b[2]), object<number>(b[3]),
        number_of(steps));
}
template <int edge>
void factor_it(void* b[], void*) {
  factor(object<tile<edge>>(b[0]));
}
template <int edge>
void solve_it(void* b[], void*) {
  solve(object<tile<edge>>(b[0]), object<tile<edge>>(b[1]));
}
template <int edge>
void multiply_it(void* b[], void*) {
  multiply(object<tile<edge>>(b[0]), object<tile<edge>>(b[1]), object<tile<edge>>(b[2]));
}

/// A kind of task, which reads its handles but the last one.
struct kind {
  starpu_codelet codelet;
  kind(starpu_cpu_func_t body, int handles, starpu_data_access_mode last) {
    starpu_codelet_init(&codelet);
    codelet.cpu_funcs[0] = body;
    codelet.nbuffers = handles;
    for (int i = 0; i + 1 < handles; ++i) codelet.modes[i] = STARPU_R;
    codelet.modes[handles - 1] = last;
  }
};

template <class... Handles>
void submit(kind& k, int priority, long number, Handles... handles) {
  starpu_task* const t = starpu_task_create();
  const handle all[] = {handles...};
  for (std::size_t i = 0; i < sizeof...(handles); ++i) t->handles[i] = all[i];
  auto* const a = static_cast<argument*>(std::malloc(sizeof(argument)));
  a->number = number;
  t->cl = &k.codelet;
  t->priority = priority;
  t->cl_arg = a;
  t->cl_arg_size = sizeof *a;
  t->cl_arg_free = 1;
  if (starpu_task_submit(t) != 0) throw std::runtime_error("StarPU takes no task");
}

/// The handles of some objects.
class handles {
 public:
  template <class T>
  handle add(T& object) {
    all_.emplace_back();
    starpu_variable_data_register(&all_.back(), STARPU_MAIN_RAM, reinterpret_cast<uintptr_t>(&object),
                                  sizeof object);
    return all_.back();
  }
  handle operator[](std::size_t i) const { return all_[i]; }
  handles() = default;
  handles(const handles&) = delete;
  handles& operator=(const handles&) = delete;
  ~handles() {
    for (const handle h : all_) starpu_data_unregister(h);
  }

 private:
  std::vector<handle> all_;
};

/// Registering the objects does not count, nor what ends that.
double run_field(const problem& p, field& f) {
  static kind touches(touch_it, 1, STARPU_RW), appends(append_it, 1, STARPU_RW), meets(meet_it, 3, STARPU_RW);
  const std::size_t width = std::size_t(p.size) + 1;
  handles h;
  if (p.shape == chain)
    h.add(f[0]);
  else if (field::is_square(p))
    for (int i = 0; i <= p.size; ++i)
      for (int j = 0; j <= p.size; ++j) h.add(f.at(i, j));
  else
    for (int i = 0; i < p.size; ++i) h.add(f[i]);
  const long steps = p.steps;
  const stopwatch clock;
  for (int round = 0; round < p.rounds; ++round) {
    if (p.shape == chain)
      for (int i = 0; i < p.size; ++i) submit(appends, 0, i, h[0]);
    else if (field::is_square(p))
      for (std::size_t i = 1; i < width; ++i)
        for (std::size_t j = 1; j < width; ++j)
          submit(meets, 0, steps, h[(i - 1) * width + j], h[i * width + j - 1], h[i * width + j]);
    else
      for (int i = 0; i < p.size; ++i) submit(touches, 0, steps, h[std::size_t(i)]);
    starpu_task_wait_for_all();
  }
  return clock.seconds();
}

double run_stencil(cells& c, int rows, long steps) {
  static kind blends(blend_it, 4, STARPU_W);
  const std::size_t width = std::size_t(c.width()) + 2;
  handles h;
  for (int t = 0; t < 2; ++t)
    for (int i = 0; i < c.width() + 2; ++i) h.add(c.at(t, i));
  const stopwatch clock;
  for (int t = 1; t <= rows; ++t) {
    const std::size_t before = width * std::size_t((t - 1) % 2), now = width * std::size_t(t % 2);
    for (std::size_t i = 1; i + 1 < width; ++i)
      submit(blends, 0, steps, h[before + i - 1], h[before + i], h[before + i + 1], h[now + i]);
  }
  starpu_task_wait_for_all();
  return clock.seconds();
}

template <int edge>
double run_cholesky(matrix<edge>& m) {
  static kind factors(factor_it<edge>, 1, STARPU_RW), solves(solve_it<edge>, 2, STARPU_RW),
      multiplies(multiply_it<edge>, 3, STARPU_RW);
  const int n = m.tiles();
  handles all;
  std::vector<std::size_t> at(std::size_t(n) * std::size_t(n));
  std::size_t count = 0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j <= i; ++j) {
      all.add(m.at(i, j));
      at[std::size_t(i * n + j)] = count++;
    }
  const auto h = [&](int i, int j) { return all[at[std::size_t(i * n + j)]]; };
  const stopwatch clock;
  for (int k = 0; k < n; ++k) {
    submit(factors, 3, 0, h(k, k));
    for (int i = k + 1; i < n; ++i) submit(solves, 2, 0, h(k, k), h(i, k));
    for (int i = k + 1; i < n; ++i)
      for (int j = k + 1; j <= i; ++j) submit(multiplies, 0, 0, h(i, k), h(j, k), h(i, j));
  }
  starpu_task_wait_for_all();
  return clock.seconds();
}

outcome run(int index, unsigned workers) {
  setenv("STARPU_SILENT", "1", 0);
  starpu_conf conf;
  starpu_conf_init(&conf);
  conf.ncpus = int(workers);
  conf.ncuda = conf.nopencl = 0;
  if (starpu_init(&conf) != 0) throw std::runtime_error("StarPU does not start");
  const problem& p = problems[index];
  const outcome o = p.shape == stencil    ? smallest_task(p, workers, run_stencil)
                    : p.shape == cholesky ? cholesky_outcome(p, [](auto& m) { return run_cholesky(m); })
                                          : field_outcome(p, run_field);
  starpu_shutdown();
  return o;
}

/// A handle has kilobytes: a million of them do not fit, and half a million take long to register.
bool fits(int index, unsigned workers) {
  const problem& p = problems[index];
  const long long objects = p.shape == chain ? 1 : field::is_square(p) ? 1LL * p.size * p.size : p.size;
  return fits_flat_graph(index, workers) && objects < 300'000;
}

const registration entry("starpu", run, fits);

}  // namespace
}  // namespace weft_bench
