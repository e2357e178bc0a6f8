// SPDX-License-Identifier: BSL-1.0
// The speed of a disk and of kernels, measured and kept in a text file.
#pragma once

#include <weft/ooc/detail/direct_file.hpp>
#include <weft/ooc/detail/kernel_time.hpp>
#include <weft/ooc/disk_speed.hpp>

#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft::inline WEFT_ABI::ooc {

/// What was measured.
struct calibration {
  std::vector<disk_sample> disk;                ///< transfers
  std::map<std::string, kernel_speed> kernels;  ///< by the names that calibrate_kernel() was given

  /// The speed of the disk with about so many transfers at once, of about so many bytes each; buffered if it
  /// was not measured directly.
  /// *Requires*: `disk` is not empty, and has all kinds of traffic for each mode and depth.
  disk_speed speed(bool direct, unsigned depth, double bytes) const {
    std::vector<disk_sample> mode, found;
    for (const bool wanted : {direct, !direct})
      if (mode.empty())
        for (const disk_sample& s : disk)
          if (s.direct == wanted) mode.push_back(s);
    unsigned next = mode.front().depth;
    for (const disk_sample& s : mode)
      if (s.depth <= depth && (s.depth > next || next > depth)) next = s.depth;
    for (const disk_sample& s : mode)
      if (s.depth == next) found.push_back(s);
    return detail::speed_of(found, bytes);
  }
};

namespace detail {

inline std::string calibration_path(const std::string& directory) { return directory + "/weft-calibration"; }
inline constexpr const char* traffic_names[] = {"reads", "writes", "mixed"};

/// *Throws*: std::system_error; then an older file is still there.
inline void keep(const calibration& c, const std::string& directory) {
  const std::string kept = calibration_path(directory), fresh = kept + "-" + std::to_string(::getpid());
  std::ofstream to(fresh);
  to.precision(6);
  to << "weft-calibration-1\n";
  for (const disk_sample& s : c.disk)
    to << "disk " << (s.direct ? "direct " : "buffered ") << traffic_names[static_cast<int>(s.kind)] << ' '
       << s.size << ' ' << s.depth << ' ' << s.seconds << '\n';
  for (const auto& [name, speed] : c.kernels)
    to << "kernel " << name << ' ' << speed.plain << ' ' << speed.chained << '\n';
  to.close();
  if (!to || std::rename(fresh.c_str(), kept.c_str()) != 0) {
    const int why = errno;
    ::unlink(fresh.c_str());
    io::fail(why, "write", kept);
  }
}

}  // namespace detail

/// What calibrate() has kept in the directory; nothing if there is no such file, or another one.
inline std::optional<calibration> calibrated(const std::string& directory) {
  std::ifstream from(detail::calibration_path(directory));
  std::string word;
  if (!(from >> word) || word != "weft-calibration-1") return std::nullopt;
  calibration c;
  std::map<std::pair<bool, unsigned>, int> kinds;  // of traffic that were found, by mode and depth
  while (from >> word) {
    if (word == "disk") {
      disk_sample s{};
      std::string mode, kind;
      from >> mode >> kind >> s.size >> s.depth >> s.seconds;
      const auto* const end = std::end(detail::traffic_names);
      const auto* const found = std::find(std::begin(detail::traffic_names), end, kind);
      if (!from || found == end || (mode != "direct" && mode != "buffered") || s.size == 0 || s.depth == 0 ||
          !(s.seconds > 0))
        return std::nullopt;
      s.direct = mode == "direct";
      s.kind = static_cast<traffic>(found - std::begin(detail::traffic_names));
      kinds[{s.direct, s.depth}] |= 1 << static_cast<int>(s.kind);
      c.disk.push_back(s);
    } else if (word == "kernel") {
      kernel_speed s;
      if (!(from >> word >> s.plain >> s.chained)) return std::nullopt;
      c.kernels[word] = s;
    } else {
      return std::nullopt;
    }
  }
  const bool all = std::all_of(kinds.begin(), kinds.end(), [](const auto& k) { return k.second == 7; });
  if (kinds.empty() || !all) return std::nullopt;
  return c;
}

/// Measures the disk that the directory lies on for about `seconds`, with a file of `bytes` bytes there that
/// is removed again: reads, writes and both mixed, of 4 KiB to 4 MiB, one to eight at once, direct (where the
/// file system allows that) and buffered. Keeps the result, and the kernels that were known, in a text file
/// "weft-calibration" in the directory. *Throws*: std::system_error, std::bad_alloc. *Suspends*: no, but the
/// thread waits for the disk.
inline calibration calibrate(const std::string& directory, std::size_t bytes = std::size_t{256} << 20,
                             double seconds = 3) {
  calibration c;
  if (const std::optional<calibration> known = calibrated(directory)) c.kernels = known->kernels;
  const std::string path = detail::calibration_path(directory) + "-file-" + std::to_string(::getpid());
  struct remove {
    const std::string& path;
    ~remove() { ::unlink(path.c_str()); }
  };
  const std::uint64_t half = aligned(std::max<std::uint64_t>(bytes / 2, 32 * file_alignment));
  constexpr std::size_t sizes[] = {file_alignment, 64 * file_alignment, 1024 * file_alignment};
  for (const bool direct : {true, false}) {
    detail::direct_file f(io::file::create(path, true), direct);
    const remove at_end{path};
    if (f.direct() != direct) continue;
    {
      memory_budget unlimited;
      const aligned_buffer zeros(unlimited, std::min<std::uint64_t>(half, std::uint64_t{4} << 20));
      for (std::uint64_t at = 0; at < 2 * half; at += zeros.size())  // else nothing is read from the device
        f.get().write_at(zeros.data(), std::min<std::uint64_t>(zeros.size(), 2 * half - at), at);
    }
    f.get().sync_data();
    // Half of the time is for direct transfers, mixed, which decide about predictions: a disk may be faster
    // for some milliseconds. Of buffered ones, those count that come one at a time.
    for (const unsigned depth : {1u, 2u, 4u, 8u})
      for (const std::size_t size : sizes)
        for (const traffic kind : {traffic::reads, traffic::writes, traffic::mixed}) {
          const bool longer = kind == traffic::mixed && size != file_alignment && (direct || depth == 1);
          if (8 * size <= half || size == file_alignment)
            c.disk.push_back(detail::measure_transfers({f.get(), direct, 0, half, half}, kind, size, depth,
                                                       longer ? seconds / 16 : seconds / 144));
        }
  }
  detail::keep(c, directory);
  return c;
}

/// Measures a kernel for grids of type T with so many coefficients, and keeps the result under this name, a
/// word, in the calibration file of the directory, where sweep() finds it (sweep_options::kernel).
/// *Requires*: calibrate() has measured the disk there. *Throws*: weft::error if it has not, or if the name
/// is empty or contains a blank; std::system_error.
template <class T, std::size_t Fields, class Kernel>
kernel_speed calibrate_kernel(const std::string& directory, const std::string& name, const Kernel& kernel) {
  if (name.empty() || std::any_of(name.begin(), name.end(), [](unsigned char c) { return c <= ' '; }))
    throw error("weft: the name of a kernel in a calibration is a word without blanks, not '" + name + "'");
  std::optional<calibration> c = calibrated(directory);
  if (!c) throw error("weft: '" + detail::calibration_path(directory) + "' does not hold a calibration");
  const kernel_speed s = detail::measure_kernel<T, Fields>(kernel);
  c->kernels[name] = s;
  detail::keep(*c, directory);
  return s;
}

}  // namespace weft::inline WEFT_ABI::ooc
