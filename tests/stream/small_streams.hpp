// SPDX-License-Identifier: BSL-1.0
// Segmented streams made by hand: segments of a known text, laid out in some data files.
#pragma once

#include "support/random.hpp"
#include "support/scratch.hpp"

#include <weft/archive/format.hpp>
#include <weft/archive/reservation.hpp>
#include <weft/archive/segment_index.hpp>
#include <weft/io/crc32c.hpp>
#include <weft/io/file.hpp>

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
  stream_writer(std::string name, std::uint32_t files)
      : name_(std::move(name)),
        state_(std::make_unique<state>(name_)),
        ends_(files, weft::stream::data_header_size) {
    for (std::uint32_t i = 0; i < files; ++i) {
      data_.push_back(state_->reserved.make_data_file(i));
      names_.push_back(data_.back().path());
    }
  }
  /// The path of a data file.
  const std::string& data(std::uint32_t file) const { return names_[file]; }
  /// The next bytes of the stream, behind what is in that data file, or `gap` bytes later.
  void add(std::uint32_t file, const std::string& bytes, std::uint64_t gap = 0) {
    ends_[file] += gap;
    data_[file].write_at(bytes.data(), bytes.size(), ends_[file]);
    index().add(file, ends_[file], bytes.size(), weft::io::crc32c(bytes.data(), bytes.size()));
    ends_[file] += bytes.size();
    text_ += bytes;
  }
  void commit(bool durable = false) {
    index().commit(durable);
    committed_ = text_.size();
  }
  weft::stream::totals finish() {
    const weft::stream::totals all = index().finish(false);
    state_->reserved.publish(false);
    state_.reset();
    return all;
  }
  /// As if the process had been killed.
  void abandon() { state_.reset(); }

  weft::stream::segment_index& index() { return state_->index; }
  const std::string& text() const { return text_; }
  std::size_t committed() const { return committed_; }

 private:
  struct state {
    weft::stream::reservation reserved;
    weft::stream::segment_index index{reserved.part(), reserved.salt(), reserved.in()};
    explicit state(const std::string& name) : reserved(weft::stream::reservation::to_write(name, true)) {}
  };
  std::string name_;
  std::unique_ptr<state> state_;
  std::vector<std::string> names_;
  std::vector<weft::io::file> data_;
  std::vector<std::uint64_t> ends_;
  std::string text_;
  std::size_t committed_ = 0;
};

/// The log of a plain stream, in an unlocked file, with a head that names no part.
class log_writer {
 public:
  explicit log_writer(const std::string& path, std::uint64_t salt = 77)
      : in_(path), file_(weft::io::file::create(path, true)), log_(file_, salt, in_) {
    weft::stream::log_head{.salt = salt}.write_to(file_);
  }
  weft::stream::commit_log* operator->() { return &log_; }

 private:
  weft::io::directory in_;
  weft::io::file file_;
  weft::stream::commit_log log_;
};

}  // namespace weft_test
