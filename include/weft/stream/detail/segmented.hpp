// SPDX-License-Identifier: BSL-1.0
// The segmented layout: one data file for each worker, and an index that says where the stream's bytes are.
#pragma once

#include <weft/archive/reservation.hpp>
#include <weft/archive/segment_index.hpp>
#include <weft/archive/segment_map.hpp>
#include <weft/stream/detail/layout.hpp>
#include <weft/stream/detail/traced_transfer.hpp>

#include <algorithm>
#include <array>
#include <set>

namespace weft::inline WEFT_ABI::stream {

/// Writes a data file for each worker buffer and the index `<path>.weft-part`, which is renamed to `<path>`
/// at the end (docs/reference/append-format.md). *Source*: PLIO's one file per processor.
class segmented_layout final : public stream_layout {
 public:
  struct options {
    bool overwrite = false;
    std::uint64_t commit_every = 0;  ///< bytes after which data files and index are written as far as they
                                     ///< go; 0: when a buffer of theirs is full
    bool durable = false;            ///< commits survive a power failure
    bool sync = true;                ///< the finished file survives a power failure
    bool readable = false;           ///< keeps in memory where all bytes are
  };
  /// *Throws*: std::system_error, also if `path` exists and is not to be overwritten.
  segmented_layout(const std::string& path, const options& o)
      : options_(o), reserved_(reservation::to_write(path, o.overwrite)) {
    if (o.durable) reserved_.log().sync();  // an empty log would stand in the way of recovery
  }

  bool files_blocks() const noexcept override { return true; }
  void begin_block(std::uint32_t worker_buffer, block& b) override {
    b.file = number_of_(worker_buffer);
    b.begin = file_(b.file).size;
  }
  void file_block(block& b, std::size_t end) override {
    if (end <= b.written) return;
    data_file& f = file_(b.file);
    traced_transfer("write", end - b.written, [&] {
      f.data.write_at(b.bytes.get() + b.written, end - b.written, b.begin + b.written);
    });
    b.written = end;
    f.size = b.begin + end;
  }
  std::uint32_t checksum(const block& b, std::size_t begin, std::size_t size) const override {
    const io::file& from = file_(b.file).data;
    std::array<std::byte, 4096> part;
    std::uint32_t crc = 0;
    for (const std::size_t end = begin + size; begin != end;) {
      const std::size_t n = std::min(part.size(), end - begin);
      if (from.read_at(part.data(), n, b.begin + begin) < n)
        io::fail(EIO, "read", from.path(), b.begin + begin);
      crc = io::crc32c(part.data(), n, crc);
      begin += n;
    }
    return crc;
  }
  void place(std::span<const piece> pieces) override {
    for (const piece& p : pieces) {
      index_.add(p.in->file, p.in->begin + p.begin, p.size, p.crc);
      if (options_.durable) to_synchronise_.insert(p.in->file);
      if (options_.readable) note_place_(p);
      placed_ += p.size;
    }
  }
  std::size_t worth_while() const noexcept override { return between_commits(options_.commit_every); }
  bool wants_commit() const noexcept override {
    return options_.commit_every != 0 && placed_ - committed() >= options_.commit_every;
  }
  void commit() override {
    synchronise_data_();
    index_.commit(options_.durable);
    committed_.store(placed_, base::memory_order_relaxed);
  }
  std::uint64_t committed() const noexcept override {
    return committed_.load(base::memory_order_relaxed);  // a measure
  }
  bool readable() const noexcept override { return options_.readable; }
  void read_at(std::span<std::byte> to, std::uint64_t offset) const override {
    while (!to.empty()) {
      segment s;
      {
        const std::lock_guard hold(mutex_);
        const std::size_t i = map_.find(offset);
        s = map_[i];
        s.offset += offset - map_.start(i);
        s.length -= offset - map_.start(i);
      }
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), s.length));
      const io::file& from = file_(s.file).data;
      traced_transfer("read", n, [&] {
        if (from.read_at(to.data(), n, s.offset) < n) io::fail(EIO, "read", from.path(), s.offset);
      });
      offset += n;
      to = to.subspan(n);
    }
  }
  void finish() override {
    for (const std::unique_ptr<data_file>& f : files_) {
      reserved_.share_access(f->data);
      if (options_.sync) f->data.sync();
      f->data.close();
    }
    reserved_.share_access(reserved_.part());
    index_.finish(options_.sync);
    reserved_.publish(options_.sync);
    committed_.store(placed_, base::memory_order_relaxed);
  }
  void give_up() noexcept override {
    try {
      index_.commit(false);
    } catch (...) {  // what was committed before stays
    }
  }

 private:
  struct data_file {
    io::file data;
    std::uint64_t size = data_header_size;
    bool named = false;  ///< its name is on the device
  };
  /// The file of a worker buffer, which is made when it is needed. *Thread safety*: any thread, here and
  /// below.
  std::uint32_t number_of_(std::uint32_t worker_buffer) {
    const std::lock_guard hold(mutex_);
    if (numbers_.size() <= worker_buffer) numbers_.resize(worker_buffer + 1, none);
    if (numbers_[worker_buffer] == none) {
      const auto number = static_cast<std::uint32_t>(files_.size());
      files_.reserve(number + 1);
      auto made = std::make_unique<data_file>();
      made->data = reserved_.make_data_file(number);
      files_.push_back(std::move(made));
      numbers_[worker_buffer] = number;
    }
    return numbers_[worker_buffer];
  }
  /// The data files have all bytes that were placed on the device, and names.
  void synchronise_data_() {
    bool unnamed = false;
    for (const std::uint32_t number : to_synchronise_) {
      data_file& f = file_(number);
      if (f.named) {
        f.data.sync_data();
      } else {
        f.data.sync();
        unnamed = f.named = true;
      }
    }
    if (unnamed) reserved_.in().sync();
    to_synchronise_.clear();
  }
  data_file& file_(std::uint32_t number) const {
    const std::lock_guard hold(mutex_);
    return *files_[number];
  }
  void note_place_(const piece& p) {
    const std::uint64_t offset = p.in->begin + p.begin;
    const std::lock_guard hold(mutex_);
    if (p.size == 0) return;
    if (p.in->file == last_file_ && offset == last_end_)
      map_.extend(p.size);
    else
      map_.append({.offset = offset, .length = p.size, .file = p.in->file});
    last_file_ = p.in->file;
    last_end_ = offset + p.size;
  }

  static constexpr std::uint32_t none = UINT32_MAX;
  const options options_;
  std::uint64_t placed_ = 0;
  base::atomic<std::uint64_t> committed_{0};
  reservation reserved_;
  std::set<std::uint32_t> to_synchronise_;  // data files with bytes that were placed since the last commit
  segment_index index_{reserved_.part(), reserved_.salt(), reserved_.in()};
  std::uint32_t last_file_ = none;  // where the last bytes placed are,
  std::uint64_t last_end_ = 0;      // and end
  mutable base::mutex mutex_;
  segment_map map_;
  std::vector<std::unique_ptr<data_file>> files_;  // by their numbers
  std::vector<std::uint32_t> numbers_;             // by worker buffers
};

}  // namespace weft::inline WEFT_ABI::stream
