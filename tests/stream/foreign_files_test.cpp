// SPDX-License-Identifier: BSL-1.0
// What stands around a stream: files, links and pipes of others, other writers, the old version.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <weft/append.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

/// What happens once, before the call of flock or of openat with such a name after `skip` others.
struct {
  std::function<void()> act;
  std::string name;
  int skip = 0;
} meanwhile;

void happen(const std::string& name) {
  if (!meanwhile.act || meanwhile.name != name || meanwhile.skip-- > 0) return;
  std::exchange(meanwhile.act, nullptr)();
}

}  // namespace

extern "C" {
int flock(int fd, int operation) noexcept {
  happen("flock");
  return static_cast<int>(syscall(SYS_flock, fd, operation));
}
int openat(int at, const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  happen(path);
  return static_cast<int>(syscall(SYS_openat, at, path, flags, mode));
}
}

using weft::append_file;
using weft::append_layout;
using weft::append_reader;
using weft_test::contains;
using weft_test::scratch;
using weft_test::slurp;
using weft_test::spill;
namespace fs = std::filesystem;

namespace {

constexpr append_layout both[] = {append_layout::plain, append_layout::segmented};

/// What the text of a std::system_error or weft::error says, and its code; nothing if nothing is thrown.
struct refusal {
  std::string text;
  int code = 0;
};
refusal refused(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::system_error& e) {
    return {e.what(), e.code().value()};
  } catch (const weft::error& e) {
    return {e.what(), 0};
  }
  return {};
}

/// Everything in a directory: kinds, modes, contents, targets of links.
using picture = std::map<std::string, std::string>;
picture look(const scratch& here) {
  picture all;
  for (const auto& each : fs::directory_iterator(here.path())) {
    struct stat about;
    REQUIRE(lstat(each.path().c_str(), &about) == 0);
    std::string what = std::to_string(about.st_mode) + ' ' + std::to_string(about.st_ino) + ' ';
    if (S_ISREG(about.st_mode)) what += slurp(each.path().string());
    if (S_ISLNK(about.st_mode)) what += fs::read_symlink(each.path()).string();
    all[each.path().filename().string()] = what;
  }
  return all;
}
/// Whether what was there is still there, as it was.
void check_untouched(const scratch& here, const picture& before) {
  const picture after = look(here);
  for (const auto& [name, what] : before) {
    INFO(name);
    REQUIRE(after.count(name) == 1);
    CHECK(after.at(name) == what);
  }
}

void write(const std::string& path, const std::string& bytes, weft::append_options o = {}) {
  append_file file(path, o);
  file.write(bytes);
  file.close();
}
/// As a process that is killed leaves it, behind a commit.
void leave_unfinished(const std::string& path, const std::string& bytes, weft::append_options o = {}) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    o.commit_every = 1;
    o.buffer = 4096;
    static std::optional<append_file> file;
    file.emplace(path, o);
    for (int i = 0; i < 3; ++i) file->write(std::string(8192, 'x'));
    file->write(bytes);
    while (file->committed() == 0) file->write(std::string(8192, 'x'));
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
}
std::string bytes_of(const append_reader& reader) {
  reader.verify();
  std::string bytes(reader.size(), '?');
  bytes.resize(reader.pread(std::as_writable_bytes(std::span(bytes)), 0));
  return bytes;
}
std::string bytes_of(const std::string& path) { return bytes_of(append_reader(path)); }

/// A process that repeats something until it is killed.
class repeater {
 public:
  explicit repeater(const std::function<void()>& f) : child_(fork()) {
    if (child_ != 0) return;
    try {
      for (;; usleep(100)) f();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "process %d: %s\n", static_cast<int>(getpid()), e.what());
    }
    _exit(1);
  }
  repeater(repeater&& other) noexcept : child_(std::exchange(other.child_, -1)) {}
  ~repeater() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  /// Whether it goes on; it ends early when something is thrown that must not be.
  bool runs() const { return waitpid(child_, nullptr, WNOHANG) == 0; }

 private:
  pid_t child_;
};

