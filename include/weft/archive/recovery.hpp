// SPDX-License-Identifier: BSL-1.0
// What to do after a crash: keeps the longest beginning of a stream that its own records vouch for.
#pragma once

#include <weft/archive/detail/checked_walk.hpp>
#include <weft/archive/reservation.hpp>
#include <weft/archive/segment_index.hpp>
#include <weft/base/error.hpp>
#include <weft/io/crc32c.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft::inline WEFT_ABI {

/// What can be recovered of a stream.
struct recovered {
  std::uint64_t bytes = 0;  ///< the beginning that is as it was written
  /// What valid records name. If that is more than `bytes`, data were damaged later, or the power failed
  /// during the last durable commit, which did not count then.
  std::uint64_t committed = 0;
  std::uint64_t segments = 0;  ///< of a segmented stream
  /// Whether it was of the segmented layout.
  bool segmented = false;
  bool was_complete = false;  ///< nothing was missing
  std::string reason;         ///< why it ends there; empty if it was complete
};

namespace stream::detail {

class recovery {
 public:
  recovery(const std::string& path, bool overwrite)
      : path_(path), in_(path), name_(io::directory::name_in(path)), overwrite_(overwrite) {}

  /// Changes nothing.
  recovered look() const {
    std::optional<io::file> part = in_.open_if_exists(part_name(name_), O_RDONLY);
    if (!part) return look_at_published_();
    return unfinished_(*part, in_.open_if_exists(log_name(name_), O_RDONLY), nullptr);
  }
  recovered run() const {
    if (!in_.has(part_name(name_)) && !has_log_()) {
      const recovered found = look_at_published_();
      if (found.was_complete) return found;
      if (!overwrite_) refuse_damaged_(found);
    }
    reservation reserved = reservation::to_recover(path_, overwrite_);
    try {
      if (!reserved.has_part()) return published_(in_.open_if_exists(name_, O_RDONLY), &reserved);
      if (reserved.is_published()) {
        const recovered found = look_at_published_();
        if (found.was_complete) {
          reserved.end_publication();
          return found;
        }
      }
      if (!overwrite_ && in_.has(name_)) io::fail(EEXIST, "recover", path_);
      return unfinished_(reserved.part(), std::nullopt, &reserved);
    } catch (...) {
      reserved.give_back();
      throw;
    }
  }

 private:
  /// Whether a writer of weft's has left its log, or holds it.
  bool has_log_() const {
    const std::optional<io::file> log = in_.open_if_exists(log_name(name_), O_RDONLY);
    return log && (log_head::read(*log) || !commit_log::all_valid(*log).empty());
  }
  [[noreturn]] void refuse_damaged_(const recovered& found) const {
    throw error("weft: the stream '" + path_ + "' is damaged behind its first " +
                std::to_string(found.bytes) +
                " bytes, which are kept only if it may be overwritten: " + found.reason);
  }

  // In all that follows `changing` is null where nothing may be changed.

  /// Without a reservation the stream may be replaced meanwhile, and the data files of the old one go.
  recovered look_at_published_() const {
    for (;;) {
      const std::optional<io::file> opened = in_.open_if_exists(name_, O_RDONLY);
      try {
        const recovered found = published_(opened, nullptr);
        if (found.was_complete || in_.is(*opened, name_)) return found;
      } catch (const error&) {
        if (!opened || in_.is(*opened, name_)) throw;
      }
    }
  }
  /// There is no unfinished stream.
  recovered published_(const std::optional<io::file>& opened, reservation* changing) const {
    if (!opened)
      throw error("weft: there is no stream '" + path_ + "', neither finished nor as '" + part_name(path_) +
                  '\'');
    if (claims_to_be_index(*opened) || has_data_files(in_, name_)) return segmented_(*opened, changing, true);
    recovered whole;
    whole.bytes = whole.committed = opened->size();
    whole.was_complete = true;
    if (changing != nullptr) changing->end(false);
    return whole;
  }
  recovered unfinished_(io::file& part, const std::optional<io::file>& log, reservation* changing) const {
    if (claims_to_be_index(part)) return segmented_(part, changing, false);
    if (changing != nullptr ? changing->found_log() : log.has_value())
      return plain_(part, changing != nullptr ? changing->log() : *log, changing);
    throw error("weft: nothing vouches for the bytes of '" + part.path() + "': there is no '" +
                log_name(path_) + '\'');
  }

