// SPDX-License-Identifier: BSL-1.0
// How many processors this process may keep busy: affinity mask and the container's CPU quota.
#pragma once

#include <weft/system/detail/whole_number.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#if defined(__linux__)
#include <weft/base/processor_set.hpp>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>
#else
#include <numeric>
#include <thread>
#endif

namespace weft::inline WEFT_ABI::base {

namespace detail {

/// Cuts `text` at the first `mark` and returns the part before it; all of it if there is none.
inline std::string_view take_until(std::string_view& text, char mark) noexcept {
  const std::size_t at = text.find(mark);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return part;
}

/// Next word of `text`; empty at its end.
inline std::string_view take_word(std::string_view& text) noexcept {
  constexpr std::string_view blanks = " \t\n";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(blanks));
  text.remove_prefix(word.size());
  return word;
}

/// Processors for `quota` microseconds of computing in each `period`, rounded up.
inline std::optional<unsigned> whole_cpus(std::optional<std::uint64_t> quota,
                                          std::optional<std::uint64_t> period) noexcept {
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  const std::uint64_t cpus = *quota / *period + (*quota % *period != 0 ? 1 : 0);
  return static_cast<unsigned>(std::min<std::uint64_t>(cpus, std::numeric_limits<unsigned>::max()));
}

/// The smaller of two limits, where nothing means no limit.
inline std::optional<unsigned> tighter(std::optional<unsigned> a, std::optional<unsigned> b) noexcept {
  if (!a) return b;
  if (!b) return a;
  return std::min(*a, *b);
}

}  // namespace detail

/// Limit in a cgroup v2 `cpu.max` ("max 100000", "150000 100000"). *Returns*: nothing if there is no limit or
/// the text makes no sense.
inline std::optional<unsigned> cpus_of_cpu_max(std::string_view text) noexcept {
  const std::string_view quota = detail::take_word(text);
  const std::string_view period = detail::take_word(text);
  return detail::whole_cpus(whole_number(quota), whole_number(period.empty() ? "100000" : period));
}

/// Limit in the cgroup v1 pair `cpu.cfs_quota_us` (-1: none) and `cpu.cfs_period_us`.
inline std::optional<unsigned> cpus_of_cfs(std::string_view quota, std::string_view period) noexcept {
  return detail::whole_cpus(whole_number(detail::take_word(quota)), whole_number(detail::take_word(period)));
}

#if defined(__linux__)

