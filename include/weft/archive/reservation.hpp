// SPDX-License-Identifier: BSL-1.0
// The sole right to write the stream of a name: its lock, its unfinished file, and how both come and go.
#pragma once

#include <weft/archive/commit_log.hpp>
#include <weft/archive/detail/data_files.hpp>
#include <weft/archive/detail/index_scan.hpp>
#include <weft/archive/format.hpp>

#include <optional>
#include <string>
#include <utility>

namespace weft::inline WEFT_ABI::stream {

/// Who holds it is the only one that writes `<path>.weft-part` and publishes it as `<path>`. It is held by a
/// lock (flock) on the log, which the kernel releases when the process ends, however it ends.
///
/// Who may touch which name when:
///  1. `.weft-log` appears with its head and locked, in one step, and is removed by who has it locked and has
///     found, after it was locked, that it still has its name.
///  2. `.weft-part` is made, published and removed by who has the log locked. What has that name and is not
///     the file that the head of the log is about is somebody else's, and stays.
///  3. `<path>` is replaced, by a rename, by who has the log locked.
///  4. Data files are removed when their headers name the salt of a stream that was replaced, or that was
///     given up and is overwritten.
/// *Throws*: std::system_error, weft::error. *Thread safety*: one thread at a time.
class reservation {
 public:
  /// Takes over the name for a writer, and removes what one that ended early has left.
  /// *Throws*: std::system_error with EEXIST if `path`, or what an earlier writer has left of it, exists and
  /// not `overwrite`, and if a file that weft has not made is in the way; EBUSY while somebody else writes
  /// it; weft::error if `path` is a directory, pipe, socket or device.
  static reservation to_write(const std::string& path, bool overwrite) {
    for (;;) {
      reservation r(path, overwrite);
      const std::optional<struct stat> old = r.in_.look(r.name_);
      if (old && !overwrite) io::fail(EEXIST, "create", path);
      r.demand_replaceable_(old);
      r.set_mode_(old);
      io::unnamed_file part(r.in_, r.name_, r.mode_);
      r.head_ = {.salt = io::random_number(),
                 .part_inode = part.content().about().st_ino,
                 .part_birth = part.content().birth(),
                 .replaced = r.salt_of_published_()};
      io::unnamed_file log(r.in_, r.name_, r.mode_);
      r.head_.write_to(log.content());
      log.content().try_lock();  // nobody else can have it yet
      while (!(r.log_ = log.publish_if_free(log_name(r.name_)))) r.clear_leftovers_();
      if (r.in_.has(r.name_) != old.has_value() || r.salt_of_published_() != r.head_.replaced) {
        r.in_.remove(log_name(r.name_));  // another writer has published before the log was there
        continue;
      }
      r.part_ = part.publish_if_free(part_name(r.name_));
      if (!r.part_) {
        r.in_.remove(log_name(r.name_));
        r.refuse_(part_name(r.name_));
      }
      return r;
    }
  }
  /// Takes over the name for recovery, with what is there: the log and the unfinished file.
  /// *Throws*: weft::error while somebody writes it.
  static reservation to_recover(const std::string& path, bool overwrite) {
    for (;;) {
      reservation r(path, overwrite);
      r.log_ = r.in_.open_if_exists(log_name(r.name_), O_RDWR);
      if (r.log_ && r.is_log_()) {
        if (!r.log_->try_lock()) throw error("weft: '" + part_name(path) + "' is still being written");
        if (!r.in_.is(*r.log_, log_name(r.name_))) continue;  // its writer has just finished
        r.found_log_ = true;
      } else {
        if (r.log_) throw error("weft: '" + log_name(path) + "' is no log of weft's, or is damaged");
        io::unnamed_file log(r.in_, r.name_, 0666);
        r.head_ = {.salt = io::random_number()};
        r.head_.write_to(log.content());
        log.content().try_lock();
        r.log_ = log.publish_if_free(log_name(r.name_));
        if (!r.log_) continue;
      }
      try {
        const std::optional<struct stat> old = r.in_.look(r.name_);
        if (overwrite) r.demand_replaceable_(old);
        r.set_mode_(old);
        r.part_ = r.in_.open_if_exists(part_name(r.name_), O_RDWR);
        if (r.part_ && r.part_->about().st_nlink != 1)
          throw error("weft: '" + part_name(path) + "' has another name, under which it would change");
      } catch (...) {
        r.give_back();
        throw;
      }
      return r;
    }
  }

  const io::directory& in() const noexcept { return in_; }
  const std::string& name() const noexcept { return name_; }
  std::uint64_t salt() const noexcept { return head_.salt; }
  /// The log; of a writer it has its head, and no records yet.
  io::file& log() noexcept { return *log_; }
  /// For recovery: whether a writer has left the log.
  bool found_log() const noexcept { return found_log_; }
  /// The unfinished file.
  /// *Requires*: has_part().
  io::file& part() noexcept { return *part_; }
  /// Writers have one; for recovery: whether a writer has left it.
  bool has_part() const noexcept { return part_.has_value(); }

  /// Whether the log that a writer has left is about the unfinished file.
  bool log_names_part() const { return found_log_ && head_.names(*part_); }
  /// Whether an earlier recovery has published an index of the unfinished file, and was cut off then.
  bool is_published() const {
    const std::uint64_t unfinished = salt_of(*part_);
    return unfinished != 0 && unfinished == salt_of_published_();
  }

