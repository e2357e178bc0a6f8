// SPDX-License-Identifier: BSL-1.0
// After a crash: what is kept is a beginning of the stream, and no shorter than its records promise.
#include "stream/small_streams.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/figure.hpp"

#include <weft/archive/reader.hpp>
#include <weft/archive/recovery.hpp>
#include <weft/stream/detail/plain.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

using weft::append_reader;
using weft::recover;
using weft::recoverable;
using weft::recovered;
using weft::stream::log_name;
using weft::stream::part_name;
using weft_test::contains;
using weft_test::log_writer;
using weft_test::scratch;
using weft_test::slurp;
using weft_test::spill;
using weft_test::stream_writer;
using weft_test::varied_text;

namespace {

/// Writes of a plain stream the first bytes, with a commit after each hundred.
void plain_part(const std::string& name, const std::string& text) {
  spill(part_name(name), text);
  log_writer log(log_name(name));
  weft::io::file part = weft::io::file::open_write(part_name(name));
  for (std::size_t at = 0; at <= text.size(); at += 100)
    log->note(at, weft::io::crc32c(text.data(), at), at % 500 == 0 ? &part : nullptr);
}

std::string text_of(const std::string& name) {
  const append_reader reader(name);
  reader.verify();
  std::string bytes(reader.size(), '?');
  bytes.resize(reader.pread(std::as_writable_bytes(std::span(bytes)), 0));
  return bytes;
}

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const weft::error& e) {
    return e.what();
  }
  return "nothing";
}

std::optional<recovered> try_to(const std::function<recovered()>& f) {
  try {
    return f();
  } catch (const weft::error&) {
    return std::nullopt;
  }
}

/// All files of a directory, to begin again with.
class snapshot {
 public:
  explicit snapshot(const scratch& here) : here_(here) {
    for (const auto& each : std::filesystem::directory_iterator(here.path()))
      files_.emplace_back(each.path().string(), slurp(each.path().string()));
  }
  void restore() const {
    for (const auto& each : std::filesystem::directory_iterator(here_.path()))
      std::filesystem::remove(each.path());
    for (const auto& [path, bytes] : files_) spill(path, bytes);
  }

 private:
  const scratch& here_;
  std::vector<std::pair<std::string, std::string>> files_;
};

std::string changed(std::string bytes, std::size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
  return bytes;
}

}  // namespace

TEST_CASE("plain: the last commit counts, and what is behind it goes") {
  const scratch here;
  const std::string text = varied_text(1050, 1);
  plain_part(here / "p", text);
  const recovered before = recoverable(here / "p");
  CHECK(before.bytes == 1000);
  CHECK(slurp(part_name(here / "p")) == text);
  CHECK_FALSE(std::filesystem::exists(here / "p"));
  const recovered kept = recover(here / "p");
  CHECK(kept.bytes == 1000);
  CHECK(kept.committed == 1000);
  CHECK_FALSE(kept.was_complete);
  CHECK_FALSE(kept.segmented);
  CHECK(kept.reason == "the stream was not finished");
  CHECK(slurp(here / "p") == text.substr(0, 1000));
  CHECK_FALSE(std::filesystem::exists(part_name(here / "p")));
  CHECK_FALSE(std::filesystem::exists(log_name(here / "p")));
  const recovered again = recover(here / "p");
  CHECK(again.was_complete);
  CHECK(again.bytes == 1000);
}

TEST_CASE("plain: however the file is cut or changed, the longest beginning that was promised is kept") {
  const scratch here(weft_test::medium::memory);
  const std::string text = varied_text(450, 2);
  plain_part(here / "p", text);
  const snapshot begin(here);
  for (std::size_t size = 0; size <= text.size(); ++size) {
    begin.restore();
    spill(part_name(here / "p"), text.substr(0, size));
    INFO("cut to " << size);
    if (size < 100) {  // no commit vouches for any of its bytes, and the log is not about this file
      REQUIRE_THAT(refusal([&] { recover(here / "p"); }), contains("nothing to recover"));
      REQUIRE(slurp(part_name(here / "p")) == text.substr(0, size));
      continue;
    }
    const recovered kept = recover(here / "p");
    REQUIRE(kept.bytes == size / 100 * 100);
    REQUIRE(kept.committed == 400);
    REQUIRE((kept.reason == "the stream was not finished") == (size >= 400));
    REQUIRE(slurp(here / "p") == text.substr(0, kept.bytes));
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    begin.restore();
    spill(part_name(here / "p"), changed(text, at));
    INFO("changed at " << at);
    if (at < 100) {
      REQUIRE_THAT(refusal([&] { recover(here / "p"); }), contains("nothing to recover"));
      continue;
    }
    const recovered kept = recover(here / "p");
    REQUIRE(kept.bytes == (at < 400 ? at / 100 * 100 : 400));
    REQUIRE(slurp(here / "p") == text.substr(0, kept.bytes));
  }
}

