// SPDX-License-Identifier: BSL-1.0
// Ordering, rewriting and running the tasks of an overlay.
#pragma once

#include <weft/orwl/detail/canonical.hpp>
#include <weft/orwl/detail/cycles.hpp>
#include <weft/orwl/overlay.hpp>

#include <algorithm>
#include <compare>

namespace weft::inline WEFT_ABI::orwl {
namespace detail {

/// Takes the locations of an overlay for itself while it runs.
class reservation {
 public:
  explicit reservation(std::span<any_location* const> all) : all_(all) {
    for (; taken_ < all_.size(); ++taken_)
      if (!all_[taken_]->requests.reserve()) {
        release();
        throw usage_error(std::string("weft: the ORWL location '") + name_of(*all_[taken_]) +
                          "' is used by handles, or by another run of an overlay");
      }
  }
  reservation(const reservation&) = delete;
  reservation& operator=(const reservation&) = delete;
  ~reservation() { release(); }

  static const char* name_of(const any_location& l) noexcept {
    return l.requests.label != nullptr ? l.requests.label : "location";
  }

 private:
  void release() noexcept {
    for (std::size_t i = 0; i < taken_; ++i) all_[i]->requests.end_reservation();
  }
  std::span<any_location* const> all_;
  std::size_t taken_ = 0;
};

}  // namespace detail

template <class X>
void basic_overlay<X>::schedule() {
  std::vector<std::uint32_t> place(tasks_.size());
  for (std::uint32_t i = 0; i < place.size(); ++i) place[i] = i;
  schedule_(place);
}

template <class X>
void basic_overlay<X>::make_canonical(std::span<const int> place) {
  if (canonical_) throw usage_error("weft: this overlay was made canonical before");
  const std::vector<std::uint32_t> ranks = ranks_(place);
  number_locations_();
  canonical_ = true;
  scheduled_ = false;
  detail::canonical_form<>(tasks_, claims_, locations_, owned_, at_start_).make(ranks);
}

template <class X>
bool basic_overlay<X>::is_canonical() {
  number_locations_();
  std::vector<unsigned> writes(tasks_.size(), 0), written(locations_.size(), 0);
  for (const detail::claim& c : claims_)
    if (c.exclusive) ++writes[c.task], ++written[c.location];
  const auto one = [](unsigned n) { return n == 1; };
  return std::all_of(writes.begin(), writes.end(), one) && std::all_of(written.begin(), written.end(), one);
}

template <class X>
std::uint64_t basic_overlay<X>::run_until_stopped(runtime& rt, const run_options& options) {
  if (parts_ > 1)
    throw usage_error("weft: an overlay whose parts share no location cannot be run until a turn stops it");
  return run_(rt, detail::turns::forever, options);
}

template <class X>
std::vector<std::uint32_t> basic_overlay<X>::ranks_(std::span<const int> place) const {
  if (place.size() != tasks_.size()) throw usage_error("weft: an overlay needs one place for each task");
  std::vector<std::uint32_t> order(tasks_.size()), rank(tasks_.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return place[a] != place[b] ? place[a] < place[b] : a < b;
  });
  for (std::uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  return rank;
}

template <class X>
void basic_overlay<X>::number_locations_() {
  if (canonical_) return;  // they are numbered for good
  std::vector<std::uint32_t> by_location(where_.size()), first(where_.size());
  for (std::uint32_t i = 0; i < by_location.size(); ++i) by_location[i] = i;
  std::sort(by_location.begin(), by_location.end(), [&](std::uint32_t a, std::uint32_t b) {
    return where_[a] != where_[b] ? std::compare_three_way()(where_[a], where_[b]) < 0 : a < b;
  });
  for (std::size_t i = 0; i < by_location.size(); ++i) {
    const bool same = i != 0 && where_[by_location[i]] == where_[by_location[i - 1]];
    first[by_location[i]] = same ? first[by_location[i - 1]] : by_location[i];
  }
  locations_.clear();
  for (std::uint32_t i = 0; i < first.size(); ++i) {
    if (first[i] == i) locations_.push_back(where_[i]);
    claims_[i].location =
        first[i] == i ? static_cast<std::uint32_t>(locations_.size() - 1) : claims_[first[i]].location;
  }
  std::vector<bool> written(locations_.size(), false);
  for (const detail::claim& c : claims_)
    if (c.exclusive) written[c.location] = true;
  unwritten_.clear();
  for (std::uint32_t l = 0; l < written.size(); ++l)
    if (!written[l]) unwritten_.push_back(l);
}

template <class X>
void basic_overlay<X>::schedule_(std::span<const std::uint32_t> place) {
  scheduled_ = false;
  number_locations_();
  const std::vector<detail::arc> arcs = detail::arcs_of(claims_, place);
  if (const auto cycle = detail::find_cycle(arcs, tasks_.size()); !cycle.empty()) refuse_(cycle);
  players_ = std::vector<detail::player>(tasks_.size());
  successors_.resize(arcs.size());
  marking_.assign(tasks_.size(), 0);
  const std::vector<std::uint32_t> begins = detail::begins_of(arcs, tasks_.size());
  for (std::size_t i = 0; i < arcs.size(); ++i) {
    successors_[i] = &players_[arcs[i].to];
    ++players_[arcs[i].to].predecessors;
    marking_[arcs[i].to] += !arcs[i].token;
  }
  for (std::size_t t = 0; t < tasks_.size(); ++t) {
    detail::player& p = players_[t];
    p.successors = successors_.data() + begins[t];
    p.successors_end = successors_.data() + begins[t + 1];
    p.does = tasks_[t].does.get();
    p.options = tasks_[t].options;
  }
  parts_ = count_parts_();
  scheduled_ = true;
}

template <class X>
std::string basic_overlay<X>::task_name_(std::uint32_t t) const {
  return "task " + std::to_string(t) + " ('" + tasks_[t].options.name + "')";
}

template <class X>
std::string basic_overlay<X>::location_name_(std::uint32_t l) const {
  const char* const label = locations_[l]->requests.label;
  return "location " + std::to_string(l) + (label != nullptr ? std::string(" ('") + label + "')" : "");
}

template <class X>
[[noreturn]] void basic_overlay<X>::refuse_(std::span<const detail::arc> cycle) const {
  std::string text = "weft: the first requests of this overlay could not all be granted: ";
  constexpr std::size_t most = 16;
  for (std::size_t i = 0; i < cycle.size() && i < most; ++i)
    text += task_name_(cycle[i].from) + " stands before " + task_name_(cycle[i].to) + " at " +
            location_name_(cycle[i].location) + (i + 1 < cycle.size() ? ", " : "");
  if (cycle.size() > most) text += "and so on, " + std::to_string(cycle.size()) + " tasks in all";
  throw cyclic_overlay(text);
}

template <class X>
void basic_overlay<X>::need_values_() const {
  for (const std::uint32_t l : unwritten_) {
    // Relaxed: who gave the value is ordered before this run, or has not given it.
    if (locations_[l]->given.load(base::memory_order_relaxed)) continue;
    const auto reads = [l](const detail::claim& c) { return c.location == l && !c.exclusive; };
    throw usage_error("weft: " + location_name_(l) + " of this overlay has no value: " +
                      task_name_(std::find_if(claims_.begin(), claims_.end(), reads)->task) +
                      " reads it, no task writes it, and it was made without one");
  }
}

template <class X>
std::size_t basic_overlay<X>::count_parts_() const {
  std::vector<bool> seen(players_.size(), false);
  std::vector<std::size_t> open;
  std::size_t parts = 0;
  for (std::size_t t = 0; t < players_.size(); ++t) {
    if (seen[t]) continue;
    ++parts;
    seen[t] = true;
    // Every arc lies on a cycle, so what can be reached is the whole part.
    for (open.assign(1, t); !open.empty();) {
      const detail::player& p = players_[open.back()];
      open.pop_back();
      for (detail::player** q = p.successors; q != p.successors_end; ++q)
        if (const auto i = static_cast<std::size_t>(*q - players_.data()); !seen[i]) {
          seen[i] = true;
          open.push_back(i);
        }
    }
  }
  return parts;
}

template <class X>
std::uint64_t basic_overlay<X>::run_(runtime& rt, std::uint64_t iterations, const run_options& options) {
  if (!scheduled_) throw usage_error("weft: overlay::run needs schedule() after the last task");
  if (tasks_.empty()) return 0;
  need_values_();
  const detail::reservation mine(locations_);
  for (const detail::copying& c : at_start_) c.now();
  for (std::size_t t = 0; t < players_.size(); ++t) {
    // Relaxed, twice: run publishes them.
    players_[t].done.store(0, base::memory_order_relaxed);
    players_[t].missing.store(marking_[t], base::memory_order_relaxed);
    players_[t].times = nullptr;
  }
  if (records_) {
    times_.assign(players_.size(), {});
    for (std::size_t t = 0; t < players_.size(); ++t) {
      times_[t].reserve(std::min<std::uint64_t>(iterations, 1024));
      players_[t].times = &times_[t];
    }
  }
  detail::turns all(players_, iterations);
  rt.run(options, [&all] { all.take_all(); });
  return all.limit();
}

#if WEFT_COMPILED
template class basic_overlay<>;
#endif

}  // namespace weft::inline WEFT_ABI::orwl
