// SPDX-License-Identifier: BSL-1.0
// What to do after a crash: keeps the longest beginning of a stream that its own records vouch for.
#pragma once

#include <weft/base/error.hpp>
#include <weft/io/crc32c.hpp>
#include <weft/io/file.hpp>
#include <weft/stream/checked_walk.hpp>
#include <weft/stream/commit_log.hpp>
#include <weft/stream/data_files.hpp>
#include <weft/stream/format.hpp>
#include <weft/stream/index_scan.hpp>
#include <weft/stream/segment_index.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI {

/// What is left of a stream.
struct recovered {
  std::uint64_t bytes = 0;  ///< the beginning that is as it was written
  /// What valid records name. If that is more than `bytes`, data were damaged later, or the power failed
  /// during the last durable commit, which did not count then.
  std::uint64_t committed = 0;
  std::uint64_t segments = 0;  ///< of a segmented stream
  bool segmented = false;
  bool was_complete = false;  ///< nothing was missing
  std::string reason;         ///< why it ends there; empty if it was complete
};

namespace stream::detail {

class recovery {
 public:
  recovery(const std::string& path, bool change, bool overwrite)
      : path_(path), part_(part_name(path)), log_(log_name(path)), change_(change), overwrite_(overwrite) {}

  recovered run() {
    if (!io::exists(part_)) return published_();
    if (change_ && !overwrite_ && io::exists(path_)) io::fail(EEXIST, "recover", path_);
    io::file part = open_(part_);
    if (claims_to_be_index(part)) return segmented_(std::move(part));
    if (io::exists(log_)) return plain_(part);
    if (has_data_file(path_)) return segmented_(std::move(part));
    throw error("weft: nothing vouches for the bytes of '" + part_ + "': there is no '" + log_ + '\'');
  }

 private:
  io::file open_(const std::string& path) const {
    io::file opened = change_ ? io::file::open_write(path) : io::file::open_read(path);
    if (change_ && !opened.try_lock()) throw error("weft: '" + path + "' is still being written");
    return opened;
  }

  /// There is no unfinished stream.
  recovered published_() {
    if (!io::exists(path_))
      throw error("weft: there is no stream '" + path_ + "', neither finished nor as '" + part_ + '\'');
    io::file opened = io::file::open_read(path_);
    if (claims_to_be_index(opened) || has_data_file(path_)) return segmented_(open_(path_));
    // The log of a stream that was ended between its publication and the removal of its log.
    if (change_ && io::exists(log_)) {
      [[maybe_unused]] const io::file lock = open_(log_);
      io::remove_if_exists(log_);
    }
    const std::uint64_t size = opened.size();
    recovered whole;
    whole.bytes = whole.committed = size;
    whole.was_complete = true;
    return whole;
  }

  recovered plain_(io::file& part) {
    const io::file log = open_(log_);
    std::vector<commit> commits = commit_log::all_valid(log);
    if (commits.empty()) throw error("weft: nothing to recover: no record of '" + log_ + "' is valid");
    std::ranges::sort(commits, {}, &commit::frontier);
    recovered found;
    found.committed = commits.back().frontier;
    const bool any = longest_prefix_(part, commits, found);
    if (!any)
      throw error("weft: nothing to recover: no record of '" + log_ + "' has the checksum of what is in '" +
                  part_ + '\'');
    if (!change_) return found;
    part.resize(found.bytes);
    part.sync();
    io::rename_durably(part_, path_, overwrite_);
    io::remove_if_exists(log_);
    return found;
  }

  /// Reads the file up to the last frontier, and compares its checksum at each. *Returns*: whether any is
  /// right.
  static bool longest_prefix_(const io::file& part, const std::vector<commit>& commits, recovered& found) {
    constexpr std::size_t most = 512 * 1024;
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(most);
    std::uint64_t at = 0;
    std::uint32_t crc = 0;
    bool any = false;
    for (const commit& each : commits) {
      while (at < each.frontier) {
        const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(most, each.frontier - at));
        const std::size_t got = part.read_at(buffer.get(), n, at);
        crc = io::crc32c(buffer.get(), got, crc);
        at += got;
        if (got == n) continue;
        found.reason = '\'' + part.path() + "' ends at offset " + std::to_string(at) + ", but " +
                       std::to_string(found.committed) + " bytes were committed";
        return any;
      }
      if (crc != each.crc) {
        found.reason = "the first " + std::to_string(at) + " bytes of '" + part.path() +
                       "' do not match the checksum that was committed";
        continue;
      }
      any = true;
      found.bytes = at;
      found.reason = "the stream was not finished";
    }
    return any;
  }

