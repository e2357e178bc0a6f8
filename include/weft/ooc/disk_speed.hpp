// SPDX-License-Identifier: BSL-1.0
// How fast a disk is: latency and transfer time of reads and writes, measured and kept in a file.
#pragma once

#include <weft/io/file.hpp>
#include <weft/ooc/aligned_buffer.hpp>
#include <weft/ooc/detail/direct_file.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace weft::inline WEFT_ABI::ooc {

/// The time of a transfer of L bytes is modelled as latency + L * per_byte, separately for reads and writes.
/// All in seconds.
/// *Source*: Caron, Desprez, Suter 2004, equation 6.
struct disk_speed {
  double read_latency = 0;    ///< of a read
  double read_per_byte = 0;   ///< of a read, for each byte
  double write_latency = 0;   ///< of a write
  double write_per_byte = 0;  ///< of a write, for each byte

  /// Seconds of a read of so many bytes.
  double reading(double bytes) const noexcept { return read_latency + bytes * read_per_byte; }
  /// Seconds of a write of so many bytes.
  double writing(double bytes) const noexcept { return write_latency + bytes * write_per_byte; }
};

namespace detail {

/// The median of the times of some calls, which get their number, seconds.
inline double median_time(unsigned calls, const std::function<void(unsigned)>& call) {
  std::vector<double> times;
  for (unsigned i = 0; i < calls; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call(i);
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + calls / 2, times.end());
  return times[calls / 2];
}

/// Latency and time per byte, from the times of small and large transfers.
inline std::pair<double, double> line_through(double small, double small_time, double large,
                                              double large_time) {
  if (large <= small) return {0, large_time / large};
  const double per_byte = std::max(large_time - small_time, 0.05 * large_time) / (large - small);
  return {std::max(small_time - small * per_byte, 0.0), per_byte};
}

/// Measures with the bytes [begin, end) of an open file, for about so many seconds; what lies in [scratch,
/// scratch + end - begin) is overwritten. Large transfers count by their mean, not their median: a disk that
/// serves a burst fast and then pauses is as slow as both together.
inline disk_speed measure_disk(io::file& f, std::uint64_t begin, std::uint64_t end, std::uint64_t scratch,
                               double seconds) {
  const std::uint64_t room = end - begin;
  const std::size_t small = file_alignment;
  const std::size_t large =
      std::clamp<std::uint64_t>(room / 16 / small * small, small, std::uint64_t{1} << 20);
  memory_budget unlimited;
  const aligned_buffer memory(unlimited, large);
  const auto transfer = [&](bool write, std::size_t size, std::uint64_t at) {
    if (write)
      f.write_at(memory.data(), size, scratch + at);
    else if (f.read_at(memory.data(), size, begin + at) < size)
      io::fail(ENODATA, "read", f.path(), begin + at);
  };
  // Small ones are spread, so that none finds what another one has brought.
  const auto small_time = [&](bool write) {
    const std::uint64_t apart = std::max<std::uint64_t>(room / small / 16, 1) * small;
    return median_time(16, [&](unsigned i) { transfer(write, small, i * apart % (room / small * small)); });
  };
  // Large ones as in a sweep over six fields: six reads, one write.
  double time[2] = {}, count[2] = {};
  const auto start = std::chrono::steady_clock::now();
  for (unsigned i = 0;
       i < 14 || std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds;
       ++i) {
    const bool write = i % 7 == 6;
    time[write] += median_time(1, [&](unsigned) { transfer(write, large, i % (room / large) * large); });
    count[write] += 1;
  }
  disk_speed s;
  const auto s_size = static_cast<double>(small), l_size = static_cast<double>(large);
  std::tie(s.read_latency, s.read_per_byte) =
      line_through(s_size, small_time(false), l_size, time[0] / count[0]);
  std::tie(s.write_latency, s.write_per_byte) =
      line_through(s_size, small_time(true), l_size, time[1] / count[1]);
  return s;
}

inline std::string speed_path(const std::string& directory) { return directory + "/weft-disk-speed"; }

}  // namespace detail

/// The speed that calibrate() has kept in the directory; nothing if there is none.
inline std::optional<disk_speed> calibrated(const std::string& directory) {
  std::ifstream from(detail::speed_path(directory));
  std::string format;
  disk_speed s;
  if (!(from >> format >> s.read_latency >> s.read_per_byte >> s.write_latency >> s.write_per_byte) ||
      format != "weft-disk-speed-1")
    return std::nullopt;
  return s;
}

/// Measures the disk that the directory lies on for about `seconds`, with a file of `bytes` bytes there that
/// is removed again, and keeps the result in a small text file "weft-disk-speed" in the directory. *Throws*:
/// std::system_error, std::bad_alloc. *Suspends*: no, but the thread waits for the disk.
inline disk_speed calibrate(const std::string& directory, std::size_t bytes = std::size_t{64} << 20,
                            double seconds = 1) {
  const std::string path = directory + "/weft-disk-speed-" + std::to_string(::getpid());
  detail::direct_file f(io::file::create(path, false), true);
  struct remove {
    const std::string& path;
    ~remove() { ::unlink(path.c_str()); }
  } const at_end{path};
  const std::uint64_t half = aligned(std::max<std::uint64_t>(bytes / 2, 16 * file_alignment));
  memory_budget unlimited;
  const aligned_buffer zeros(unlimited, half);
  f.get().write_at(zeros.data(), half, 0);  // blocks that were never written are not read from the device
  f.get().write_at(zeros.data(), half, half);
  f.get().sync_data();
  const disk_speed s = detail::measure_disk(f.get(), 0, half, half, seconds);
  const std::string kept = detail::speed_path(directory), fresh = path + ".new";
  std::ofstream to(fresh);
  to.precision(6);
  to << "weft-disk-speed-1 " << s.read_latency << ' ' << s.read_per_byte << ' ' << s.write_latency << ' '
     << s.write_per_byte << '\n';
  to.close();
  if (!to || std::rename(fresh.c_str(), kept.c_str()) != 0) {
    const int why = errno;
    ::unlink(fresh.c_str());
    io::fail(why, "write", kept);
  }
  return s;
}

}  // namespace weft::inline WEFT_ABI::ooc