  /// Of new files, until they are published.
  mode_t mode() const noexcept { return mode_; }
  /// Makes the data file of that number. It has its header from the first moment: without, nobody would know
  /// whose it is.
  io::file make_data_file(std::uint32_t number) const {
    io::unnamed_file made(in_, name_, mode_);
    write_data_header(made.content(), salt(), number);
    return made.publish(data_name(name_, salt(), number), false);
  }

  /// Gives a file the access rights of the one that it will replace.
  void share_access(io::file& f) const {
    const std::optional<struct stat> old = overwrite_ ? in_.look(name_) : std::nullopt;
    if (old && S_ISREG(old->st_mode)) f.share_access_of(*old);
  }
  /// Publishes the unfinished file: closes it, gives it its final name, in place of what has it, and ends the
  /// reservation.
  /// *Requires*: it is complete, and synchronised if `durable`.
  /// *Throws*: also weft::error if somebody has removed it.
  void publish(bool durable) {
    if (!in_.is(*part_, part_name(name_)))
      throw error("weft: '" + part_->path() + "' was removed or replaced while it was written");
    if (overwrite_) demand_replaceable_(in_.look(name_));
    const std::uint64_t published = salt_of(*part_);
    part_->close();
    in_.rename(part_name(name_), name_, overwrite_);
    end_(durable, published);
  }
  /// The same, of a file that is complete before anybody has seen it; then the unfinished one is removed.
  void publish(io::unnamed_file& complete) {
    if (overwrite_) demand_replaceable_(in_.look(name_));
    const std::uint64_t published = salt_of(complete.content());
    complete.publish(name_, overwrite_);
    if (part_) in_.remove(part_name(name_));
    end_(true, published);
  }
  /// The same, where that was done by an earlier recovery.
  void end_publication() {
    in_.remove(part_name(name_));
    end(true);
  }
  /// The stream is published, or lost without its index: removes data files that are not those of the
  /// published one, and the log.
  void end(bool durable) { end_(durable, salt_of_published_()); }
  /// Removes the unfinished file, the data files and the log: nothing of them can be recovered, or wanted.
  void discard() {
    if (in_.is(*part_, part_name(name_))) in_.remove(part_name(name_));
    remove_data_files(in_, name_, salt());
    in_.remove(log_name(name_));
  }
  /// Recovery has failed: leaves all as it was.
  void give_back() {
    if (!found_log_) in_.remove(log_name(name_));
  }

 private:
  reservation(const std::string& path, bool overwrite)
      : in_(path), name_(io::directory::name_in(path)), overwrite_(overwrite) {}

  [[noreturn]] WEFT_COLD void refuse_(const std::string& name) const {
    io::fail(EEXIST, "take for a stream, because weft has not made it,", in_.path_of(name));
  }
  /// Nobody gets access before share_access() who had none to the file that is replaced.
  void set_mode_(const std::optional<struct stat>& old) noexcept {
    mode_ = old && S_ISREG(old->st_mode) ? 0600 : 0666;
  }
  void demand_replaceable_(const std::optional<struct stat>& old) const {
    if (old && !S_ISREG(old->st_mode) && !S_ISLNK(old->st_mode))
      throw error("weft: '" + in_.path_of(name_) + "' is not an ordinary file");
  }
  /// Whether the log is weft's, and what its head says, if that is undamaged.
  bool is_log_() {
    if (const std::optional<log_head> head = log_head::read(*log_)) {
      head_ = *head;
      return true;
    }
    return !commit_log::all_valid(*log_).empty();
  }
  /// The salt of the segmented stream that has the name; 0 if none has.
  std::uint64_t salt_of_published_() const {
    const std::optional<io::file> published = in_.open_if_readable(name_);
    return published ? salt_of(*published) : 0;
  }

  /// `published`: the salt of the stream that has the name; 0 if none has.
  void end_(bool durable, std::uint64_t published) {
    if (durable) in_.sync();
    for (const std::uint64_t salt : {head_.replaced, head_.salt})
      if (salt != 0 && salt != published) remove_data_files(in_, name_, salt);
    in_.remove(log_name(name_));
    log_->close();
  }
  /// Removes what an earlier writer has left, if it has ended; else throws.
  void clear_leftovers_() const {
    std::optional<io::file> log = in_.open_if_exists(log_name(name_), O_RDWR);
    if (!log) return;
    const std::optional<log_head> head = log_head::read(*log);
    if (!head) refuse_(log_name(name_));
    if (!log->try_lock()) io::fail(EBUSY, "create", in_.path_of(name_));
    if (!in_.is(*log, log_name(name_))) return;  // another one has removed it meanwhile
    const std::optional<io::file> part = in_.open_if_exists(part_name(name_), O_RDONLY);
    if (part) {
      if (!head->names(*part)) refuse_(part_name(name_));
      if (!overwrite_) io::fail(EEXIST, "create", part->path());
      in_.remove(part_name(name_));
    }
    const std::optional<io::file> published = in_.open_if_readable(name_);
    const bool was_published = published && (head->names(*published) || salt_of(*published) == head->salt);
    const std::optional<struct stat> named = in_.look(name_);
    if (!published && named && S_ISREG(named->st_mode))  // whose data are these?
      io::fail(EACCES, "open", in_.path_of(name_));
    if (!was_published)
      remove_data_files(in_, name_, head->salt);
    else if (head->replaced != 0 && head->replaced != head->salt)
      remove_data_files(in_, name_, head->replaced);
    in_.remove(log_name(name_));
  }

  io::directory in_;
  std::string name_;
  bool overwrite_;
  bool found_log_ = false;
  mode_t mode_ = 0666;
  log_head head_;
  std::optional<io::file> log_;
  std::optional<io::file> part_;
};

}  // namespace weft::inline WEFT_ABI::stream
