// SPDX-License-Identifier: BSL-1.0
// What may be asked to be able to go to another process.
#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

#include <functional>
#include <string>
#include <vector>

static void fill(int n, weft::write<std::vector<double>> v) { *v = std::vector<double>(n); }
struct scale {
  double by;
  void operator()(weft::update<std::vector<double>> v) const {
    for (double& x : *v) x *= by;
  }
};

int main() {
  weft::thread_cluster c(2);
  c.run([] {
    weft::shared<std::vector<double>> v;
    weft::shared<double> sum(0.0);
    weft::fork(weft::anywhere, fill, 3, v);
    weft::fork(weft::anywhere, scale{2}, v);
    weft::fork(
        weft::anywhere, {.name = "sum"},
        [](const std::vector<double>& x, weft::reduce<double, std::plus<>> s) { s += x[0]; }, weft::read(v),
        weft::reduce(sum, std::plus<>{}));
    weft::fork(weft::anywhere, [](int n) { return std::to_string(n); }, 1);
  });
}
