// SPDX-License-Identifier: BSL-1.0
// The parts of a trace: the ring of records, the copies of names, the clock, text as JSON, the file.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <weft/observe/json_text.hpp>
#include <weft/observe/tick_clock.hpp>
#include <weft/observe/trace.hpp>
#include <weft/observe/trace_file.hpp>
#include <weft/observe/trace_names.hpp>
#include <weft/observe/trace_ring.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

using namespace weft::observe;

namespace {

trace_record numbered(std::uint64_t i) {
  return {i, i + 1, static_cast<trace_kind>(i % 7),
          reinterpret_cast<const char*>(static_cast<std::uintptr_t>(i)), ~i};
}
bool is_whole(const trace_record& r) {
  const std::uint64_t i = r.begin;
  return r.length == i + 1 && r.kind == static_cast<trace_kind>(i % 7) &&
         reinterpret_cast<std::uintptr_t>(r.name) == i && r.more == ~i;
}

std::string as_json(std::string_view text) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  {
    json_text out(ends[1]);
    out.string(text);
    CHECK(out.end() == 0);
  }
  ::close(ends[1]);
  std::string found(1000, '\0');
  const ssize_t n = ::read(ends[0], found.data(), found.size());
  ::close(ends[0]);
  found.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return found;
}

}  // namespace

TEST_CASE("a ring keeps the last records") {
  trace_ring ring(1500);  // rounded up to 2048
  trace_record r{};
  CHECK(ring.added() == 0);
  for (std::uint64_t i = 0; i < 2047; ++i) ring.add(numbered(i));
  CHECK(ring.oldest() == 0);
  REQUIRE(ring.read(0, r));
  CHECK(r.begin == 0);
  for (std::uint64_t i = 2047; i < 5000; ++i) ring.add(numbered(i));
  CHECK(ring.added() == 5000);
  CHECK(ring.oldest() == 5000 - 2047);
  CHECK_FALSE(ring.read(ring.oldest() - 1, r));
  bool all = true;
  for (std::uint64_t i = ring.oldest(); i < ring.added(); ++i)
    all = all && ring.read(i, r) && r.begin == i && is_whole(r);
  CHECK(all);
  CHECK(ring.lost() == 0);
}

TEST_CASE("records that are read while others are added are whole") {
  trace_ring ring(1024);
  constexpr std::uint64_t enough = 300'000;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) ring.add(numbered(i));
  });
  std::uint64_t read = 0, torn = 0;
  while (read < enough || ring.added() < enough) {
    trace_record r{};
    for (std::uint64_t i = ring.oldest(), end = ring.added(); i < end; ++i) {
      if (!ring.read(i, r)) continue;
      ++read;
      torn += r.begin != i || !is_whole(r);
    }
  }
  stop.store(true, std::memory_order_relaxed);  // joining orders the rest
  writer.join();
  CHECK(torn == 0);
}

TEST_CASE("a name is copied, also when another one comes to its place") {
  trace_names all;
  trace_name_cache cache(all);
  std::string text = "first";
  const char* const first = cache.keep(text.c_str());
  CHECK(cache.keep("first") == first);
  text.assign("other");
  CHECK(cache.keep(text.c_str()) == std::string("other"));
  CHECK(first == std::string("first"));
  CHECK(cache.keep(nullptr) == std::string("task"));
  const std::string endless(1000, 'x');
  CHECK(std::string_view(cache.keep(endless.c_str())).size() == trace_names::longest);
  CHECK(cache.keep(endless.c_str()) == cache.keep(endless.c_str()));
  for (std::size_t i = 0; i < trace_names::most; ++i) all.keep(std::to_string(i));
  CHECK(all.keep("too many") == std::string("other"));
  CHECK(cache.keep("first") == first);
}