TEST_CASE("plain: however the log is cut or changed, no record that is left is lost") {
  const scratch here(weft_test::medium::memory);
  const std::string text = varied_text(450, 3);
  plain_part(here / "p", text);
  const snapshot begin(here);
  const std::string log = slurp(log_name(here / "p"));
  constexpr std::size_t head = weft::stream::log_head::size;
  for (std::size_t size = 0; size < head + 200; ++size) {
    begin.restore();
    spill(log_name(here / "p"), log.substr(0, size));
    const auto kept = try_to([&] { return recover(here / "p"); });
    REQUIRE(kept.has_value() == (size >= head + 64));  // the first commit is one of no bytes
    if (!kept) {
      REQUIRE(slurp(part_name(here / "p")) == text);
      continue;
    }
    REQUIRE(kept->bytes == std::min<std::size_t>((size - head) / 32 * 100 - 100, 400));
    REQUIRE(slurp(here / "p") == text.substr(0, kept->bytes));
  }
  for (std::size_t at = 0; at < head + 160; ++at) {
    begin.restore();
    spill(log_name(here / "p"), changed(log, at));
    REQUIRE(recover(here / "p").bytes == (at < head + 128 ? 400 : 300));
  }
}

TEST_CASE("plain: refused without a change") {
  const scratch here;
  CHECK_THAT(refusal([&] { recover(here / "p"); }), contains("there is no stream"));
  const std::string text = varied_text(250, 4);
  spill(part_name(here / "p"), text);
  CHECK_THAT(refusal([&] { recover(here / "p"); }), contains("nothing vouches for the bytes"));
  plain_part(here / "p", text);
  spill(here / "p", "older");
  CHECK_THROWS_AS(recover(here / "p"), std::system_error);
  CHECK(slurp(here / "p") == "older");
  CHECK(slurp(part_name(here / "p")) == text);
  CHECK(recoverable(here / "p").bytes == 200);
  CHECK(recover(here / "p", true).bytes == 200);
  CHECK(slurp(here / "p") == text.substr(0, 200));
  plain_part(here / "q", text);
  {
    weft::io::file writer = weft::io::file::open_write(log_name(here / "q"));
    REQUIRE(writer.try_lock());
    CHECK_THAT(refusal([&] { recover(here / "q"); }), contains("is still being written"));
    CHECK(recoverable(here / "q").bytes == 200);
  }
  CHECK(recover(here / "q").bytes == 200);
  // Ended between the publication and the removal of the log.
  log_writer(log_name(here / "p"))->note(1, 2);
  CHECK(recover(here / "p").was_complete);
  CHECK_FALSE(std::filesystem::exists(log_name(here / "p")));
}

TEST_CASE("segmented: an index that was never finished") {
  const scratch here;
  for (const int segments : {1, 2, 700, 1021, 1022, 1023, 2100}) {
    stream_writer w(here / "s", 3);
    const std::string text = varied_text(static_cast<std::size_t>(segments) + 20, 5);
    for (int i = 0; i < segments; ++i) {
      w.add(static_cast<std::uint32_t>(i % 3), text.substr(static_cast<std::size_t>(i), 1 + i % 5));
      if (i % 100 == 0) w.commit(i % 200 == 0);
    }
    w.abandon();
    INFO(segments << " segments");
    const recovered before = recoverable(here / "s");
    const recovered kept = recover(here / "s");
    CHECK(kept.bytes == before.bytes);
    REQUIRE(kept.segmented);
    REQUIRE_FALSE(kept.was_complete);
    REQUIRE(kept.bytes >= w.committed());
    REQUIRE(kept.bytes == kept.committed);
    REQUIRE(text_of(here / "s") == w.text().substr(0, kept.bytes));
    REQUIRE(recover(here / "s").was_complete);
    REQUIRE_FALSE(std::filesystem::exists(part_name(here / "s")));
    std::filesystem::remove(here / "s");
  }
}

