// SPDX-License-Identifier: BSL-1.0
// Reads a finished append stream of either layout, from any offset, and turns it into an ordinary file.
#pragma once

#include <weft/archive/detail/checked_walk.hpp>
#include <weft/archive/detail/data_files.hpp>
#include <weft/archive/detail/index_scan.hpp>
#include <weft/archive/format.hpp>
#include <weft/archive/seek.hpp>
#include <weft/archive/segment_map.hpp>
#include <weft/base/error.hpp>
#include <weft/io/directory.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace weft::inline WEFT_ABI {

/// A finished stream: a segmented one (index and data files), or any ordinary file. Movable.
/// *Throws*: std::system_error where a file cannot be read, damaged_stream where it is not as it was written.
/// *Thread safety*: pread, verify and export_plain from any thread; read and seek share one position.
class append_reader {
 public:
  /// Opens the stream `path`. Of a segmented one, it reads and checks the whole index, and checks existence,
  /// header and length of every data file.
  /// *Throws*: also weft::error if the stream is not finished; `recover(path)` then keeps what is complete.
  /// *Cost*: some 10 ms for a million segments.
  explicit append_reader(const std::string& path) : path_(path) {
    const io::directory in(path);
    const std::string name = io::directory::name_in(path);
    if (!in.has(name) && in.has(stream::part_name(name))) refuse_unfinished_();
    while (!open_(in, name)) {
    }
  }

  /// The size of the stream, in bytes.
  std::uint64_t size() const noexcept { return map_.bytes(); }
  /// Whether it has an index and data files, with checksums.
  bool segmented() const noexcept { return segmented_; }
  /// The number of segments; 1 for a plain file that is not empty.
  std::uint64_t segments() const noexcept { return map_.count(); }
  /// The position of the next byte, in bytes from the beginning.
  std::uint64_t position() const noexcept { return position_; }

  /// Reads from the position, and advances it.
  /// *Returns*: the number of bytes read: fewer than requested only at the end.
  std::size_t read(std::span<std::byte> to) {
    const std::size_t got = pread(to, position_);
    position_ += got;
    return got;
  }

  /// Sets the position; behind the end is allowed, and nothing is read there.
  /// *Returns*: the position.
  /// *Throws*: weft::error if it would be negative; the position is then what it was.
  std::uint64_t seek(std::int64_t offset, seek_from from = seek_from::begin) {
    return position_ = stream::sought(offset, from, position_, size(), path_);
  }

