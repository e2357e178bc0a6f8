// SPDX-License-Identifier: BSL-1.0
// The tasks of a run that have ended, with what they have written: those of an earlier job, which are found
// instead of being executed, and those of this one, which go to files.
#pragma once

#include <weft/base/platform.hpp>
#include <weft/cluster/detail/code_address.hpp>
#include <weft/cluster/detail/task_name.hpp>
#include <weft/cluster/transport.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// Where the results of a task lie in the files of an earlier job.
struct result_place {
  std::uint64_t segment = 0;   ///< the file, as finished_tasks numbers them
  std::uint64_t offset = 0;    ///< in it, in bytes
  std::uint64_t size = 0;      ///< in bytes
  std::uint32_t checksum = 0;  ///< CRC-32C
};

/// A record of an earlier job.
struct placed_task {
  task_name name, parent;
  code_address type;
  result_place at;
};

/// A record that is being written to a file.
struct unwritten_task {
  task_name name, parent;
  code_address type;
  std::shared_ptr<const bytes> results;
};

/// Records of tasks, by name. A record of a task replaces those below it: they are not needed any more. A
/// task is a function of what it packs, so any task of the same name may use a record, as often as it comes;
/// a record that is lost repeats work, and changes no result.
///
/// Files are known by number (*segments*). One is *dead* when no record in it is needed: each has been
/// replaced by one that is in a whole file itself, or that another process has made two intervals ago.
///
/// *Thread safety*: any thread. *Throws*: std::bad_alloc.
class finished_tasks {
 public:
  /// So many bytes of results wait to be written at most: where a device fails, or is too slow, no more is
  /// recorded.
  explicit finished_tasks(std::size_t most_unwritten = std::size_t{1} << 30) noexcept
      : most_unwritten_(most_unwritten) {}

  /// How results are read from a file; nothing if they cannot be, or are damaged.
  using reading = std::function<std::optional<bytes>(const result_place&)>;

  /// Whether results of an earlier job are left that nobody has used, and looking for them pays.
  bool looking() const noexcept {
    // Relaxed: what is known of records is read under the lock.
    return looking_.load(base::memory_order_relaxed);
  }
  /// Whether there may be one of a task of this type. *Requires*: looking() is true.
  bool may_be_kind(code_address type) const noexcept {
    return std::binary_search(kinds_.begin(), kinds_.end(), key_(type));
  }
  /// The results that a task of this name has written in an earlier job, as guest::pack_results made them.
  std::optional<bytes> find(const task_name& name) {
    record found;
    {
      const std::lock_guard hold(mutex_);
      const auto at = records_.find(name);
      if (at == records_.end() || !at->second.earlier) {
        note_miss_();
        return std::nullopt;
      }
      misses_ = 0;
      use_(at->second);
      found = at->second;
    }
    if (found.results) return *found.results;
    std::optional<bytes> results = read_ ? read_(found.at) : std::nullopt;
    if (!results) {
      const std::lock_guard hold(mutex_);
      if (const auto at = records_.find(name); at != records_.end() && at->second.earlier) records_.erase(at);
    }
    return results;
  }
  /// A task of this job has ended well, inside of `parent`; {}: of none but the root. What was recorded below
  /// it is replaced. *Returns*: false if so much waits to be written already that this is not recorded.
  bool add(const task_name& name, const task_name& parent, code_address type, bytes results) {
    auto kept = std::make_shared<const bytes>(std::move(results));
    const std::lock_guard hold(mutex_);
    if (kept->size() > most_unwritten_ - std::min(unwritten_, most_unwritten_)) return false;
    segments covers = take_below_(name);
    const auto [at, fresh] = records_.try_emplace(name);
    record& r = at->second;
    if (fresh) {
      r.type = type;
      unwritten_ += kept->size();
      r.results = std::move(kept);
      fresh_.push_back(name);
    } else if (r.earlier) {
      use_(r);
    }
    if (fresh || r.parent != parent) {
      r.parent = parent;
      if (parent != task_name{} && parent != name) below_[parent].push_back(name);
    }
    if (r.whole)
      release_(covers);
    else
      r.covers.insert(r.covers.end(), covers.begin(), covers.end());
    return true;
  }
  /// A task of another process has ended well here; that process records it. What was recorded below it is
  /// replaced at once in memory, and two intervals later in files.
  void recorded_elsewhere(const task_name& name) {
    const std::lock_guard hold(mutex_);
    segments covers = take_below_(name);
    if (!covers.empty()) waiting_.push_back({2, std::move(covers)});
  }
  /// How many results this object knows, of this job and of an earlier one.
  std::size_t size() const {
    const std::lock_guard hold(mutex_);
    return records_.size();
  }

  // What follows is for those who read and write files.

