// SPDX-License-Identifier: BSL-1.0
// The graph of a program, and how far it scales: docs/how-to/find-out-how-far-a-program-scales.md.
// prints: 4 x 4 tiles: 20 tasks, 30 dependences, factors right: yes
//         16 x 16 tiles: 816 tasks, ten workers are of use: yes
//
// usage: example_10_critical_path [<graph.dot> [<scaling.csv>]]
#include <weft/observe.hpp>
#include <weft/weft.hpp>

#include <cmath>
#include <cstdio>
#include <deque>
#include <fstream>
#include <utility>
#include <vector>

namespace {

constexpr int edge = 32;  // of a tile, in numbers

/// A square tile of numbers, row by row.
struct tile {
  std::vector<double> value = std::vector<double>(edge * edge);
  double& operator()(int i, int j) { return value[static_cast<std::size_t>(i * edge + j)]; }
  double operator()(int i, int j) const { return value[static_cast<std::size_t>(i * edge + j)]; }
};

/// Makes its lower factor of a tile on the diagonal.
void potrf(tile& a) {
  for (int k = 0; k < edge; ++k) {
    a(k, k) = std::sqrt(a(k, k));
    for (int i = k + 1; i < edge; ++i) a(i, k) /= a(k, k);
    for (int j = k + 1; j < edge; ++j)
      for (int i = j; i < edge; ++i) a(i, j) -= a(i, k) * a(j, k);
    for (int j = k + 1; j < edge; ++j) a(k, j) = 0;
  }
}

/// Solves x * transposed(l) = b, in place.
void trsm(const tile& l, tile& b) {
  for (int k = 0; k < edge; ++k)
    for (int i = 0; i < edge; ++i) {
      for (int j = 0; j < k; ++j) b(i, k) -= b(i, j) * l(k, j);
      b(i, k) /= l(k, k);
    }
}

/// Subtracts a * transposed(b).
void gemm(const tile& a, const tile& b, tile& c) {
  for (int i = 0; i < edge; ++i)
    for (int j = 0; j < edge; ++j)
      for (int k = 0; k < edge; ++k) c(i, j) -= a(i, k) * b(j, k);
}
void syrk(const tile& a, tile& c) { gemm(a, a, c); }

double element(int i, int j) { return i == j ? 10.0 : 1.0 / (1 + std::abs(i - j)); }

/// The lower triangle of the matrix, in tiles.
struct matrix {
  explicit matrix(int edge_in_tiles) : tiles(edge_in_tiles) {
    for (int i = 0; i < tiles; ++i)
      for (int j = 0; j <= i; ++j) {
        tile t;
        for (int r = 0; r < edge; ++r)
          for (int c = 0; c < edge; ++c) t(r, c) = element(i * edge + r, j * edge + c);
        at.emplace_back(std::move(t));
      }
  }
  weft::shared<tile>& operator()(int i, int j) { return at[static_cast<std::size_t>(i * (i + 1) / 2 + j)]; }

  int tiles;
  std::deque<weft::shared<tile>> at;
};

void factorize(matrix& a) {
  for (int k = 0; k < a.tiles; ++k) {
    weft::fork({.name = "potrf"}, potrf, weft::update(a(k, k)));
    for (int i = k + 1; i < a.tiles; ++i)
      weft::fork({.name = "trsm"}, trsm, weft::read(a(k, k)), weft::update(a(i, k)));
    for (int i = k + 1; i < a.tiles; ++i) {
      for (int j = k + 1; j < i; ++j)
        weft::fork({.name = "gemm"}, gemm, weft::read(a(i, k)), weft::read(a(j, k)), weft::update(a(i, j)));
      weft::fork({.name = "syrk"}, syrk, weft::read(a(i, k)), weft::update(a(i, i)));
    }
  }
}

/// Whether the matrix is the product of its factor and the transpose of that.
bool is_right(matrix& a) {
  const auto l = [&a](int i, int j) { return a(i / edge, j / edge).get()(i % edge, j % edge); };
  for (int i = 0; i < a.tiles * edge; ++i)
    for (int j = 0; j <= i; ++j) {
      double sum = 0;
      for (int k = 0; k <= j; ++k) sum += l(i, k) * l(j, k);
      if (!(std::abs(sum - element(i, j)) < 1e-9)) return false;
    }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  weft::runtime rt({.workers = 1});
  matrix small(4), large(16);

  weft::observe::graph_file graph(argc > 1 ? argv[1] : "/dev/null");
  rt.run({.record = &graph}, [&small] { factorize(small); });
  graph.close();
  std::printf("4 x 4 tiles: %zu tasks, %zu dependences, factors right: %s\n", graph.tasks(), graph.edges(),
              is_right(small) ? "yes" : "no");

  weft::observe::work_and_span ws;
  rt.run({.record = &ws}, [&large] { factorize(large); });
  if (argc > 2) {
    std::ofstream scaling(argv[2]);
    ws.print_csv(scaling);
  }
  std::printf("16 x 16 tiles: %llu tasks, ten workers are of use: %s\n",
              static_cast<unsigned long long>(ws.tasks()), ws.parallelism() > 10 ? "yes" : "no");
}