  /// `index` is unfinished, or finished.
  recovered segmented_(io::file index) {
    const std::string& source = index.path();
    const index_scan scan = scan_index(index);
    if (scan.salt == 0) throw error("weft: nothing to recover: " + scan.damage);
    data_files data;
    data.open(path_, scan.salt, scan.ends);
    const walk_result walk = checked_walk(scan.segments, data, true, [](std::span<const std::byte>) {});
    recovered found{.bytes = scan.segments.start(walk.segments),
                    .committed = scan.segments.bytes(),
                    .segments = walk.segments,
                    .segmented = true,
                    .reason = walk.damage.empty() ? scan.damage : walk.damage};
    found.was_complete = scan.end && walk.damage.empty() && walk.crc == scan.end->all.crc;
    if (scan.end && walk.damage.empty() && !found.was_complete)
      found.reason =
          "the checksum of the whole stream, in the footer of '" + source + "', is not that of its segments";
    if (walk.segments == 0 && !found.was_complete)
      throw error("weft: nothing to recover of '" + path_ + "': " + found.reason);
    if (!change_) return found;
    if (found.was_complete) {
      if (source == path_) return found;
      data.sync();
      index.sync();
      io::rename_durably(source, path_, overwrite_);
      return found;
    }
    if (source == path_ && !overwrite_)
      throw error("weft: the stream '" + path_ + "' is damaged behind its first " +
                  std::to_string(found.bytes) +
                  " bytes, which are kept only if it may be overwritten: " + found.reason);
    found.segments = rewrite_(scan, walk.segments, data);
    if (source != path_) io::remove_if_exists(source);
    return found;
  }

  /// Publishes an index of the first `count` segments. *Returns*: how many it has: neighbours become one.
  std::uint64_t rewrite_(const index_scan& scan, std::size_t count, data_files& data) {
    const std::string fresh = path_ + ".recovered";
    totals all;
    try {
      segment_index index(fresh, true, scan.salt);
      for (std::size_t i = 0; i < count; ++i) {
        const segment s = scan.segments[i];
        index.add(s.file, s.offset, s.length, s.crc);
      }
      data.sync();
      all = index.finish(true);
      io::rename_durably(fresh, path_, overwrite_);
    } catch (...) {
      ::unlink(fresh.c_str());
      throw;
    }
    return all.segments;
  }

  std::string path_;
  std::string part_;
  std::string log_;
  bool change_;
  bool overwrite_;
};

}  // namespace stream::detail

/// Says what recover() would keep of the stream `path`. *Effects*: none. *Throws*: as recover().
inline recovered recoverable(const std::string& path) {
  return stream::detail::recovery(path, false, true).run();
}

/// Finishes a stream whose writer has ended early: of "path.part" it keeps the longest beginning for which
/// commit records (plain layout, "path.log") or blocks of the index (segmented layout) vouch and whose bytes
/// match their checksums, and publishes it as `path`, durably. Of a stream that is finished and damaged it
/// keeps the same if `overwrite`; one that is whole is left as it is. It may be repeated if it is cut off
/// itself. *Throws*: weft::error if nothing is left, if the stream is still being written, or if it is
/// damaged and not `overwrite`; std::system_error, with EEXIST if `path` exists beside "path.part" and not
/// `overwrite`. *Cost*: reads the whole stream. *Thread safety*: any; two at once exclude each other.
inline recovered recover(const std::string& path, bool overwrite = false) {
  return stream::detail::recovery(path, true, overwrite).run();
}

}  // namespace weft::inline WEFT_ABI
