// SPDX-License-Identifier: BSL-1.0
// The plain layout: bytes go to their final offsets of a file that gets its name when it is complete.
#pragma once

#include <weft/archive/commit_log.hpp>
#include <weft/archive/reservation.hpp>
#include <weft/io/crc32c.hpp>
#include <weft/io/file.hpp>
#include <weft/stream/detail/layout.hpp>
#include <weft/stream/detail/traced_transfer.hpp>

namespace weft::inline WEFT_ABI::stream {

/// Writes `<path>.weft-part`, with a log of commits beside it, and renames it to `<path>` at the end.
class plain_layout final : public stream_layout {
 public:
  struct options {
    bool overwrite = false;
    std::uint64_t commit_every = 0;  ///< bytes; 0: never
    bool durable = false;            ///< commits survive a power failure
    bool sync = true;                ///< and so does the finished file
    bool readable = false;           ///< while it is written
  };
  /// *Throws*: std::system_error, also if `path` exists and is not to be overwritten.
  plain_layout(const std::string& path, const options& o)
      : options_(o), files_(reservation::to_write(path, o.overwrite)) {}

  bool in_any_order() const noexcept override { return true; }
  std::uint32_t place_at(std::span<const piece> pieces, std::uint64_t at) override {
    iovec parts[parts_at_once];
    std::uint32_t crc = 0;
    while (!pieces.empty()) {
      const std::size_t n = std::min(pieces.size(), parts_at_once);
      std::uint64_t size = 0;
      for (std::size_t i = 0; i < n; ++i) {
        parts[i] = {const_cast<std::byte*>(pieces[i].data), pieces[i].size};
        size += pieces[i].size;
        if (options_.commit_every != 0) crc = io::crc32c(pieces[i].data, pieces[i].size, crc);
      }
      if (options_.durable) allocate_(at + size);
      traced_transfer("write", size, [&] { part_.write_at(std::span<const iovec>(parts, n), at); });
      at += size;
      pieces = pieces.subspan(n);
    }
    return crc;
  }
  void placed(std::uint64_t size, std::uint32_t crc) override {
    size_ = size;
    crc_ = crc;
    if (options_.commit_every != 0 &&
        size_ - committed_.load(base::memory_order_relaxed) >= options_.commit_every)
      make_commit_();
  }
  std::size_t worth_while() const noexcept override { return between_commits(options_.commit_every); }
  bool readable() const noexcept override { return options_.readable; }
  void read_at(std::span<std::byte> to, std::uint64_t offset) const override {
    traced_transfer("read", to.size(), [&] {
      if (part_.read_at(to.data(), to.size(), offset) < to.size())
        io::fail(EIO, "read", part_.path(), offset);
    });
  }
  void finish() override {
    if (allocated_ > size_) part_.resize(size_);
    files_.share_access(part_);
    if (options_.sync) part_.sync();
    files_.publish(options_.sync);
    committed_.store(size_, base::memory_order_relaxed);
  }
  void give_up() noexcept override {
    try {
      if (options_.commit_every == 0) return files_.discard();  // nothing vouches for its bytes
      note_();
      if (allocated_ > size_) part_.resize(size_);
    } catch (...) {  // what was committed before stays
    }
  }
  std::uint64_t committed() const noexcept override {
    return committed_.load(base::memory_order_relaxed);  // a measure
  }

 private:
  static constexpr std::size_t parts_at_once = 64;

  /// Blocks that exist make durable writes much faster.
  void allocate_(std::uint64_t end) {
    const std::lock_guard hold(mutex_);
    if (end <= allocated_) return;
    constexpr std::uint64_t least = std::uint64_t{1} << 20, most = std::uint64_t{64} << 20;
    const std::uint64_t target = end + std::clamp(end, least, most);
    try {
      if (part_.allocate(allocated_, target - allocated_)) allocated_ = target;
    } catch (const std::system_error&) {  // no room ahead; the write will say whether there is any
    }
  }
  void note_(io::file* durable = nullptr) { log_.note(size_, crc_, durable); }
  void make_commit_() {
    note_(options_.durable ? &part_ : nullptr);
    committed_.store(size_, base::memory_order_relaxed);
  }

  const options options_;
  reservation files_;
  io::file& part_ = files_.part();
  commit_log log_{files_.log(), files_.salt(), files_.in()};
  std::uint64_t size_ = 0;
  base::mutex mutex_;
  std::uint64_t allocated_ = 0;
  std::uint32_t crc_ = 0;
  base::atomic<std::uint64_t> committed_{0};
};

}  // namespace weft::inline WEFT_ABI::stream
