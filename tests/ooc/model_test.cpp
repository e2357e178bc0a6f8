// SPDX-License-Identifier: BSL-1.0
// The cost model: the phases add up to the closed forms of the paper, and the best width is the best one.
#include "support/catch.hpp"

#include <weft/ooc/model.hpp>

#include <cmath>

namespace model = weft::ooc::model;

namespace {

constexpr model::machine cluster = {8e-3, 8 / 40e6, 5e-5, 5e-5, 8 / 12e6, 1e9};

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); }

}  // namespace

TEST_CASE("the phases of one sweep add up to equations 12 and 15") {
  const model::wavefront w{.rows = 32768, .columns = 32768, .processors = 4};
  const model::machine& m = cluster;
  for (const double width : {64.0, 512.0, 1024.0, 4096.0}) {
    const double phases =
        w.synchronisation(m, width) + w.load(m, width) + w.steady_state(m, width) + w.flush(m, width);
    CHECK(close(phases, w.total(m, width)));
    const double n = w.columns, p = w.processors;
    const double closed = p * (m.receive_latency + m.send_latency + m.io_latency) +
                          n * (m.transfer + m.io_transfer) + 2 * n * n * m.io_transfer / p +
                          2 * n * m.io_latency / width +
                          width * (p - 1) * (5 * n / (p * m.speed) + m.transfer);
    CHECK(close(w.total(m, width), closed));
  }
}

TEST_CASE("several sweeps add up to equation 14") {
  const model::machine& m = cluster;
  for (const double k : {2.0, 3.0, 20.0}) {
    const model::wavefront w{.rows = 51200, .columns = 51200, .processors = 4, .sweeps = k};
    for (const double width : {128.0, 1024.0}) {
      const double phases = w.synchronisation(m, width) + w.load(m, width) +
                            k * (w.steady_state(m, width) + w.flush(m, width)) +
                            (k - 1) * w.transition(m, width);
      CHECK(close(phases, w.total(m, width)));
    }
  }
}

TEST_CASE("the best width has the smallest total, and the printed one has not") {
  const model::machine& m = cluster;
  for (const double k : {1.0, 3.0, 16.0}) {
    const model::wavefront w{.rows = 32768, .columns = 32768, .processors = 4, .sweeps = k, .operations = 5};
    const double best = w.best_width(m);
    for (const double factor : {0.5, 0.9, 1.1, 2.0}) CHECK(w.total(m, best) < w.total(m, factor * best));
    CHECK(close(
        w.best_width(m) / model::wavefront{.rows = 32768, .columns = 32768, .processors = 4}.best_width(m),
        std::sqrt(k * 3 / (2 + k))));
  }
  const model::wavefront one{.rows = 32768, .columns = 32768, .processors = 4};
  CHECK(one.total(m, one.best_width(m)) < one.total(m, one.printed_best_width(m)));
  model::machine free = m;
  free.transfer = 0;  // then both are the same
  CHECK(close(one.best_width(free), one.printed_best_width(free)));
  CHECK(std::isinf(model::wavefront{.rows = 100, .columns = 100}.best_width(m)));
  // Thicker frontiers below move it, those above do not.
  model::wavefront thick = one;
  thick.top = 3;
  CHECK(thick.best_width(m) == one.best_width(m));
  thick.bottom = 3;
  CHECK(thick.best_width(m) < one.best_width(m));
}

TEST_CASE("three blocks and the frontiers fit into memory") {
  const model::wavefront w{.rows = 32768, .columns = 32768, .processors = 4};
  const double memory = 2e9 / 8, width = w.widest(memory);
  const auto elements = [&](double of) { return 3 * 8192 * of + of + 32768 + 8192; };
  CHECK(elements(width) <= memory);
  CHECK(elements(width + 1) > memory);
}
