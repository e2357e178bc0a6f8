// SPDX-License-Identifier: BSL-1.0
// Streams at rest: what was written is read, and whatever is changed or cut off is noticed.
#include "stream/small_streams.hpp"
#include "support/catch.hpp"
#include "support/figure.hpp"

#include <weft/archive/commit_log.hpp>
#include <weft/archive/reader.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <system_error>
#include <vector>

using weft::append_reader;
using weft::damaged_stream;
using weft::seek_from;
using weft::stream::commit;
using weft::stream::commit_log;
using weft_test::contains;
using weft_test::log_writer;
using weft_test::scratch;
using weft_test::slurp;
using weft_test::spill;
using weft_test::stream_writer;
using weft_test::varied_text;

namespace {

std::string pread(const append_reader& reader, std::uint64_t offset, std::size_t size) {
  std::string bytes(size, '?');
  bytes.resize(reader.pread(std::as_writable_bytes(std::span(bytes)), offset));
  return bytes;
}
std::string all_of(const append_reader& reader) { return pread(reader, 0, reader.size() + 10); }

/// Whether opening or verifying a stream finds it damaged or unfinished.
bool noticed(const std::string& name) {
  try {
    append_reader(name).verify();
  } catch (const weft::error&) {
    return true;
  }
  return false;
}

template <class E = weft::error>
std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing";
}

std::vector<commit> all_valid(const std::string& log) {
  return commit_log::all_valid(weft::io::file::open_read(log));
}
std::ptrdiff_t files_in(const scratch& here) {
  return std::distance(std::filesystem::directory_iterator(here.path()), {});
}

/// Nine segments in three data files, some of them neighbours, some behind gaps, with commits between.
stream_writer small_stream(const std::string& name) {
  stream_writer w(name, 3);
  w.add(0, varied_text(10, 1));
  w.add(0, varied_text(7, 2));
  w.add(1, varied_text(30, 3));
  w.commit();
  w.add(1, varied_text(5, 4));
  w.add(2, varied_text(1, 5), 3);
  w.commit(true);
  w.add(0, varied_text(9, 6), 20);
  return w;
}

}  // namespace

TEST_CASE("a commit log says what was noted") {
  const scratch here;
  std::vector<commit> expected;
  {
    log_writer log(here / "log");
    CHECK(all_valid(here / "log").empty());
    weft::io::file part = weft::io::file::create(here / "part", false);
    for (std::uint32_t i = 0; i < 5000; ++i) {
      expected.push_back({.frontier = i * 1000u, .crc = i * 77, .durable = i % 500 == 3});
      log->note(expected.back().frontier, expected.back().crc, expected.back().durable ? &part : nullptr);
    }
  }
  CHECK(all_valid(here / "log") == expected);
}

TEST_CASE("the head of a log is whole or none") {
  const scratch here(weft_test::medium::memory);
  const weft::stream::log_head head{.salt = 5, .part_inode = 6, .part_birth = 7, .replaced = 8};
  weft::io::file log = weft::io::file::create(here / "log", false);
  CHECK_FALSE(weft::stream::log_head::read(log));
  head.write_to(log);
  CHECK(weft::stream::log_head::read(log) == head);
  const std::string bytes = slurp(here / "log");
  REQUIRE(bytes.size() == weft::stream::log_head::size);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ 1 << i % 8);
    log.write_at(other.data(), other.size(), 0);
    REQUIRE_FALSE(weft::stream::log_head::read(log));
  }
}

