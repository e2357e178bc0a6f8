// SPDX-License-Identifier: BSL-1.0
// Segmented streams made by hand: segments of a known text, laid out in some data files.
#pragma once

#include "support/random.hpp"
#include "support/scratch.hpp"

#include <weft/io/crc32c.hpp>
#include <weft/io/file.hpp>
#include <weft/stream/format.hpp>
#include <weft/stream/segment_index.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weft_test {

/// A text in which no two places look alike for long.
inline std::string varied_text(std::size_t size, std::uint64_t seed) {
  random draw(seed);
  std::string text(size, '\0');
  for (char& each : text) each = static_cast<char>(draw());
  return text;
}

/// Writes a segmented stream step by step, without any task.
class stream_writer {
 public:
  stream_writer(std::string name, std::uint32_t files) : name_(std::move(name)), ends_(files) {
    index_ = std::make_unique<weft::stream::segment_index>(weft::stream::part_name(name_), true);
    for (std::uint32_t i = 0; i < files; ++i) {
      data_.push_back(weft::io::file::create(weft::stream::data_name(name_, i), true));
      weft::stream::write_data_header(data_.back(), index_->salt(), i);
      ends_[i] = weft::stream::data_header_size;
    }
  }
  /// The next bytes of the stream, behind what is in that data file, or `gap` bytes later.
  void add(std::uint32_t file, const std::string& bytes, std::uint64_t gap = 0) {
    ends_[file] += gap;
    data_[file].write_at(bytes.data(), bytes.size(), ends_[file]);
    index_->add(file, ends_[file], bytes.size(), weft::io::crc32c(bytes.data(), bytes.size()));
    ends_[file] += bytes.size();
    text_ += bytes;
  }
  void commit(bool durable = false) {
    index_->commit(durable);
    committed_ = text_.size();
  }
  weft::stream::totals finish() {
    const weft::stream::totals all = index_->finish(false);
    index_.reset();
    weft::io::rename_durably(weft::stream::part_name(name_), name_, true);
    return all;
  }
  /// As if the process had been killed.
  void abandon() { index_.reset(); }

  weft::stream::segment_index& index() { return *index_; }
  const std::string& text() const { return text_; }
  std::size_t committed() const { return committed_; }

 private:
  std::string name_;
  std::unique_ptr<weft::stream::segment_index> index_;
  std::vector<weft::io::file> data_;
  std::vector<std::uint64_t> ends_;
  std::string text_;
  std::size_t committed_ = 0;
};

}  // namespace weft_test
