// SPDX-License-Identifier: BSL-1.0
// Which values of this process the others keep.
#pragma once

#include <weft/cluster/archive.hpp>
#include <weft/cluster/detail/hash.hpp>
#include <weft/cluster/options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <span>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// How a value that a task reads stands in a message.
enum class value_form : std::uint8_t {
  whole,    ///< itself
  to_keep,  ///< itself, the number under which the receiver is to keep it, and the numbers that it gives up
            ///< first
  number    ///< the number of one that the receiver keeps
};

/// By what values are told apart.
struct value_key {
  hash128 content;
  std::size_t size;
  std::type_index type;

  friend bool operator==(const value_key&, const value_key&) = default;
  struct hasher {
    std::size_t operator()(const value_key& k) const noexcept { return hash128::part()(k.content); }
  };
};

/// The process that sends a value decides what its receiver keeps and gives up; so it knows what is there,
/// and no value needs to be asked for. A value has these states:
///
///     offered   it is on its way in a task; the receiver may have no memory for it.
///     kept      the receiver has said so. Only now its number may stand for it.
///     leaving   a task is on its way that tells the receiver to give it up, which nobody under way refers
///     to.
///
/// The answer to a task that offers values ends both other states: what the receiver has not kept is
/// forgotten, what it has not given up is kept. If the task has not reached it, so is all that.
///
/// *Thread safety*: the thread that serves.
class sent_values {
 public:
  sent_values(int processes, const cluster_options& options, cluster_counters& counters)
      : least_(options.cached_from), counters_(counters) {
    // The receiver does not keep more of all processes than it has memory for; none may fill it alone.
    most_ = processes == 2 ? options.cache_bytes : options.cache_bytes / 2;
    if (most_ != 0) tables_.resize(static_cast<std::size_t>(processes));
    clear();
  }
  sent_values(const sent_values&) = delete;
  sent_values& operator=(const sent_values&) = delete;

  /// Whether anything may be kept.
  bool on() const noexcept { return most_ != 0; }
  /// Values of so many bytes are.
  std::size_t least() const noexcept { return least_; }

  /// What follows is packed for this task, which goes to that process.
  void begin_task(int to, std::uint64_t id) noexcept {
    to_ = to;
    id_ = id;
  }
  /// Has a number stand for this value, which begins at `at`, if the receiver keeps it. *Throws*:
  /// std::bad_alloc, weft::error.
  bool refer(const value_key& k, writer& w, std::size_t at) {
    table& t = table_();
    const auto found = t.known.find(k);
    if (found == t.known.end() || found->second->now != state::kept) return false;
    task& of = tasks_.try_emplace(id_, task{to_}).first->second;
    of.uses.push_back(found->second);
    value& v = *found->second;
    if (v.uses++ == 0) t.used.splice(t.used.end(), t.unused, found->second);
    ++of.numbers;
    of.saved += v.size;
    ++counters_.values_cached;
    counters_.bytes_saved += v.size;
    w.bytes().resize(at);
    w(value_form::number, v.number);
    return true;
  }
  /// Asks the receiver to keep this value, which was packed as a whole and begins at `at`, if there is room
  /// for it. *Throws*: the same.
  void offer(const value_key& k, writer& w, std::size_t at) {
    table& t = table_();
    const std::size_t size = w.bytes().size() - at - sizeof(value_form);
    if (size > t.most || t.known.contains(k)) return;
    std::list<value> leaving, fresh;
    std::size_t gone = 0;
    // What is given up counts until the receiver has said so, unless what comes with it takes its place.
    const auto fits = [&] { return t.bytes - gone + std::max(gone, size) <= t.most; };
    for (; !fits() && !t.unused.empty(); leaving.splice(leaving.end(), t.unused, t.unused.begin()))
      gone += t.unused.front().size;
    try {
      if (fits()) {
        fresh.push_back({k, ++last_number_, size, 1, state::offered});
        task& of = tasks_.try_emplace(id_, task{to_}).first->second;
        of.uses.reserve(of.uses.size() + 1);
        of.offers.reserve(of.offers.size() + 1);
        std::vector<std::uint64_t> numbers;
        for (const value& v : leaving) numbers.push_back(v.number);
        t.known.emplace(k, fresh.begin());
        of.uses.push_back(fresh.begin());
        if (of.offers.empty()) ++open_;
        of.offers.push_back({fresh.begin(), std::max(gone, size), {}});
        of.offers.back().leaving.splice(of.offers.back().leaving.end(), leaving);
        for (value& v : of.offers.back().leaving) v.now = state::leaving;
        t.bytes += std::max(gone, size) - gone;
        t.used.splice(t.used.end(), fresh);
        w.bytes()[at] = static_cast<std::byte>(value_form::to_keep);
        w(of.offers.back().of->number, numbers);
      }
    } catch (...) {
      t.unused.splice(t.unused.begin(), leaving);
      throw;
    }
    t.unused.splice(t.unused.begin(), leaving);
  }

