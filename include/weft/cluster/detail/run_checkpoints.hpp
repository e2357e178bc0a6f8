// SPDX-License-Identifier: BSL-1.0
// The checkpoints of the runs of one process of a cluster: a thread writes the records of tasks that have
// ended to files, any number of processes read them, and the run that has ended well removes them.
#pragma once

#include <weft/base/thread.hpp>
#include <weft/cluster/detail/finished_tasks.hpp>
#include <weft/cluster/detail/segment_file.hpp>
#include <weft/cluster/transport.hpp>
#include <weft/io/failure.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// Who writes files that cannot be written says so once in a run, on the standard error stream, and tries
/// again an interval later; the run goes on.
///
/// Who may touch it when: the thread of a run all that is marked so while there is one; else the thread that
/// calls. *Thread safety*: one thread; tasks() as finished_tasks.
class run_checkpoints {
 public:
  /// `rank`, `size`: of the cluster.
  run_checkpoints(int rank, int size) noexcept
      : rank_(static_cast<std::uint32_t>(rank)), size_(static_cast<std::uint64_t>(size)) {}
  run_checkpoints(const run_checkpoints&) = delete;
  run_checkpoints& operator=(const run_checkpoints&) = delete;
  ~run_checkpoints() { stop_(); }

  /// From now on there are files, in this directory, which is made if there is none; the most that a kill
  /// costs are so many seconds. *Throws*: std::system_error, std::bad_alloc.
  void write_to(const std::string& path, double seconds) {
    make_directories_(path);
    constexpr double longest = 1e9;
    interval_ = std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(seconds, longest) * 1e9));
    to_ = open_(path);
    for (const auto& [name, number] : names_(*to_)) next_ = std::max(next_, number.number + 1);
  }
  /// Reads the files that another job has left there. *Returns*: how many tasks need not be executed again;
  /// 0 if there is no such directory. *Throws*: weft::error for a file of another program or version, or one
  /// that is damaged; std::system_error, std::bad_alloc.
  std::size_t resume(const std::string& path) {
    std::shared_ptr<const io::directory> from;
    try {
      from = open_(path);
    } catch (const std::system_error& e) {
      if (e.code() == std::errc::no_such_file_or_directory) return 0;
      throw;
    }
    std::map<std::uint64_t, origin> files;
    std::vector<placed_task> all;
    for (const auto& [name, number] : names_(*from)) {
      const std::optional<io::file> f = from->open_if_exists(name, O_RDONLY);
      if (!f) continue;  // a process that has begun the run does not need it any more
      const std::uint64_t segment = next_++;
      const segment_origin by = segment_file::read(*f, program_(), segment, all);
      files.emplace(segment, origin{from, name, by.run});
    }
    earlier_.merge(files);
    tasks_.expect(all, [this](const result_place& at) { return read_(at); });
    return tasks_.size();
  }

  finished_tasks& tasks() noexcept { return tasks_; }
  /// Whether what is recorded goes to files.
  bool writes() const noexcept { return to_ != nullptr; }
  /// How many files this process has written, and how many it could not write. *Requires*: no run is going
  /// on.
  std::uint64_t written() const noexcept { return written_; }
  std::uint64_t failed() const noexcept { return failed_; }

  /// A run begins. *Throws*: std::bad_alloc.
  void begin_run() {
    stop_();
    ++run_;
    said_ = false;
    tasks_.begin_run();
    if (!to_) return;
    try {
      program_();                                          // the thread reads it
      stopping_.store(false, base::memory_order_relaxed);  // the thread begins later
      writing_ = base::thread([this] {
        // Acquire pairs with stop_; the doorbell may ring before.
        while (!stopping_.load(base::memory_order_acquire)) {
          bell_.wait(interval_);
          if (!stopping_.load(base::memory_order_acquire)) write_();  // as above
        }
      });
    } catch (const std::exception& e) {
      complain_("write a checkpoint", e);
    }
  }
  /// It has ended, `well` or by an exception, after which a job may go on from what was recorded. If it has
  /// ended well, this run and those before need no file any more.
  void end_run(bool well) noexcept {
    const bool wrote = writing_.joinable();
    stop_();
    try {
      if (well)
        remove_all_();
      else if (wrote)
        write_();
    } catch (const std::exception& e) {
      complain_("remove its checkpoints", e);
    }
  }

 private:
  /// With those on the way to it. *Throws*: std::system_error.
  static void make_directories_(const std::string& path) {
    for (std::size_t end = 0; end != std::string::npos;) {
      end = path.find('/', end + 1);
      const std::string part = path.substr(0, end);
      if (::mkdir(part.c_str(), 0777) == 0) continue;
      const int failed = errno;
      struct stat about;
      if (::stat(part.c_str(), &about) != 0) io::fail(failed, "create", part);
      if (!S_ISDIR(about.st_mode)) io::fail(ENOTDIR, "create", part);
    }
  }
  struct own_file {
    std::uint64_t run, size;
  };
  struct origin {
    std::shared_ptr<const io::directory> in;
    std::string name;
    std::uint64_t run;
  };

  static std::shared_ptr<const io::directory> open_(const std::string& path) {
    auto opened = std::make_shared<const io::directory>(path + "/");
    // What cannot be listed would look like an empty one.
    if (::faccessat(opened->descriptor(), ".", R_OK, AT_EACCESS) != 0) io::fail(errno, "list", path);
    return opened;
  }
  /// The files of checkpoints in a directory. `whole` false: those that never got their names.
  static std::vector<std::pair<std::string, segment_name>> names_(const io::directory& in,
                                                                  bool whole = true) {
    std::vector<std::pair<std::string, segment_name>> all;
    for (std::string& name : in.names_with(""))
      if (const auto parsed = segment_name::parse(name, whole)) all.emplace_back(std::move(name), *parsed);
    return all;
  }
  std::uint64_t program_() {
    if (!identity_) identity_ = loaded_code::at_start().identity();
    return *identity_;
  }
  /// Called by any thread during a run.
  std::optional<bytes> read_(const result_place& at) const noexcept {
    try {
      const origin& o = earlier_.at(at.segment);
      const std::optional<io::file> f = o.in->open_if_exists(o.name, O_RDONLY);
      return f ? segment_file::results(*f, at) : std::nullopt;
    } catch (const std::exception&) {
      return std::nullopt;  // the task is executed again
    }
  }

  void write_() noexcept {
    try {
      const std::uint64_t number = next_;
      const std::vector<unwritten_task> fresh = tasks_.take_unwritten(number);
      bool whole = fresh.empty();
      next_ += !whole;  // also if it cannot be written: records may count in it
      if (!whole) try {
          const std::uint64_t size = segment_file::write(*to_, {program_(), run_, number, rank_}, fresh);
          whole = true;
          ++written_;
          own_.emplace(number, own_file{run_, size});
        } catch (const std::exception& e) {
          ++failed_;
          complain_("write a checkpoint", e);
        }
      tasks_.written(number, fresh, whole);
      remove_dead_();
      merge_();
    } catch (const std::exception& e) {
      complain_("write a checkpoint", e);
    }
  }
  void remove_dead_() {
    for (const std::uint64_t dead : tasks_.take_dead()) remove_(dead);
  }
  /// Puts what is needed of many small files into one, so that a long run has few.
  void merge_() {
    constexpr std::size_t many = 32;
    constexpr std::uint64_t small = 1 << 20;
    std::vector<std::uint64_t> of;
    for (const auto& [number, f] : own_)
      if (f.run == run_ && f.size < small) of.push_back(number);
    if (of.size() < many) return;
    std::vector<placed_task> all;
    std::map<std::uint64_t, io::file> files;
    for (const std::uint64_t number : of) {
      io::file f = to_->open(segment_name{rank_, number}.text(), O_RDONLY);
      segment_file::read(f, program_(), number, all);
      files.emplace(number, std::move(f));
    }
    all = tasks_.needed(std::move(all));
    if (all.empty()) return;  // they wait for what replaces them
    std::vector<unwritten_task> again;
    for (const placed_task& t : all) {
      std::optional<bytes> results = segment_file::results(files.at(t.at.segment), t.at);
      if (!results) refuse_damaged_file(files.at(t.at.segment).path());
      again.push_back({t.name, t.parent, t.type, std::make_shared<const bytes>(*std::move(results))});
    }
    const std::uint64_t number = next_++;
    const std::uint64_t size = segment_file::write(*to_, {program_(), run_, number, rank_}, again);
    own_.emplace(number, own_file{run_, size});
    tasks_.moved(all, number);
    remove_dead_();
  }
  void remove_(std::uint64_t segment) {
    if (own_.erase(segment) != 0) return to_->remove(segment_name{rank_, segment}.text());
    // Others may read it still, or have removed it; this process remembers it until the run has ended.
    if (const auto o = earlier_.find(segment); o != earlier_.end()) o->second.in->remove(o->second.name);
  }
  void remove_all_() {
    tasks_.forget([this](std::uint64_t s) {
      const auto o = earlier_.find(s);
      return o != earlier_.end() && o->second.run <= run_;
    });
    for (auto s = own_.begin(); s != own_.end(); s = own_.erase(s))
      to_->remove(segment_name{rank_, s->first}.text());
    for (auto s = earlier_.begin(); s != earlier_.end();) {
      if (s->second.run > run_) {  // that run has not begun yet
        ++s;
        continue;
      }
      if (rank_ == 0) s->second.in->remove(s->second.name);
      s = earlier_.erase(s);
    }
    if (!to_) return;
    for (const auto& [name, of] : names_(*to_, false))
      if (of.process % size_ == rank_) to_->remove(name);
  }
  void stop_() noexcept {
    if (!writing_.joinable()) return;
    stopping_.store(true, base::memory_order_release);  // pairs with the thread
    bell_.ring();
    writing_.join();
  }
  void complain_(const char* in_vain, const std::exception& e) noexcept {
    if (std::exchange(said_, true)) return;
    std::fprintf(stderr, "weft: process %u of the cluster cannot %s, and goes on: %s\n",
                 static_cast<unsigned>(rank_), in_vain, e.what());
  }

  const std::uint32_t rank_;
  const std::uint64_t size_;
  std::chrono::nanoseconds interval_{};
  finished_tasks tasks_;
  std::optional<std::uint64_t> identity_;
  std::shared_ptr<const io::directory> to_;  // null: nothing is written
  std::map<std::uint64_t, origin> earlier_;  // segments of other jobs; constant during a run
  std::map<std::uint64_t, own_file> own_;    // segments of this one; of the thread
  std::uint64_t next_ = 1;                   // segment; of the thread
  std::uint64_t run_ = 0;
  std::uint64_t written_ = 0, failed_ = 0;  // of the thread
  bool said_ = false;                       // of the thread
  base::atomic<bool> stopping_{false};
  doorbell bell_;
  base::thread writing_;
};

/// A run, from its beginning to its end, with checkpoints or without.
class recorded_run {
 public:
  explicit recorded_run(std::optional<run_checkpoints>& by) : by_(by ? &*by : nullptr) {
    if (by_) by_->begin_run();
  }
  recorded_run(const recorded_run&) = delete;
  recorded_run& operator=(const recorded_run&) = delete;
  /// Without end(), the cluster has failed.
  ~recorded_run() { end(false); }
  /// As run_checkpoints::end_run.
  void end(bool well) noexcept {
    if (run_checkpoints* const by = std::exchange(by_, nullptr)) by->end_run(well);
  }

 private:
  run_checkpoints* by_;
};

}  // namespace weft::inline WEFT_ABI::remote
