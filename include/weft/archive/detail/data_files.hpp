// SPDX-License-Identifier: BSL-1.0
// The data files of a stream, open for reading, each with what is wrong with it.
#pragma once

#include <weft/archive/commit_log.hpp>
#include <weft/archive/format.hpp>
#include <weft/io/directory.hpp>

#include <algorithm>
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
  /// Opens the files of the stream `name`, which lies in that directory, and looks at their headers and
  /// lengths: segments reach up to `ends[i]` in file i; 0: it has none.
  void open(const io::directory& in, const std::string& name, std::uint64_t salt,
            const std::vector<std::uint64_t>& ends) {
    files_.resize(ends.size());
    for (std::uint32_t number = 0; number < ends.size(); ++number) {
      if (ends[number] == 0) continue;
      open_one_(files_[number], in, data_name(name, salt, number), {.salt = salt, .number = number});
      one_& each = files_[number];
      if (each.problem.empty() && each.opened.size() < ends[number])
        each.too_short = '\'' + each.opened.path() + "' has " + std::to_string(each.opened.size()) +
                         " bytes instead of " + std::to_string(ends[number]) + " or more";
    }
  }
  /// An ordinary file as the only one, number 0.
  void take(io::file plain) {
    files_.clear();
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

  /// Calls f(io::file&) for the files that are the stream's beyond doubt.
  template <class F>
  void for_each(F&& f) {
    for (one_& each : files_)
      if (each.opened && each.problem.empty()) f(each.opened);
  }
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

  static void open_one_(one_& each, const io::directory& in, const std::string& name,
                        const data_header& expected) {
    const std::string quoted = '\'' + in.path_of(name) + '\'';
    try {
      std::optional<io::file> opened = in.open_if_exists(name, O_RDONLY);
      if (!opened) {
        each.problem = "the data file " + quoted + " is missing";
        return;
      }
      each.opened = std::move(*opened);
    } catch (const error&) {
      each.problem = quoted + " is not an ordinary file";
      return;
    }
    const std::optional<data_header> header = read_data_header(each.opened);
    if (!header)
      each.problem = "the header of the data file " + quoted + " (offset 0) is damaged";
    else if (header->version != format_version)
      each.problem = "the data file " + quoted + " has a format version that this weft does not know";
    else if (*header != expected)
      each.problem = "the data file " + quoted + " belongs to another stream";
  }

  std::vector<one_> files_;
};

/// Whether the finished file `name` has data files: then it is an index, whatever it looks like. Those of a
/// stream that is being written, and of the one which that replaces, are not meant. *Cost*: reads the
/// directory.
inline bool has_data_files(const io::directory& in, const std::string& name) {
  const auto log = [&] {
    const std::optional<io::file> opened = in.open_if_readable(log_name(name));
    return (opened ? log_head::read(*opened) : std::nullopt).value_or(log_head{});
  };
  const log_head before = log();
  std::vector<std::string> found;
  for (const std::string& each : in.names_with(name + ".weft-")) {
    const std::optional<io::file> opened = in.open_if_readable(each);
    if (!opened) continue;
    const std::optional<data_header> header = read_data_header(*opened);
    if (header && each == data_name(name, header->salt, header->number) && header->salt != before.salt &&
        header->salt != before.replaced)
      found.push_back(each);
  }
  if (found.empty()) return false;
  // A writer may have begun, or ended, since the log was read.
  const log_head after = log();
  return std::ranges::any_of(found, [&](const std::string& each) {
    return in.has(each) && !each.starts_with(data_name_prefix(name, after.salt)) &&
           !each.starts_with(data_name_prefix(name, after.replaced));
  });
}

/// Removes the data files of a stream that nobody needs any more: those whose headers say that they are its.
inline void remove_data_files(const io::directory& in, const std::string& name, std::uint64_t salt) {
  const auto is_ours = [&](std::uint32_t number) {
    const std::string each = data_name(name, salt, number);
    const std::optional<io::file> opened = in.open_if_readable(each);
    return opened && read_data_header(*opened) == data_header{.salt = salt, .number = number};
  };
  // Their numbers have no gaps. The last one goes first, so that what is cut off can be done again.
  std::uint32_t count = 0;
  while (is_ours(count)) ++count;
  while (count-- > 0) in.remove(data_name(name, salt, count));
}

}  // namespace weft::inline WEFT_ABI::stream
