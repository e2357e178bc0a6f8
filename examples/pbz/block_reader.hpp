// SPDX-License-Identifier: BSL-1.0
// Cuts the input where bzip2 would cut it: into the bytes of one block after the other.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace pbz {

using bytes = std::vector<unsigned char>;

/// Reads a descriptor block by block.
///
/// bzip2 codes runs before it sorts: a run of 4 to 255 equal bytes counts as five coded bytes, a shorter one
/// as its length, and a run ends at 255 bytes. A block is closed by the run with which it reaches
/// level * 100000 - 19 coded bytes. So one scan of the input, and no compression, says what each block holds.
class block_reader {
 public:
  block_reader(int descriptor, std::string name, int level)
      : descriptor_(descriptor), name_(std::move(name)), limit_(100000 * level - 19) {}

  /// The bytes of the next block; none at the end of the input. *Throws*: std::system_error.
  bytes next() {
    bytes data = std::exchange(ahead_, {});
    std::size_t at = 0;  // where the next run begins
    long coded = 0;
    for (;;) {
      scan_(data, at, coded);
      if (coded >= limit_) {
        ahead_.assign(data.begin() + static_cast<std::ptrdiff_t>(at), data.end());
        data.resize(at);
        return data;
      }
      if (ended_ || !read_(data)) return data;
    }
  }

  bool ended() const { return ended_ && ahead_.empty(); }
  std::uint64_t bytes_read() const { return read_so_far_; }

  /// While it waits, and before each read, it calls `asked`, and stops with an exception if that is true.
  void stop_when(bool (*asked)()) { asked_to_stop_ = asked; }

 private:
  static constexpr std::size_t longest_run = 255;
  static constexpr std::size_t stride = 64;
  static constexpr std::size_t piece = std::size_t{1} << 17;

  static bool four_equal(const unsigned char* p) { return p[0] == p[1] && p[1] == p[2] && p[2] == p[3]; }

  /// Whether four equal bytes begin at one of the next `stride` places. Without a branch: compilers make
  /// vectors of it.
  static bool four_equal_soon(const unsigned char* p) {
    unsigned char any = 0;
    for (std::size_t i = 0; i < stride; ++i)
      any = static_cast<unsigned char>(
          any | ((p[i] == p[i + 1]) & (p[i + 1] == p[i + 2]) & (p[i + 2] == p[i + 3])));
    return any != 0;
  }

  /// Goes on behind `at` over the runs that have ended, until the block is full.
  void scan_(const bytes& data, std::size_t& at, long& coded) const {
    const unsigned char* const p = data.data();
    const std::size_t size = data.size();
    while (coded < limit_) {
      // Far from both ends only the places of longer runs matter: all other bytes count as themselves.
      while (at + stride + 3 <= size && coded + static_cast<long>(stride) + 3 < limit_ &&
             !four_equal_soon(p + at)) {
        at += stride;
        coded += stride;
      }
      const std::size_t near = std::min(size, at + stride);
      while (at + 3 < near && coded + 3 < limit_ && !four_equal(p + at)) {
        ++at;
        ++coded;
      }
      const std::size_t end = std::min(size, at + longest_run);
      std::size_t behind = at;
      while (behind < end && p[behind] == p[at]) ++behind;
      if (behind == size && behind < at + longest_run) return;  // it may go on
      coded += behind - at < 4 ? static_cast<long>(behind - at) : 5;
      at = behind;
    }
  }

  /// Appends what can be read at once; returns whether there was any.
  bool read_(bytes& data) {
    const std::size_t before = data.size();
    if (data.capacity() < before + piece)
      data.reserve(std::max(2 * data.capacity(), std::size_t(limit_) + 2 * piece));
    data.resize(before + piece);
    ssize_t n = 0;
    do {
      wait_();
      n = ::read(descriptor_, data.data() + before, piece);
    } while (n < 0 && errno == EINTR);
    if (n < 0) throw std::system_error(errno, std::generic_category(), name_);
    data.resize(before + static_cast<std::size_t>(n));
    read_so_far_ += static_cast<std::uint64_t>(n);
    ended_ = n == 0;
    return !ended_;
  }

  /// Waits until there is something to read. A signal may arrive on another thread, so somebody has to look.
  void wait_() const {
    pollfd input{descriptor_, POLLIN, 0};
    do
      if (asked_to_stop_ != nullptr && asked_to_stop_()) throw std::runtime_error("interrupted");
    while (::poll(&input, 1, 100) == 0);
  }

  int descriptor_;
  std::string name_;
  long limit_;
  bytes ahead_;  // read already, but of the next block
  std::uint64_t read_so_far_ = 0;
  bool ended_ = false;
  bool (*asked_to_stop_)() = nullptr;
};

}  // namespace pbz