namespace detail {

/// A small file's text; empty if it cannot be read.
inline std::string read_file(const std::string& path) {
  std::string text;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char part[4096];
  for (;;) {
    const ssize_t n = ::read(file, part, sizeof part);
    if (n > 0) {
      text.append(part, static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      break;
    }
  }
  ::close(file);
  return text;
}

/// Whether a comma-separated list has the item.
inline bool lists(std::string_view list, std::string_view item) noexcept {
  while (!list.empty())
    if (take_until(list, ',') == item) return true;
  return false;
}

/// A path in /proc/self/mountinfo has blanks as \040.
inline std::string unescaped(std::string_view text) {
  const auto octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && octal(text[i + 1]) && octal(text[i + 2]) &&
        octal(text[i + 3])) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

/// Where a hierarchy of control groups is visible: the group `root` of it is the folder `folder`.
struct cgroup_mount {
  std::string root;
  std::string folder;
};

/// First mount of the v2 hierarchy, or of the v1 hierarchy that has the controller `cpu`.
inline std::optional<cgroup_mount> find_cgroup_mount(std::string_view mountinfo, bool version2) {
  while (!mountinfo.empty()) {
    std::string_view line = take_until(mountinfo, '\n');
    for (int skipped = 0; skipped < 3; ++skipped) take_word(line);  // mount id, parent id, device
    const std::string_view root = take_word(line);
    const std::string_view folder = take_word(line);
    // Options, as many as there are; the fields after the dash are fixed again.
    while (!line.empty() && take_word(line) != "-") continue;
    const std::string_view type = take_word(line);
    take_word(line);  // source
    if (version2 ? type == "cgroup2" : type == "cgroup" && lists(take_word(line), "cpu"))
      return cgroup_mount{unescaped(root), unescaped(folder)};
  }
  return std::nullopt;
}

/// The path of this process in that hierarchy.
inline std::optional<std::string> find_cgroup_path(std::string_view self_cgroup, bool version2) {
  while (!self_cgroup.empty()) {
    std::string_view line = take_until(self_cgroup, '\n');
    const std::string_view number = take_until(line, ':');
    const std::string_view controllers = take_until(line, ':');
    if (version2 ? number == "0" && controllers.empty() : lists(controllers, "cpu")) return std::string(line);
  }
  return std::nullopt;
}

/// `path` as seen below a mount of `root`; empty, which means the mount itself, where it lies outside.
inline std::string below(std::string path, const std::string& root) {
  if (path.find("/..") != std::string::npos) return {};  // outside this process's cgroup namespace
  if (root != "/") {
    const bool inside = path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
    path = inside ? path.substr(root.size()) : std::string();
  }
  while (!path.empty() && path.back() == '/') path.pop_back();
  return path;
}

inline std::optional<unsigned> cgroup_limit(const std::string& root, std::string_view mountinfo,
                                            std::string_view self_cgroup, bool version2) {
  const auto mount = find_cgroup_mount(mountinfo, version2);
  const auto own = find_cgroup_path(self_cgroup, version2);
  if (!mount || !own) return std::nullopt;
  std::optional<unsigned> limit;
  // A parent's quota binds its children whatever they state themselves.
  for (std::string path = below(*own, mount->root);; path.resize(path.rfind('/'))) {
    const std::string folder = root + mount->folder + path + '/';
    limit = tighter(limit, version2 ? cpus_of_cpu_max(read_file(folder + "cpu.max"))
                                    : cpus_of_cfs(read_file(folder + "cpu.cfs_quota_us"),
                                                  read_file(folder + "cpu.cfs_period_us")));
    if (path.rfind('/') == std::string::npos) return limit;
  }
}

}  // namespace detail

/// Tightest CPU quota of the control groups of this process and all their parents, v1 and v2, in whole
/// processors, rounded up. `root` is put before every path that is read, for tests; empty: the system itself.
/// *Returns*: nothing if there is no quota. *Throws*: std::bad_alloc. *Suspends*: no. *Cost*: reads some
/// small files.
inline std::optional<unsigned> quota_cpus(const std::string& root = {}) {
  const std::string mountinfo = detail::read_file(root + "/proc/self/mountinfo");
  const std::string self_cgroup = detail::read_file(root + "/proc/self/cgroup");
  return detail::tighter(detail::cgroup_limit(root, mountinfo, self_cgroup, true),
                         detail::cgroup_limit(root, mountinfo, self_cgroup, false));
}

/// The processors in the affinity mask of the calling thread, ascending, however large the machine; none if
/// the kernel does not say. *Throws*: std::bad_alloc.
inline std::vector<unsigned> affinity_mask() {
  std::vector<unsigned> processors;
  ask_for_processors(
      [](processor_set& s) { return sched_getaffinity(0, s.bytes(), s.data()) == 0 ? 0 : errno; },
      [&](const processor_set& s) {
        for (unsigned i = 0; i < s.end(); ++i)
          if (s.has(i)) processors.push_back(i);
      });
  return processors;
}

#else

/// No quota is known on this system.
inline std::optional<unsigned> quota_cpus(const std::string& = {}) { return std::nullopt; }

/// All processors of the machine.
inline std::vector<unsigned> affinity_mask() {
  std::vector<unsigned> processors(std::thread::hardware_concurrency());
  std::iota(processors.begin(), processors.end(), 0u);
  return processors;
}

#endif

/// Processors in the affinity mask of the calling thread; at least 1. *Throws*: std::bad_alloc.
inline unsigned affinity_cpus() {
  return static_cast<unsigned>(std::max(std::size_t{1}, affinity_mask().size()));
}

/// Processors that this process may keep busy: those of the affinity mask, but no more than the CPU quota
/// pays for (rounded up). At least 1. Read anew at each call. *Throws*: std::bad_alloc. *Suspends*: no.
/// *Cost*: reads some small files. *Thread safety*: any thread.
inline unsigned usable_cpus() {
  const unsigned cpus = affinity_cpus();
  return std::max(1u, std::min(cpus, quota_cpus().value_or(cpus)));
}

}  // namespace weft::inline WEFT_ABI::base
