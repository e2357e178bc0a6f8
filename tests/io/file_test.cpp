// SPDX-License-Identifier: BSL-1.0
// Files: bytes come back, failures name operation, path and offset, names are published for good.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

#include <weft/io/background_sync.hpp>
#include <weft/io/directory.hpp>
#include <weft/io/file.hpp>
#include <weft/io/journal.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

using weft::io::background_sync;
using weft::io::directory;
using weft::io::file;
using weft::io::unnamed_file;
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
  const directory in(here / "new");
  spill(here / "new", "new");
  spill(here / "old", "old");
  const auto refused = failure([&] { in.rename("new", "old", false); });
  CHECK(refused.code() == std::errc::file_exists);
  CHECK_THAT(refused.what(), contains("cannot rename '" + here / "new" + "' to '" + here / "old" + "'"));
  CHECK(slurp(here / "old") == "old");
  CHECK(slurp(here / "new") == "new");
  in.rename("new", "old", true);
  CHECK(slurp(here / "old") == "new");
  CHECK_FALSE(in.has("new"));
  in.rename("old", "fresh", false);
  CHECK(slurp(here / "fresh") == "new");
  CHECK_THROWS_AS(in.rename("absent", "fresh", true), std::system_error);
}

TEST_CASE("names: asking, listing, removing, making durable") {
  const scratch here;
  const directory in(here / "a");
  spill(here / "a", "");
  spill(here / "ab", "");
  CHECK(in.has("a"));
  CHECK(in.names_with("a").size() == 2);
  CHECK(in.names_with("b").empty());
  in.remove("a");
  in.remove("a");
  CHECK_FALSE(in.has("a"));
  std::filesystem::create_directory(here / "d");
  CHECK_THROWS_AS(in.remove("d"), std::system_error);
  in.sync();
  directory("a").sync();
  directory("/a").sync();
  CHECK(directory("/a").path_of("b") == "/b");
  CHECK(directory("a").path_of("b") == "b");
  CHECK_THROWS_AS(directory(here / "no/a"), std::system_error);
  CHECK(directory::name_in("/x/y") == "y");
  for (const char* const none : {"", "/", "x/", ".", "x/.."})
    CHECK(failure([&] { directory::name_in(none); }).code() == std::errc::is_a_directory);
}

TEST_CASE("names are those of the directory that was opened, wherever that is now") {
  const scratch here;
  std::filesystem::create_directory(here / "d");
  const directory in(here / "d/f");
  std::filesystem::rename(here / "d", here / "e");
  std::filesystem::create_directory(here / "d");
  in.create("f", 0666);
  CHECK(std::filesystem::exists(here / "e/f"));
  CHECK_FALSE(std::filesystem::exists(here / "d/f"));
}

TEST_CASE("links are not followed, and nothing but ordinary files is opened") {
  const scratch here;
  const directory in(here / "x");
  spill(here / "victim", "precious");
  std::filesystem::create_symlink(here / "victim", here / "link");
  std::filesystem::create_symlink(here / "nowhere", here / "dangling");
  std::filesystem::create_directory(here / "folder");
  REQUIRE(mkfifo((here / "pipe").c_str(), 0600) == 0);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (here / "socket").copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(socket);
  for (const char* const name : {"link", "dangling", "folder", "pipe", "socket"}) {
    INFO(name);
    CHECK_THROWS_AS(in.open(name, O_RDONLY), weft::error);
    CHECK_THROWS_AS(in.open_if_exists(name, O_RDWR), weft::error);
    CHECK(failure([&] { in.create(name, 0666); }).code() == std::errc::file_exists);
    unnamed_file file(in, "x", 0666);
    CHECK_FALSE(file.publish_if_free(name));
    CHECK(in.has(name));
  }
  CHECK(slurp(here / "victim") == "precious");
  CHECK_FALSE(in.open_if_exists("absent", O_RDONLY));
  CHECK(failure([&] { in.open("absent", O_RDONLY); }).code() == std::errc::no_such_file_or_directory);
}

TEST_CASE("a file without a name gets one, or leaves nothing") {
  const scratch here;
  const directory in(here / "x");
  {
    unnamed_file lost(in, "x", 0666);
    lost.content().write_at("lost", 4, 0);
  }
  CHECK(std::filesystem::is_empty(here.path()));
  unnamed_file first(in, "x", 0640);
  first.content().write_at("first", 5, 0);
  CHECK(first.publish("x", false).path() == here / "x");
  CHECK(slurp(here / "x") == "first");
  unnamed_file second(in, "x", 0640);
  second.content().write_at("second", 6, 0);
  CHECK(failure([&] { second.publish("x", false); }).code() == std::errc::file_exists);
  CHECK_FALSE(second.publish_if_free("x"));
  CHECK(slurp(here / "x") == "first");
  const file published = second.publish("x", true);
  CHECK(slurp(here / "x") == "second");
  CHECK(in.is(published, "x"));
  file kept = unnamed_file(in, "x", 0600).keep_unnamed();
  kept.write_at("kept", 4, 0);
  CHECK(kept.size() == 4);
  CHECK(in.names_with("").size() == 3);  // and . and ..
}

TEST_CASE("a file takes over who may access another one") {
  const scratch here;
  file model = file::create(here / "model", false);
  file other = file::create(here / "other", false, 0600);
  for (const mode_t mode : {0640, 0444, 0777, 0600}) {
    REQUIRE(fchmod(model.descriptor(), mode) == 0);
    other.share_access_of(model.about());
    CHECK((other.about().st_mode & 07777) == mode);
  }
  REQUIRE(fchmod(model.descriptor(), 06755) == 0);
  other.share_access_of(model.about());
  CHECK((other.about().st_mode & 07777) == 0755);  // other bytes are not to be run as somebody else
  if (geteuid() == 0) {
    REQUIRE(fchown(model.descriptor(), 1234, 4321) == 0);
    other.share_access_of(model.about());
    CHECK(other.about().st_uid == 1234);
    CHECK(other.about().st_gid == 4321);
  }
}

TEST_CASE("a journal has zeros ahead of its records once one was durable, until it is cut") {
  const scratch here;
  const directory in(here / "j");
  file f = in.create("j", 0666);
  weft::io::journal j(f, in);
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