TEST_CASE("a record that is changed or cut does not count, and the others do") {
  const scratch here(weft_test::medium::memory);
  std::vector<commit> expected;
  {
    log_writer log(here / "log");
    for (std::uint32_t i = 1; i < 6; ++i) {
      expected.push_back({.frontier = i * 1000u, .crc = i * 77, .durable = i == 3});
      log->note(expected.back().frontier, expected.back().crc);
      expected.back().durable = false;
    }
  }
  const std::string bytes = slurp(here / "log");
  const auto valid = [&] { return all_valid(here / "log"); };
  constexpr std::size_t head = weft::stream::log_head::size;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int change : {1, 0x80, 0xFF}) {
      std::string other = bytes;
      other[i] = static_cast<char>(other[i] ^ change);
      spill(here / "log", other);
      std::vector<commit> rest = expected;
      if (i >= head)
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>((i - head) / commit_log::record_size));
      REQUIRE(valid() == rest);
    }
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    spill(here / "log", bytes.substr(0, size));
    REQUIRE(valid().size() == (size < head ? 0 : (size - head) / commit_log::record_size));
  }
  // A record of another stream that the device has brought back.
  {
    log_writer other(here / "other", 78);
    other->note(1, 2);
  }
  spill(here / "log", bytes + slurp(here / "other"));
  CHECK(valid() == expected);
}

TEST_CASE("a segmented stream is read as it was written") {
  const scratch here;
  stream_writer w = small_stream(here / "s");
  const auto so_far = w.index().so_far();
  const auto all = w.finish();
  CHECK(all == so_far);
  CHECK(all.bytes == w.text().size());
  CHECK(all.segments == 5);  // a commit ends what could have become one
  CHECK(all.crc == weft::io::crc32c(w.text().data(), w.text().size()));
  append_reader reader(here / "s");
  CHECK(reader.segmented());
  CHECK(reader.size() == w.text().size());
  CHECK(reader.segments() == 5);
  reader.verify();
  for (std::size_t from = 0; from <= w.text().size() + 2; ++from)
    for (std::size_t size = 0; size < w.text().size() + 4; ++size)
      REQUIRE(pread(reader, from, size) ==
              (from < w.text().size() ? w.text().substr(from, size) : std::string()));
}

TEST_CASE("read and seek share a position") {
  const scratch here;
  stream_writer w = small_stream(here / "s");
  w.finish();
  append_reader reader(here / "s");
  const auto read = [&](std::size_t size) {
    std::string bytes(size, '?');
    bytes.resize(reader.read(std::as_writable_bytes(std::span(bytes))));
    return bytes;
  };
  CHECK(read(12) == w.text().substr(0, 12));
  CHECK(read(0).empty());
  CHECK(reader.position() == 12);
  CHECK(reader.seek(3, seek_from::current) == 15);
  CHECK(read(20) == w.text().substr(15, 20));
  CHECK(reader.seek(-4, seek_from::end) == w.text().size() - 4);
  CHECK(read(20) == w.text().substr(w.text().size() - 4));
  CHECK(read(20).empty());
  CHECK(reader.seek(5) == 5);
  CHECK_THROWS_AS(reader.seek(-6, seek_from::current), weft::error);
  CHECK_THROWS_AS(reader.seek(std::numeric_limits<std::int64_t>::max(), seek_from::current), weft::error);
  CHECK(reader.position() == 5);
  reader.seek(1000, seek_from::end);
  CHECK(read(1).empty());
}

TEST_CASE("blocks end where they end: any number of segments, commits anywhere") {
  const scratch here(weft_test::medium::memory);
  weft_test::random draw(8);
  std::vector<std::pair<int, int>> cases;  // segments, and after how many each there is a commit
  for (const int n : {0, 1, 2, 510, 511, 512, 1020, 1021, 1022, 1023, 1024, 2043, 2044, 2045, 3500})
    for (const int commits : {0, 1, 2, 1021, 1022}) cases.emplace_back(n, commits);
  for (const auto& [n, commits] : cases) {
    INFO(n << " segments, commits after " << commits);
    stream_writer w(here / "s", 2);
    const std::string text = varied_text(5, static_cast<std::uint64_t>(n));
    for (int i = 0; i < n; ++i) {
      w.add(static_cast<std::uint32_t>(i & 1), text.substr(draw.below(3), 1 + draw.below(2)));
      if (commits > 0 && i % commits == 0) w.commit();
    }
    const auto all = w.finish();
    REQUIRE(all.segments == static_cast<std::uint64_t>(n));
    const append_reader reader(here / "s");
    REQUIRE(reader.segments() == static_cast<std::uint64_t>(n));
    REQUIRE(all_of(reader) == w.text());
    reader.verify();
  }
}

