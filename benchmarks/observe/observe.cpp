// SPDX-License-Identifier: BSL-1.0
// What it costs to look: traced and recorded runs beside plain ones. And how well a record predicts the
// speed-up of a program.
// usage: bench_observe [workers] [pairs]     prints a table
#include "lk23/forms.hpp"
#include "observe/bodies.hpp"
#include "uts/config.hpp"

#include <weft/observe.hpp>
#include <weft/weft.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace {

using weft_bench::median, weft_bench::seconds_of, weft_bench::ten_microseconds;

/// Runs once. *Returns*: how long that took, in seconds, without making its data.
using program = std::function<double(weft::runtime&, const weft::run_options&)>;

/// The medians of what both return, called in turn, after a first time that does not count.
template <class A, class B>
std::pair<double, double> in_turn(int pairs, A&& a, B&& b) {
  a(), b();
  std::vector<double> of_a, of_b;
  for (int i = 0; i < pairs; ++i) of_a.push_back(a()), of_b.push_back(b());
  return {median(of_a), median(of_b)};
}

void row(const std::string& what, const char* target, double measured, const char* unit) {
  std::printf("| %s | %s | %.3g%s |\n", what.c_str(), target, measured, unit);
  std::fflush(stdout);
}

long fib(long n) {
  if (n < 2) return n;
  weft::shared<long> a = weft::fork(fib, n - 1);
  const long b = fib(n - 2);
  weft::sync();
  return a.get() + b;
}

long queens(int n, unsigned columns, unsigned left, unsigned right, int cut_off) {
  const unsigned all = (1u << n) - 1;
  if (columns == all) return 1;
  long found[32]{};
  int k = 0;
  for (unsigned free = all & ~(columns | left | right); free != 0; free &= free - 1) {
    const unsigned bit = free & -free;
    const auto next = [=](int levels) {
      return queens(n, columns | bit, (left | bit) << 1, (right | bit) >> 1, levels);
    };
    long& mine = found[k++];
    if (cut_off != 0)
      weft::fork({.name = "placement"}, [&mine, next, cut_off] { mine = next(cut_off - 1); });
    else
      mine = next(0);
  }
  if (cut_off != 0) weft::sync();
  long sum = 0;
  for (int i = 0; i < k; ++i) sum += found[i];
  return sum;
}

/// One task per node, as in the kernel `uts`.
long tree(const weft_bench::node& n) {
  const int children = weft_bench::children_of(weft_bench::t1, n);
  if (children == 0) return 1;
  long part[weft_bench::most_children];
  for (int i = 0; i < children; ++i)
    weft::fork({.name = "node"},
               [&n, i, &mine = part[i]] { mine = tree(weft_bench::child_of(n, static_cast<unsigned>(i))); });
  weft::sync();
  long sum = 1;
  for (int i = 0; i < children; ++i) sum += part[i];
  return sum;
}

