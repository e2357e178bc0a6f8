// SPDX-License-Identifier: BSL-1.0
// Who waits for whom in a graph that is repeated: within an iteration, and from one to the next.
#pragma once

#include <weft/graph/address_table.hpp>
#include <weft/task/access.hpp>

#include <algorithm>
#include <compare>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::sched {

/// A task of the same iteration or of the one before.
struct earlier_task {
  std::uint32_t code;  ///< twice its place in reference order; one more: of the iteration before

  static earlier_task of(std::uint32_t place, bool previous) noexcept { return {2 * place + previous}; }
  std::uint32_t place() const noexcept { return code / 2; }
  bool previous() const noexcept { return code % 2 != 0; }
  auto operator<=>(const earlier_task&) const = default;
};

/// Goes twice through the accesses of an iteration. What the second one waits for is what every later one
/// waits for: an object that is changed at all is changed in each iteration, so nothing further back counts.
/// Rights other than read are taken for exclusive ones. Parts of arrays are made of elementary parts, between
/// places where any of them begins or ends.
///
/// Use: announce() all accesses; begin(); then twice, for each task, add() its accesses and end_task().
/// *Thread safety*: one thread at a time.
class record_order {
 public:
  /// *Throws*: std::bad_alloc.
  void announce(const access& a) {
    if (!a.sliced) {
      std::uint32_t& id = whole_.at(a.object);
      if (id == 0) id = ++wholes_;
    } else if (a.begin != a.end) {
      cuts_.push_back(cut(a.object, a.begin));
      cuts_.push_back(cut(a.object, a.end));
    }
  }
  /// *Throws*: std::bad_alloc.
  void begin() {
    std::sort(cuts_.begin(), cuts_.end());
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
    data_.resize(wholes_ + cuts_.size());
  }
  /// *Throws*: std::bad_alloc.
  void add(const access& a) {
    if (!a.sliced) {
      uses_.emplace_back(whole_.at(a.object) - 1, a.mode == access_mode::read);
    } else if (a.begin != a.end) {
      const auto first = std::lower_bound(cuts_.begin(), cuts_.end(), cut(a.object, a.begin));
      for (auto i = first; *i != cut(a.object, a.end); ++i)
        uses_.emplace_back(wholes_ + static_cast<std::uint32_t>(i - cuts_.begin()),
                           a.mode == access_mode::read);
    }
  }
  /// Ends the task at a place of the order. Appends to `before`, unless null, for whom it waits. *Throws*:
  /// std::bad_alloc.
  void end_task(std::uint32_t place, std::vector<earlier_task>* before) {
    std::sort(uses_.begin(), uses_.end());  // the exclusive right on a datum before the one to read it
    const auto self = earlier_task::of(place, before == nullptr);
    const auto first = before != nullptr ? static_cast<std::ptrdiff_t>(before->size()) : 0;
    std::uintptr_t last = UINT32_MAX;
    for (const auto& [id, reads] : uses_) {
      if (std::exchange(last, id) == id) continue;
      datum& d = data_[id];
      if (before != nullptr && reads == 0 && !d.readers.empty())
        before->insert(before->end(), d.readers.begin(), d.readers.end());
      else if (before != nullptr && d.changed)
        before->push_back(d.changer);
      if (reads != 0) {
        d.readers.push_back(self);
      } else {
        d.readers.clear();
        d.changer = self;
        d.changed = true;
      }
    }
    uses_.clear();
    if (before == nullptr) return;
    std::sort(before->begin() + first, before->end());
    before->erase(std::unique(before->begin() + first, before->end()), before->end());
  }

 private:
  // Of cuts and of uses: a second type to be sorted would cost everybody who includes weft.hpp.
  using sorted = std::pair<std::uintptr_t, std::size_t>;
  static sorted cut(const void* object, std::size_t where) noexcept {
    return {reinterpret_cast<std::uintptr_t>(object), where};
  }
  struct datum {
    bool changed = false;
    earlier_task changer{};             // the last one,
    std::vector<earlier_task> readers;  // and who has read since
  };

  address_table<std::uint32_t> whole_;
  std::uint32_t wholes_ = 0;
  std::vector<sorted> cuts_;
  std::vector<datum> data_;   // whole objects, then elementary parts by where they begin
  std::vector<sorted> uses_;  // of the task that is being added: data, and whether it reads
};

}  // namespace weft::inline WEFT_ABI::sched