TEST_CASE("every changed byte is noticed") {
  const scratch here(weft_test::medium::memory);
  stream_writer w = small_stream(here / "s");
  w.finish();
  REQUIRE_FALSE(noticed(here / "s"));
  const std::string text = w.text();
  // In data files the gaps belong to nobody.
  std::vector<std::pair<std::size_t, std::size_t>> gaps[3];
  gaps[0] = {{4096 + 17, 4096 + 37}};
  gaps[2] = {{4096, 4099}};
  std::uint64_t changes = 0;
  for (std::size_t n = 0; n < 4; ++n) {
    const std::string file = n == 0 ? here / "s" : w.data(static_cast<std::uint32_t>(n - 1));
    const std::string bytes = slurp(file);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bool in_gap = false;
      if (n > 0)
        for (const auto& [from, to] : gaps[n - 1]) in_gap |= i >= from && i < to;
      // Most of a header is zeros: some of them stand for all.
      if (n > 0 && i > 40 && i < 4088 && i % 97 != 0) continue;
      std::string other = bytes;
      other[i] = static_cast<char>(other[i] ^ (1 << i % 8));
      spill(file, other);
      INFO(file << " at " << i);
      REQUIRE(noticed(here / "s") == !in_gap);
      ++changes;
    }
    spill(file, bytes);
  }
  REQUIRE_FALSE(noticed(here / "s"));
  weft_test::figure("stream_changes", changes);
}

TEST_CASE("every cut is noticed") {
  const scratch here(weft_test::medium::memory);
  stream_writer w = small_stream(here / "s");
  w.finish();
  for (std::size_t n = 0; n < 4; ++n) {
    const std::string file = n == 0 ? here / "s" : w.data(static_cast<std::uint32_t>(n - 1));
    const std::string bytes = slurp(file);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      if (n > 0 && size > 40 && size < 4088 && size % 97 != 0) continue;
      spill(file, bytes.substr(0, size));
      INFO(file << " cut to " << size);
      REQUIRE(noticed(here / "s"));
    }
    std::filesystem::remove(file);
    if (n > 0) CHECK_THAT(refusal([&] { append_reader(here / "s"); }), contains(file + "' is missing"));
    spill(file, bytes);
  }
  const std::string index = slurp(here / "s");
  spill(here / "s", index + "x");
  CHECK(noticed(here / "s"));
  spill(here / "s", index);
  CHECK_FALSE(noticed(here / "s"));
}

TEST_CASE("the sentences about damage name file and place") {
  const scratch here;
  stream_writer w = small_stream(here / "s");
  w.finish();
  const std::string index = slurp(here / "s");
  const std::string data = slurp(w.data(1));
  std::string other = data;
  other[4096 + 33] ^= 1;
  spill(w.data(1), other);
  const std::string damage = refusal<damaged_stream>([&] { append_reader(here / "s").verify(); });
  CHECK_THAT(damage, contains("from offset 4126 to 4131 of '" + w.data(1) + "'"));
  CHECK_THAT(damage, contains("of the stream: from 47"));
  spill(w.data(1), data.substr(0, 4120));
  CHECK_THAT(refusal<damaged_stream>([&] { append_reader(here / "s"); }),
             contains("-1' has 4120 bytes instead of 4131 or more"));
  spill(w.data(1), slurp(w.data(2)));
  CHECK_THAT(refusal<damaged_stream>([&] { append_reader(here / "s"); }), contains("-1' belongs to another"));
  spill(w.data(1), data);
  other = index;
  other[40] ^= 1;
  spill(here / "s", other);
  CHECK_THAT(refusal<damaged_stream>([&] { append_reader(here / "s"); }),
             contains("at offset 32 of '" + here / "s"));
  spill(here / "s", index);
  // A file that is cut while it is read.
  const append_reader reader(here / "s");
  spill(w.data(1), data.substr(0, 4100));
  CHECK_THAT(refusal<damaged_stream>([&] { all_of(reader); }),
             contains("has become shorter: it ends at offset 4100"));
  CHECK_THAT(refusal<damaged_stream>([&] { reader.verify(); }), contains("ends at offset 4100"));
}

