// SPDX-License-Identifier: BSL-1.0
// The trace of one runtime: what its workers did and when, as a file in the trace-event format of Chrome.
#pragma once

#include <weft/observe/json_text.hpp>
#include <weft/observe/open_slice.hpp>
#include <weft/observe/resident_memory.hpp>
#include <weft/observe/tick_clock.hpp>
#include <weft/observe/trace_file.hpp>
#include <weft/observe/trace_names.hpp>
#include <weft/observe/trace_ring.hpp>
#include <weft/observe/writer_lock.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

namespace weft::inline WEFT_ABI::observe {

/// When and by which worker a task was forked, in one word: ticks since the trace began, and the worker. Also
/// the identity of the task. 0: not known.
struct fork_stamp {
  static constexpr unsigned worker_bits = 12;

  static std::uint64_t pack(std::uint64_t since_start, unsigned worker) noexcept {
    return since_start << worker_bits | worker;
  }
  static std::uint64_t time(std::uint64_t stamp) noexcept { return stamp >> worker_bits; }
  static unsigned worker(std::uint64_t stamp) noexcept { return stamp & ((1u << worker_bits) - 1); }
};

/// On which worker a wait began, and for which object, in one word. Addresses of objects have less than 52
/// bits; the highest of those tells a name from an address.
struct wait_place {
  static constexpr unsigned worker_bits = fork_stamp::worker_bits;  ///< the lowest ones
  static constexpr std::uint64_t is_name = std::uint64_t{1} << 51;  ///< of what is above them
  /// `object`: null if it is not known.
  static std::uint64_t pack(unsigned worker, const void* object) noexcept {
    return (reinterpret_cast<std::uintptr_t>(object) & (is_name - 1)) << worker_bits | worker;
  }
  /// `name`: kept by the trace.
  static std::uint64_t pack_named(unsigned worker, const char* name) noexcept {
    return pack(worker, name) | is_name << worker_bits;
  }
  static unsigned worker(std::uint64_t place) noexcept { return fork_stamp::worker(place); }  ///< the worker
  /// The address; 0: not known.
  static std::uint64_t object(std::uint64_t place) noexcept { return place >> worker_bits & (is_name - 1); }
  /// Null: it has none.
  static const char* name(std::uint64_t place) noexcept {
    return (place >> worker_bits & is_name) == 0
               ? nullptr
               : reinterpret_cast<const char*>(static_cast<std::uintptr_t>(object(place)));
  }
};

/// The records of one worker. *Thread safety*: that worker's thread, any member.
class trace_row {
 public:
  trace_row(unsigned worker, std::size_t records, const moment& start, trace_names& names,
            resident_memory& memory)
      : worker_(worker), start_(start.at), memory_(memory), ring_(records), names_(names) {}

  /// Adds what ends now. *Returns*: when that is.
  std::uint64_t add(trace_kind kind, std::uint64_t begin, const char* kept_name,
                    std::uint64_t more = 0) noexcept {
    const std::uint64_t now = ticks();
    ring_.add({begin, now > begin ? now - begin : 0, kind, kept_name, more});
    return now;
  }
  /// The worker has a strand now.
  void note_adoption() noexcept { adopted_ = ticks(); }
  /// Adds a search, which ended when the worker had a strand.
  void add_search(trace_kind kind, std::uint64_t begin, std::uint64_t more = 0) noexcept {
    const std::uint64_t end = adopted_ > begin ? adopted_ : ticks();
    ring_.add({begin, end - begin, kind, nullptr, more});
  }
  /// Says how much there is to do, at most every so many ticks; and how much memory is in use.
  void add_level(std::uint64_t now, std::uint32_t ready, std::uint32_t pending) noexcept {
    constexpr std::uint64_t pause = 100'000;
    if (now - last_level_ < pause) return;
    last_level_ = now;
    ring_.add({now, 0, trace_kind::level, nullptr, std::uint64_t{ready} << 32 | pending});
    if (const std::uint64_t bytes = memory_.look(now); bytes != 0)
      ring_.add({now, 0, trace_kind::memory, nullptr, bytes});
  }
  const char* keep(const char* name) noexcept { return names_.keep(name); }
  /// Of a task that is being forked.
  std::uint64_t stamp() const noexcept { return fork_stamp::pack(ticks() - start_, worker_); }
  unsigned worker() const noexcept { return worker_; }
  const trace_ring& ring() const noexcept { return ring_; }

