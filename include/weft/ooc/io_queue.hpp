// SPDX-License-Identifier: BSL-1.0
// A queue of transfers between memory and files: bounded, ordered where they overlap, complete or failed.
#pragma once

#include <weft/flow/completion.hpp>
#include <weft/flow/definitions.hpp>
#include <weft/io/file.hpp>
#include <weft/observe/tick_clock.hpp>
#include <weft/ooc/detail/thread_engine.hpp>
#include <weft/ooc/detail/uring_engine.hpp>
#include <weft/ooc/io_engine.hpp>
#include <weft/sched/sync.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

namespace weft::inline WEFT_ABI::ooc {

/// Which engine executes transfers.
enum class engine {
  automatic,  ///< io_uring if the program was compiled with liburing and the kernel allows it, else threads
  io_uring,   ///< io_uring; weft::error where it is not available
  threads     ///< a pool of threads that call pread and pwrite
};

/// Options of a queue of transfers.
struct io_options {
  ooc::engine engine = engine::automatic;  ///< who executes the transfers
  unsigned in_flight = 8;                  ///< how many transfers the device has at once; at least 1
};

/// What a queue has done so far.
struct io_statistics {
  std::uint64_t bytes_read = 0;     ///< bytes that files have given
  std::uint64_t bytes_written = 0;  ///< bytes that files have taken
  std::uint64_t transfers = 0;      ///< transfers that have ended, also by failure
  std::uint64_t continued = 0;      ///< transfers of which the kernel did only a part at first
  std::uint64_t repeated = 0;       ///< transfers that the kernel refused for a moment (EINTR, EAGAIN)
  std::uint64_t waited = 0;         ///< transfers that waited for an overlapping one
  std::uint64_t dropped = 0;        ///< transfers that did not begin, since nobody needed them any more
  unsigned most_in_flight = 0;      ///< the largest number of transfers at the device at once
};

/// Transfers of which those behind a failed one are in vain. *Thread safety*: any thread.
class transfer_series {
 public:
  /// Whether one at this place or before it has failed: of a task, those come first that begin first.
  bool in_vain(std::uint64_t place) const noexcept {
    return failed_.load(base::memory_order_relaxed) <= place;  // relaxed: what has begun is only slower
  }
  /// The one at this place has failed.
  void fail(std::uint64_t place) noexcept {
    std::uint64_t known = failed_.load(base::memory_order_relaxed);  // relaxed: a minimum
    while (place < known && !failed_.compare_exchange_weak(known, place, base::memory_order_relaxed)) {
    }
  }

 private:
  base::atomic<std::uint64_t> failed_{UINT64_MAX};
};

/// Where a transfer stands among others.
struct transfer_place {
  transfer_series* in = nullptr;  ///< null: nowhere
  std::uint64_t at = 0;           ///< grows in the reference order of the tasks; the same within a task
};

/// Transfers between memory and files. They start in the order of submission, at most `in_flight` at once;
/// one that overlaps another one of the same file (under whatever descriptor), of which one writes, starts
/// after the other has ended. A
/// transfer completes only as a whole: what the kernel does in part is continued, what it refuses for a
/// moment is repeated. A file that ends too early, and every other failure, is a std::system_error with path
/// and offset. A transfer that has not begun when the run of its task is stopped, or when one before it in
/// its series fails, does not take place: its task fails with weft::cancelled.
/// *Thread safety*: any thread.
class io_queue {
 public:
  /// Starts the engine.
  /// *Throws*: weft::error if the engine is not available, std::system_error, std::bad_alloc.
  explicit io_queue(const io_options& options = {})
      : limit_(std::max(options.in_flight, 1u)), engine_(make_(options.engine, limit_)) {}
  /// The same with an engine of the caller, for `in_flight` transfers at once.
  io_queue(std::unique_ptr<io_engine> engine, unsigned in_flight)
      : limit_(std::max(in_flight, 1u)), engine_(std::move(engine)) {}
  io_queue(const io_queue&) = delete;
  io_queue& operator=(const io_queue&) = delete;
  /// Waits for the transfers that are on their way.
  ~io_queue() {
    std::unique_lock hold(mutex_);
    idle_.wait(hold, [this] { return waiting_.empty() && flying_.empty() && ending_ == 0; });
  }