  /// A run begins: what this job has recorded before is forgotten, and earlier records are looked for again.
  void begin_run() {
    const std::lock_guard hold(mutex_);
    std::erase_if(records_, [](const auto& r) { return !r.second.earlier; });
    unwritten_ = 0;
    fresh_.clear();
    waiting_.clear();
    for (auto& [name, r] : records_) r.used = false;
    settle_();
  }
  /// Records of an earlier job, whose results `read` reads. *Requires*: no run is going on.
  void expect(const std::vector<placed_task>& all, reading read) {
    const std::lock_guard hold(mutex_);
    for (const placed_task& t : all) {
      ++live_[t.at.segment];
      record fresh{.parent = t.parent, .type = t.type, .at = t.at, .segment = t.at.segment};
      fresh.earlier = fresh.whole = true;
      expect_(t.name, std::move(fresh));
    }
    read_ = std::move(read);
    settle_();
  }
  /// Those of another object, which are in memory. *Requires*: the same.
  void expect(const finished_tasks& earlier) {
    std::vector<unwritten_task> all;
    {
      const std::lock_guard hold(earlier.mutex_);
      for (const auto& [name, r] : earlier.records_) all.push_back({name, r.parent, r.type, r.results});
    }
    const std::lock_guard hold(mutex_);
    for (unwritten_task& t : all) {
      record fresh{.parent = t.parent, .type = t.type, .results = std::move(t.results)};
      fresh.earlier = fresh.whole = true;
      expect_(t.name, std::move(fresh));
    }
    settle_();
  }
  /// Earlier records in these segments are forgotten.
  template <class Gone>
  void forget(const Gone& gone) {
    const std::lock_guard hold(mutex_);
    std::erase_if(records_, [&](const auto& r) {
      return r.second.earlier && r.second.segment != 0 && gone(r.second.segment);
    });
    look_();
  }

  /// The records that are in no segment yet go to this one.
  std::vector<unwritten_task> take_unwritten(std::uint64_t segment) {
    std::vector<unwritten_task> all;
    const std::lock_guard hold(mutex_);
    all.reserve(fresh_.size());  // nothing is thrown between
    std::size_t& live = live_[segment];
    writing_ = segment;
    for (const task_name& name : fresh_) {
      const auto at = records_.find(name);
      if (at == records_.end() || at->second.segment != 0 || at->second.earlier) continue;
      record& r = at->second;
      all.push_back({name, r.parent, r.type, r.results});
      r.segment = segment;
    }
    fresh_.clear();
    live = all.size();
    if (all.empty()) live_.erase(segment);
    return all;
  }
  /// They are in a whole file now, or are not after all. An interval ends, also if there are none.
  void written(std::uint64_t segment, const std::vector<unwritten_task>& all, bool whole) {
    const std::lock_guard hold(mutex_);
    writing_ = 0;
    if (!whole) live_.erase(segment);
    for (const unwritten_task& w : all) {
      const auto at = records_.find(w.name);
      if (at == records_.end() || at->second.segment != segment) continue;  // it has been replaced
      record& r = at->second;
      if (!whole) {
        r.segment = 0;
        fresh_.push_back(w.name);
        continue;
      }
      r.whole = true;
      forget_results_(r);
      release_(std::exchange(r.covers, {}));
    }
    if (!whole) return;
    for (waiting& w : waiting_)
      if (w.left-- == 0) release_(w.covers);
    std::erase_if(waiting_, [](const waiting& w) { return w.left < 0; });
  }
  /// Those of these records, of this job, that are needed where they are.
  std::vector<placed_task> needed(std::vector<placed_task> all) const {
    const std::lock_guard hold(mutex_);
    std::erase_if(all, [this](const placed_task& t) { return !is_at_(t); });
    return all;
  }
  /// They are in another whole segment, too: from now on they are needed there.
  void moved(const std::vector<placed_task>& all, std::uint64_t to) {
    const std::lock_guard hold(mutex_);
    std::size_t& live = live_[to];
    for (const placed_task& t : all) {
      if (!is_at_(t)) continue;  // it has been replaced
      records_.find(t.name)->second.segment = to;
      ++live;
      release_({t.at.segment});
    }
  }
  /// The segments that are dead, each once, but for one that is being written.
  std::vector<std::uint64_t> take_dead() {
    std::vector<std::uint64_t> dead;
    const std::lock_guard hold(mutex_);
    for (auto s = live_.begin(); s != live_.end();) {
      if (s->second != 0 || s->first == writing_) {
        ++s;
        continue;
      }
      dead.push_back(s->first);
      s = live_.erase(s);
    }
    return dead;
  }

