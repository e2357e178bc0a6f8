// SPDX-License-Identifier: BSL-1.0
// Which values go from which process to which one in each iteration, where tasks are placed in a certain way.
#pragma once

#include <weft/cluster/detail/step_record.hpp>
#include <weft/placement/task_graph.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// How many iterations a round has at most.
inline constexpr std::uint64_t longest_round = 64;

/// A value that a task has written and that another process needs: before one of its tasks, or, if `before`
/// is the number of tasks, at the beginning of the next iteration.
struct step_channel {
  std::uint32_t object, writer;
  unsigned from, to;
  std::uint32_t before;
};

/// The same in all processes. An iteration begins with each value where its first readers are, and ends so.
class step_plan {
 public:
  using mode = sched::access_mode;

  step_plan(const step_record& of, std::vector<unsigned> processor, unsigned processes)
      : processor_(std::move(processor)), valid_(of.objects().size()), holder_(of.objects().size(), nobody) {
    const auto size = static_cast<std::uint32_t>(of.tasks().size());
    std::vector<std::uint32_t> writer(of.objects().size(), nobody);
    for (auto& v : valid_) v.assign(processes, false);
    // Who needs the values with which an iteration begins.
    for (std::uint32_t t = 0; t < size; ++t)
      for (const auto& u : of.tasks()[t].uses) {
        if (u.how != mode::write && writer[u.object] == nobody) valid_[u.object][processor_[t]] = true;
        if (u.how != mode::read) writer[u.object] = t;
      }
    const std::vector<std::vector<bool>> first = valid_;
    std::fill(writer.begin(), writer.end(), nobody);
    for (std::uint32_t t = 0; t < size; ++t) {
      const unsigned here = processor_[t];
      for (const auto& u : of.tasks()[t].uses) {
        auto& holds = valid_[u.object];
        if (u.how != mode::write && !holds[here]) {
          channels_.push_back({u.object, writer[u.object], holder_[u.object], here, t});
          holds[here] = true;
        }
      }
      for (const auto& u : of.tasks()[t].uses) {
        if (u.how == mode::read) continue;
        std::fill(valid_[u.object].begin(), valid_[u.object].end(), false);
        valid_[u.object][here] = true;
        writer[u.object] = t;
        holder_[u.object] = here;
      }
    }
    for (std::uint32_t o = 0; o < first.size(); ++o) {
      if (writer[o] == nobody) continue;
      for (unsigned p = 0; p < processes; ++p)
        if (first[o][p] && !valid_[o][p]) {
          channels_.push_back({o, writer[o], holder_[o], p, size});
          valid_[o][p] = true;
        }
    }
    first_ = first;
  }

  static constexpr std::uint32_t nobody = ~std::uint32_t{0};

  /// From how many processes values come to each.
  std::vector<std::size_t> senders(unsigned processes) const {
    std::vector<std::pair<unsigned, unsigned>> pairs;  // to and from
    pairs.reserve(channels_.size());
    for (const step_channel& c : channels_) pairs.emplace_back(c.to, c.from);
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    std::vector<std::size_t> n(processes);
    for (const auto& p : pairs) ++n[p.first];
    return n;
  }

  const std::vector<unsigned>& processor() const noexcept { return processor_; }
  const std::vector<step_channel>& channels() const noexcept { return channels_; }
  /// Which process has written an object last in an iteration; nobody.
  std::uint32_t holder(std::uint32_t object) const noexcept { return holder_[object]; }
  /// Whether a process has the value of an object that is written, after an iteration.
  bool valid(std::uint32_t object, unsigned process) const noexcept { return valid_[object][process]; }
  /// Whether a process needs the value of an object at the beginning of one.
  bool needs(std::uint32_t object, unsigned process) const noexcept { return first_[object][process]; }

 private:
  std::vector<unsigned> processor_;
  std::vector<step_channel> channels_;
  std::vector<std::vector<bool>> valid_, first_;  // by object and process
  std::vector<std::uint32_t> holder_;
};

/// The graph that methods place. Costs and bytes are as measured.
inline placement::task_graph graph_of(const step_record& of, std::vector<double> costs,
                                      std::vector<double> sizes) {
  using mode = sched::access_mode;
  placement::task_graph g{std::move(costs), {}, {}, std::move(sizes), {}};
  std::vector<std::uint32_t> writer(of.objects().size(), step_plan::nobody);
  std::vector<std::vector<std::uint32_t>> first(
      of.objects().size());  // who reads what the iteration begins with
  for (std::uint32_t t = 0; t < of.tasks().size(); ++t) {
    for (const auto& u : of.tasks()[t].uses) {
      g.uses.push_back({t, u.object, u.how != mode::read});
      if (u.how == mode::write) continue;
      if (writer[u.object] == step_plan::nobody)
        first[u.object].push_back(t);
      else
        g.arcs.push_back({writer[u.object], t, g.bytes[u.object]});
    }
    for (const auto& u : of.tasks()[t].uses)
      if (u.how != mode::read) writer[u.object] = t;
  }
  for (std::uint32_t o = 0; o < first.size(); ++o)
    if (writer[o] != step_plan::nobody)
      for (const std::uint32_t t : first[o]) g.carried.push_back({writer[o], t, g.bytes[o]});
  return g;
}

}  // namespace weft::inline WEFT_ABI::remote
