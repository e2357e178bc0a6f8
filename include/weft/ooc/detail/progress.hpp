// SPDX-License-Identifier: BSL-1.0
// A line about the state of long sweeps.
#pragma once

#include <weft/ooc/io_queue.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <ios>
#include <mutex>
#include <ostream>
#include <thread>

namespace weft::inline WEFT_ABI::ooc::detail {

/// While it exists, a thread writes a line from time to time: the share of the bytes that have been written,
/// the bandwidth, and the time left if it goes on like this.
class progress_line {
 public:
  /// `to`: null for none. `bytes`: that will be written. *Requires*: stream and queue outlive it, and nobody
  /// else uses the stream meanwhile.
  progress_line(std::ostream* to, std::chrono::milliseconds every, const io_queue& queue, double bytes)
      : queue_(queue), before_(queue.statistics()), bytes_(bytes) {
    if (to != nullptr)
      thread_ = std::thread([this, to, every] {
        try {
          write_(*to, every);
        } catch (const std::ios_base::failure&) {  // the stream is not written any more
        }
      });
  }
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;
  ~progress_line() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard hold(mutex_);
      over_ = true;
    }
    end_.notify_one();
    thread_.join();
  }

 private:
  void write_(std::ostream& to, std::chrono::milliseconds every) {
    const auto start = std::chrono::steady_clock::now();
    std::unique_lock hold(mutex_);
    while (!end_.wait_for(hold, every, [this] { return over_; })) {
      const io_statistics now = queue_.statistics();
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const auto written = static_cast<double>(now.bytes_written - before_.bytes_written);
      const double moved = written + static_cast<double>(now.bytes_read - before_.bytes_read);
      const double share = bytes_ > 0 ? std::min(written / bytes_, 1.0) : 0;
      char line[96];
      int length = std::snprintf(line, sizeof line, "weft: sweeps: %.0f %% done, %.0f s, %.0f MB/s",
                                 100 * share, seconds, 1e-6 * moved / seconds);
      if (share > 0)
        length += std::snprintf(line + length, sizeof line - static_cast<std::size_t>(length),
                                ", %.0f s left", seconds * (1 - share) / share);
      to.write(line, length).put('\n').flush();
    }
  }

  const io_queue& queue_;
  io_statistics before_;
  double bytes_;
  std::mutex mutex_;
  std::condition_variable end_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