/// A version is as long as its letter says, and consists of it.
std::string version(int letter) {
  return std::string(1000u * static_cast<unsigned>(letter), static_cast<char>('a' + letter));
}
bool is_version(const std::string& bytes) {
  return !bytes.empty() && bytes[0] > 'a' && bytes == version(bytes[0] - 'a');
}

}  // namespace

TEST_CASE("files of others beside a stream stay as they are") {
  const scratch here;
  for (const char* const name : {"run.log", "run.part", "run.0", "run.1", "run.60", "run.recovered",
                                 "run.spill", "run.weft", "run.weft-", "run.weft-0000000000000001-0"})
    spill(here / name, name);
  const picture before = look(here);
  for (const append_layout layout : both) {
    write(here / "run", "one", {.layout = layout, .overwrite = true, .memory = 4096, .buffer = 4096});
    CHECK(bytes_of(here / "run") == "one");
    CHECK(weft::recover(here / "run").was_complete);
    CHECK(weft::recover(here / "run", true).was_complete);
    check_untouched(here, before);
    for (const append_layout next : both) {
      write(here / "run", "two", {.layout = next, .overwrite = true});
      CHECK(bytes_of(here / "run") == "two");
      write(here / "run", "one", {.layout = layout, .overwrite = true});
      check_untouched(here, before);
    }
    leave_unfinished(here / "run", "three", {.layout = layout, .overwrite = true});
    CHECK(weft::recover(here / "run", true).bytes > 0);
    check_untouched(here, before);
    fs::remove(here / "run");
  }
}

TEST_CASE("recovering what is no stream changes nothing") {
  const scratch here;
  for (const char* const name : {"thesis", "thesis.log", "thesis.weft-log", "thesis.0"})
    spill(here / name, name);
  const picture before = look(here);
  const weft::recovered found = weft::recover(here / "thesis", true);
  CHECK(found.was_complete);
  CHECK(found.bytes == 6);
  CHECK(look(here) == before);
}

TEST_CASE("a name that a stream needs and somebody else has is refused, with its path") {
  for (const append_layout layout : both)
    for (const bool overwrite : {false, true})
      for (const char* const taken : {"out.weft-part", "out.weft-log"})
        for (const std::string& content : {std::string(), std::string("mine"), std::string(100, '\0'),
                                           std::string("\x89weftLG\n") + std::string(100, 'x')}) {
          const scratch here;
          spill(here / taken, content);
          const picture before = look(here);
          const refusal r =
              refused([&] { append_file(here / "out", {.layout = layout, .overwrite = overwrite}); });
          CHECK(r.code == EEXIST);
          CHECK_THAT(r.text, contains("weft has not made it"));
          CHECK_THAT(r.text, contains(here / taken));
          CHECK_THAT(refused([&] { weft::recover(here / "out", overwrite); }).text, contains("weft: "));
          CHECK(look(here) == before);
        }
}

TEST_CASE("what a magic number claims is not believed") {
  const scratch here;
  // A file that begins as an index does, but is none: its neighbours are not its data files.
  spill(here / "name", std::string("\x89weftIX\n") + std::string(4088, 'x'));
  for (const char* const name : {"name.60", "name.0", "name.weft-7878787878787878-0"})
    spill(here / name, std::string("\x89weftDT\n") + std::string(5000, 'x'));
  picture before = look(here);
  CHECK_THROWS_AS(weft::recover(here / "name", true), weft::error);
  CHECK(look(here) == before);
  before.erase("name");
  write(here / "name", "new", {.overwrite = true});
  CHECK(slurp(here / "name") == "new");
  check_untouched(here, before);
}