TEST_CASE("segmented: however its files are cut or changed, what is kept is a beginning") {
  const scratch here(weft_test::medium::memory);
  const bool finished = GENERATE(false, true);
  stream_writer w(here / "s", 2);
  std::vector<std::size_t> ends{0};
  for (int i = 0; i < 6; ++i) {
    w.add(static_cast<std::uint32_t>(i & 1), varied_text(static_cast<std::size_t>(5 + 3 * i), 6));
    ends.push_back(w.text().size());
    if (i % 2 == 1) w.commit();
  }
  if (finished)
    w.finish();
  else
    w.abandon();
  const std::string text = w.text();
  const std::string index_name = finished ? here / "s" : part_name(here / "s");
  const snapshot begin(here);
  std::uint64_t kept_something = 0;
  for (const std::string& name : {index_name, w.data(0), w.data(1)}) {
    begin.restore();
    const std::string bytes = slurp(name);
    for (std::size_t i = 0; i < 2 * bytes.size(); ++i) {
      const std::size_t at = i / 2;
      const bool cut = i % 2 == 0;
      if (name != index_name && at > 30 && at < 4090 && at % 211 != 0) continue;
      INFO(name << (cut ? " cut to " : " changed at ") << at);
      begin.restore();
      spill(name, cut ? bytes.substr(0, at) : changed(bytes, at));
      const auto kept = try_to([&] { return recover(here / "s", true); });
      if (!kept) {
        // Only where not even the first commit is left.
        REQUIRE((name != index_name || at < 4 * 32));
        continue;
      }
      REQUIRE(kept->bytes <= text.size());
      REQUIRE(std::find(ends.begin(), ends.end(), kept->bytes) != ends.end());
      REQUIRE(text_of(here / "s") == text.substr(0, kept->bytes));
      if (name == index_name && at >= 4 * 32) {
        REQUIRE(kept->bytes >= ends[2]);
      }
      REQUIRE((kept->was_complete ? kept->bytes == text.size() : true));
      ++kept_something;
    }
  }
  CHECK(kept_something > 300);
}

TEST_CASE("segmented: refused without a change") {
  const scratch here;
  stream_writer w(here / "s", 1);
  w.add(0, "abc");
  w.commit();
  CHECK_THAT(refusal([&] { recover(here / "s"); }), contains("is still being written"));
  w.add(0, "defg");
  w.commit();
  w.abandon();
  spill(here / "s", "older");
  CHECK_THROWS_AS(recover(here / "s"), std::system_error);
  CHECK(slurp(here / "s") == "older");
  CHECK(recover(here / "s", true).bytes == 7);
  CHECK(append_reader(here / "s").segments() == 1);  // recovery joins what commits have parted
  // A finished stream with damage is cut only if asked.
  stream_writer v(here / "t", 2);
  v.add(0, "abc");
  v.add(1, "defg");
  v.finish();
  std::string data = slurp(v.data(1));
  data.back() = 'X';
  spill(v.data(1), data);
  const std::string index = slurp(here / "t");
  CHECK_THAT(refusal([&] { recover(here / "t"); }), contains("damaged behind its first 3 bytes"));
  CHECK(slurp(here / "t") == index);
  CHECK(recoverable(here / "t").bytes == 3);
  CHECK(recover(here / "t", true).bytes == 3);
  CHECK(text_of(here / "t") == "abc");
}

TEST_CASE("segmented: complete but for its name") {
  const scratch here;
  stream_writer w(here / "s", 1);
  w.add(0, "abc");
  w.finish();
  std::filesystem::rename(here / "s", part_name(here / "s"));
  const recovered kept = recover(here / "s");
  CHECK(kept.was_complete);
  CHECK(kept.reason.empty());
  CHECK(text_of(here / "s") == "abc");
}

TEST_CASE("segmented: a recovery that was cut off behind the publication is ended by the next one") {
  const scratch here;
  stream_writer w(here / "s", 1);
  w.add(0, "abc");
  w.commit();
  w.add(0, "lost");
  w.abandon();
  const std::string part = slurp(part_name(here / "s")), log = slurp(log_name(here / "s"));
  CHECK(recover(here / "s").bytes == 3);
  spill(part_name(here / "s"), part);
  spill(log_name(here / "s"), log);
  CHECK(recover(here / "s").bytes == 3);
  CHECK(text_of(here / "s") == "abc");
  CHECK_FALSE(std::filesystem::exists(part_name(here / "s")));
  CHECK_FALSE(std::filesystem::exists(log_name(here / "s")));
}

TEST_CASE("plain: a stream of no bytes is kept, if it is the writer's") {
  const scratch here;
  {
    weft::stream::plain_layout(here / "p", {.commit_every = 1}).give_up();
  }
  CHECK(recover(here / "p").bytes == 0);
  CHECK(slurp(here / "p").empty());
  // A file of somebody else beside a log that says nothing of it.
  spill(part_name(here / "q"), "precious");
  log_writer(log_name(here / "q"))->note(0, 0);
  CHECK_THAT(refusal([&] { recover(here / "q", true); }), contains("nothing to recover"));
  CHECK(slurp(part_name(here / "q")) == "precious");
}

