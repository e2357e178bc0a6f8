// SPDX-License-Identifier: BSL-1.0
// The cost model: the phases add up to the closed forms of the paper, the best width is the best one, and
// chained passes take what was computed by hand.
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

TEST_CASE("the phases add up to the total for any number of arrays, frontiers and disks") {
  const model::machine& m = cluster;
  for (const double k : {1.0, 2.0, 20.0})
    for (const double read : {1.0, 6.0})
      for (const double sharing : {1.0, 4.0}) {
        const model::wavefront w{.rows = 8192,
                                 .columns = 16384,
                                 .processors = 4,
                                 .sweeps = k,
                                 .operations = 11,
                                 .top = 2,
                                 .bottom = 3,
                                 .arrays_read = read,
                                 .arrays_written = 1,
                                 .sharing = sharing};
        const double width = 512;
        const double phases = w.synchronisation(m, width) + w.load(m, width) +
                              k * (w.steady_state(m, width) + w.flush(m, width)) +
                              (k - 1) * w.transition(m, width);
        CHECK(close(phases, w.total(m, width)));
        model::wavefront own = w;
        own.sharing = 1;
        CHECK(close(w.total(m, width) - own.total(m, width),
                    (sharing - 1) * (read + 1) * k * 32 * m.io(2048 * 512.0)));
        CHECK(w.total(m, w.best_width(m)) < w.total(m, 1.1 * w.best_width(m)));
        CHECK(w.total(m, w.best_width(m)) < w.total(m, 0.9 * w.best_width(m)));
      }
}

TEST_CASE("the closed form of equation 19, and the derivatives in equations 16, 18, 20 and 21") {
  const model::machine& m = cluster;
  for (const double k : {1.0, 3.0, 20.0})
    for (const double width : {100.0, 1000.0}) {
      const double n = 32768, p = 4;
      const model::wavefront w{.rows = n, .columns = n, .processors = p, .sweeps = k};
      const double latencies = m.receive_latency + m.send_latency + m.io_latency;
      const double closed = (p + 2 * k - 2) * latencies + n * k * (m.transfer + m.io_transfer) +
                            2 * k * n * n * m.io_transfer / p + 2 * k * n * m.io_latency / width +
                            width * (p + k - 2) * (5 * n / (p * m.speed) + m.transfer);
      CHECK(close(w.total(m, width), closed));
      CHECK(close(w.synchronisation(m, width) + w.load(m, width) +
                      k * (w.steady_state(m, width) + w.flush(m, width)) + (k - 1) * w.transition(m, width),
                  closed));
      CHECK(close(w.slope(m, width), (p + k - 2) * (5 * n / (p * m.speed) + m.transfer) -
                                         2 * k * n * m.io_latency / (width * width)));
      CHECK(close(w.curvature(m, width), 4 * k * n * m.io_latency / (width * width * width)));
      const double step = 0.01 * width;
      CHECK((w.total(m, width + step) - w.total(m, width - step)) / (2 * step) ==
            Approx(w.slope(m, width)).epsilon(1e-2));
      CHECK((w.slope(m, width + step) - w.slope(m, width - step)) / (2 * step) ==
            Approx(w.curvature(m, width)).epsilon(1e-2));
      CHECK(w.slope(m, 0.999 * w.best_width(m)) < 0);
      CHECK(w.slope(m, 1.001 * w.best_width(m)) > 0);
    }
}

TEST_CASE("many transfers at once hide the latency of a disk") {
  const model::machine& m = cluster;  // 10,000 elements: 8 ms of latency, and 2 ms
  CHECK(close(m.io(10'000), 10e-3));
  CHECK(close(m.io(10'000, 1), 10e-3));
  CHECK(close(m.io(10'000, 2), 5e-3));
  CHECK(close(m.enough_in_flight(10'000), 5));
  CHECK(close(m.io(10'000, 5), 2e-3));
  CHECK(close(m.io(10'000, 50), 2e-3));
}

TEST_CASE("chained passes take what was computed by hand") {
  model::chained c{.sweeps = 20,
                   .together = 8,
                   .processors = 2,
                   .units = 10,
                   .transfers = 3,
                   .first_read = 0.3,
                   .last_write = 0.1,
                   .computing = 0.5,
                   .ending = 0.01};
  CHECK(c.passes() == 3);
  CHECK(close(c.computed(), 2));
  CHECK(close(c.pass(), 3 + 0.3 + 0.2 + 0.1 + 0.01));  // bound by the disk
  CHECK(close(c.total(), 10.83));
  CHECK(close(c.enough_together(), 12));
  c.together = 20;
  CHECK(c.passes() == 1);
  CHECK(close(c.total(), 5 + 0.3 + 0.5 + 0.1 + 0.01));  // bound by the processors
  c.together = 12;
  CHECK(close(c.computed(), c.transfers));
}
