// SPDX-License-Identifier: BSL-1.0
// The largest change of a value in each sweep: what tells when sweeps have converged.
#pragma once

#include <weft/base/atomic.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

namespace weft::inline WEFT_ABI::ooc::detail {

/// The larger one of a change and the absolute value of a difference, which is taken in the type of the grid,
/// as vectors do it: so all policies see the same. Infinite if the difference is not a number.
inline double larger_change(double known, double difference) noexcept {
  const double change = std::abs(difference);
  if (change <= known) return known;
  return std::isnan(change) ? std::numeric_limits<double>::infinity() : change;
}

/// One number for each sweep of a pass. A value that is not a number counts as an infinite change.
/// *Thread safety*: of_sweep from any thread; the rest when no task uses it.
class largest_changes {
 public:
  explicit largest_changes(std::size_t sweeps) : largest_(sweeps) {}
  /// The largest change of a sweep.
  double operator[](std::size_t sweep) const noexcept {
    return largest_[sweep].load(base::memory_order_relaxed);  // tasks have ended
  }
  /// Takes note of a change.
  void see(std::size_t sweep, double change) const noexcept {
    base::atomic<double>& largest = largest_[sweep];
    double known =
        largest.load(base::memory_order_relaxed);  // relaxed: a maximum, read when tasks have ended
    while (known < change && !largest.compare_exchange_weak(known, change, base::memory_order_relaxed)) {
    }
  }

  /// Sees vectors, for chained_sweeps.
  template <class V>
  class of_sweep {
   public:
    of_sweep(const largest_changes* all, long sweep) noexcept
        : all_(*all), sweep_(static_cast<std::size_t>(sweep)) {}
    of_sweep(const of_sweep&) = delete;
    of_sweep& operator=(const of_sweep&) = delete;
    ~of_sweep() {
      if (sweep_ >= all_.largest_.size()) return;
      double most = 0;
      for (std::size_t l = 0; l < sizeof(V) / sizeof(most_[0]); ++l) most = most < most_[l] ? most_[l] : most;
      all_.see(sweep_, most);
    }
    void see(const V& before, const V& after) noexcept {
      using T = std::remove_cvref_t<decltype(before[0])>;
      const V difference = after - before;
      const V change = difference < 0 ? -difference : difference;
      const V infinite = V{} + std::numeric_limits<T>::infinity();
      const V known = change < infinite ? change : infinite;
      most_ = most_ < known ? known : most_;
    }

   private:
    const largest_changes& all_;
    std::size_t sweep_;
    V most_{};
  };

 private:
  mutable std::vector<base::atomic<double>> largest_;
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
