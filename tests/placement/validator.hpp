// SPDX-License-Identifier: BSL-1.0
// Checks schedules by their definition, makes graphs, and finds the best schedule of small ones.
#pragma once

#include <weft/placement/task_graph.hpp>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace weft_test {

namespace placement = weft::placement;

/// What is wrong with a schedule; empty: nothing.
inline std::string faults(const placement::task_graph& g, const placement::machine& m,
                          const placement::schedule& s) {
  const std::size_t n = g.costs.size();
  const double slack = 1e-9;
  if (s.processor.size() != n || s.start.size() != n) return "a task is missing";
  double last = 0;
  for (std::size_t a = 0; a < n; ++a) {
    const std::string name = "task " + std::to_string(a);
    if (s.processor[a] >= m.processors) return name + " is on no processor";
    if (s.start[a] < 0) return name + " starts too early";
    last = std::max(last, s.start[a] + g.costs[a]);
    for (std::size_t b = 0; b < a; ++b)
      if (s.processor[a] == s.processor[b] && s.start[a] < s.start[b] + g.costs[b] - slack &&
          s.start[b] < s.start[a] + g.costs[a] - slack)
        return name + " overlaps task " + std::to_string(b);
  }
  for (const placement::arc& e : g.arcs) {
    const double sent = s.start[e.from] + g.costs[e.from];
    const double there =
        s.processor[e.from] == s.processor[e.to] ? sent : sent + m.latency + e.bytes / m.bandwidth;
    if (s.start[e.to] < there - slack)
      return "task " + std::to_string(e.to) + " starts before it has the value of task " +
             std::to_string(e.from);
  }
  if (std::abs(s.length - last) > slack) return "the length is wrong";
  return "";
}

/// Each task writes a datum of its own, and reads those of some earlier ones.
inline placement::task_graph random_graph(std::uint32_t seed, std::size_t size, std::size_t width,
                                          double costliest) {
  std::minstd_rand random(seed);
  const auto below = [&random](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
  placement::task_graph g;
  for (std::uint32_t t = 0; t < size; ++t) {
    g.costs.push_back(below(10) == 0 ? 0 : costliest * (1 + below(100)) / 100);
    g.bytes.push_back(8.0 * below(1000));
    g.uses.push_back({t, t, true});
    std::vector<std::uint32_t> from;
    for (std::uint32_t k = below(4); k != 0 && t != 0; --k)
      from.push_back(t - 1 - below(std::min<std::size_t>(t, width)));
    std::sort(from.begin(), from.end());
    from.erase(std::unique(from.begin(), from.end()), from.end());
    for (const std::uint32_t f : from) {
      g.uses.push_back({t, f, false});
      g.arcs.push_back({f, t, g.bytes[f]});
    }
  }
  return g;
}

/// A graph of tasks with these costs; `arcs` with the delays that they mean on a machine without latency.
inline placement::task_graph graph_of(std::vector<double> costs, std::vector<placement::arc> arcs) {
  placement::task_graph g;
  g.costs = std::move(costs);
  g.arcs = std::move(arcs);
  for (std::uint32_t t = 0; t < g.costs.size(); ++t) {
    g.bytes.push_back(1);
    g.uses.push_back({t, t, true});
  }
  for (const placement::arc& a : g.arcs) {
    g.bytes[a.from] = a.bytes;
    g.uses.push_back({a.to, a.from, false});
  }
  std::sort(g.uses.begin(), g.uses.end(), [](const auto& a, const auto& b) { return a.task < b.task; });
  return g;
}

/// The shortest length there is, by trying all. *Requires*: few tasks.
class best_length {
 public:
  best_length(const placement::task_graph& g, const placement::machine& m)
      : g_(g), m_(m), free_(m.processors), start_(g.costs.size(), -1), on_(g.costs.size()) {
    best_ = std::accumulate(g.costs.begin(), g.costs.end(), 0.0) + 1e-12;
    try_all_(0, 0);
  }
  double get() const { return best_; }

 private:
  void try_all_(std::size_t placed, double length) {
    if (length >= best_) return;
    if (placed == start_.size()) {
      best_ = length;
      return;
    }
    for (std::size_t t = 0; t < start_.size(); ++t) {
      if (start_[t] >= 0) continue;
      bool ready = true;
      for (const auto& a : g_.arcs) ready &= a.to != t || start_[a.from] >= 0;
      if (!ready) continue;
      bool unused_tried = false;
      for (unsigned p = 0; p < free_.size(); ++p) {
        if (free_[p] == 0 && std::exchange(unused_tried, true)) continue;  // all empty ones are alike
        double at = free_[p];
        for (const auto& a : g_.arcs)
          if (a.to == t)
            at = std::max(at, start_[a.from] + g_.costs[a.from] + (on_[a.from] == p ? 0 : m_.delay(a.bytes)));
        const double was = free_[p];
        start_[t] = at;
        on_[t] = p;
        free_[p] = at + g_.costs[t];
        try_all_(placed + 1, std::max(length, free_[p]));
        free_[p] = was;
        start_[t] = -1;
      }
    }
  }

  const placement::task_graph& g_;
  const placement::machine& m_;
  std::vector<double> free_, start_;
  std::vector<unsigned> on_;
  double best_ = 0;
};

/// A square of cells that are updated from their neighbours' old values, in one iteration.
inline placement::task_graph grid(std::uint32_t side) {
  placement::task_graph g;
  const std::uint32_t cells = side * side;
  g.costs.assign(cells, 1e-3);
  g.bytes.assign(2 * cells, 1000);  // old and new
  for (std::uint32_t t = 0; t < cells; ++t) {
    const std::uint32_t x = t % side, y = t / side;
    g.uses.push_back({t, cells + t, true});
    g.uses.push_back({t, t, false});
    if (x > 0) g.uses.push_back({t, cells + t - 1, false});
    if (x + 1 < side) g.uses.push_back({t, cells + t + 1, false});
    if (y > 0) g.uses.push_back({t, cells + t - side, false});
    if (y + 1 < side) g.uses.push_back({t, cells + t + side, false});
  }
  return g;
}
/// How many neighbours are on different processors.
inline unsigned cut(const placement::schedule& s, std::uint32_t side) {
  unsigned n = 0;
  for (std::uint32_t t = 0; t < side * side; ++t) {
    if (t % side + 1 < side) n += s.processor[t] != s.processor[t + 1];
    if (t + side < side * side) n += s.processor[t] != s.processor[t + side];
  }
  return n;
}

}  // namespace weft_test