/// A symmetric positive definite matrix in tiles, factorized in place.
class cholesky {
 public:
  cholesky(std::size_t tiles, std::size_t edge) : n_(tiles), b_(edge), tiles_(tiles * tiles) {
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        tiles_[i * n_ + j].assign(b_ * b_, 0.5);
        if (i == j)
          for (std::size_t d = 0; d < b_; ++d)
            tiles_[i * n_ + j][d * b_ + d] = static_cast<double>(2 * n_ * b_);
      }
  }
  void run(weft::runtime& rt, const weft::run_options& options) {
    const std::size_t b = b_;
    rt.run(options, [this, b] {
      using weft::borrow, weft::read, weft::update;
      for (std::size_t k = 0; k < n_; ++k) {
        weft::fork({.name = "factorize"}, [b](tile& a) { factorize(a, b); }, update(borrow(at(k, k))));
        for (std::size_t i = k + 1; i < n_; ++i)
          weft::fork(
              {.name = "solve"}, [b](const tile& l, tile& a) { solve(l, a, b); }, read(borrow(at(k, k))),
              update(borrow(at(i, k))));
        for (std::size_t i = k + 1; i < n_; ++i)
          for (std::size_t j = k + 1; j <= i; ++j)
            weft::fork(
                {.name = "multiply"}, [b](const tile& x, const tile& y, tile& a) { multiply(x, y, a, b); },
                read(borrow(at(i, k))), read(borrow(at(j, k))), update(borrow(at(i, j))));
      }
    });
  }

 private:
  using tile = std::vector<double>;
  tile& at(std::size_t i, std::size_t j) { return tiles_[i * n_ + j]; }
  static void factorize(tile& a, std::size_t b) {
    for (std::size_t k = 0; k < b; ++k) {
      const double d = a[k * b + k] = std::sqrt(a[k * b + k]);
      for (std::size_t i = k + 1; i < b; ++i) a[i * b + k] /= d;
      for (std::size_t i = k + 1; i < b; ++i)
        for (std::size_t j = k + 1; j <= i; ++j) a[i * b + j] -= a[i * b + k] * a[j * b + k];
    }
  }
  static void solve(const tile& l, tile& a, std::size_t b) {
    for (std::size_t i = 0; i < b; ++i)
      for (std::size_t k = 0; k < b; ++k) {
        const double x = a[i * b + k] /= l[k * b + k];
        for (std::size_t j = k + 1; j < b; ++j) a[i * b + j] -= x * l[j * b + k];
      }
  }
  static void multiply(const tile& x, const tile& y, tile& a, std::size_t b) {
    for (std::size_t i = 0; i < b; ++i)
      for (std::size_t j = 0; j < b; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < b; ++k) sum += x[i * b + k] * y[j * b + k];
        a[i * b + j] -= sum;
      }
  }

  std::size_t n_, b_;
  std::vector<tile> tiles_;
};

double run_cholesky(weft::runtime& rt, const weft::run_options& o) {
  cholesky matrix(12, 64);
  return seconds_of([&] { matrix.run(rt, o); });
}

void measure_traces(unsigned workers, int pairs) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("weft-bench-observe-" + std::to_string(::getpid()) + ".json");
  const auto tasks = [](weft::runtime& rt, int count, void (*body)()) {
    return seconds_of([&] {
      rt.run([=] {
        for (int i = 0; i < count; ++i) weft::fork({.name = "task"}, body);
      });
    });
  };
  for (const unsigned w : {1u, workers}) {
    // Single workers share a processor: others of a virtual machine may be slower.
    const weft::pinning where = w == 1 ? weft::pinning{0} : weft::pinning{};
    weft::runtime plain({.workers = w, .pinning = where}),
        traced({.workers = w, .pinning = where, .trace = path});
    const std::string with = ", " + std::to_string(w) + (w == 1 ? " worker" : " workers");
    auto [without, of] = in_turn(
        pairs, [&] { return tasks(plain, weft_bench::long_tasks, ten_microseconds); },
        [&] { return tasks(traced, weft_bench::long_tasks, ten_microseconds); });
    row("tasks of about 10 us" + with + ", traced / not", "at most 1.03", of / without, "");
    constexpr int many = weft_bench::empty_tasks;
    std::tie(without, of) =
        in_turn(pairs, [&] { return tasks(plain, many, [] {}); }, [&] { return tasks(traced, many, [] {}); });
    row("an empty named task" + with + ", what the trace adds", "at most 60 ns", (of - without) / many * 1e9,
        " ns");
  }
  std::filesystem::remove(path);
}

/// The same by a rival's program beside this one, if it was built: a process for each half of a pair, which
/// says its medians.
void measure_rival(const char* program_name, const char* what, unsigned workers, int pairs) {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").replace_filename(program_name);
  if (!std::filesystem::exists(path)) return;
  for (const unsigned w : {1u, workers}) {
    std::vector<double> of_long[2], of_empty[2];
    for (int i = 0; i < pairs; ++i)
      for (const int traced : {0, 1}) {
        const std::string command =
            "'" + path.string() + "' " + std::to_string(w) + (traced != 0 ? " 1" : " 0");
        std::FILE* const out = ::popen(command.c_str(), "r");
        double l = 0, e = 0;
        const bool read = out != nullptr && std::fscanf(out, "%lf %lf", &l, &e) == 2;
        if (out == nullptr || ::pclose(out) != 0 || !read) {
          std::fprintf(stderr, "%s: no result\n", command.c_str());
          return;
        }
        of_long[traced].push_back(l);
        of_empty[traced].push_back(e);
      }
    const std::string with =
        std::string(", ") + what + ", " + std::to_string(w) + (w == 1 ? " worker" : " workers");
    row("tasks of about 10 us" + with + ", traced / not", "", median(of_long[1]) / median(of_long[0]), "");
    row("an empty named task" + with + ", what the trace adds", "",
        (median(of_empty[1]) - median(of_empty[0])) / weft_bench::empty_tasks * 1e9, " ns");
  }
}

