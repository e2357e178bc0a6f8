// SPDX-License-Identifier: BSL-1.0
// Writes the stream that kill_test.py knows, with nested tasks, and recovers what is left of it.
// usage: kill_writer write <path> plain|segmented <records>, which prints each commit as a line
//        kill_writer recover <path> <copy>, which prints how many bytes are left, or -1, and copies them
#include <weft/append.hpp>
#include <weft/weft.hpp>

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <thread>

namespace {

/// Record i: its number in 12 digits, a space, and i * i mod 9001 bytes of a table.
class records {
 public:
  records() {
    std::uint32_t x = 1;
    for (char& c : table_) {
      x = (x * 1103515245u + 12345u) & 0x7fffffffu;
      c = static_cast<char>(x >> 16);
    }
  }
  void write(std::uint64_t i, weft::append out) const {
    std::array<char, 32> number;
    out.write(
        std::string_view(number.data(), std::size_t(std::snprintf(number.data(), number.size(), "%012llu ",
                                                                  static_cast<unsigned long long>(i)))));
    out.write(std::string_view(table_.data() + i * 7919 % 8192, i * i % 9001));
  }

 private:
  std::array<char, 32768> table_;
};

const records all_records;

/// Uneven halves; some tasks take their time, and some that append nothing are waited for.
void span(std::uint64_t first, std::uint64_t last, weft::append out) {
  using namespace std::chrono_literals;
  if (last - first <= 6) {
    if (first % 512 < 6) std::this_thread::sleep_for(first == 0 ? 10ms : 200us);
    for (std::uint64_t i = first; i < last; ++i) all_records.write(i, out);
    return;
  }
  const std::uint64_t middle = first + (last - first) / 3;
  weft::fork(span, first, middle, out);
  all_records.write(middle, out);
  weft::fork([] { std::this_thread::yield(); });
  weft::fork(span, middle + 1, last, out);
}

int write_stream(const std::string& path, const std::string& layout, std::uint64_t count) {
  const bool plain = layout == "plain";
  // Deferred tasks append behind their parents, which makes segments.
  weft::runtime rt({.workers = 4, .inlining = plain});
  weft::append_file file(path, {.layout = plain ? weft::append_layout::plain : weft::append_layout::segmented,
                                .memory = std::size_t{4} << 20,
                                .buffer = plain ? std::size_t{1} << 16 : 4096,
                                .commit_every = std::uint64_t{1} << 18,
                                .sync = false});
  std::jthread reporter([&file](const std::stop_token& stop) {
    for (std::uint64_t told = 0; !stop.stop_requested(); std::this_thread::yield()) {
      const std::uint64_t now = file.committed();
      if (now == told) continue;
      told = now;
      const std::string line = std::to_string(now) + '\n';
      if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::abort();
    }
  });
  rt.run(span, std::uint64_t{0}, count, file);
  file.close();
  return 0;
}

int recover_stream(const std::string& path, const std::string& copy) {
  try {
    const weft::recovered kept = weft::recover(path);
    const weft::append_reader reader(path);
    reader.verify();
    reader.export_plain(copy);
    std::printf("%llu\n", static_cast<unsigned long long>(kept.bytes));
  } catch (const weft::error& e) {
    std::printf("-1 %s\n", e.what());
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) try {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "write" && count == 5)
    return write_stream(arguments[2], arguments[3], std::strtoull(arguments[4], nullptr, 10));
  if (what == "recover" && count == 4) return recover_stream(arguments[2], arguments[3]);
  return 2;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
