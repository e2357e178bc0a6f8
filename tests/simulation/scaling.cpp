#include "cost_model.hpp"
#include <weft/weft.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cmath>
#include <vector>
#include <string>
using simulation::work;
long join_fib(long n) {
  work(1);
  if (n < 2) return n;
  weft::shared<long> a = weft::fork(join_fib, n - 1);
  const long b = join_fib(n - 2);
  weft::sync();
  return a.get() + b;
}
void sum(weft::read<long> a, weft::read<long> b, weft::write<long> r) { work(1); r = *a + *b; }
void flow_fib(long n, weft::write<long> r) {
  work(1);
  if (n < 2) { r = n; return; }
  weft::shared<long> a, b;
  weft::fork(flow_fib, n - 1, a);
  weft::fork(flow_fib, n - 2, b);
  weft::fork(sum, a, b, r);
}
// UTS: states as 64-bit hashes
struct node { std::uint64_t state; int height; };
std::uint64_t mix(std::uint64_t x) { x ^= x >> 33; x *= 0xff51afd7ed558ccdull; x ^= x >> 33; x *= 0xc4ceb9fe1a85ec53ull; x ^= x >> 33; return x; }
node child_of(const node& p, unsigned i) { work(130); return {mix(p.state + 0x9E3779B97F4A7C15ull * (i + 1)), p.height + 1}; }
double uniform(const node& n) { return double(n.state >> 11) * 0x1p-53; }
std::uint64_t seed_t1 = std::getenv("ROOT") ? std::atoi(std::getenv("ROOT")) : 1; int t1_depth = 8; double q = 0.1235; int roots = 500;
template <bool t3> int children(const node& n) {
  if constexpr (t3) { return uniform(n) < q ? 8 : 0; }
  else { const double b = n.height < t1_depth ? 4.0 : 0.0; if (b == 0) return 0; const double p = 1 / (1 + b); int d = int(std::floor(std::log(1 - uniform(n)) / std::log(1 - p))); return d < 100 ? d : 100; }
}
template <bool t3> long forked(const node& n) {
  const int k = children<t3>(n);
  if (k == 0) return 1;
  long part[t3 ? 8 : 100];
  for (int i = 0; i < k; ++i) weft::fork([&n, i, &mine = part[i]] { mine = forked<t3>(child_of(n, unsigned(i))); });
  weft::sync();
  long c = 1;
  for (int i = 0; i < k; ++i) c += part[i];
  return c;
}
long tree3() {
  std::vector<long> part(roots);
  node r{42, 0};
  for (int i = 0; i < roots; ++i) weft::fork([&r, i, &mine = part[i]] { mine = forked<true>(child_of(r, unsigned(i))); });
  weft::sync();
  long c = 1; for (long p : part) c += p; return c;
}
void wavefront(int n, double body) {
  std::vector<weft::shared<long>> cell(std::size_t(n) * n);
  for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) {
    auto at = [&](int y, int x) -> weft::shared<long>& { return cell[std::size_t(y) * n + x]; };
    if (i && j) weft::fork([body](weft::read<long> a, weft::read<long> b, weft::write<long> c) { work(body); c = *a + *b; }, at(i-1,j), at(i,j-1), at(i,j));
    else if (i) weft::fork([body](weft::read<long> a, weft::write<long> c) { work(body); c = *a; }, at(i-1,j), at(i,j));
    else if (j) weft::fork([body](weft::read<long> a, weft::write<long> c) { work(body); c = *a; }, at(i,j-1), at(i,j));
    else weft::fork([body](weft::write<long> c) { work(body); c = 1; }, at(i,j));
  }
  weft::sync();
}
void independent(int n, double body) {
  for (int i = 0; i < n; ++i) weft::fork([body] { work(body); });
  weft::sync();
}

#include <algorithm>
int main(int argc, char** argv) {
  const std::string what = argv[1];
  const int size = std::atoi(argv[2]);
  const double body = argc > 3 ? std::atof(argv[3]) : 0;
  const char* ws = std::getenv("W");
  std::vector<unsigned> workers = ws ? std::vector<unsigned>{unsigned(std::atoi(ws))} : std::vector<unsigned>{2, 4, 8, 16};
  workers.insert(workers.begin(), 1u);
  const int seeds = std::getenv("S") ? std::atoi(std::getenv("S")) : 5;
  double one = 0;
  for (unsigned w : workers) {
    std::vector<double> times;
    long result = 0;
    double steals = 0, attempts = 0, deferred = 0, transfers = 0, barriers = 0, sleeps = 0, promotions = 0;
    const int n = w == 1 ? 1 : seeds;
    for (int k = 0; k < n; ++k) {
      double took = 0;
      weft::counters c;
      simulation::prices pr; pr.transfer = 96 + 2 * k;
      auto b = simulation::run_with_prices([&] {
        weft::runtime_options o; o.workers = w;
        weft::runtime rt(o);
        rt.run([&] {
          const double t = simulation::time_here();
          if (what == "join") result = join_fib(size);
          if (what == "flow") { weft::shared<long> r; weft::fork(flow_fib, long(size), r); weft::sync(); result = r.get(); }
          if (what == "t1") { t1_depth = size; result = forked<false>(node{mix(seed_t1), 0}); }
          if (what == "t3") { roots = size; result = tree3(); }
          if (what == "wave") wavefront(size, body);
          if (what == "ind") independent(size, body);
          took = simulation::time_here() - t;
        });
        c = rt.counters();
      }, pr);
      times.push_back(took);
      steals += c.steals; attempts += c.steal_attempts; deferred += c.deferred; transfers += b.transfers; barriers += b.process_fences; sleeps += b.sleeps; promotions += c.promotions;
    }
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2];
    if (w == 1) one = median;
    std::printf("%-5s %2u workers %9.1f us (%.0f..%.0f)  speed-up %5.2f  deferred %.0f steals %.0f attempts %.0f fences %.0f promotions %.0f transfers %.0f sleeps %.0f result %ld\n", what.c_str(), w, median / 1e3, times[0] / 1e3, times.back() / 1e3, one / median,
      deferred / n, steals / n, attempts / n, barriers / n, promotions / n, transfers / n, sleeps / n, result);
    std::fflush(stdout);
  }
}
