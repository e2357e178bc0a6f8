// SPDX-License-Identifier: BSL-1.0
// The canonical form of an overlay: every task writes one location, and every location has one writer.
#pragma once

#include <weft/orwl/detail/order.hpp>
#include <weft/orwl/detail/turns.hpp>
#include <weft/orwl/location.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace weft::inline WEFT_ABI::orwl::detail {

/// Private copies of the locations that a task writes.
struct bundle {
  bundle() = default;
  bundle(const bundle&) = delete;
  bundle& operator=(const bundle&) = delete;

  std::vector<std::unique_ptr<any_location>> parts;
};

/// A helper that copies one location to another, or does nothing.
class helper final : public body {
 public:
  explicit helper(any_location* to = nullptr, const any_location* from = nullptr) noexcept
      : to_(to), from_(from) {}
  void call(turn&) override {
    if (to_ != nullptr) to_->assign(*from_);
  }
  void redirect(std::size_t, any_location&) noexcept override {}

 private:
  any_location* to_;
  const any_location* from_;
};

/// Rewrites an overlay. What it computes stays the same.
///
/// A location with several writers becomes a chain of locations, one per writer: each writer takes over the
/// value of the one before it, and readers read the link that they stand behind. A task that writes several
/// locations writes private copies instead, and a helper per location copies them there. What is left: a task
/// that writes nothing gets a location to itself, and a location that nobody writes a helper that leaves it
/// as it is. *Source*: Clauss and Gustedt, who add sub-tasks for the same purpose.
template <class = void>  // compiled where it is used
class canonical_form {
 public:
  canonical_form(std::vector<declared>& tasks, std::vector<claim>& claims,
                 std::vector<any_location*>& locations, std::vector<std::unique_ptr<any_location>>& owned,
                 std::vector<copying>& at_start)
      : tasks_(tasks), claims_(claims), locations_(locations), owned_(owned), at_start_(at_start) {}

  /// *Throws*: usage_error if a value that has to be copied cannot be; std::bad_alloc, and what copying
  /// throws; then the overlay is useless.
  void make(std::span<const std::uint32_t> place) {
    const std::size_t tasks = tasks_.size(), locations = locations_.size();
    std::vector<std::vector<asked>> queues(locations);
    std::vector<std::uint32_t> next_request(tasks, 0);
    for (const claim& c : claims_) queues[c.location].push_back({c, next_request[c.task]++});
    claims_.clear();
    writes_.assign(tasks, {});
    for (std::uint32_t l = 0; l < locations; ++l) {
      std::sort(queues[l].begin(), queues[l].end(), [&](const asked& a, const asked& b) {
        return a.of.rank != b.of.rank ? a.of.rank < b.of.rank : place[a.of.task] < place[b.of.task];
      });
      split(l, queues[l]);
    }
    for (std::uint32_t t = 0; t < tasks; ++t) join(t);
  }

 private:
  struct asked {
    claim of;
    std::uint32_t request;  ///< which of the task's
  };
  /// A request to write, where it ends up.
  struct written {
    std::uint32_t request;
    std::uint32_t location;
    int rank;
    const any_location* takes_over;  ///< the value it begins with; null: its own
  };

  std::uint32_t add_location(std::unique_ptr<any_location> fresh) {
    locations_.push_back(fresh.get());
    owned_.push_back(std::move(fresh));
    return static_cast<std::uint32_t>(locations_.size() - 1);
  }
  std::uint32_t add_task(std::unique_ptr<body> does, const char* name) {
    tasks_.push_back({std::move(does), {.name = name}});
    return static_cast<std::uint32_t>(tasks_.size() - 1);
  }
  std::unique_ptr<any_location> copy_of(const any_location& l) {
    std::unique_ptr<any_location> fresh = l.copy();
    if (fresh == nullptr)
      throw usage_error(std::string("weft: the value of the ORWL location '") +
                        (l.requests.label != nullptr ? l.requests.label : "location") +
                        "' cannot be copied, which the canonical form of this overlay needs");
    fresh->requests.label = l.requests.label;
    return fresh;
  }

  /// Gives each writer of a location a location of its own.
  void split(std::uint32_t location, std::span<const asked> queue) {
    std::vector<std::uint32_t> chain;  // of the writers
    std::size_t writers = 0;
    for (const asked& a : queue) writers += a.of.exclusive;
    for (std::size_t i = 0; i + 1 < writers; ++i)
      chain.push_back(add_location(copy_of(*locations_[location])));
    chain.push_back(location);  // the last writer keeps it
    // Before the first writer stand readers of what the last one has written in the iteration before.
    std::size_t at = chain.size() - 1, next = 0;
    int rank = 0;
    const int behind = static_cast<int>(queue.size()) + 1;
    bool last_has_written = false;
    for (const asked& a : queue) {
      if (!a.of.exclusive) {
        const bool late = at == chain.size() - 1 && last_has_written;
        claims_.push_back({a.of.task, chain[at], late ? rank + behind : rank, false});
        tasks_[a.of.task].does->redirect(a.request, *locations_[chain[at]]);
      } else {
        const std::uint32_t from = chain[at], to = chain[next];
        if (writers > 1) claims_.push_back({a.of.task, from, rank, false});
        last_has_written = next + 1 == writers;
        // Its rank: behind those who still read the last value, before those who read its own.
        writes_[a.of.task].push_back(
            {a.request, to, last_has_written ? behind : 0, writers > 1 ? locations_[from] : nullptr});
        at = next++;
      }
      ++rank;
    }
    if (writers == 0)
      claims_.push_back({add_task(std::make_unique<helper>(), "keeper"), location, behind, true});
  }

  /// Lets a task write one location.
  void join(std::uint32_t t) {
    body& does = *tasks_[t].does;
    const std::vector<written>& all = writes_[t];
    if (all.empty()) {
      claims_.push_back({t, add_location(std::make_unique<location<char>>()), 0, true});
      return;
    }
    if (all.size() == 1) {
      redirect(does, all[0], *locations_[all[0].location]);
      claims_.push_back({t, all[0].location, all[0].rank, true});
      return;
    }
    auto own = std::make_unique<orwl::location<bundle>>();
    std::vector<std::unique_ptr<any_location>>& parts = own->get().parts;
    const std::uint32_t mine = add_location(std::move(own));
    claims_.push_back({t, mine, 0, true});
    for (const written& w : all) {
      any_location& shown = *locations_[w.location];
      parts.push_back(copy_of(shown));
      redirect(does, w, *parts.back());
      at_start_.push_back({parts.back().get(), &shown});
      const std::uint32_t h = add_task(std::make_unique<helper>(&shown, parts.back().get()), "helper");
      claims_.push_back({h, mine, 1, false});
      claims_.push_back({h, w.location, w.rank, true});
    }
  }
  static void redirect(body& does, const written& w, any_location& to) {
    does.redirect(w.request, to);
    if (w.takes_over != nullptr) does.before.push_back({&to, w.takes_over});
  }

  std::vector<declared>& tasks_;
  std::vector<claim>& claims_;
  std::vector<any_location*>& locations_;
  std::vector<std::unique_ptr<any_location>>& owned_;
  std::vector<copying>& at_start_;
  std::vector<std::vector<written>> writes_;  // of each task
};

}  // namespace weft::inline WEFT_ABI::orwl::detail
