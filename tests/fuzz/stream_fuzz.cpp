// SPDX-License-Identifier: BSL-1.0
// Any bytes as the files of a stream: reader and recovery refuse them or hand out what is consistent.
//
// A target of libFuzzer: tests/fuzz/fuzz stream. The ordinary suite replays tests/fuzz/stream (replay.cpp).
#include "support/scratch.hpp"

#include <weft/archive/commit_log.hpp>
#include <weft/archive/format.hpp>
#include <weft/archive/reader.hpp>
#include <weft/archive/recovery.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <system_error>

namespace {

using namespace weft::stream;

/// The first byte of an input.
enum choice : unsigned {
  plain = 1,         // a part and its log, else an index and two data files
  finished = 2,      // the index has its final name
  right_sums = 4,    // checksums are corrected, or nothing but the checksums would ever be tested
  right_totals = 8,  // the same for what marks and the footer add up
  raw_data = 16,     // the first data file has no header but what the input brings
  overwrite = 32,
};

std::byte* bytes_of(std::string& text) { return reinterpret_cast<std::byte*>(text.data()); }

void correct_log(std::string& log, const std::string& part) {
  for (std::size_t at = 0; at + commit_log::record_size <= log.size(); at += commit_log::record_size) {
    std::byte* const record = bytes_of(log) + at;
    const auto frontier = get<std::uint64_t>(record + 16);
    if (frontier <= part.size()) put(record + 24, weft::io::crc32c(part.data(), frontier));
    put(record + 28, weft::io::crc32c(record, 28));
  }
}

/// What `s` is the checksum of, if it is in one of the data files.
void correct_segment(std::byte* slot, const std::string (&data)[2]) {
  const segment s = get_segment(slot);
  if (s.file > 1 || s.offset > data[s.file].size() || s.length > data[s.file].size() - s.offset) return;
  put(slot + 20, weft::io::crc32c(data[s.file].data() + s.offset, s.length));
}

void correct_index(std::string& index, const std::string (&data)[2], bool totals_too) {
  totals all;
  std::uint32_t files = 0;
  std::size_t end = 0;
  for (std::size_t block = 0; block < index.size(); block += block_size) {
    std::byte* const begin = bytes_of(index) + block;
    const std::size_t slots = std::min(block_size, index.size() - block) / slot_size;
    for (std::size_t i = 0; i < slots; ++i) {
      std::byte* const slot = begin + i * slot_size;
      if (kind_of(slot) == slot_kind::head) put(slot + 28, weft::io::crc32c(slot, 28));
      if (kind_of(slot) == slot_kind::segment) {
        correct_segment(slot, data);
        const segment s = get_segment(slot);
        all.bytes += s.length;
        ++all.segments;
        all.crc = weft::io::crc32c_combine(all.crc, s.crc, s.length);
        files = std::max(files, s.file + 1);
      }
      if (kind_of(slot) == slot_kind::mark) {
        end = block + (i + 1) * slot_size;
        if (totals_too) {
          put(slot, all.bytes);
          put(slot + 8, all.segments);
          put(slot + 16, all.crc);
        }
        put(slot + 28, weft::io::crc32c(begin, i * slot_size + 28));
      }
    }
  }
  if (index.size() < end + footer_size) return;
  std::byte* const at = bytes_of(index) + index.size() - footer_size;
  if (get<std::uint64_t>(at) != footer_magic) return;
  if (totals_too) {
    const auto salt = get<std::uint64_t>(at + 8);
    put_footer(at, {.salt = salt, .all = all, .position = index.size() - footer_size, .data_files = files});
  }
  put(at + 60, weft::io::crc32c(at, 60));
}

std::string header_of(std::uint64_t salt, std::uint32_t number) {
  std::string block(data_header_size, '\0');
  std::byte* const to = bytes_of(block);
  put(to, data_magic);
  put(to + 8, salt);
  put(to + 16, number);
  put(to + 20, format_version);
  put(to + data_header_size - 4, weft::io::crc32c(to, data_header_size - 4));
  return block;
}

void require(bool right, const char* sentence) {
  if (right) return;
  std::fprintf(stderr, "stream_fuzz: %s\n", sentence);
  std::abort();
}

/// Nothing but the library's own errors may come out of it.
bool admitted(const std::function<void()>& f) {
  try {
    f();
    return true;
  } catch (const weft::error&) {
  } catch (const std::system_error&) {
  }
  return false;
}

/// All bytes of a stream whose checksums are right.
std::optional<std::string> whole(const std::string& path) {
  std::optional<std::string> text;
  admitted([&] {
    const weft::append_reader reader(path);
    reader.verify();
    std::string bytes(reader.size(), '?');
    for (std::size_t at = 0; at < bytes.size(); at += 13) {
      const std::size_t n = std::min<std::size_t>(13, bytes.size() - at);
      require(reader.pread(std::as_writable_bytes(std::span(bytes).subspan(at, n)), at) == n, "a short read");
    }
    text = std::move(bytes);
  });
  return text;
}

void try_stream(const std::string& path, bool over) {
  const std::optional<std::string> before = whole(path);
  if (before) {
    weft::append_reader(path).export_plain(path + ".out");
    require(weft_test::slurp(path + ".out") == *before, "an export that differs");
  }
  std::optional<weft::recovered> expected;
  admitted([&] { expected = weft::recoverable(path); });
  weft::recovered kept;
  const bool recovered = admitted([&] { kept = weft::recover(path, over); });
  if (!recovered) {
    require(whole(path) == before, "a refused recovery that changes the stream");
    return;
  }
  require(expected && expected->bytes == kept.bytes, "recover() keeps other bytes than recoverable() says");
  const std::optional<std::string> after = whole(path);
  require(after && after->size() == kept.bytes, "a recovered stream that is not whole");
  if (kept.was_complete && before) require(after == before, "a whole stream that recovery changes");
  require(weft::recover(path).was_complete, "a recovered stream that is not complete");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const weft_test::scratch here(weft_test::medium::memory);
  if (size < 5) return 0;
  const unsigned flags = data[0];
  std::string rest(reinterpret_cast<const char*>(data) + 5, size - 5);
  const auto take = [&](unsigned length) {
    std::string part = rest.substr(0, length);
    rest.erase(0, part.size());
    return part;
  };
  std::string first = take(data[1] + 256u * data[2]);
  std::string second = take(data[3] + 256u * data[4]);
  const std::string path = here / "s";
  if ((flags & plain) != 0) {
    if ((flags & right_sums) != 0) correct_log(first, second);
    weft_test::spill(weft::stream::log_name(path), first);
    weft_test::spill(weft::stream::part_name(path), second);
  } else {
    const std::uint64_t salt = first.size() < slot_size ? 0 : get<std::uint64_t>(bytes_of(first) + 8);
    const std::string files[2] = {((flags & raw_data) != 0 ? "" : header_of(salt, 0)) + second,
                                  header_of(salt, 1) + rest};
    if ((flags & right_sums) != 0) correct_index(first, files, (flags & right_totals) != 0);
    weft_test::spill((flags & finished) != 0 ? path : weft::stream::part_name(path), first);
    for (std::uint32_t i = 0; i < 2; ++i) weft_test::spill(data_name(path, salt, i), files[i]);
  }
  try_stream(path, (flags & overwrite) != 0);
  for (const auto& each : std::filesystem::directory_iterator(here.path()))
    std::filesystem::remove(each.path());
  return 0;
}