void measure_records(int pairs) {
  weft::runtime rt({.workers = 1});
  weft::observe::work_and_span ws;
  const auto compare = [&](const char* what, const char* target, const program& p) {
    const auto [plain, recorded] =
        in_turn(pairs, [&] { return p(rt, {}); }, [&] { return p(rt, {.record = &ws}); });
    row(what, target, recorded / plain, "");
  };
  compare("work_and_span / plain, fib(32) without cut-off", "at most 8",
          [](weft::runtime& r, const weft::run_options& o) {
            return seconds_of([&] { r.run(o, [] { fib(32); }); });
          });
  compare("the same, Cholesky, 12 x 12 tiles of 64 x 64", "at most 1.05", run_cholesky);
}

void predict(unsigned workers, int pairs) {
  const auto steal = weft::observe::steal_cost();
  std::printf("\nA steal costs %.1f us here.\n\n", static_cast<double>(steal.count()) / 1e3);
  std::printf(
      "| program | work, ms | parallelism | speed-up with %u workers, predicted | measured | predicted / "
      "measured |\n| --- | --- | --- | --- | --- | --- |\n",
      workers);
  const weft_bench::node root = weft_bench::root_of(weft_bench::t1);
  lk23::grid tasks_grid(1024, 1024), turns_grid(1024, 1024);
  tasks_grid.fill(1), turns_grid.fill(1);
  lk23::block_overlay turns(turns_grid, 128);
  const std::pair<const char*, program> programs[] = {
      {"Cholesky, 12 x 12 tiles of 64 x 64", run_cholesky},
      {"LK23, 1024 x 1024, 8 sweeps, blocks of 128 as tasks",
       [&](weft::runtime& rt, const weft::run_options& o) {
         return seconds_of([&] { lk23::by_data_flow(rt, tasks_grid, 8, 128, o); });
       }},
      {"LK23, the same as an overlay",
       [&](weft::runtime& rt, const weft::run_options& o) {
         return seconds_of([&] { turns.tasks().run(rt, 8, o); });
       }},
      {"UTS T1",
       [&](weft::runtime& rt, const weft::run_options& o) {
         return seconds_of([&] { rt.run(o, [&] { tree(root); }); });
       }},
      {"N-queens 13, tasks on 4 levels",
       [](weft::runtime& rt, const weft::run_options& o) {
         return seconds_of([&] { rt.run(o, [] { queens(13, 0, 0, 0, 4); }); });
       }},
  };
  for (const auto& [name, p] : programs) {
    weft::runtime one({.workers = 1}), several({.workers = workers});
    weft::observe::work_and_span ws({.steal = steal});
    p(one, {});
    p(one, {.record = &ws});
    const auto [alone, together] = in_turn(pairs, [&] { return p(one, {}); }, [&] { return p(several, {}); });
    const double predicted = ws.speed_up(workers), measured = alone / together;
    std::printf("| %s | %.1f | %.1f | %.2f | %.2f | %.2f |\n", name, ws.work() * 1e3, ws.parallelism(),
                predicted, measured, predicted / measured);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int workers = argc > 1 ? std::atoi(argv[1]) : 2, pairs = argc > 2 ? std::atoi(argv[2]) : 15;
  if (workers < 2 || pairs < 1) {
    std::fprintf(stderr, "usage: bench_observe [workers, at least 2] [pairs]\n");
    return 2;
  }
  std::printf("Medians of %d runs each, in turn.\n\n| what | target | measured |\n| --- | --- | --- |\n",
              pairs);
  measure_traces(static_cast<unsigned>(workers), pairs);
  measure_rival("bench_observe_taskflow", "Taskflow and its observer for TFProf",
                static_cast<unsigned>(workers), pairs);
  measure_rival("bench_observe_ompt", "OpenMP (libomp) and a small OMPT tool", static_cast<unsigned>(workers),
                pairs);
  measure_records(pairs);
  predict(static_cast<unsigned>(workers), pairs);
}