 private:
  const unsigned worker_;
  const std::uint64_t start_;
  std::uint64_t last_level_ = 0;
  std::uint64_t adopted_ = 0;
  resident_memory& memory_;
  trace_ring ring_;
  trace_name_cache names_;
};

/// All records of a runtime, and the file into which they go.
/// *Thread safety*: any thread, any member but constructor and destructor.
class trace {
 public:
  /// `bytes`: of memory for the records of all workers, a sixteenth of it for transfers. *Throws*:
  /// std::system_error if the file cannot be written; std::bad_alloc.
  trace(const std::string& path, unsigned workers, std::size_t bytes)
      : megabytes_(bytes >> 20), file_(path), text_(file_.descriptor()) {
    const std::size_t all = bytes / trace_record_bytes, transfers = all / 16;
    const std::size_t each = (all - transfers) / workers;
    for (unsigned i = 0; i < workers; ++i) rows_.emplace_back(i, each, start_, names_, memory_);
    rows_.emplace_back(workers, transfers, start_, names_, memory_);
  }
  trace(const trace&) = delete;
  trace& operator=(const trace&) = delete;
  /// Writes the file. What fails is said on the standard error stream. *Requires*: the workers have ended.
  ~trace() { say_(write()); }

  /// The row of a worker.
  trace_row& row(unsigned worker) noexcept { return rows_[worker]; }
  const std::string& path() const noexcept { return file_.path(); }
  /// Says that this process is one of several, which have numbers from 0.
  void set_rank(unsigned rank, unsigned processes) noexcept {
    rank_.store(std::uint64_t{processes} << 32 | rank, base::memory_order_relaxed);  // one word, read alone
  }
  bool has(const trace_row& r) const noexcept {
    for (const trace_row& mine : rows_)
      if (&mine == &r) return true;
    return false;
  }

  /// Adds a transfer between memory and a file, beside what workers execute. `kind`: "read" or "write".
  void add_transfer(std::uint64_t begin, const char* kind, std::uint64_t bytes) noexcept {
    const std::lock_guard hold(transfers_mutex_);
    trace_row& all = rows_.back();
    all.add(trace_kind::transfer, begin, all.keep(kind), bytes);
  }

  /// Writes what there is now, in place of what was written before. *Returns*: 0, or an error number.
  int write() noexcept {
    const std::lock_guard hold(write_mutex_);
    return has_last_words_ ? 0 : write_all_(nullptr, nullptr);
  }
  /// The same for the last time, in a signal handler: not if the calling thread is just writing, or another
  /// one is and does not end for so many milliseconds. With the bodies that have not ended on the calling
  /// thread, the innermost first.
  void write_last_words(const open_slice* bodies, const trace_row* of, unsigned patience) noexcept {
    if (::getpid() != static_cast<pid_t>(process_) || !write_mutex_.lock_in_handler(patience)) return;
    static_cast<void>(write_all_(bodies, of));
    has_last_words_ = true;  // the process may end at any time, also while it would be written anew
    write_mutex_.unlock();
  }

 private:
  void say_(int error) noexcept {
    if (error != 0)
      std::fprintf(stderr, "weft: cannot write the trace '%s': %s\n", path().c_str(), std::strerror(error));
    unsigned long long all = 0, old = 0, lost = 0;
    for (const trace_row& r : rows_) {
      all += r.ring().added();
      old += r.ring().oldest();
      lost += r.ring().lost();
    }
    if (old != 0)
      std::fprintf(stderr,
                   "weft: the trace '%s' lacks the oldest %llu of %llu records; WEFT_TRACE_MB is %zu\n",
                   path().c_str(), old, all, megabytes_);
    if (lost != 0)
      std::fprintf(stderr, "weft: the trace '%s' lacks %llu records for which there was no memory\n",
                   path().c_str(), lost);
  }

  static std::array<char, 65> host_name_() noexcept {
    std::array<char, 65> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) name.front() = '\0';
    return name;
  }

