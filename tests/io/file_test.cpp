// SPDX-License-Identifier: BSL-1.0
// Files: bytes come back, failures name operation, path and offset, names are published for good.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

#include <weft/io/background_sync.hpp>
#include <weft/io/file.hpp>
#include <weft/io/journal.hpp>

#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>
#include <vector>

using weft::io::background_sync;
using weft::io::file;
using weft_test::contains;
using weft_test::scratch;
using weft_test::slurp;
using weft_test::spill;

namespace {

template <class F>
std::system_error failure(F&& f) {
  try {
    f();
  } catch (const std::system_error& e) {
    return e;
  }
  FAIL("no std::system_error");
  return std::system_error(std::error_code());
}

}  // namespace

TEST_CASE("what is written is read, wherever it stands") {
  const scratch here;
  file f = file::create(here / "f", false);
  f.write_at("world", 5, 6);
  f.write_at("hello ", 6, 0);
  char back[20];
  CHECK(f.read_at(back, sizeof back, 0) == 11);
  CHECK(std::string(back, 11) == "hello world");
  CHECK(f.read_at(back, 3, 4) == 3);
  CHECK(f.read_at(back, 3, 11) == 0);
  CHECK(f.size() == 11);
  f.resize(5);
  f.sync_data();
  f.sync();
  f.close();
  CHECK_FALSE(f);
  f.close();
  CHECK(slurp(here / "f") == "hello");
  const file again = file::open_write(here / "f");
  CHECK(again.regular());
  CHECK(again.path() == here / "f");
  file moved;
  CHECK_FALSE(moved);
  moved = file::open_read(here / "f");
  const file owner = std::move(moved);
  CHECK(owner.size() == 5);
}

TEST_CASE("parts are gathered, however many, and the caller's array stays as it is") {
  const scratch here;
  weft_test::random draw(5);
  for (const std::size_t count : {0u, 1u, 255u, 256u, 257u, 3000u}) {
    std::vector<std::string> texts;
    std::string expected;
    for (std::size_t i = 0; i < count; ++i) {
      texts.emplace_back(draw.below(5) * draw.below(40), static_cast<char>('a' + draw.below(26)));
      expected += texts.back();
    }
    if (count == 257)
      for (std::string& each : texts) each.clear();
    if (count == 257) expected.clear();
    std::vector<iovec> parts;
    for (std::string& each : texts) parts.push_back({each.data(), each.size()});
    const std::vector<iovec> before = parts;
    file f = file::create(here / "g", true);
    f.write_at(parts, 3);
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(parts[i].iov_base == before[i].iov_base);
      REQUIRE(parts[i].iov_len == before[i].iov_len);
    }
    CHECK(slurp(here / "g") == (expected.empty() ? "" : std::string(3, '\0') + expected));
  }
}

TEST_CASE("failures say what was tried, where") {
  const scratch here;
  spill(here / "there", "x");
  const auto exists = failure([&] { file::create(here / "there", false); });
  CHECK(exists.code() == std::errc::file_exists);
  CHECK_THAT(exists.what(), contains("weft: cannot create '" + here / "there" + "': "));
  CHECK(slurp(here / "there") == "x");
  const auto missing = failure([&] { file::open_read(here / "nowhere"); });
  CHECK(missing.code() == std::errc::no_such_file_or_directory);
  const auto missing_directory = failure([&] { file::create(here / "no/where", true); });
  CHECK_THAT(missing_directory.what(), contains("no/where"));
  file reading = file::open_read(here / "there");
  const auto writing = failure([&] { reading.write_at("y", 1, 77); });
  CHECK(writing.code() == std::errc::bad_file_descriptor);
  CHECK_THAT(writing.what(), contains("cannot write '" + here / "there" + "' at offset 77: "));
  file directory = file::open_read(here.path().string());
  CHECK_FALSE(directory.regular());
  char c;
  CHECK_THAT(failure([&] { directory.read_at(&c, 1, 5); }).what(), contains("at offset 5: "));
}

TEST_CASE("where a limit ends a file, what fits is written and the offset of the rest is named") {
  const scratch here;
  const auto run = [&](auto&& write) {
    return weft_test::run_in_child([&] {
      std::signal(SIGXFSZ, SIG_IGN);
      file f = file::create(here / "limited", true);
      const rlimit limit{5000, 5000};
      setrlimit(RLIMIT_FSIZE, &limit);
      try {
        write(f);
      } catch (const std::system_error& e) {
        if (e.code() != std::errc::file_too_large) throw;
        std::printf("%s\n", e.what());
      }
    });
  };
  std::string bytes(8000, 'b');
  const auto plain = run([&](file& f) { f.write_at(bytes.data(), bytes.size(), 0); });
  CHECK(plain.exit_code == 0);
  CHECK_THAT(plain.output, contains("limited' at offset 5000: "));
  CHECK(slurp(here / "limited") == bytes.substr(0, 5000));
  const auto gathered = run([&](file& f) {
    const iovec parts[] = {{bytes.data(), 3000}, {bytes.data(), 3000}};
    f.write_at(parts, 1000);
  });
  CHECK_THAT(gathered.output, contains("limited' at offset 5000: "));
}