  /// Whether numbers stand in the task that was begun, for values or beside them.
  bool stand_for_some() const noexcept { return tasks_.contains(id_); }
  /// The task that was begun does not go after all.
  void abandon_task() noexcept {
    const auto found = tasks_.find(id_);
    if (found == tasks_.end()) return;
    counters_.values_cached -= found->second.numbers;
    counters_.bytes_saved -= found->second.saved;
    settle_(found->second, {}, {}, false);
    ended(id_);
  }
  /// The message with this task has not reached its receiver.
  void lost(std::uint64_t id) noexcept {
    if (const auto found = tasks_.find(id); found != tasks_.end()) settle_(found->second, {}, {}, true);
  }
  /// The receiver of this task has said what it has kept and given up. *Throws*: weft::error.
  void answered(std::uint64_t id, reader& r) {
    std::vector<std::uint64_t> kept, dropped;
    r(kept, dropped);
    const auto found = tasks_.find(id);
    if (found == tasks_.end()) return;
    settle_(found->second, kept, dropped, true);
    if (found->second.over) tasks_.erase(found);
  }
  /// This task is no longer in another process.
  void ended(std::uint64_t id) noexcept {
    const auto found = tasks_.find(id);
    if (found == tasks_.end()) return;
    task& of = found->second;
    table& t = tables_[static_cast<std::size_t>(of.to)];
    for (const place v : of.uses)
      if (--v->uses == 0 && v->now == state::kept) t.unused.splice(t.unused.end(), t.used, v);
    of.uses.clear();
    of.over = true;
    if (of.offers.empty()) tasks_.erase(found);
  }
  /// Whether no answer is missing.
  bool all_answered() const noexcept { return open_ == 0; }
  /// Forgets all.
  void clear() noexcept {
    tasks_.clear();
    for (table& t : tables_) t = table{{}, {}, {}, 0, most_};
    open_ = 0;
  }

 private:
  enum class state : std::uint8_t { offered, kept, leaving };
  struct value {
    value_key key;
    std::uint64_t number;
    std::size_t size;
    std::uint32_t uses;  ///< how many tasks in other processes refer to it
    state now;
  };
  using place = std::list<value>::iterator;
  /// What one process keeps.
  struct table {
    std::unordered_map<value_key, place, value_key::hasher> known;
    std::list<value> used;
    std::list<value> unused;  ///< all kept; first what was used least recently
    std::size_t bytes = 0;    ///< the most that the receiver may have now
    std::size_t most = 0;
  };
  struct offered {
    place of;
    std::size_t bytes;         ///< in the sum of the table
    std::list<value> leaving;  ///< what is to make room
  };
  /// One that refers to values.
  struct task {
    int to;
    std::vector<place> uses{};
    std::vector<offered> offers{};
    std::uint64_t numbers = 0, saved = 0;
    bool over = false;  ///< it is no longer there
  };

  table& table_() noexcept { return tables_[static_cast<std::size_t>(to_)]; }
  /// `answered`: what is not kept was refused.
  void settle_(task& of, const std::vector<std::uint64_t>& kept, const std::vector<std::uint64_t>& dropped,
               bool answered) noexcept {
    if (of.offers.empty()) return;
    table& t = tables_[static_cast<std::size_t>(of.to)];
    const auto is_in = [](const std::vector<std::uint64_t>& all, std::uint64_t n) {
      return std::find(all.begin(), all.end(), n) != all.end();
    };
    bool refused = false;
    for (offered& o : of.offers) {
      t.bytes -= o.bytes;
      for (place v = o.leaving.begin(); v != o.leaving.end(); v = o.leaving.begin()) {
        if (is_in(dropped, v->number)) {
          t.known.erase(v->key);
          o.leaving.erase(v);
        } else {
          v->now = state::kept;
          t.bytes += v->size;
          t.unused.splice(t.unused.begin(), o.leaving, v);
        }
      }
      if (is_in(kept, o.of->number)) {
        o.of->now = state::kept;
        t.bytes += o.of->size;
        if (o.of->uses == 0) t.unused.splice(t.unused.end(), t.used, o.of);
      } else {
        refused = true;
        t.known.erase(o.of->key);
        std::erase(of.uses, o.of);
        t.used.erase(o.of);
      }
    }
    of.offers.clear();
    --open_;
    // The receiver has no memory for more. It may have some again in the next run.
    if (refused && answered) t.most = std::min(t.most, t.bytes);
  }

  const std::size_t least_;
  std::size_t most_;
  cluster_counters& counters_;
  std::vector<table> tables_;  // by receiver; none if nothing may be kept
  std::unordered_map<std::uint64_t, task> tasks_;
  std::size_t open_ = 0;  // tasks with offers that are not answered
  std::uint64_t last_number_ = 0;
  int to_ = 0;
  std::uint64_t id_ = 0;
};

}  // namespace weft::inline WEFT_ABI::remote