TEST_CASE("killed at any moment: all that was acknowledged is there") {
  std::uint64_t kills = 0;
  std::uint64_t bytes_kept = 0;
  const std::string block = varied_text(60'000, 7);
  for (int round = 0; round < 40; ++round) {
    const bool segmented = round % 2 == 0;
    const scratch here;
    const std::string name = here / "k";
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      close(ends[0]);
      std::uint64_t acknowledged = 0;
      const auto acknowledge = [&](std::uint64_t bytes) {
        acknowledged = bytes;
        if (write(ends[1], &acknowledged, sizeof acknowledged) < 0) _exit(1);
      };
      try {
        if (segmented) {
          stream_writer w(name, 2);
          for (std::size_t i = 0; i < 100'000; ++i) {
            w.add(static_cast<std::uint32_t>(i % 2), block.substr(i * 7 % 50'000, 1 + i % 977));
            if (i % 3 == 0) {
              w.commit();
              acknowledge(w.text().size());
            }
          }
        } else {
          weft::io::file part = weft::io::file::create(part_name(name), false);
          log_writer log(log_name(name));
          std::uint64_t at = 0;
          std::uint32_t crc = 0;
          for (std::size_t i = 0; i < 100'000; ++i) {
            const std::string bytes = block.substr(i * 7 % 50'000, 1 + i % 977);
            part.write_at(bytes.data(), bytes.size(), at);
            at += bytes.size();
            crc = weft::io::crc32c(bytes.data(), bytes.size(), crc);
            if (i % 3 == 0) {
              log->note(at, crc);
              acknowledge(at);
            }
          }
        }
      } catch (...) {
        _exit(2);
      }
      _exit(0);
    }
    close(ends[1]);
    // The first acknowledgement, so that there is something, and then any time.
    std::uint64_t acknowledged = 0;
    REQUIRE(read(ends[0], &acknowledged, sizeof acknowledged) == sizeof acknowledged);
    usleep(static_cast<useconds_t>(37 * round));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) ++kills;
    while (read(ends[0], &acknowledged, sizeof acknowledged) == sizeof acknowledged) {
    }
    close(ends[0]);
    REQUIRE_FALSE(std::filesystem::exists(name));
    const recovered kept = recover(name);
    REQUIRE(kept.bytes >= acknowledged);
    std::string expected;
    for (std::size_t i = 0; expected.size() < kept.bytes; ++i)
      expected += block.substr(i * 7 % 50'000, 1 + i % 977);
    expected.resize(kept.bytes);
    REQUIRE(text_of(name) == expected);
    bytes_kept += kept.bytes;
  }
  CHECK(kills > 20);
  weft_test::figure("stream_kills", kills);
  CHECK(bytes_kept > 0);
}

TEST_CASE("no room: the failure is reported, and what was committed is kept") {
  for (const bool segmented : {false, true}) {
    const scratch here;
    const std::string name = here / "n";
    const std::string text = varied_text(40'000, 8);
    const auto child = weft_test::run_in_child([&] {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{20'000, 20'000};
      setrlimit(RLIMIT_FSIZE, &limit);
      std::size_t acknowledged = 0;
      try {
        if (segmented) {
          stream_writer w(name, 2);
          for (std::size_t i = 0; i < 40; ++i) {
            w.add(i % 3 == 0, text.substr(i * 1000, 1000));
            w.commit();
            acknowledged = w.committed();
          }
        } else {
          weft::io::file part = weft::io::file::create(part_name(name), false);
          log_writer log(log_name(name));
          for (std::size_t i = 0; i < 40; ++i) {
            part.write_at(text.data() + i * 1000, 1000, i * 1000);
            log->note((i + 1) * 1000, weft::io::crc32c(text.data(), (i + 1) * 1000));
            acknowledged = (i + 1) * 1000;
          }
        }
      } catch (const std::system_error& e) {
        if (e.code() != std::errc::file_too_large) throw;
        std::printf("%zu", acknowledged);
      }
    });
    REQUIRE(child.exit_code == 0);
    const std::size_t acknowledged = std::stoul(child.output);
    CHECK(acknowledged >= 19'000);
    const recovered kept = recover(name);
    CHECK(kept.bytes == acknowledged);
    CHECK(text_of(name) == text.substr(0, kept.bytes));
  }
}