TEST_CASE("the old version can be read until the new one is published") {
  for (const append_layout old : both)
    for (const append_layout fresh : both) {
      const scratch here;
      write(here / "s", "old", {.layout = old});
      const append_reader early(here / "s");
      {
        append_file file(here / "s", {.layout = fresh, .overwrite = true, .buffer = 4096});
        file.write(std::string(20'000, 'n'));
        CHECK(bytes_of(here / "s") == "old");
        refused([&] { weft::recoverable(here / "s"); });
        CHECK(bytes_of(here / "s") == "old");
        file.close();
      }
      CHECK(bytes_of(here / "s") == std::string(20'000, 'n'));
      CHECK(bytes_of(early) == "old");
      // Nothing of the old one is left.
      CHECK(look(here).size() == (fresh == append_layout::plain ? 1 : 2));
      {
        append_file given_up(here / "s", {.layout = old, .overwrite = true, .commit_every = 0});
        given_up.write("half");
      }
      CHECK(bytes_of(here / "s") == std::string(20'000, 'n'));
      leave_unfinished(here / "s", "newest", {.layout = old, .overwrite = true});
      CHECK(bytes_of(here / "s") == std::string(20'000, 'n'));
      write(here / "s", "newer", {.layout = old, .overwrite = true});
      CHECK(bytes_of(here / "s") == "newer");
      CHECK(look(here).size() == (old == append_layout::plain ? 1 : 2));
    }
}

TEST_CASE("the second writer of a name is refused while the first one writes") {
  for (const append_layout layout : both) {
    const scratch here;
    append_file first(here / "s", {.layout = layout, .overwrite = true});
    first.write("first");
    for (const bool overwrite : {false, true})
      CHECK(refused([&] { append_file(here / "s", {.overwrite = overwrite}); }).code == EBUSY);
    CHECK_THAT(refused([&] { weft::recover(here / "s", true); }).text, contains("still being written"));
    first.close();
    CHECK(bytes_of(here / "s") == "first");
  }
}

TEST_CASE("a lock on a log that has lost its name is worth nothing") {
  for (const append_layout layout : both) {
    const scratch here;
    std::optional<append_file> first, second;
    const auto first_ends_and_second_begins = [&] {
      first->close();
      second.emplace(here / "s",
                     weft::append_options{.layout = layout, .overwrite = true, .commit_every = 1});
      second->write("second");
    };
    first.emplace(here / "s", weft::append_options{.layout = layout});
    first->write("first");
    meanwhile = {first_ends_and_second_begins, "flock", 0};
    CHECK_THAT(refused([&] { weft::recover(here / "s", true); }).text, contains("still being written"));
    CHECK(bytes_of(here / "s") == "first");
    first.emplace(std::move(*second));
    second.reset();
    // The first lock is that on the writer's own log, which has no name yet.
    meanwhile = {first_ends_and_second_begins, "flock", 1};
    CHECK(refused([&] { append_file(here / "s", {.overwrite = true}); }).code == EBUSY);
    CHECK(bytes_of(here / "s") == "second");
    second->close();
    CHECK(bytes_of(here / "s") == "second");
    CHECK_FALSE(meanwhile.act);
  }
}

TEST_CASE("who opens a stream while it is replaced gets the old version or the new one") {
  for (const append_layout fresh : both) {
    const scratch here;
    const auto replace = [&] { write(here / "s", "new", {.layout = fresh, .overwrite = true}); };
    const auto data_file = [&] {
      for (const auto& [name, what] : look(here))
        if (name.ends_with("-0")) return name;
      return std::string("none");
    };
    write(here / "s", "old", {.layout = append_layout::segmented});
    meanwhile = {replace, data_file(), 0};
    CHECK(bytes_of(here / "s") == "new");
    write(here / "s", "old", {.layout = append_layout::segmented, .overwrite = true});
    meanwhile = {replace, data_file(), 0};
    append_reader(here / "s").export_plain(here / "copy", true);
    CHECK(bytes_of(here / "copy") == "new");
    write(here / "s", "old", {.layout = append_layout::segmented, .overwrite = true});
    meanwhile = {replace, data_file(), 0};
    CHECK(weft::recoverable(here / "s").was_complete);
    CHECK_FALSE(meanwhile.act);
    CHECK(bytes_of(here / "s") == "new");
  }
}

TEST_CASE("several writers of one name, recoveries beside them: who looks sees one whole version") {
  for (const append_layout layout : both) {
    const scratch here;
    const std::string path = here / "s";
    write(path, version(1), {.layout = layout});
    std::vector<repeater> others;
    for (int letter = 2; letter < 4; ++letter)
      others.emplace_back([&, letter] {
        try {
          write(path, version(letter),
                {.layout = layout, .overwrite = true, .commit_every = 512, .sync = false});
        } catch (const std::system_error& e) {
          if (e.code().value() != EBUSY) throw;
        }
      });
    others.emplace_back([&] {
      try {
        const weft::recovered found = weft::recover(path, true);
        if (!found.was_complete) throw weft::error(found.reason);  // nobody has ended early
      } catch (const weft::error& e) {
        if (std::string(e.what()).find("still being written") == std::string::npos) throw;
      }
    });
    std::map<std::size_t, int> seen;
    int wrong = 0;
    for (int i = 0; i < 1000 || (seen.size() < 2 && i < 200'000); ++i) {
      const std::string bytes = bytes_of(path);
      wrong += !is_version(bytes);
      ++seen[bytes.size()];
    }
    CHECK(wrong == 0);
    CHECK(seen.size() > 1);
    for (const repeater& each : others) CHECK(each.runs());
  }
}

TEST_CASE("links at the names of a stream are not followed") {
  for (const append_layout layout : both)
    for (const bool hard : {false, true})
      for (const char* const planted :
           {"s.weft-part", "s.weft-log", "s.part", "s.log", "s.0", "s.1", "s.recovered"}) {
        const scratch here;
        spill(here / "victim", "precious");
        hard ? fs::create_hard_link(here / "victim", here / planted)
             : fs::create_symlink(here / "victim", here / planted);
        const picture before = look(here);
        INFO(planted << ' ' << hard);
        const refusal r = refused([&] { write(here / "s", "bytes", {.layout = layout, .overwrite = true}); });
        if (r.text.empty()) CHECK(bytes_of(here / "s") == "bytes");
        refused([&] { weft::recover(here / "s", true); });
        check_untouched(here, before);
        CHECK_FALSE(fs::is_symlink(here / "s"));
      }
}

TEST_CASE("links that take the place of a writer's files are not published, nor followed by a recovery") {
  for (const append_layout layout : both) {
    const scratch here;
    spill(here / "victim", "precious");
    {
      append_file file(here / "s", {.layout = layout});
      file.write("bytes");
      fs::remove(here / "s.weft-part");
      fs::create_symlink(here / "victim", here / "s.weft-part");
      CHECK_THAT(refused([&] { file.close(); }).text, contains("removed or replaced while it was written"));
    }
    CHECK_FALSE(fs::exists(here / "s"));
    CHECK_THAT(refused([&] { weft::recover(here / "s"); }).text, contains("is a symbolic link"));
    fs::remove(here / "s.weft-part");
    fs::create_hard_link(here / "victim", here / "s.weft-part");
    CHECK_THAT(refused([&] { weft::recover(here / "s"); }).text, contains("has another name"));
    CHECK(slurp(here / "victim") == "precious");
    CHECK(fs::is_regular_file(here / "victim"));
  }
}

TEST_CASE("a link that is the user's own path is replaced, and what it points to stays") {
  const scratch here;
  spill(here / "target", "precious");
  fs::create_symlink(here / "target", here / "s");
  CHECK(bytes_of(here / "s") == "precious");
  CHECK(refused([&] { append_file(here / "s"); }).code == EEXIST);
  write(here / "s", "new", {.overwrite = true});
  CHECK_FALSE(fs::is_symlink(here / "s"));
  CHECK(slurp(here / "s") == "new");
  CHECK(slurp(here / "target") == "precious");
}

TEST_CASE("pipes, sockets, devices and directories are refused, not waited for") {
  const scratch here;
  REQUIRE(mkfifo((here / "pipe").c_str(), 0600) == 0);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (here / "socket").copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(socket);
  fs::create_directory(here / "folder");
  const auto each_way = [&](const std::string& path) {
    INFO(path);
    for (const append_layout layout : both)
      CHECK_FALSE(refused([&] { append_file(path, {.layout = layout, .overwrite = true}); }).text.empty());
    for (const std::function<void()>& f : {std::function<void()>([&] { append_reader reader(path); }),
                                           std::function<void()>([&] { weft::recoverable(path); }),
                                           std::function<void()>([&] { weft::recover(path, true); })})
      CHECK_THAT(refused(f).text, contains(path));
  };
  for (const char* const name : {"pipe", "socket", "folder"}) each_way(here / name);
  each_way("/dev/null");
  const picture before = look(here);
  for (const char* const suffix : {".weft-part", ".weft-log"}) {
    REQUIRE(mkfifo((here / ("s" + std::string(suffix))).c_str(), 0600) == 0);
    spill(here / "plain", "bytes");
    CHECK_FALSE(refused([&] { append_file(here / "s", {.overwrite = true}); }).text.empty());
    CHECK_FALSE(refused([&] { weft::recoverable(here / "s"); }).text.empty());
    CHECK_FALSE(refused([&] { weft::recover(here / "s", true); }).text.empty());
    fs::remove(here / ("s" + std::string(suffix)));
  }
  CHECK_FALSE(refused([&] { append_reader(here / "plain").export_plain(here / "pipe", true); }).text.empty());
  check_untouched(here, before);
}

TEST_CASE("a file that is replaced keeps its mode, and the part is not more open than that") {
  const mode_t usual = umask(022);
  for (const append_layout layout : both)
    for (const mode_t mode : {0640, 0600, 0444, 0664}) {
      const scratch here;
      const auto mode_of = [&](const std::string& path) {
        struct stat about;
        REQUIRE(lstat(path.c_str(), &about) == 0);
        return about.st_mode & 07777;
      };
      write(here / "s", "old", {.layout = layout});
      CHECK(mode_of(here / "s") == 0644);
      REQUIRE(chmod((here / "s").c_str(), mode) == 0);
      {
        append_file file(here / "s", {.layout = layout, .overwrite = true});
        file.write("new");
        for (const auto& each : fs::directory_iterator(here.path()))
          if (each.path() != here / "s" && slurp(each.path().string()).find("old") == std::string::npos)
            CHECK((mode_of(each.path().string()) & 0077 & ~mode) == 0);
        file.close();
      }
      for (const auto& each : fs::directory_iterator(here.path()))
        CHECK(mode_of(each.path().string()) == mode);
      leave_unfinished(here / "s", "newer", {.layout = layout, .overwrite = true});
      CHECK(weft::recover(here / "s", true).bytes > 0);
      CHECK(mode_of(here / "s") == mode);
      append_reader(here / "s").export_plain(here / "s", true);
      CHECK(mode_of(here / "s") == mode);
    }
  umask(usual);
}

TEST_CASE("an unfinished stream that was copied elsewhere can be recovered, but is not overwritten") {
  for (const append_layout layout : both) {
    const scratch here, there;
    leave_unfinished(here / "s", "bytes", {.layout = layout});
    for (const auto& each : fs::directory_iterator(here.path()))
      fs::copy_file(each.path(), there / each.path().filename().string());
    CHECK(refused([&] { append_file(there / "s", {.overwrite = true}); }).code == EEXIST);
    CHECK(refused([&] { append_file(here / "s"); }).code == EEXIST);
    CHECK(weft::recover(there / "s").bytes > 0);
    CHECK(weft::recover(here / "s").bytes == append_reader(there / "s").size());
    for (const scratch* const each : {&here, &there}) CHECK(fs::exists(*each / "s.weft-log") == false);
  }
}