TEST_CASE("checksums may be right and the content nonsense") {
  const scratch here(weft_test::medium::memory);
  using namespace weft::stream;
  stream_writer w(here / "s", 1);
  w.add(0, "abcdef");
  w.finish();
  const std::string index = slurp(here / "s");
  REQUIRE(index.size() == 3 * slot_size + footer_size);
  // Changes something, and makes all checksums right again.
  const auto with = [&](const std::function<void(std::byte*)>& change) {
    std::string other = index;
    auto* const at = reinterpret_cast<std::byte*>(other.data());
    change(at);
    put(at + 28, weft::io::crc32c(at, 28));
    put(at + 2 * slot_size + 28, weft::io::crc32c(at, 2 * slot_size + 28));
    put(at + 3 * slot_size + 60, weft::io::crc32c(at + 3 * slot_size, 60));
    spill(here / "s", other);
    return noticed(here / "s");
  };
  CHECK_FALSE(with([](std::byte*) {}));
  const std::size_t segment_at = slot_size, mark_at = 2 * slot_size, footer_at = 3 * slot_size;
  CHECK(with([&](std::byte* b) { put(b + segment_at, std::uint64_t{4095}); }));
  CHECK(with([&](std::byte* b) { put(b + segment_at, std::uint64_t{4097}); }));
  CHECK(with([&](std::byte* b) { put(b + segment_at, ~std::uint64_t{0} - 2); }));
  CHECK(with([&](std::byte* b) { put(b + segment_at, ~std::uint64_t{0} >> 1); }));
  CHECK(with([&](std::byte* b) { put(b + segment_at + 8, std::uint64_t{0}); }));
  CHECK(with([&](std::byte* b) { put(b + segment_at + 8, ~std::uint64_t{0}); }));
  CHECK(with([&](std::byte* b) { put(b + segment_at + 16, ~std::uint32_t{0}); }));
  CHECK(with([&](std::byte* b) { put(b + segment_at + 16, std::uint32_t{1}); }));
  CHECK(with([&](std::byte* b) { put(b + segment_at + 20, std::uint32_t{1}); }));
  CHECK(with([&](std::byte* b) { put(b + segment_at + 24, std::uint8_t{0}); }));
  CHECK(with([&](std::byte* b) { put(b + mark_at, std::uint64_t{7}); }));
  CHECK(with([&](std::byte* b) { put(b + mark_at + 8, std::uint64_t{0}); }));
  for (const std::size_t field : {8, 16, 28, 32, 40, 48})
    CHECK(with([&](std::byte* b) { put(b + footer_at + field, std::uint32_t{77}); }));
  CHECK(with([&](std::byte* b) { put(b + 8, std::uint64_t{0}); }));   // the salt
  CHECK(with([&](std::byte* b) { put(b + 16, std::uint64_t{1}); }));  // the block's number
  with([&](std::byte* b) { put(b + 25, std::uint8_t{2}); });          // the version
  CHECK_THAT(refusal([&] { append_reader(here / "s"); }),
             contains("a format version that this weft does not know"));
}

TEST_CASE("a plain file is a stream too") {
  const scratch here;
  const std::string text = varied_text(5000, 9);
  spill(here / "p", text);
  const append_reader reader(here / "p");
  CHECK_FALSE(reader.segmented());
  CHECK(reader.size() == 5000);
  CHECK(reader.segments() == 1);
  CHECK(all_of(reader) == text);
  CHECK(pread(reader, 4990, 100) == text.substr(4990));
  reader.verify();
  spill(here / "empty", "");
  CHECK(all_of(append_reader(here / "empty")).empty());
  CHECK(append_reader(here / "empty").segments() == 0);
}

TEST_CASE("what is not a finished stream is refused") {
  const scratch here;
  CHECK_THROWS_AS(append_reader(here / "nothing"), std::system_error);
  CHECK_THAT(refusal([&] { append_reader(here.path().string()); }), contains("is not an ordinary file"));
  spill(weft::stream::part_name(here / "p"), "some bytes");
  CHECK_THAT(refusal([&] { append_reader(here / "p"); }), contains("is not finished"));
  CHECK_THAT(refusal([&] { append_reader(here / "p"); }), contains("weft::recover"));
  stream_writer w = small_stream(here / "s");
  w.abandon();
  CHECK_THAT(refusal([&] { append_reader(here / "s"); }), contains("weft::recover"));
  CHECK_THAT(refusal([&] { append_reader(weft::stream::part_name(here / "s")); }),
             contains("damaged, or not finished"));
  CHECK_THAT(refusal([&] { append_reader(w.data(1)); }), contains("one data file of a segmented stream"));
}

