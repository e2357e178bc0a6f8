// SPDX-License-Identifier: BSL-1.0
// Memory runs out while tasks append to streams, and read them: every failure is reported, nothing hangs or
// leaks, and no file has wrong bytes under its name.
#include "fault/failing_allocations.hpp"
#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/figure.hpp"
#include "support/scratch.hpp"

#include <weft/append.hpp>
#include <weft/weft.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace {

constexpr int depth = 5;
const std::string line(700, '.');

void serial(int d, int id, std::string& out) {
  out += std::to_string(id) + line;
  if (d == 0) return;
  serial(d - 1, 2 * id, out);
  out += '-';
  serial(d - 1, 2 * id + 1, out);
  out += '|' + std::to_string(id % 7) + ')';
}

/// Nested tasks, some that append nothing, a function that is called in order, and tasks that read.
void tree(int d, int id, bool reads, weft::append out) {
  out.stream() << id;
  out.write(line);
  if (d == 0) return;
  weft::fork(tree, d - 1, 2 * id, reads, out);
  weft::fork([] {});
  if (reads)
    weft::fork([](weft::stream_reader in) { in.seek(1); }, weft::read(out, weft::file_pointer::global));
  out.write("-");
  weft::fork(tree, d - 1, 2 * id + 1, reads, out);
  if (reads)
    weft::fork(
        [](weft::stream_reader in, weft::append to) {
          char first = 0;
          in.read(std::as_writable_bytes(std::span(&first, 1)));
          to.write(first == '1' ? "|" : "wrong");
        },
        weft::read(out), out);
  else
    out.write("|");
  out.finalise([id](weft::append_tail& tail) {
    const char digit = static_cast<char>('0' + id % 7);
    tail.write(std::string_view(&digit, 1));
  });
  out.write(")");
}

}  // namespace

TEST_CASE("an allocation may fail while tasks append, and while a stream is opened and closed") {
  if (!replaced) return;
  std::string expected;
  serial(depth, 1, expected);
  const auto contents = [](const std::string& path) {
    armed = false;
    const weft::append_reader reader(path);
    std::string all(reader.size(), ' ');
    reader.pread(std::as_writable_bytes(std::span(all)), 0);
    return all;
  };
  long points = 0;
  for (const bool from_then_on : {false, true})
    for (const unsigned workers : {1u, 3u})
      for (const bool segmented : {false, true})
        for (const bool reads : {false, true})
          for (const bool keeps : {false, true}) {
            INFO(workers << " workers, segmented " << segmented << ", reads " << reads << ", keeps "
                         << keeps);
            const weft_test::scratch dir;
            const std::string path = dir / "out";
            weft::runtime rt({.workers = workers, .inlining = workers == 1});
            const auto everything = [&] {
              weft::append_file file(
                  path, {.layout = segmented ? weft::append_layout::segmented : weft::append_layout::plain,
                         .overwrite = true,
                         .readable = reads,
                         .memory = 1 << 13,
                         .buffer = 4096,
                         .commit_every = 1 << 13,
                         .sync = false});
              bool all = true;
              try {
                rt.run(tree, depth, 1, reads, file);
              } catch (const std::bad_alloc&) {
                if (!keeps) throw;
                all = false;  // what the serial program would have written before
              }
              file.close();
              if (!all) throw std::bad_alloc();
              return contents(path) == expected;
            };
            REQUIRE(everything());
            std::filesystem::remove(path);
            points += fail_each(from_then_on, everything, [&](long) {
              if (std::filesystem::exists(path)) {
                const std::string all = contents(path);
                CHECK((keeps ? expected.substr(0, all.size()) : expected) == all);
                std::filesystem::remove(path);
              }
              CHECK(weft_test::works(rt));
            });
          }
  weft_test::figure("allocation_faults", static_cast<std::uint64_t>(points));
  CHECK(points >= 100);
}
