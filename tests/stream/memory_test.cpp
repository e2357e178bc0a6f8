// SPDX-License-Identifier: BSL-1.0
// The memory of a process whose first task is late, while the others append much more than memory may hold.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/environment.hpp"
#include "support/scratch.hpp"

#include <weft/append.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <string>
#include <thread>

namespace {

constexpr std::size_t piece_size = 100'000;

void make_piece(std::size_t i, std::string& to) {
  to = std::to_string(i) + ' ';
  to.append(piece_size - to.size(), char('a' + i % 26));
}

/// The largest amount of memory that this process has had, in KiB.
long peak() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      long size = 0;
      status >> size;
      return size;
    }
  return -1;
}

}  // namespace

TEST_CASE("with the first task blocked, a process needs less than 96 MiB, and no byte is lost") {
  const std::size_t pieces = (weft_test::long_run() ? 2'000'000'000 : 300'000'000) / piece_size;
  const weft_test::scratch dir;
  const auto child = weft_test::run_in_child([&] {
    weft::runtime rt({.workers = 3});
    weft::append_file file(dir / "out", {.sync = false});
    std::atomic<std::size_t> made{0};
    rt.run(
        [&](weft::append out) {
          weft::fork(
              [&](weft::append to) {
                while (made != pieces) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                to.write("first ");
              },
              out);
          for (std::size_t i = 0; i < pieces; ++i)
            weft::fork(
                [&made, i](weft::append to) {
                  std::string text;
                  make_piece(i, text);
                  to.write(text);
                  ++made;
                },
                out);
        },
        file);
    const auto spilled = file.spilled();
    file.close();
    std::printf("%ld %llu\n", peak(), static_cast<unsigned long long>(spilled));
  });
  INFO(child.output);
  REQUIRE(child.exit_code == 0);
  long memory = 0;
  unsigned long long spilled = 0;
  REQUIRE(std::sscanf(child.output.c_str(), "%ld %llu", &memory, &spilled) == 2);
  CHECK(spilled > 200'000'000);
  if (weft_test::scale() == 1) {  // a sanitizer has memory of its own
    CHECK(memory < 96 * 1024);
    std::printf("ceiling blocked_stream_memory %ld\n", memory / 1024);
  }

  std::ifstream in(dir / "out", std::ios::binary);
  std::string text(6, ' '), expected;
  in.read(text.data(), 6);
  CHECK(text == "first ");
  text.resize(piece_size);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < pieces; ++i) {
    in.read(text.data(), static_cast<std::streamsize>(piece_size));
    make_piece(i, expected);
    wrong += !in || text != expected;
  }
  CHECK(wrong == 0);
  CHECK(in.peek() == std::ifstream::traits_type::eof());
}