  /// The name of its engine: "io_uring" or "threads".
  const char* engine_name() const noexcept { return engine_->name(); }
  /// How many transfers the device has at once.
  unsigned in_flight() const noexcept { return limit_; }
  /// What it has done so far.
  io_statistics statistics() const {
    const std::lock_guard hold(mutex_);
    return statistics_;
  }

  /// Reads `size` bytes at `offset` of the file into memory, then completes `done`, or lets it fail.
  /// *Requires*: the file stays open, the memory belongs to the transfer, and its series lives, until then.
  /// *Throws*: std::bad_alloc; then nothing has happened.
  /// *Suspends*: no; nor does the thread wait for the device.
  void read(const io::file& from, std::uint64_t offset, void* to, std::size_t size, completion done,
            const transfer_place& place = {}) {
    submit_(from, false, offset, to, size, std::move(done), place);
  }
  /// Writes `size` bytes of memory at `offset` of the file. As read(), but the memory is not changed.
  void write(const io::file& to, std::uint64_t offset, const void* from, std::size_t size, completion done,
             const transfer_place& place = {}) {
    submit_(to, true, offset, const_cast<void*>(from), size, std::move(done), place);
  }

 private:
  struct request {
    transfer part;  // what is left of it
    io_queue* queue;
    const io::file* file;
    std::uint64_t begin, end;  // all of it, in the file
    completion done;
    transfer_place place;
    std::uint64_t began = observe::ticks();
    bool delayed = false, continued = false, repeated = false;
    unsigned refusals = 0;  // in a row, for a moment
  };
  using requests = std::list<request>;

  static std::unique_ptr<io_engine> make_(engine which, unsigned limit) {
    if (which != engine::threads && uring_factory != nullptr)
      if (std::unique_ptr<io_engine> ring = uring_factory(limit)) return ring;
    if (which == engine::io_uring)
      throw error(uring_factory == nullptr ? "weft: the program was compiled without liburing"
                                           : "weft: the kernel does not allow io_uring here");
    return std::make_unique<detail::thread_engine>(limit);
  }

  void submit_(const io::file& f, bool write, std::uint64_t offset, void* memory, std::size_t size,
               completion done, const transfer_place& place) {
    requests one;
    one.push_back({{f.descriptor(), write, static_cast<char*>(memory), size, offset, &transferred_, nullptr},
                   this,
                   &f,
                   offset,
                   offset + size,
                   std::move(done),
                   place});
    one.front().part.of = &one.front();
    std::unique_lock hold(mutex_);
    if (size == 0) {
      statistics_.transfers += 1;
      hold.unlock();
      return one.front().done.complete();
    }
    waiting_.splice(waiting_.end(), one);
    start_(hold);
  }

  static bool overlap_(const request& a, const request& b) noexcept {
    return (a.part.write || b.part.write) && a.begin < b.end && b.begin < a.end && same_file_(a, b);
  }
  /// Two descriptors may be open on one file; the kernel is asked only where places coincide.
  static bool same_file_(const request& a, const request& b) noexcept {
    if (a.part.descriptor == b.part.descriptor) return true;
    struct stat one, other;
    return ::fstat(a.part.descriptor, &one) == 0 && ::fstat(b.part.descriptor, &other) == 0 &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
  }
  static bool in_vain_(const request& r) noexcept {
    return r.done.stopped() || (r.place.in != nullptr && r.place.in->in_vain(r.place.at));
  }
  /// Starts what may start. A transfer that must wait holds up those behind it, so none is overtaken.
  void start_(std::unique_lock<std::mutex>& hold) {
    while (!waiting_.empty()) {
      request& next = waiting_.front();
      if (in_vain_(next)) {
        drop_first_(hold);
        continue;
      }
      if (flying_.size() == limit_) return;
      if (std::any_of(flying_.begin(), flying_.end(),
                      [&next](const request& r) { return overlap_(next, r); })) {
        if (!std::exchange(next.delayed, true)) statistics_.waited += 1;
        return;
      }
      flying_.splice(flying_.end(), waiting_, waiting_.begin());
      statistics_.most_in_flight =
          std::max(statistics_.most_in_flight, static_cast<unsigned>(flying_.size()));
      ending_ += 1;  // keeps the queue alive while the lock is not held
      hold.unlock();
      // Not through transferred_, which comes here again: the stack would be as deep as the list is long.
      if (!engine_->start(next.part)) ended_(next, transfer_now_(next.part));
      hold.lock();
      ending_ -= 1;
    }
    if (waiting_.empty() && flying_.empty() && ending_ == 0) idle_.notify_all();
  }
  void drop_first_(std::unique_lock<std::mutex>& hold) {
    requests over;
    over.splice(over.begin(), waiting_, waiting_.begin());
    statistics_.transfers += 1;
    statistics_.dropped += 1;
    ending_ += 1;  // keeps the queue alive while the lock is not held
    hold.unlock();
    over.front().done.fail(sched::cancellation());
    hold.lock();
    ending_ -= 1;
  }
  /// The thread itself does what the engine cannot take.
  static long transfer_now_(transfer& t) noexcept {
    const ssize_t n = t.write ? ::pwrite(t.descriptor, t.memory, t.size, static_cast<off_t>(t.offset))
                              : ::pread(t.descriptor, t.memory, t.size, static_cast<off_t>(t.offset));
    return n < 0 ? -errno : n;
  }

