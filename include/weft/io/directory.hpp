// SPDX-License-Identifier: BSL-1.0
// A directory that is kept open: making, naming, replacing and removing its files without following links.
#pragma once

#include <weft/base/error.hpp>
#include <weft/io/file.hpp>

#include <dirent.h>
#include <sys/random.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <vector>

namespace weft::inline WEFT_ABI::io {

/// A random number that is not 0.
inline std::uint64_t random_number() noexcept {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof number) ||
      number == 0) {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    number = (static_cast<std::uint64_t>(now) ^ reinterpret_cast<std::uintptr_t>(&number)) | 1;
  }
  return number;
}
/// Sixteen hexadecimal digits.
inline std::string hexadecimal(std::uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

/// The directory of a file. Names are looked up in the directory that was opened, whatever becomes of its
/// path; a symbolic link at a name is never followed. *Throws*: std::system_error that names operation and
/// path; weft::error where a name is not that of an ordinary file. *Suspends*: never. *Thread safety*: any.
class directory {
 public:
  /// Opens the directory that `path` lies in. Links on the way to it are followed: they are the caller's.
  explicit directory(const std::string& path)
      : prefix_(path.substr(0, path.rfind('/') + 1)),
        opened_(file::open_path(prefix_.empty() ? "." : prefix_, O_PATH | O_DIRECTORY)) {}

  /// The last part of a path: the name in its directory. *Throws*: EISDIR if it has none.
  static std::string name_in(const std::string& path) {
    std::string name = path.substr(path.rfind('/') + 1);
    if (name.empty() || name == "." || name == "..") fail(EISDIR, "use as a file", path);
    return name;
  }
  /// The path of a name, for messages.
  std::string path_of(const std::string& name) const { return prefix_ + name; }

  /// *Returns*: what has that name, itself if it is a link; nothing if there is none.
  std::optional<struct stat> look(const std::string& name) const {
    struct stat about;
    if (::fstatat(opened_.descriptor(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0) return about;
    if (errno != ENOENT && errno != ENAMETOOLONG) fail(errno, "ask for", path_of(name));
    return std::nullopt;
  }
  bool has(const std::string& name) const { return look(name).has_value(); }
  /// Whether the open file `f` has that name.
  bool is(const file& f, const std::string& name) const {
    const std::optional<struct stat> named = look(name);
    return named && f.same_as(*named);
  }

  /// Opens an ordinary file; no other kind is opened, nor waited for. `access`: O_RDONLY or O_RDWR.
  /// *Returns*: nothing if there is none.
  std::optional<file> open_if_exists(const std::string& name, int access) const {
    const std::optional<struct stat> named = look(name);
    if (!named) return std::nullopt;
    if (S_ISLNK(named->st_mode)) throw error("weft: '" + path_of(name) + "' is a symbolic link");
    if (!S_ISREG(named->st_mode)) refuse_kind_(name);
    std::string path = path_of(name);
    file opened(open_(name, access | O_NOFOLLOW | O_NONBLOCK, 0), std::move(path));
    if (!opened && errno == ENOENT) return std::nullopt;
    if (!opened) fail(errno, access == O_RDONLY ? "open" : "open for writing", opened.path());
    if (!opened.regular()) refuse_kind_(name);  // it has been replaced meanwhile
    return opened;
  }
  /// The same. *Throws*: ENOENT.
  file open(const std::string& name, int access) const {
    std::optional<file> opened = open_if_exists(name, access);
    if (!opened) fail(ENOENT, "open", path_of(name));
    return std::move(*opened);
  }
  /// Opens a file that may be anybody's, for reading. *Returns*: nothing if there is none, it is no ordinary
  /// file, or may not be read. *Throws*: std::system_error if it cannot be opened for another reason, such as
  /// too many open files.
  std::optional<file> open_if_readable(const std::string& name) const {
    const std::optional<struct stat> named = look(name);
    if (!named || !S_ISREG(named->st_mode)) return std::nullopt;
    std::string path = path_of(name);
    file opened(open_(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0), std::move(path));
    if (!opened && errno != ENOENT && errno != ELOOP && errno != EACCES && errno != EPERM)
      fail(errno, "open", opened.path());
    if (!opened || !opened.regular()) return std::nullopt;
    return opened;
  }
  /// A new file, open for reading and writing. *Throws*: EEXIST if the name is taken, also by a link.
  file create(const std::string& name, mode_t mode) const {
    std::string path = path_of(name);
    file made(open_(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode), std::move(path));
    if (!made) fail(errno, "create", made.path());
    return made;
  }
  /// Gives a file another name. *Throws*: EEXIST if `to` exists and not `replace`; the file then keeps its
  /// name.
  void rename(const std::string& from, const std::string& to, bool replace) const {
    if (rename_(from, to, replace) != 0)
      fail(errno, ("rename '" + path_of(from) + "' to").c_str(), path_of(to));
  }
  /// Removes a name; it is no failure if there is none.
  void remove(const std::string& name) const {
    if (::unlinkat(opened_.descriptor(), name.c_str(), 0) != 0 && errno != ENOENT)
      fail(errno, "remove", path_of(name));
  }
  /// Its names that begin with `prefix`; none if the directory may not be listed.
  std::vector<std::string> names_with(const std::string& prefix) const {
    std::vector<std::string> found;
    const int listed = open_(".", O_RDONLY | O_DIRECTORY, 0);
    if (listed < 0 && errno == EACCES) return found;
    if (listed < 0) fail(errno, "open", prefix_.empty() ? "." : prefix_);
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(listed), &::closedir);
    if (!listing) {
      ::close(listed);
      throw std::bad_alloc();
    }
    while (const dirent* const entry = ::readdir(listing.get()))
      if (std::string_view(entry->d_name).starts_with(prefix)) found.emplace_back(entry->d_name);
    return found;
  }
  /// Makes its names durable.
  void sync() const {
    const file readable(open_(".", O_RDONLY | O_DIRECTORY, 0), prefix_.empty() ? "." : prefix_);
    if (!readable) fail(errno, "open", readable.path());
    int failure;
    do {
      failure = ::fsync(readable.descriptor()) == 0 ? 0 : errno;
    } while (failure == EINTR);
    // Some file systems know no fsync of a directory (EINVAL): with them a name is as durable as it gets.
    if (failure != 0 && failure != EINVAL && failure != EROFS)
      fail(failure, "bring to the device", readable.path());
  }
  /// Its descriptor, good for the calls whose names end with "at".
  int descriptor() const noexcept { return opened_.descriptor(); }

 private:
  friend class unnamed_file;

  [[noreturn]] WEFT_COLD void refuse_kind_(const std::string& name) const {
    throw error("weft: '" + path_of(name) + "' is not an ordinary file");
  }
  int open_(const std::string& name, int flags, mode_t mode) const {
    int descriptor;
    do {
      descriptor = ::openat(opened_.descriptor(), name.c_str(), flags | O_CLOEXEC, mode);
    } while (descriptor < 0 && errno == EINTR);
    return descriptor;
  }
  int rename_(const std::string& from, const std::string& to, bool replace) const {
    const int in = opened_.descriptor();
    if (replace) return ::renameat(in, from.c_str(), in, to.c_str());
    const int failed = ::renameat2(in, from.c_str(), in, to.c_str(), RENAME_NOREPLACE);
    if (failed == 0 || (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)) return failed;
    // The file system cannot do that: a link fails with EEXIST, too.
    if (::linkat(in, from.c_str(), in, to.c_str(), 0) == 0) return ::unlinkat(in, from.c_str(), 0);
    if (errno == EEXIST || errno == ENOENT) return -1;
    // Without links nothing is atomic: somebody who makes the name at this moment loses the file.
    if (has(to)) {
      errno = EEXIST;
      return -1;
    }
    return ::renameat(in, from.c_str(), in, to.c_str());
  }

  std::string prefix_;
  file opened_;
};

/// A new file that nobody else can see until it gets its name: what is found under that name was complete
/// from the first moment. Where a file system has no files without names, it is "<name>.weft-<random>", and
/// is removed if it gets no other. *Throws*, *Thread safety*: as directory.
class unnamed_file {
 public:
  /// In the directory, which must outlive it. `hint`: the name that it is meant for.
  unnamed_file(const directory& in, std::string hint, mode_t mode) : in_(in), hint_(std::move(hint)) {
    constexpr const char* kernel_names = "/proc/self/fd";  // how such a file gets its name
    if (::access(kernel_names, X_OK) == 0) {
      std::string path = in.path_of(hint_);
      file_ = file(in.open_(".", O_TMPFILE | O_RDWR, mode), std::move(path));
      if (!file_ && errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOSYS)
        fail(errno, "create", file_.path());
    }
    if (!file_) {
      temporary_ = random_name_();
      file_ = in.create(temporary_, mode);
    }
  }
  unnamed_file(const unnamed_file&) = delete;
  unnamed_file& operator=(const unnamed_file&) = delete;
  ~unnamed_file() {
    if (!temporary_.empty()) ::unlinkat(in_.descriptor(), temporary_.c_str(), 0);
  }

  file& content() noexcept { return file_; }
  /// Gives it its name, which is free, and hands it over. *Returns*: nothing if the name is taken.
  std::optional<file> publish_if_free(const std::string& name) {
    const int failed = temporary_.empty() ? link_(name) : in_.rename_(temporary_, name, false);
    if (failed != 0 && errno == EEXIST) return std::nullopt;
    if (failed != 0) fail(errno, "create", in_.path_of(name));
    return hand_over_(name);
  }
  /// Gives it its name, in place of what has that name. *Throws*: EEXIST if the name is taken and not
  /// `replace`.
  file publish(const std::string& name, bool replace) {
    if (!replace) {
      std::optional<file> published = publish_if_free(name);
      if (!published) fail(EEXIST, "create", in_.path_of(name));
      return std::move(*published);
    }
    if (temporary_.empty()) {
      std::string other = random_name_();
      if (link_(other) != 0) fail(errno, "create", in_.path_of(other));
      temporary_ = std::move(other);
    }
    in_.rename(temporary_, name, true);
    return hand_over_(name);
  }
  /// Hands it over without a name: it lives as long as it is open.
  file keep_unnamed() {
    if (!temporary_.empty()) in_.remove(temporary_);
    return hand_over_(hint_);
  }

 private:
  /// A name is never too long if the hint is not.
  std::string random_name_() const {
    constexpr std::size_t longest = 255, added = 6 + 16;
    return hint_.substr(0, longest - added) + ".weft-" + hexadecimal(random_number());
  }
  int link_(const std::string& name) const {
    const std::string open = "/proc/self/fd/" + std::to_string(file_.descriptor());
    return ::linkat(AT_FDCWD, open.c_str(), in_.descriptor(), name.c_str(), AT_SYMLINK_FOLLOW);
  }
  file hand_over_(const std::string& name) {
    temporary_.clear();
    return std::move(file_).renamed(in_.path_of(name));
  }

  const directory& in_;
  std::string hint_;
  std::string temporary_;  // its name, if it needs one
  file file_;
};

}  // namespace weft::inline WEFT_ABI::io