TEST_CASE("export makes an ordinary file, whole or not at all") {
  const scratch here;
  stream_writer w(here / "s", 2);
  std::string big = varied_text(700'000, 10);
  for (int i = 0; i < 5; ++i) {
    w.add(0, big.substr(static_cast<std::size_t>(i), 300'000));
    w.add(1, "x");
    w.add(1, big);
  }
  w.finish();
  const append_reader reader(here / "s");
  reader.export_plain(here / "out");
  CHECK(slurp(here / "out") == w.text());
  CHECK(files_in(here) == 4);
  spill(here / "out", "older");
  CHECK_THROWS_AS(reader.export_plain(here / "out"), std::system_error);
  CHECK(slurp(here / "out") == "older");
  reader.export_plain(here / "out", true);
  CHECK(slurp(here / "out") == w.text());
  CHECK_THROWS_AS(reader.export_plain(here / "no/out"), std::system_error);
  const std::string longest(255, 'n');
  reader.export_plain(here / longest, true);
  reader.export_plain(here / longest, true);
  CHECK(std::filesystem::file_size(here / longest) == reader.size());
  std::filesystem::remove(here / longest);
  const scratch other;
  stream_writer replaced(other / "s", 1);
  replaced.add(0, "older");
  replaced.finish();
  stream_writer whole_slots(here / "slots", 1);  // as long as an index might be
  whole_slots.add(0, varied_text(64 * 32, 11));
  whole_slots.finish();
  append_reader(here / "slots").export_plain(other / "s", true);
  CHECK(append_reader(other / "s").size() == 64 * 32);
  CHECK(files_in(other) == 1);
  append_reader(here / "slots").export_plain(other / longest);
  CHECK(append_reader(other / longest).size() == 64 * 32);
  for (const std::string& each : {here / "slots", whole_slots.data(0)}) std::filesystem::remove(each);
  std::string data = slurp(w.data(1));
  data.back() = static_cast<char>(data.back() ^ 1);
  spill(w.data(1), data);
  spill(here / "out", "older");
  CHECK_THROWS_AS(append_reader(here / "s").export_plain(here / "out", true), damaged_stream);
  CHECK(slurp(here / "out") == "older");
  CHECK(files_in(here) == 4);
}

TEST_CASE("a million segments") {
  const scratch here;
  constexpr std::uint32_t n = 1'000'000;
  const std::string text = varied_text(n + 4096, 11);
  {
    stream_writer w(here / "s", 2);
    for (std::uint32_t i = 0; i < 2; ++i)
      weft::io::file::open_write(w.data(i)).write_at(text.data() + 4096, text.size() - 4096, 4096);
    // Segments of 1 to 7 bytes, anywhere.
    weft_test::random draw(12);
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint64_t offset = 4096 + draw.below(n - 8);
      const std::uint64_t length = 1 + draw.below(7);
      w.index().add(i & 1, offset, length, weft::io::crc32c(text.data() + offset, length));
    }
    w.finish();
  }
  std::string expected;
  std::vector<std::size_t> starts;
  weft_test::random draw(12);
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint64_t offset = 4096 + draw.below(n - 8);
    starts.push_back(expected.size());
    expected.append(text, offset, 1 + draw.below(7));
  }
  const append_reader reader(here / "s");
  REQUIRE(reader.segments() == n);
  REQUIRE(reader.size() == expected.size());
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t from = i % 2 ? draw.below(expected.size()) : starts[draw.below(n)];
    REQUIRE(pread(reader, from, 11) == expected.substr(from, 11));
  }
  CHECK(pread(reader, expected.size() - 1, 11) == expected.substr(expected.size() - 1));
}