TEST_CASE("text becomes valid JSON") {
  CHECK(as_json("plain") == "\"plain\"");
  CHECK(as_json("") == "\"\"");
  CHECK(as_json("a\"b\\c\n\x01\x7f") == "\"a\\\"b\\\\c\\u000a\\u0001\\u007f\"");
  CHECK(as_json("\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80") == "\"\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80\"");
  CHECK(as_json("\xC3") == "\"\\ufffd\"");
  CHECK(as_json("\xC0\x80") == "\"\\ufffd\\ufffd\"");                        // too long
  CHECK(as_json("\xED\xA0\x80") == "\"\\ufffd\\ufffd\\ufffd\"");             // half of a pair
  CHECK(as_json("\xF4\x90\x80\x80") == "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");  // beyond the last character
}

TEST_CASE("numbers and times have a fixed form, and a full device is told") {
  const int full = ::open("/dev/full", O_WRONLY);
  REQUIRE(full >= 0);
  json_text lost(full);
  lost.raw("{}");
  CHECK(lost.end() == ENOSPC);
  CHECK(lost.raw("{}").end() == ENOSPC);
  lost.begin();
  CHECK(lost.end() == 0);
  ::close(full);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  json_text out(ends[1]);
  out.number(0).raw(" ").number(UINT64_MAX).raw(" ").microseconds(1'234'567.4).raw(" ").microseconds(-1);
  out.raw(" ").hexadecimal(0).raw(" ").hexadecimal(0x10a0).raw(" ").hexadecimal(UINT64_MAX);
  CHECK(out.end() == 0);
  char found[100] = {};
  CHECK(::read(ends[0], found, sizeof found - 1) > 0);
  CHECK(found == std::string("0 18446744073709551615 1234.567 0.000 0x0 0x10a0 0xffffffffffffffff"));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("where a wait began, and for what, fit into a word") {
  const int object = 0;
  const std::string name = "some";
  const std::uint64_t plain = wait_place::pack(4095, &object), none = wait_place::pack(7, nullptr);
  const std::uint64_t named = wait_place::pack_named(0, name.c_str());
  CHECK(wait_place::worker(plain) == 4095);
  CHECK(wait_place::object(plain) == reinterpret_cast<std::uintptr_t>(&object));
  CHECK(wait_place::name(plain) == nullptr);
  CHECK(wait_place::worker(none) == 7);
  CHECK(wait_place::object(none) == 0);
  CHECK(wait_place::name(none) == nullptr);
  CHECK(wait_place::worker(named) == 0);
  CHECK(wait_place::name(named) == name.c_str());
}

TEST_CASE("a trace says whose it is and when it began") {
  const weft_test::scratch folder;
  const std::string path = (folder.path() / "trace.json").string();
  const auto now = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const auto before = now();
  trace t(path, 1, 1 << 20);
  const auto after = now();
  CHECK(t.write() == 0);
  const std::string alone = weft_test::slurp(path);
  CHECK_THAT(alone, weft_test::contains("{\"name\":\"weft runtime\"}"));
  CHECK_THAT(alone, !weft_test::contains("process_sort_index"));
  const std::string found = "\"clock_origin\",\"args\":{\"unix_ns\":";
  REQUIRE_THAT(alone, weft_test::contains(found));
  const long long origin = std::stoll(alone.substr(alone.find(found) + found.size()));
  constexpr long long jump = 5'000'000;  // of a thread that loses its processor between two clocks
  CHECK(origin >= before - jump);
  CHECK(origin <= after + jump);
  t.set_rank(0, 4);
  CHECK(t.write() == 0);
  CHECK_THAT(weft_test::slurp(path), weft_test::contains("{\"name\":\"weft runtime, process 0 of 4\"}"));
  CHECK_THAT(weft_test::slurp(path),
             weft_test::contains("\"process_sort_index\",\"args\":{\"sort_index\":0}"));
}

TEST_CASE("a trace counts the bytes of transfers, each time it is written") {
  const weft_test::scratch folder;
  const std::string path = (folder.path() / "trace.json").string();
  trace t(path, 1, 1 << 20);
  t.add_transfer(ticks(), "read", 3);
  t.add_transfer(ticks(), "write", 5);
  t.add_transfer(ticks() + 1'000'000'000, "read", 4);  // by the clock of another processor
  for (int i = 0; i < 2; ++i) {
    CHECK(t.write() == 0);
    const std::string text = weft_test::slurp(path);
    for (const char* const values : {"3,\"written\":0", "3,\"written\":5", "7,\"written\":5"})
      CHECK_THAT(text, weft_test::contains(std::string("\"args\":{\"read\":") + values + "}"));
  }
}

TEST_CASE("a trace tells what is waited for, by name or address") {
  const weft_test::scratch folder;
  const std::string path = (folder.path() / "trace.json").string();
  trace t(path, 2, 1 << 20);
  trace_row& row = t.row(1);
  row.add(trace_kind::wait, ticks(), row.keep("a"),
          wait_place::pack(0, reinterpret_cast<void*>(0x7f00'1234)));
  row.add(trace_kind::wait, ticks(), row.keep("b"), wait_place::pack_named(1, row.keep("\"left\"")));
  row.add(trace_kind::wait, ticks(), row.keep("c"), wait_place::pack(1, nullptr));
  CHECK(t.write() == 0);
  std::ifstream in(path);
  std::vector<std::string> begins;
  for (std::string line; std::getline(in, line);)
    if (line.find("\"ph\":\"b\"") != std::string::npos) begins.push_back(line);
  REQUIRE(begins.size() == 3);
  CHECK_THAT(begins[0], weft_test::contains("\"tid\":0,\"name\":\"a\""));
  CHECK_THAT(begins[0], weft_test::contains("\"args\":{\"object\":\"0x7f001234\"}}"));
  CHECK_THAT(begins[1], weft_test::contains("\"tid\":1,\"name\":\"b\""));
  CHECK_THAT(begins[1], weft_test::contains("\"args\":{\"object\":\"\\\"left\\\"\"}}"));
  CHECK_THAT(begins[2], !weft_test::contains("args"));
}

TEST_CASE("each stolen task has an arrow from its fork, also those behind the first that a thief takes") {
  const weft_test::scratch folder;
  const std::string path = (folder.path() / "trace.json").string();
  trace t(path, 2, 1 << 20);
  trace_row& row = t.row(1);
  const std::uint64_t first = t.row(0).stamp(), second = first + (1u << fork_stamp::worker_bits);
  row.add(trace_kind::steal, ticks(), nullptr, first);
  for (const std::uint64_t fork : {first, second}) row.add(trace_kind::task, ticks(), row.keep("a"), fork);
  row.add(trace_kind::task, ticks(), row.keep("b"));  // as where it goes on behind a wait
  CHECK(t.write() == 0);
  std::ifstream in(path);
  std::vector<std::string> arrows;
  for (std::string line; std::getline(in, line);)
    if (line.find("\"cat\":\"arrow\"") != std::string::npos)
      arrows.push_back(line.substr(0, line.find(",\"ts\"")));
  const auto arrow = [](const char* phase, unsigned worker, std::uint64_t id) {
    return "{\"ph\":\"" + std::string(phase) + "\",\"pid\":" + std::to_string(::getpid()) +
           ",\"tid\":" + std::to_string(worker) +
           ",\"name\":\"stolen\",\"cat\":\"arrow\",\"bp\":\"e\",\"id\":" + std::to_string(id);
  };
  CHECK(arrows == std::vector<std::string>{arrow("t", 1, first), arrow("s", 0, first), arrow("f", 1, first),
                                           arrow("s", 0, second), arrow("f", 1, second)});
}

TEST_CASE("ticks grow as time does") {
  const moment from;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const moment to;
  const double rate = nanoseconds_per_tick(from, to);
  CHECK(static_cast<double>(to.at - from.at) * rate >= 20e6);
  CHECK(nanoseconds_per_tick(from, from) == 1.0);
}

TEST_CASE("what a trace does not hold any more is counted") {
  const weft_test::scratch folder;
  const std::string path = folder / "trace.json";
  const auto occurrences = [&path](const std::string& what) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    std::uint64_t n = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
    return n;
  };
  trace whole(path, 1, 1 << 20);
  trace_row& row = whole.row(0);
  constexpr std::uint64_t few = 1000, many = 100'000;
  for (std::uint64_t i = 0; i < few; ++i) row.add(trace_kind::task, ticks(), row.keep("some"));
  CHECK(whole.write() == 0);
  CHECK(occurrences("\"some\"") == few);
  CHECK(occurrences("\"dropped_records\":0}") == 1);
  for (std::uint64_t i = few; i < many; ++i) row.add(trace_kind::task, ticks(), row.keep("some"));
  CHECK(whole.write() == 0);
  const std::uint64_t left = occurrences("\"some\"");
  CHECK(left == many - row.ring().oldest());
  CHECK(occurrences("\"dropped_records\":" + std::to_string(many - left) + "}") == 1);
  CHECK(occurrences("\"tid\":0,\"name\":\"dropped_records\",\"args\":{\"count\":" +
                    std::to_string(many - left) + "}}") == 1);
}

TEST_CASE("the workers have most of the memory for records, whatever their number") {
  const weft_test::scratch folder;
  trace four((folder.path() / "trace.json").string(), 4, 1 << 20);
  for (unsigned worker = 0; worker <= 4; ++worker) {
    trace_row& row = four.row(worker);
    for (int i = 0; i < 50'000; ++i) row.add(trace_kind::search, ticks(), nullptr);
    const std::uint64_t left = row.ring().added() - row.ring().oldest();
    CHECK(left >= (worker < 4 ? (1u << 20) / 32 / 5 : 1000));
    CHECK(left <= (worker < 4 ? (1u << 20) / 32 / 4 : 3000));
  }
}

TEST_CASE("a trace that could not be written once is written the next time") {
  const weft_test::scratch folder;
  const std::string path = (folder.path() / "trace.json").string();
  trace t(path, 1, 1 << 20);
  for (int i = 0; i < 5000; ++i) t.row(0).add(trace_kind::task, ticks(), t.row(0).keep("some"));
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &usual) == 0);
  rlimit little = usual;
  little.rlim_cur = 20'000;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &little) == 0);
  const int error = t.write();
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &usual) == 0);
  std::signal(SIGXFSZ, before);
  CHECK(error == EFBIG);
  CHECK(t.write() == 0);
  const std::string text = weft_test::slurp(path);
  CHECK_THAT(text, Catch::Matchers::StartsWith("{\"displayTimeUnit\""));
  CHECK_THAT(text, Catch::Matchers::EndsWith("\"dropped_records\":0}}\n"));
}

TEST_CASE("each trace of a process has a file of its own") {
  const weft_test::scratch folder;
  const std::string path = (folder.path() / "a.b" / "trace.json").string();
  CHECK_THROWS_AS(trace_file(path), std::system_error);  // there is no such folder
  const std::string good = (folder.path() / "trace.json").string();
  const trace_file first(good), second(good);
  CHECK(first.path() == good);
  CHECK(second.path() == (folder.path() / "trace.2.json").string());
  const std::string bare = (folder.path() / "trace").string();
  const trace_file third(bare), fourth(bare);
  CHECK(fourth.path() == bare + ".2");
  const trace_file process((folder.path() / "%p.json").string());
  CHECK(process.path() == (folder.path() / (std::to_string(::getpid()) + ".json")).string());
  const trace_file device("/dev/null"), same("/dev/null");
  CHECK(same.path() == "/dev/null");
  // A name that was given already is not given again, by whatever way it comes about.
  const trace_file taken((folder.path() / "a.2.json").string());
  const std::string plain = (folder.path() / "a.json").string();
  const trace_file one(plain), another(plain);
  CHECK(one.path() == plain);
  CHECK(another.path() == (folder.path() / "a.3.json").string());
  // One that was refused is free.
  REQUIRE(::mkdir((folder.path() / "a.b").c_str(), 0700) == 0);
  CHECK(trace_file(path).path() == path);
}
