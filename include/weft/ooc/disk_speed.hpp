// SPDX-License-Identifier: BSL-1.0
// How fast a disk is: the time of transfers, by kind, size and how many there are at once.
#pragma once

#include <weft/io/file.hpp>
#include <weft/ooc/aligned_buffer.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>
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
  /// What remains of it, for transfers of so many bytes, if so many are always at once: the latency of some
  /// passes while others are served.
  disk_speed at_once(unsigned transfers, double bytes) const noexcept {
    const auto left = [&](double latency, double per_byte) {
      return std::max(latency - (transfers - 1) * bytes * per_byte, 0.0) / transfers;
    };
    return {left(read_latency, read_per_byte), read_per_byte, left(write_latency, write_per_byte),
            write_per_byte};
  }
};

/// What a disk is measured with.
enum class traffic {
  reads,   ///< only reads
  writes,  ///< only writes
  mixed    ///< six reads, then a write, as in a sweep over five coefficients
};

/// One measurement.
struct disk_sample {
  bool direct;       ///< past the page cache; otherwise buffered, with nothing of it in the page cache
  traffic kind;      ///< of the transfers
  std::size_t size;  ///< of each, bytes
  unsigned depth;    ///< how many at once
  double seconds;    ///< from one to the next
};

namespace detail {

/// The median of the times of some calls, seconds.
inline double median_time(unsigned calls, const std::function<void()>& call) {
  std::vector<double> times;
  for (unsigned i = 0; i < calls; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + calls / 2, times.end());
  return times[calls / 2];
}

/// Where transfers are measured: reads in [begin, begin + bytes), writes in [scratch, scratch + bytes).
struct measured_file {
  io::file& file;
  bool direct;
  std::uint64_t begin, scratch, bytes;
};

/// Transfers, from `depth` threads, for so many seconds, and at least eight. Their mean counts, not their
/// median: a disk that serves a burst fast and then pauses is as slow as both together. *Throws*:
/// std::system_error, std::bad_alloc.
inline disk_sample measure_transfers(const measured_file& in, traffic kind, std::size_t size, unsigned depth,
                                     double seconds) {
  using clock = std::chrono::steady_clock;
  const std::uint64_t places = in.bytes / size;
  // Small ones are spread, so that none finds what another one has brought.
  const std::uint64_t apart = size <= 4 * file_alignment ? std::max<std::uint64_t>(places / 64, 1) + 1 : 1;
  if (!in.direct) {
    in.file.sync_data();
    ::posix_fadvise(in.file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  }
  std::atomic<unsigned> next{0};
  std::mutex mutex;
  std::exception_ptr failed;
  const auto start = clock::now();
  const auto transfer = [&] {
    try {
      memory_budget unlimited;
      const aligned_buffer memory(unlimited, size);
      for (;;) {
        const unsigned i = next.fetch_add(1, std::memory_order_relaxed);  // relaxed: a count
        if (i >= 8 && std::chrono::duration<double>(clock::now() - start).count() >= seconds) break;
        const std::uint64_t at = i * apart % places * size;
        if (kind == traffic::writes || (kind == traffic::mixed && i % 7 == 6))
          in.file.write_at(memory.data(), size, in.scratch + at);
        else if (in.file.read_at(memory.data(), size, in.begin + at) < size)
          io::fail(ENODATA, "read", in.file.path(), in.begin + at);
      }
    } catch (...) {
      const std::lock_guard hold(mutex);
      failed = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < depth; ++i) others.emplace_back(transfer);
    transfer();
  }
  if (failed) std::rethrow_exception(failed);
  if (!in.direct && kind != traffic::reads) in.file.sync_data();
  const double all = std::chrono::duration<double>(clock::now() - start).count();
  return {in.direct, kind, size, depth, all / (next.load(std::memory_order_relaxed) - depth)};
}

/// Latency and time per byte of one kind of traffic, for transfers of so many bytes: of the line through the
/// next smaller and the next larger size that were measured, or through the two sizes that are nearest.
/// *Requires*: the samples are of one depth, and there is one of that kind.
inline std::pair<double, double> line_at(const std::vector<disk_sample>& samples, traffic kind,
                                         double bytes) {
  std::map<double, double> times;  // by size
  for (const disk_sample& s : samples)
    if (s.kind == kind) times[static_cast<double>(s.size)] = s.seconds;
  if (times.size() == 1) return {0, times.begin()->second / times.begin()->first};
  auto large = times.upper_bound(bytes);
  if (large == times.begin()) ++large;
  if (large == times.end()) --large;
  const auto small = std::prev(large);
  const double slope =
      std::max(large->second - small->second, 0.05 * large->second) / (large->first - small->first);
  const double time = std::max(large->second - (large->first - bytes) * slope, 0.05 * small->second);
  const double latency = std::max(time - bytes * slope, 0.0);
  return {latency, (time - latency) / bytes};
}

/// The speed that samples of one depth tell for transfers of so many bytes, in traffic that is mixed.
/// *Requires*: there is a sample of each kind.
inline disk_speed speed_of(const std::vector<disk_sample>& samples, double bytes) {
  const auto alone = [&](double size) {
    disk_speed s;
    std::tie(s.read_latency, s.read_per_byte) = line_at(samples, traffic::reads, size);
    std::tie(s.write_latency, s.write_per_byte) = line_at(samples, traffic::writes, size);
    return s;
  };
  std::map<double, double> slower;  // by how much, when both are mixed; by size
  for (const disk_sample& s : samples)
    if (s.kind == traffic::mixed) {
      const auto size = static_cast<double>(s.size);
      slower[size] = s.seconds / ((6 * alone(size).reading(size) + alone(size).writing(size)) / 7);
    }
  const auto large = slower.lower_bound(bytes);
  double factor = large == slower.end() ? slower.rbegin()->second : large->second;
  if (large != slower.end() && large != slower.begin()) {
    const auto small = std::prev(large);
    factor = std::lerp(small->second, large->second, (bytes - small->first) / (large->first - small->first));
  }
  disk_speed s = alone(bytes);
  for (double* const time : {&s.read_latency, &s.read_per_byte, &s.write_latency, &s.write_per_byte})
    *time *= factor;
  return s;
}

/// Measures one depth for about so many seconds.
inline std::vector<disk_sample> measure_disk(const measured_file& in, unsigned depth, double seconds) {
  const std::size_t small = file_alignment;
  const std::size_t large =
      std::clamp<std::uint64_t>(in.bytes / 16 / small * small, small, std::uint64_t{1} << 20);
  std::vector<disk_sample> samples;
  for (const traffic kind : {traffic::reads, traffic::writes, traffic::mixed})
    for (const std::size_t size : {small, large})
      if (kind != traffic::mixed || size == large)
        samples.push_back(measure_transfers(in, kind, size, depth, seconds / 5));
  return samples;
}

}  // namespace detail
}  // namespace weft::inline WEFT_ABI::ooc