TEST_CASE("room is reserved without a change of size") {
  const scratch here;
  file f = file::create(here / "r", false);
  const bool supported = f.allocate(0, 1 << 16);
  CHECK(f.size() == 0);
  if (!supported) return;
  const auto too_much = failure([&] { f.allocate(4096, std::uint64_t{1} << 62); });
  CHECK_THAT(too_much.what(), contains("cannot reserve room in '" + here / "r" + "' at offset 4096: "));
}

TEST_CASE("a final name is given once, or over another if asked") {
  const scratch here;
  spill(here / "new", "new");
  spill(here / "old", "old");
  const auto refused = failure([&] { weft::io::rename_durably(here / "new", here / "old", false); });
  CHECK(refused.code() == std::errc::file_exists);
  CHECK_THAT(refused.what(), contains("cannot rename '" + here / "new" + "' to '" + here / "old" + "'"));
  CHECK(slurp(here / "old") == "old");
  CHECK(slurp(here / "new") == "new");
  weft::io::rename_durably(here / "new", here / "old", true);
  CHECK(slurp(here / "old") == "new");
  CHECK_FALSE(weft::io::exists(here / "new"));
  weft::io::rename_durably(here / "old", here / "fresh", false);
  CHECK(slurp(here / "fresh") == "new");
  CHECK_THROWS_AS(weft::io::rename_durably(here / "absent", here / "fresh", true), std::system_error);
}

TEST_CASE("names: asking, removing, making durable") {
  const scratch here;
  spill(here / "a", "");
  CHECK(weft::io::exists(here / "a"));
  CHECK_FALSE(weft::io::exists(here / "a/b"));
  weft::io::remove_if_exists(here / "a");
  weft::io::remove_if_exists(here / "a");
  CHECK_FALSE(weft::io::exists(here / "a"));
  CHECK_THROWS_AS(weft::io::remove_if_exists(here.path().string()), std::system_error);
  weft::io::sync_directory_of(here / "a");
  weft::io::sync_directory_of("a");
  weft::io::sync_directory_of("/a");
  CHECK_THROWS_AS(weft::io::sync_directory_of(here / "no/a"), std::system_error);
}

TEST_CASE("a file that somebody writes is not emptied") {
  const scratch here;
  file first = file::create_locked(here / "l", false);
  first.write_at("mine", 4, 0);
  CHECK(failure([&] { file::create_locked(here / "l", true); }).code() == std::errc::device_or_resource_busy);
  CHECK(slurp(here / "l") == "mine");
  file second = file::open_write(here / "l");
  CHECK_FALSE(second.try_lock());
  first.close();
  CHECK(second.try_lock());
  second.close();
  const file third = file::create_locked(here / "l", true);
  CHECK(third.size() == 0);
  CHECK(failure([&] { file::create_locked(here / "l", false); }).code() == std::errc::file_exists);
}

TEST_CASE("a journal has zeros ahead of its records once one was durable, until it is cut") {
  const scratch here;
  weft::io::journal j(here / "j", false);
  j.put("abcd", 4, 0);
  CHECK(slurp(here / "j") == "abcd");
  j.make_durable();
  j.put("efgh", 4, 4);
  const std::string bytes = slurp(here / "j");
  CHECK(bytes.size() > 4096);
  CHECK(bytes.substr(0, 8) == "abcdefgh");
  CHECK(bytes.find_first_not_of('\0', 8) == std::string::npos);
  std::string all = "abcdefgh";
  for (int i = 0; i < 3000; ++i) {
    const std::string record(100, static_cast<char>('a' + i % 26));
    j.put(record.data(), record.size(), all.size());
    all += record;
  }
  j.make_durable();
  j.cut(all.size());
  j.close();
  CHECK(slurp(here / "j") == all);
}

TEST_CASE("a file is synchronised in the background, or by who waits for it") {
  const scratch here;
  file f = file::create(here / "f", false);
  f.write_at("abc", 3, 0);
  {
    background_sync going(f);
    f.write_at("d", 1, 3);
    going.finish();
  }
  const background_sync left(f);  // ends by itself
  file none;
  background_sync refused(none);
  CHECK_THROWS_AS(refused.finish(), std::system_error);
}
