// SPDX-License-Identifier: BSL-1.0
// A hash table in a file: a header, and records.
#pragma once

#include <weft/base/error.hpp>
#include <weft/io/crc32c.hpp>
#include <weft/io/directory.hpp>
#include <weft/io/file.hpp>
#include <weft/rma/process_group.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

namespace weft::inline WEFT_ABI::rma::detail {

/// The first bytes of the file; little-endian. The records follow, each the bytes of a key and of its value,
/// in no particular order.
struct table_header {
  char magic[8];           ///< "wefttabl"
  std::uint32_t format;    ///< 1
  std::uint32_t key;       ///< bytes of a key
  std::uint32_t value;     ///< bytes of a value
  std::uint32_t zero;      ///< not used
  std::uint64_t records;   ///< how many there are
  std::uint64_t sum;       ///< of the CRC-32C of all records
  std::uint32_t unused;    ///< not used
  std::uint32_t checksum;  ///< CRC-32C of all before
};
static_assert(sizeof(table_header) == 48);

/// Executes `f` in each process; if it throws in one of them, all throw: that exception, or one that names
/// the process.
template <process_group Group, class F>
void together(const Group& group, const std::string& what, F f) {
  std::exception_ptr mine;
  try {
    f();
  } catch (...) {
    mine = std::current_exception();
  }
  const int failed = group.max(mine ? group.rank() + 1 : 0);
  if (mine) std::rethrow_exception(mine);
  if (failed != 0) throw error("weft: " + what + " has failed in process " + std::to_string(failed - 1));
}

/// The sum of the checksums of some records.
inline std::uint64_t sum_of(const std::vector<char>& records, std::size_t record) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < records.size(); at += record) sum += io::crc32c(records.data() + at, record);
  return sum;
}

/// Writes the records of all processes; collective. The file appears when all of it is on the device.
template <process_group Group>
void save_table(const Group& group, const std::string& path, const std::vector<char>& records,
                std::size_t key, std::size_t value) {
  const std::size_t record = key + value;
  const std::string fresh = path + ".new";
  table_header h{{'w', 'e', 'f', 't', 't', 'a', 'b', 'l'}, 1, static_cast<std::uint32_t>(key),
                 static_cast<std::uint32_t>(value),        0, 0,
                 group.sum(sum_of(records, record)),       0, 0};
  std::uint64_t before = 0;
  const std::vector<std::uint64_t> counts = group.gather(std::uint64_t{records.size() / record});
  for (int p = 0; p < group.size(); ++p) {
    if (p == group.rank()) before = h.records;
    h.records += counts[static_cast<std::size_t>(p)];
  }
  h.checksum = io::crc32c(&h, offsetof(table_header, checksum));
  const std::string what = "saving '" + path + "'";
  try {
    together(group, what, [&] {
      if (group.rank() == 0) io::file::create(fresh, true);
    });
    together(group, what, [&] {
      io::file f = io::file::open_write(fresh);
      f.write_at(records.data(), records.size(), sizeof h + before * record);
      if (group.rank() == 0) f.write_at(&h, sizeof h, 0);
      f.sync_data();
    });
    together(group, what, [&] {
      if (group.rank() != 0) return;
      if (std::rename(fresh.c_str(), path.c_str()) != 0) io::fail(errno, "rename to", path);
      io::directory(path).sync();
    });
  } catch (...) {
    if (group.rank() == 0) std::remove(fresh.c_str());  // it may have filled the device
    throw;
  }
}

/// Reads a part of the records in each process; collective.
/// *Throws*: weft::error that says what is wrong with the file; std::system_error.
template <process_group Group>
std::vector<char> load_table(const Group& group, const std::string& path, std::size_t key,
                             std::size_t value) {
  const std::size_t record = key + value;
  const auto refuse = [&path](const std::string& why) { throw error("weft: '" + path + "' " + why); };
  std::vector<char> records;
  table_header h{};
  together(group, "loading '" + path + "'", [&] {
    const io::file f = io::file::open_read(path);
    if (f.read_at(&h, sizeof h, 0) < sizeof h || std::memcmp(h.magic, "wefttabl", 8) != 0)
      refuse("is not a hash table of weft");
    if (h.checksum != io::crc32c(&h, offsetof(table_header, checksum)))
      refuse("is damaged: the checksum of its header is wrong");
    if (h.format != 1)
      refuse("has format " + std::to_string(h.format) + "; this version of weft reads format 1");
    if (h.key != key || h.value != value)
      refuse("holds keys and values of " + std::to_string(h.key) + " and " + std::to_string(h.value) +
             " bytes, expected " + std::to_string(key) + " and " + std::to_string(value));
    const auto n = static_cast<std::uint64_t>(group.size()), me = static_cast<std::uint64_t>(group.rank());
    const std::uint64_t begin = h.records * me / n, end = h.records * (me + 1) / n;
    if (f.size() != sizeof h + h.records * record) refuse("is damaged: its size is wrong");
    records.resize((end - begin) * record);
    if (f.read_at(records.data(), records.size(), sizeof h + begin * record) < records.size())
      refuse("is damaged: it ends too early");
  });
  if (group.sum(sum_of(records, record)) != h.sum) refuse("is damaged: the checksum of its records is wrong");
  return records;
}

}  // namespace weft::inline WEFT_ABI::rma::detail
