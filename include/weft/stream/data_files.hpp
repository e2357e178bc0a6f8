// SPDX-License-Identifier: BSL-1.0
// The data files of a stream, open for reading, each with what is wrong with it.
#pragma once

#include <weft/io/file.hpp>
#include <weft/stream/format.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::stream {

/// *Throws*: std::system_error where a file exists but cannot be opened or read. *Thread safety*: reads from
/// any thread.
class data_files {
 public:
  /// Opens the files of the stream `name` and looks at their headers and lengths: segments reach up to
  /// `ends[i]` in file i; 0: it has none.
  void open(const std::string& name, std::uint64_t salt, const std::vector<std::uint64_t>& ends) {
    files_.resize(ends.size());
    for (std::uint32_t number = 0; number < ends.size(); ++number) {
      if (ends[number] == 0) continue;
      open_one_(files_[number], data_name(name, number), salt, number);
      one_& each = files_[number];
      if (each.problem.empty() && each.opened.size() < ends[number])
        each.too_short = '\'' + each.opened.path() + "' has " + std::to_string(each.opened.size()) +
                         " bytes instead of " + std::to_string(ends[number]) + " or more";
    }
  }
  /// An ordinary file as the only one, number 0.
  void take(io::file plain) {
    files_.resize(1);
    files_[0].opened = std::move(plain);
  }

  /// *Throws*: damaged_stream if anything is wrong with any of the files.
  void require_all() const {
    for (const one_& each : files_) {
      const std::string& problem = each.problem.empty() ? each.too_short : each.problem;
      if (!problem.empty()) throw damaged_stream("weft: " + problem);
    }
  }
  /// Why nothing can be read from a file; empty if it can.
  const std::string& problem(std::uint32_t number) const { return files_[number].problem; }
  const io::file& operator[](std::uint32_t number) const { return files_[number].opened; }
  std::size_t count() const noexcept { return files_.size(); }

  /// Everything in the files that are open is on the device on return.
  void sync() {
    for (one_& each : files_)
      if (each.opened) each.opened.sync();
  }

 private:
  struct one_ {
    io::file opened;
    std::string problem;
    std::string too_short;  ///< what stands before the end can be read all the same
  };

  static void open_one_(one_& each, const std::string& path, std::uint64_t salt, std::uint32_t number) {
    if (!io::exists(path)) {
      each.problem = "the data file '" + path + "' is missing";
      return;
    }
    each.opened = io::file::open_read(path);
    if (!each.opened.regular()) {
      each.problem = '\'' + path + "' is not an ordinary file";
      return;
    }
    const std::optional<data_header> header = read_data_header(each.opened);
    if (!header)
      each.problem = "the header of the data file '" + path + "' (offset 0) is damaged";
    else if (header->version != format_version)
      each.problem = "the data file '" + path + "' has a format version that this weft does not know";
    else if (header->salt != salt || header->number != number)
      each.problem = "the data file '" + path + "' belongs to another stream";
  }

  std::vector<one_> files_;
};

}  // namespace weft::inline WEFT_ABI::stream