 private:
  using segments = std::vector<std::uint64_t>;  // one for each record that was replaced
  struct record {
    task_name parent;
    code_address type;
    std::shared_ptr<const bytes> results = {};  // until they are in a whole file
    result_place at = {};                       // of an earlier job
    std::uint64_t segment = 0;                  // 0: none yet
    bool earlier = false, used = false, whole = false;
    segments covers = {};  // to be released when it is in a whole file itself
  };
  struct waiting {
    int left;
    segments covers;
  };

  static std::pair<std::uint32_t, std::uint64_t> key_(code_address type) noexcept {
    return {type.module, type.offset};
  }

  void forget_results_(record& r) noexcept {
    if (r.results && !r.earlier) unwritten_ -= r.results->size();
    r.results.reset();
  }
  void use_(record& r) noexcept {
    if (std::exchange(r.used, true)) return;
    if (--left_ == 0) looking_.store(false, base::memory_order_relaxed);  // relaxed: see looking()
  }
  /// To look costs about a microsecond. What is found saves milliseconds as a rule, since the largest tasks
  /// are left: it is given up when it has cost a tenth of a second, and two milliseconds for each.
  void note_miss_() noexcept {
    constexpr std::uint64_t worth = 2000, least = 100'000;
    if (++misses_ > least + worth * left_)
      looking_.store(false, base::memory_order_relaxed);  // relaxed: see looking()
  }
  void look_() noexcept {
    left_ = misses_ = 0;
    for (const auto& [name, r] : records_) left_ += r.earlier && !r.used;
    looking_.store(left_ != 0, base::memory_order_relaxed);  // relaxed: see looking()
  }
  void expect_(const task_name& name, record r) {
    const auto [at, fresh] = records_.try_emplace(name);
    if (!fresh && at->second.segment != 0) release_({at->second.segment});
    at->second = std::move(r);
  }
  /// Drops what is below a record that is there, and indexes the rest.
  void settle_() {
    std::vector<task_name> below;
    for (const auto& [name, r] : records_)
      if (r.earlier && r.parent != name && records_.count(r.parent) != 0) below.push_back(name);
    for (const task_name& name : below) {
      const auto at = records_.find(name);
      if (at->second.segment != 0) release_({at->second.segment});
      records_.erase(at);
    }
    kinds_.clear();
    below_.clear();
    for (const auto& [name, r] : records_)
      if (r.earlier) {
        kinds_.push_back(key_(r.type));
        if (r.parent != task_name{} && r.parent != name) below_[r.parent].push_back(name);
      }
    std::sort(kinds_.begin(), kinds_.end());
    kinds_.erase(std::unique(kinds_.begin(), kinds_.end()), kinds_.end());
    look_();
  }
  /// Drops all records below a task. *Returns*: the segments that they were in.
  segments take_below_(const task_name& top) {
    segments in;
    std::vector<task_name> left{top};
    while (!left.empty()) {
      const task_name parent = left.back();
      left.pop_back();
      const auto below = below_.find(parent);
      if (below == below_.end()) continue;
      const std::vector<task_name> all = std::move(below->second);
      below_.erase(below);
      for (const task_name& name : all) {
        const auto at = records_.find(name);
        if (at == records_.end() || at->second.parent != parent || name == top) continue;
        record& r = at->second;
        if (r.segment != 0) in.push_back(r.segment);
        in.insert(in.end(), r.covers.begin(), r.covers.end());
        if (r.earlier) use_(r);
        forget_results_(r);
        records_.erase(at);
        left.push_back(name);
      }
    }
    return in;
  }
  bool is_at_(const placed_task& t) const noexcept {
    const auto at = records_.find(t.name);
    return at != records_.end() && at->second.whole && !at->second.earlier &&
           at->second.segment == t.at.segment;
  }
  void release_(const segments& all) noexcept {
    for (const std::uint64_t s : all)
      if (const auto at = live_.find(s); at != live_.end() && at->second != 0) --at->second;
  }

  mutable base::mutex mutex_;  // for all below but looking_ and kinds_
  std::unordered_map<task_name, record, hash_of_name> records_;
  std::unordered_map<task_name, std::vector<task_name>, hash_of_name> below_;  // by parent, maybe some gone
  std::map<std::uint64_t, std::size_t> live_;  // of each segment, how many records
  std::vector<task_name> fresh_;               // maybe in no segment yet
  std::vector<waiting> waiting_;
  const std::size_t most_unwritten_;
  std::uint64_t writing_ = 0;  // the segment that is being written
  std::size_t unwritten_ = 0;  // bytes of the results of this job that are in memory
  std::uint64_t left_ = 0, misses_ = 0;
  reading read_;
  base::atomic<bool> looking_{false};
  std::vector<std::pair<std::uint32_t, std::uint64_t>> kinds_;  // changes between runs only
};

}  // namespace weft::inline WEFT_ABI::remote
