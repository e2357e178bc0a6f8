// SPDX-License-Identifier: BSL-1.0
// What a directory holds, of every kind: making it, noting what it is, and finding out what has changed.
#pragma once

#include "support/random.hpp"
#include "support/scratch.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace surroundings {

enum class kind {
  text,
  empty,
  magic,  ///< begins like a file of weft's
  directory,
  link,  ///< to a file
  link_to_directory,
  dangling_link,
  hard_link,
  fifo,
  socket,
  device
};

/// What somebody can see of a name.
struct object {
  struct stat about{};
  std::string content;  ///< or the target of a link

  bool regular() const { return S_ISREG(about.st_mode); }
  /// Whether it is the same thing as before.
  bool same_as(const object& o) const {
    const bool with_time = !S_ISCHR(about.st_mode);
    return about.st_ino == o.about.st_ino && about.st_dev == o.about.st_dev &&
           about.st_mode == o.about.st_mode && about.st_uid == o.about.st_uid &&
           about.st_gid == o.about.st_gid && (S_ISDIR(about.st_mode) || about.st_size == o.about.st_size) &&
           content == o.content &&
           (!with_time || (about.st_mtim.tv_sec == o.about.st_mtim.tv_sec &&
                           about.st_mtim.tv_nsec == o.about.st_mtim.tv_nsec));
  }
  std::string text() const {
    char line[200];
    std::snprintf(line, sizeof line, "inode %llu mode %06o owner %u:%u links %u size %lld mtime %lld.%09ld",
                  static_cast<unsigned long long>(about.st_ino), about.st_mode, about.st_uid, about.st_gid,
                  static_cast<unsigned>(about.st_nlink), static_cast<long long>(about.st_size),
                  static_cast<long long>(about.st_mtim.tv_sec), about.st_mtim.tv_nsec);
    std::string all = line;
    if (S_ISLNK(about.st_mode)) return all + " -> " + content;
    for (const char c : content.substr(0, 24)) {
      std::snprintf(line, sizeof line, c > ' ' && c < 127 ? " %c" : " %02x", static_cast<unsigned char>(c));
      all += line;
    }
    return all;
  }
};

/// Everything below a directory, by paths relative to it, which directories end with a slash.
using objects = std::map<std::string, object>;

inline std::optional<object> look_at(const std::string& path) {
  object found;
  if (::lstat(path.c_str(), &found.about) != 0) return std::nullopt;
  if (S_ISLNK(found.about.st_mode)) {
    char target[4096];
    const ssize_t n = ::readlink(path.c_str(), target, sizeof target);
    if (n > 0) found.content.assign(target, static_cast<std::size_t>(n));
  } else if (found.regular()) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) {
      found.content.resize(static_cast<std::size_t>(found.about.st_size));
      const ssize_t n = ::pread(descriptor, found.content.data(), found.content.size(), 0);
      if (n != found.about.st_size) found.content += "(cut off)";
      ::close(descriptor);
    }
  }
  return found;
}
inline void scan(const std::string& root, const std::string& below, objects& all) {
  DIR* const listing = ::opendir((root + below).c_str());
  if (listing == nullptr) return;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(listing))
    if (entry->d_name != std::string(".") && entry->d_name != std::string(".."))
      names.emplace_back(entry->d_name);
  ::closedir(listing);
  for (const std::string& name : names) {
    const std::optional<object> found = look_at(root + below + name);
    if (!found) continue;
    all[below + name] = *found;
    if (S_ISDIR(found->about.st_mode)) scan(root, below + name + '/', all);
  }
}
inline void remove_all(const std::string& path) {
  struct stat about;
  if (::lstat(path.c_str(), &about) != 0) return;
  if (!S_ISDIR(about.st_mode)) {
    ::unlink(path.c_str());
    return;
  }
  if (DIR* const listing = ::opendir(path.c_str())) {
    while (const dirent* entry = ::readdir(listing))
      if (entry->d_name != std::string(".") && entry->d_name != std::string(".."))
        remove_all(path + '/' + entry->d_name);
    ::closedir(listing);
  }
  ::rmdir(path.c_str());
}

/// Bytes that begin like one of weft's files, and are none.
inline std::string like_weft(weft_test::random& draw) {
  static const char* const beginnings[] = {"\x89weftIX\n", "\x89weftOT\n", "\x89weftDT\n", "\x89weftLG\n",
                                           "WFLG\1"};
  std::string bytes(draw.below(3) * 2048 + 8 * draw.below(40) + 8, '\0');
  for (char& c : bytes) c = static_cast<char>(draw.one_in(2) ? draw() : 0);
  const std::string beginning = beginnings[draw.below(5)];
  bytes.replace(0, std::min(bytes.size(), beginning.size()), beginning);
  if (draw.one_in(2) && bytes.size() >= 72) bytes.replace(bytes.size() - 64, 8, beginnings[1]);
  return bytes;
}

/// Makes something at a free name. `victim`: an absolute path of a file that links lead to. *Returns*: false
/// if the name is taken, or such a thing cannot be made here.
inline bool make(kind what, const std::string& path, const std::string& victim, weft_test::random& draw) {
  struct stat about;
  if (::lstat(path.c_str(), &about) == 0) return false;
  static constexpr mode_t modes[] = {0644, 0600, 0640, 0666, 0755, 0444, 0400, 0000};
  const mode_t mode = modes[draw.below(8)];
  switch (what) {
    case kind::text:
    case kind::empty:
    case kind::magic: {
      std::string bytes;
      if (what == kind::text)
        bytes = "not weft's " + std::to_string(draw()) + std::string(draw.below(400), '.') + '\n';
      if (what == kind::text && draw.one_in(3)) bytes.resize(32 * draw.below(9));
      if (what == kind::magic) bytes = like_weft(draw);
      weft_test::spill(path, bytes);
      return ::chmod(path.c_str(), mode) == 0;
    }
    case kind::directory:
      if (::mkdir(path.c_str(), 0755) != 0) return false;
      weft_test::spill(path + "/within", "not weft's either");
      return true;
    case kind::link:
      return ::symlink(victim.c_str(), path.c_str()) == 0;
    case kind::link_to_directory:
      return ::symlink(victim.substr(0, victim.rfind('/')).c_str(), path.c_str()) == 0;
    case kind::dangling_link:
      return ::symlink((victim + "-absent").c_str(), path.c_str()) == 0;
    case kind::hard_link:
      return ::link(victim.c_str(), path.c_str()) == 0;
    case kind::fifo:
      return ::mkfifo(path.c_str(), 0666) == 0;
    case kind::socket:
      return ::mknod(path.c_str(), S_IFSOCK | 0666, 0) == 0;
    case kind::device:
      return ::mknod(path.c_str(), S_IFCHR | 0666, makedev(1, 5)) == 0;  // endless zeros
  }
  return false;
}

}  // namespace surroundings