  static void transferred_(transfer& t, long result) noexcept {
    auto& r = *static_cast<request*>(t.of);
    io_queue& self = *r.queue;
    {
      const std::lock_guard hold(self.mutex_);
      self.ending_ += 1;  // keeps the queue alive when the request is gone
    }
    self.ended_(r, result);
    std::unique_lock hold(self.mutex_);
    self.ending_ -= 1;
    self.start_(hold);
  }
  /// A part of a transfer has ended, with so many bytes or a negative errno value. What is left goes to the
  /// engine again, behind the others, so that it does not hold them up.
  void ended_(request& r, long result) noexcept {
    transfer& t = r.part;
    for (;;) {
      if (result == -EINTR || result == -EAGAIN) {
        r.repeated = true;
        if (result == -EAGAIN)  // the kernel is short of something: asking at once does not help
          std::this_thread::sleep_for(std::chrono::microseconds(1u << std::min(r.refusals++, 7u)));
      } else if (result < 0) {
        return finish_(r, static_cast<int>(-result));
      } else if (result == 0) {
        return finish_(r, t.write ? EIO : ENODATA);  // a device that takes nothing; a file that ends here
      } else {
        const auto n = static_cast<std::size_t>(result);
        t.memory += n;
        t.offset += n;
        t.size -= n;
        if (t.size == 0) return finish_(r, 0);
        r.continued = true;
        r.refusals = 0;
      }
      if (engine_->start(t)) return;
      result = transfer_now_(t);
    }
  }
  /// The only reference to it: the task may destroy it as soon as it has it.
  static std::exception_ptr exception_(const request& r, int failure) noexcept {
    try {
      return std::make_exception_ptr(
          io::failure(failure, r.part.write ? "write" : "read", r.file->path(), r.part.offset));
    } catch (...) {
      return std::current_exception();  // there was no memory for the text
    }
  }
  void finish_(request& r, int failure) noexcept {
    requests over;
    std::unique_lock hold(mutex_);
    const auto here =
        std::find_if(flying_.begin(), flying_.end(), [&r](const request& o) { return &o == &r; });
    over.splice(over.begin(), flying_, here);
    const std::uint64_t bytes = r.part.offset - r.begin;
    (r.part.write ? statistics_.bytes_written : statistics_.bytes_read) += bytes;
    statistics_.transfers += 1;
    statistics_.continued += r.continued;
    statistics_.repeated += r.repeated;
    hold.unlock();
    held_task::trace_transfer(r.done, r.began, r.part.write ? "write" : "read", bytes);
    if (failure == 0) {
      r.done.complete();
    } else {
      if (r.place.in != nullptr) r.place.in->fail(r.place.at);
      r.done.fail(exception_(r, failure));
    }
  }

  const unsigned limit_;
  mutable std::mutex mutex_;  // of all that follows but the engine
  std::condition_variable idle_;
  requests waiting_, flying_;
  unsigned ending_ = 0;  // threads that are between two sections under the lock
  io_statistics statistics_;
  std::unique_ptr<io_engine> engine_;  // last: it ends first
};

}  // namespace weft::inline WEFT_ABI::ooc