  /// Reads at an offset of the stream.
  /// *Returns*: the number of bytes read: fewer than requested only at the end.
  /// *Cost*: a search (segment_map::find) and a read for each segment touched.
  std::size_t pread(std::span<std::byte> to, std::uint64_t offset) const {
    if (offset >= size()) return 0;
    to = to.first(static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), size() - offset)));
    std::size_t done = 0;
    for (std::size_t i = to.empty() ? 0 : map_.find(offset); done < to.size(); ++i) {
      const std::uint64_t skip = offset + done - map_.start(i);
      const stream::segment s = map_[i];
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(to.size() - done, s.length - skip));
      const std::size_t got = data_[s.file].read_at(to.data() + done, n, s.offset + skip);
      if (got < n) ended_early_(s.file, s.offset + skip + got);
      done += n;
    }
    return done;
  }

  /// Reads everything and compares all checksums; a plain file has none.
  /// *Throws*: damaged_stream that names the first damaged place.
  void verify() const {
    if (segmented_) walk_([](std::span<const std::byte>) {});
  }

  /// Writes the stream to an ordinary file, comparing checksums.
  /// *Effects*: `to` appears when it is complete and synchronised; on failure it is unchanged.
  /// *Throws*: as the class; std::system_error (EEXIST) if `to` exists and not `overwrite`.
  void export_plain(const std::string& to, bool overwrite = false) const {
    const io::directory in(to);
    const std::string name = io::directory::name_in(to);
    const std::optional<struct stat> old = in.look(name);
    if (old && !overwrite) io::fail(EEXIST, "export to", to);
    if (old && !S_ISREG(old->st_mode) && !S_ISLNK(old->st_mode))
      throw error("weft: '" + to + "' is not an ordinary file");
    io::unnamed_file out(in, name, old && S_ISREG(old->st_mode) ? 0600 : 0666);
    io::file& bytes_of = out.content();
    if (size() > 0)
      bytes_of.allocate(0, size());  // a device that is too small says so before anything is written
    std::uint64_t end = 0;
    walk_([&](std::span<const std::byte> bytes) {
      bytes_of.write_at(bytes.data(), bytes.size(), end);
      end += bytes.size();
    });
    if (old && S_ISREG(old->st_mode)) bytes_of.share_access_of(*old);
    bytes_of.sync();
    const std::optional<io::file> replaced = in.open_if_readable(name);
    const std::uint64_t salt = replaced ? stream::salt_of(*replaced) : 0;
    out.publish(name, overwrite);
    in.sync();
    if (salt != 0) stream::remove_data_files(in, name, salt);
  }

 private:
  [[noreturn]] void refuse_unfinished_() const {
    throw error("weft: the stream '" + path_ + "' is not finished: there is only '" +
                stream::part_name(path_) + "'; weft::recover keeps what is complete of it");
  }

  /// *Returns*: false if the stream was replaced by another one meanwhile.
  bool open_(const io::directory& in, const std::string& name) {
    io::file opened = io::file::open_read(path_);
    if (!opened.regular()) throw error("weft: '" + path_ + "' is not an ordinary file");
    try {
      if (stream::claims_to_be_index(opened))
        open_segmented_(opened, in, name);
      else
        open_plain_(opened, in, name);
    } catch (const damaged_stream&) {
      // A writer that replaces a stream removes the data files of the old one.
      if (opened.same_as(io::file::open_read(path_).about())) throw;
      return false;
    }
    if (!segmented_) data_.take(std::move(opened));
    return true;
  }
  void open_segmented_(const io::file& index, const io::directory& in, const std::string& name) {
    stream::index_scan found = stream::scan_index(index);
    if (!found.end)
      throw damaged_stream("weft: the stream '" + path_ + "' is damaged, or not finished: " + found.damage);
    data_ = {};
    data_.open(in, name, found.salt, found.ends);
    data_.require_all();
    map_ = std::move(found.segments);
    crc_ = found.end->all.crc;
    segmented_ = true;
  }
  void open_plain_(const io::file& opened, const io::directory& in, const std::string& name) {
    if (stream::read_data_header(opened))
      throw error("weft: '" + path_ + "' is one data file of a segmented stream, whose name has no number");
    const std::uint64_t size = opened.size();
    // An index that is recognised by neither end. Indices consist of whole slots: others need no look.
    if ((size < 8 || size % stream::slot_size == 0) && stream::has_data_files(in, name))
      throw damaged_stream("weft: '" + path_ +
                           "' is not an index, but has data files beside it: the index is damaged; or remove "
                           "the data files");
    if (size > 0) map_.append({.offset = 0, .length = size});
  }

  [[noreturn]] WEFT_COLD void ended_early_(std::uint32_t file, std::uint64_t offset) const {
    throw damaged_stream("weft: '" + data_[file].path() + "' has become shorter: it ends at offset " +
                         std::to_string(offset));
  }

  template <class Sink>
  void walk_(Sink&& sink) const {
    const stream::walk_result all = stream::checked_walk(map_, data_, segmented_, sink);
    if (!all.damage.empty())
      throw damaged_stream("weft: the stream '" + path_ + "' is damaged: " + all.damage);
    if (segmented_ && all.crc != crc_)
      throw damaged_stream("weft: the checksum of the whole stream, in the footer of '" + path_ +
                           "', is not that of its segments");
  }

  std::string path_;
  stream::segment_map map_;
  stream::data_files data_;
  std::uint64_t position_ = 0;
  std::uint32_t crc_ = 0;
  bool segmented_ = false;
};

}  // namespace weft::inline WEFT_ABI