  int write_all_(const open_slice* bodies, const trace_row* of) noexcept {
    file_.restart();
    text_.begin();
    const moment end;
    scale_ = nanoseconds_per_tick(start_, end);
    bool first = true;
    text_.raw("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    write_process_(first);
    for (const trace_row& r : rows_) {
      event_(first, "M", r, "thread_name").raw(",\"args\":{\"name\":\"");
      if (&r == &rows_.back())
        text_.raw("transfers\"}}");
      else
        text_.raw("worker ").number(r.worker()).raw("\"}}");
      event_(first, "M", r, "thread_sort_index")
          .raw(",\"args\":{\"sort_index\":")
          .number(r.worker())
          .raw("}}");
    }
    bytes_read_ = bytes_written_ = counted_ = 0;
    std::uint64_t all_gone = 0;
    for (const trace_row& r : rows_) {
      // Once, each: meanwhile the worker goes on, and replaces records that are in the file already.
      const std::uint64_t added = r.ring().added(), oldest = r.ring().oldest();
      std::uint64_t gone = oldest;
      for (std::uint64_t i = oldest; i < added; ++i) {
        trace_record record{};
        if (r.ring().read(i, record))
          write_record_(first, r, record);
        else
          ++gone;
      }
      gone += r.ring().lost();
      if (gone != 0)
        event_(first, "M", r, "dropped_records").raw(",\"args\":{\"count\":").number(gone).raw("}}");
      all_gone += gone;
    }
    unsigned most = 1000;
    for (const open_slice* b = bodies; b != nullptr && most != 0; b = b->outer, --most)
      write_record_(first, *of, {b->begin, end.at - b->begin, trace_kind::task, b->name, b->fork});
    text_.raw("\n],\"otherData\":{\"dropped_records\":").number(all_gone).raw("}}\n");
    return text_.end();
  }

  /// What names the process among others, and tells when its times begin.
  void write_process_(bool& first) noexcept {
    const trace_row& any = rows_.front();
    const std::uint64_t rank = rank_.load(base::memory_order_relaxed);  // see set_rank
    event_(first, "M", any, "process_name").raw(",\"args\":{\"name\":\"weft runtime");
    if (rank != 0) text_.raw(", process ").number(rank & 0xffff'ffffu).raw(" of ").number(rank >> 32);
    text_.raw("\"}}");
    if (rank != 0)
      event_(first, "M", any, "process_sort_index")
          .raw(",\"args\":{\"sort_index\":")
          .number(rank & 0xffff'ffffu)
          .raw("}}");
    event_(first, "M", any, "process_labels").raw(",\"args\":{\"labels\":").string(host_.data()).raw("}}");
    event_(first, "M", any, "clock_origin").raw(",\"args\":{\"unix_ns\":").number(origin_).raw("}}");
  }

  json_text& event_(bool& first, std::string_view phase, const trace_row& r, std::string_view name) noexcept {
    if (!std::exchange(first, false)) text_.raw(",\n");
    text_.raw("{\"ph\":\"")
        .raw(phase)
        .raw("\",\"pid\":")
        .number(process_)
        .raw(",\"tid\":")
        .number(r.worker());
    return text_.raw(",\"name\":").string(name);
  }
  json_text& at_(std::uint64_t tick) noexcept { return since_(tick > start_.at ? tick - start_.at : 0); }
  json_text& since_(std::uint64_t passed) noexcept {
    return text_.raw(",\"ts\":").microseconds(static_cast<double>(passed) * scale_);
  }
  json_text& slice_(bool& first, const trace_row& r, std::string_view category, std::string_view name,
                    const trace_record& x) noexcept {
    event_(first, "X", r, name).raw(",\"cat\":\"").raw(category).raw("\"");
    return at_(x.begin).raw(",\"dur\":").microseconds(static_cast<double>(x.length) * scale_);
  }
  /// One point of an arrow, bound to the slice around it.
  void arrow_(bool& first, std::string_view phase, const trace_row& r, std::string_view name,
              std::uint64_t id, std::uint64_t passed) noexcept {
    event_(first, phase, r, name).raw(",\"cat\":\"arrow\",\"bp\":\"e\",\"id\":").number(id);
    since_(passed).raw("}");
  }

  /// What lies beside the slices of the workers and may overlap with others of its kind.
  void apart_(bool& first, const trace_row& r, std::string_view category, std::string_view name,
              std::uint64_t id, std::uint64_t begin, std::uint64_t end, auto add_arguments) noexcept {
    for (const bool begins : {true, false}) {
      event_(first, begins ? "b" : "e", r, name)
          .raw(",\"cat\":\"")
          .raw(category)
          .raw("\",\"id\":")
          .number(id);
      since_(begins ? begin : end);
      if (begins) add_arguments();
      text_.raw("}");
    }
  }

  /// What is waited for: by its name, or its address, if it is known.
  void add_object_(std::uint64_t place) noexcept {
    const char* const name = wait_place::name(place);
    if (name == nullptr && wait_place::object(place) == 0) return;
    text_.raw(",\"args\":{\"object\":");
    if (name != nullptr)
      text_.string(name);
    else
      text_.raw("\"").hexadecimal(wait_place::object(place)).raw("\"");
    text_.raw("}");
  }

  /// What has been transferred so far. Transfers stand in the order of their ends, as far as the clocks of
  /// processors agree.
  void count_bytes_(bool& first, const trace_row& r, const trace_record& x, std::uint64_t end) noexcept {
    (std::string_view(x.name) == "read" ? bytes_read_ : bytes_written_) += x.more;
    event_(first, "C", r, "bytes").raw(",\"id\":0");
    counted_ = std::max(counted_, end);
    since_(counted_).raw(",\"args\":{\"read\":").number(bytes_read_);
    text_.raw(",\"written\":").number(bytes_written_).raw("}}");
  }

  void write_record_(bool& first, const trace_row& r, const trace_record& x) noexcept {
    const std::uint64_t begin = x.begin > start_.at ? x.begin - start_.at : 0, end = begin + x.length;
    switch (x.kind) {
      case trace_kind::task:
        slice_(first, r, "task", x.name, x).raw("}");
        if (x.more != 0 && fork_stamp::worker(x.more) + 1 < rows_.size()) {
          // Here, and not with the steal, which a thief of several tasks makes for the first of them only.
          arrow_(first, "s", rows_[fork_stamp::worker(x.more)], "stolen", x.more, fork_stamp::time(x.more));
          arrow_(first, "f", r, "stolen", x.more, end);
        }
        break;
      case trace_kind::steal:
        slice_(first, r, "idle", "steal", x).raw("}");
        if (x.more != 0) arrow_(first, "t", r, "stolen", x.more, end);
        break;
      case trace_kind::wait: {
        const std::uint64_t id = ++ids_;
        const unsigned worker = wait_place::worker(x.more);
        const trace_row& from = worker + 1 < rows_.size() ? rows_[worker] : r;
        apart_(first, from, "wait", x.name, id, begin, end, [&] { add_object_(x.more); });
        arrow_(first, "s", from, "goes on", fork_stamp::pack(id, (1u << fork_stamp::worker_bits) - 1), begin);
        arrow_(first, "f", r, "goes on", fork_stamp::pack(id, (1u << fork_stamp::worker_bits) - 1), end);
        break;
      }
      case trace_kind::sleep:
        slice_(first, r, "idle", "sleep", x).raw("}");
        break;
      case trace_kind::search:
        slice_(first, r, "idle", "search", x).raw("}");
        break;
      case trace_kind::level: {
        event_(first, "C", r, "tasks").raw(",\"id\":").number(r.worker());
        at_(x.begin).raw(",\"args\":{\"ready\":").number(x.more >> 32);
        text_.raw(",\"pending\":").number(x.more & 0xffff'ffffu).raw("}}");
        break;
      }
      case trace_kind::memory:
        event_(first, "C", r, "memory").raw(",\"id\":0");
        at_(x.begin).raw(",\"args\":{\"resident\":").number(x.more).raw("}}");
        break;
      case trace_kind::transfer:
        apart_(first, r, "transfer", x.name, ++ids_, begin, end,
               [&] { text_.raw(",\"args\":{\"bytes\":").number(x.more).raw("}"); });
        count_bytes_(first, r, x, end);
        break;
    }
  }

  const std::size_t megabytes_;
  const moment start_;
  const std::uint64_t origin_ = wall_clock_at(start_);
  const std::array<char, 65> host_ = host_name_();
  const std::uint64_t process_ = static_cast<std::uint64_t>(::getpid());
  trace_file file_;
  json_text text_;
  double scale_ = 1;
  base::atomic<std::uint64_t> rank_{0};  ///< the number of processes (high half), and that of this one
  std::uint64_t ids_ = 0;
  std::uint64_t bytes_read_ = 0, bytes_written_ = 0,
                counted_ = 0;  ///< in what is written now, and until when
  trace_names names_;
  resident_memory memory_;
  std::deque<trace_row> rows_;
  base::spin_lock transfers_mutex_;
  writer_lock write_mutex_;
  bool has_last_words_ = false;  ///< under write_mutex_
};

}  // namespace weft::inline WEFT_ABI::observe
