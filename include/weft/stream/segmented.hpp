// SPDX-License-Identifier: BSL-1.0
// The segmented layout: one data file for each worker, and an index that says where the stream's bytes are.
#pragma once

#include <weft/io/names.hpp>
#include <weft/stream/placer.hpp>
#include <weft/stream/segment_index.hpp>

namespace weft::stream {

/// Writes `<path>.0`, `<path>.1`, ... and the index `<path>.part`, which is renamed to `<path>` at the end
/// (docs/reference/append-format.md). *Source*: PLIO's one file per processor.
class segmented_layout final : public placer {
 public:
  /// *Throws*: std::system_error, also if `path` exists and is not to be overwritten.
  /// `commit_every`: bytes after which the index is written as far as it goes, so that they can be recovered
  /// as far as they are in the data files; 0: when a block of it is full.
  segmented_layout(const std::string& path, bool overwrite, bool sync, std::uint64_t commit_every)
      : overwrite_(overwrite),
        sync_(sync),
        commit_every_(commit_every),
        path_(path),
        index_(create_(path, overwrite)) {}

  bool files_blocks() const noexcept override { return true; }
  void begin_block(std::uint32_t lane, block& b) override {
    b.file = number_of_(lane);
    b.begin = file_(b.file).size;
  }
  void file_block(block& b) override {
    if (b.used == 0) return;
    data_file& f = file_(b.file);
    f.data.write_at(b.bytes.get(), b.used, b.begin);
    f.size = b.begin + b.used;
  }
  void place(std::span<const piece> pieces) override {
    for (const piece& p : pieces) {
      index_.add(p.in->file, p.in->begin + p.begin, p.size, p.crc);
      uncommitted_ += p.size;
    }
    if (commit_every_ == 0 || uncommitted_ < commit_every_) return;
    index_.commit(false);
    uncommitted_ = 0;
  }
  void finish() override {
    for (const std::unique_ptr<data_file>& f : files_) {
      if (sync_) f->data.sync();
      f->data.close();
    }
    index_.finish(sync_);
    io::rename(index_.path(), path_, overwrite_);
    if (sync_) io::sync_directory_of(path_);
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
  };
  static segment_index create_(const std::string& path, bool overwrite) {
    if (!overwrite && io::exists(path)) io::fail(EEXIST, "create", path);
    segment_index made(part_name(path), overwrite);
    io::remove_if_exists(path);  // its data files are about to be overwritten
    return made;
  }
  /// The file of a lane, which is made when it is needed. *Thread safety*: any thread, here and below.
  std::uint32_t number_of_(std::uint32_t lane) {
    const std::lock_guard hold(door_);
    if (numbers_.size() <= lane) numbers_.resize(lane + 1, none);
    if (numbers_[lane] == none) {
      const auto number = static_cast<std::uint32_t>(files_.size());
      const std::string name = data_name(path_, number);
      auto made = std::make_unique<data_file>();
      made->data = io::file::create(name, overwrite_);
      try {
        write_data_header(made->data, index_.salt(), number);
        files_.push_back(std::move(made));
      } catch (...) {
        io::remove_if_exists(name);  // another lane may come with the same number
        throw;
      }
      numbers_[lane] = number;
    }
    return numbers_[lane];
  }
  data_file& file_(std::uint32_t number) {
    const std::lock_guard hold(door_);
    return *files_[number];
  }

  static constexpr std::uint32_t none = UINT32_MAX;
  const bool overwrite_, sync_;
  const std::uint64_t commit_every_;
  std::uint64_t uncommitted_ = 0;
  const std::string path_;
  segment_index index_;
  base::mutex door_;
  std::vector<std::unique_ptr<data_file>> files_;  // by their numbers
  std::vector<std::uint32_t> numbers_;             // by lanes
};

}  // namespace weft::stream