  static recovered plain_(io::file& part, const io::file& log, reservation* changing) {
    std::vector<commit> commits = commit_log::all_valid(log);
    if (commits.empty()) throw error("weft: nothing to recover: no record of '" + log.path() + "' is valid");
    std::ranges::sort(commits, {}, &commit::frontier);
    recovered found;
    found.committed = commits.back().frontier;
    bool any = longest_prefix_(part, commits, found);
    // A commit of no bytes vouches for none: it may stand beside anybody's file.
    if (found.bytes == 0 && changing != nullptr && !changing->log_names_part()) any = false;
    if (!any)
      throw error("weft: nothing to recover: no record of '" + log.path() +
                  "' has the checksum of what is in '" + part.path() + '\'');
    if (changing == nullptr) return found;
    part.resize(found.bytes);
    changing->share_access(part);
    part.sync();
    changing->publish(true);
    return found;
  }

  /// Reads the file up to the last frontier, and compares its checksum at each.
  /// *Returns*: whether any is right.
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

  recovered segmented_(const io::file& index, reservation* changing, bool published) const {
    const index_scan scan = scan_index(index);
    if (scan.salt == 0) throw error("weft: nothing to recover: " + scan.damage);
    data_files data;
    data.open(in_, name_, scan.salt, scan.ends);
    const walk_result walk = checked_walk(scan.segments, data, true, [](std::span<const std::byte>) {});
    recovered found{.bytes = scan.segments.start(walk.segments),
                    .committed = scan.segments.bytes(),
                    .segments = walk.segments,
                    .segmented = true,
                    .reason = walk.damage.empty() ? scan.damage : walk.damage};
    found.was_complete = scan.end && walk.damage.empty() && walk.crc == scan.end->all.crc;
    if (scan.end && walk.damage.empty() && !found.was_complete)
      found.reason = "the checksum of the whole stream, in the footer of '" + index.path() +
                     "', is not that of its segments";
    if (walk.segments == 0 && !found.was_complete)
      throw error("weft: nothing to recover of '" + path_ + "': " + found.reason);
    if (changing == nullptr) return found;
    if (found.was_complete && published) {
      changing->end(false);
      return found;
    }
    if (published && !overwrite_) refuse_damaged_(found);
    data.for_each([changing](io::file& each) { changing->share_access(each); });
    data.sync();
    if (found.was_complete) {
      changing->share_access(changing->part());
      changing->part().sync();
      changing->publish(true);
    } else {
      found.segments = rewrite_(scan, walk.segments, *changing);
    }
    return found;
  }

  /// Publishes an index of the first `count` segments.
  /// *Returns*: how many it has: neighbours become one.
  std::uint64_t rewrite_(const index_scan& scan, std::size_t count, reservation& changing) const {
    io::unnamed_file fresh(changing.in(), name_, changing.mode());
    changing.share_access(fresh.content());
    segment_index index(fresh.content(), scan.salt, changing.in());
    for (std::size_t i = 0; i < count; ++i) {
      const segment s = scan.segments[i];
      index.add(s.file, s.offset, s.length, s.crc);
    }
    const totals all = index.finish(false);
    fresh.content().sync();
    changing.publish(fresh);
    return all.segments;
  }

  std::string path_;
  io::directory in_;
  std::string name_;
  bool overwrite_;
};

}  // namespace stream::detail

/// *Returns*: what recover() would keep of the stream `path`.
/// *Effects*: none.
/// *Throws*: as recover().
inline recovered recoverable(const std::string& path) { return stream::detail::recovery(path, true).look(); }

/// Finishes a stream whose writer ended before close(): of "path.weft-part" it keeps the longest prefix that
/// commit records (plain layout, "path.weft-log") or index blocks (segmented layout) confirm and whose bytes
/// match their checksums, and publishes it as `path`, durably. Of a finished stream that is damaged, it keeps
/// such a prefix if `overwrite`; an intact one is left unchanged. If it is interrupted, it can be repeated.
/// *Throws*: weft::error if there is nothing to recover, if the stream is still being written, or if it is
/// damaged and not `overwrite`; std::system_error, with EEXIST if `path` exists beside "path.weft-part" and
/// not `overwrite`.
/// *Cost*: reads the whole stream.
/// *Thread safety*: any; two at once exclude each other.
inline recovered recover(const std::string& path, bool overwrite = false) {
  return stream::detail::recovery(path, overwrite).run();
}

}  // namespace weft::inline WEFT_ABI
