// SPDX-License-Identifier: BSL-1.0
// Batches on their way to a layout that takes them in any order: where each goes, and what is told of it.
#include "support/catch.hpp"

#include <weft/stream/detail/dispatcher.hpp>

#include <atomic>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

using weft::stream::batch;

/// Keeps the bytes; takes its time for those of one offset, and fails at another.
class slow_layout final : public weft::stream::stream_layout {
 public:
  std::uint64_t slow_at = UINT64_MAX, fail_at = UINT64_MAX;
  std::atomic<bool> begun{false}, may_end{false};
  std::string bytes = std::string(100, '.');
  std::vector<std::pair<std::uint64_t, std::uint32_t>> told;

  bool in_any_order() const noexcept override { return true; }
  std::uint32_t place_at(std::span<const weft::stream::piece> pieces, std::uint64_t at) override {
    if (at == fail_at) throw std::system_error(EIO, std::generic_category());
    if (at == slow_at && !begun.exchange(true)) {
      while (!may_end) std::this_thread::yield();
    }
    std::uint32_t crc = 0;
    for (const auto& p : pieces) {
      bytes.replace(at, p.size, reinterpret_cast<const char*>(p.data), p.size);
      crc = weft::io::crc32c(p.data, p.size, crc);
      at += p.size;
    }
    return crc;
  }
  void placed(std::uint64_t size, std::uint32_t crc) override { told.emplace_back(size, crc); }
  void finish() override {}
};

/// A dispatcher, with batches of ten letters.
struct post {
  slow_layout layout;
  weft::stream::memory_pool pool{4096};
  weft::stream::buffer_table worker_buffers{pool, layout, 1 << 20, "unused"};
  weft::stream::first_failure failure;
  weft::stream::dispatcher dispatch{layout, worker_buffers, failure};
  std::string text = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN";

  void add_all() {
    for (std::uint64_t at = 0; at != text.size(); at += 10) {
      batch b;
      b.pieces.push_back({reinterpret_cast<const std::byte*>(text.data()) + at, 10, nullptr, 0, 0});
      b.begin = at;
      b.size = 10;
      dispatch.add(std::move(b));
    }
  }
  std::pair<std::uint64_t, std::uint32_t> first(std::size_t n) const {
    return {n, weft::io::crc32c(text.data(), n)};
  }
};

}  // namespace

TEST_CASE("batches are placed where they belong while one before them takes its time, and told behind it") {
  post p;
  p.layout.slow_at = 10;
  p.add_all();
  REQUIRE(p.dispatch.help());
  CHECK(p.layout.told == std::vector{p.first(10)});
  std::atomic<bool> ended{false};
  std::jthread slow([&] {
    p.dispatch.help();
    ended = true;
  });
  while (!p.layout.begun && !ended) std::this_thread::yield();
  REQUIRE_FALSE(ended);
  REQUIRE(p.dispatch.help());
  REQUIRE(p.dispatch.help());
  CHECK_FALSE(p.dispatch.help());
  CHECK(p.layout.told.size() == 1);
  CHECK(p.layout.bytes.substr(20, 20) == p.text.substr(20));
  p.layout.may_end = true;
  slow.join();
  CHECK(p.layout.told == std::vector{p.first(10), p.first(40)});
  CHECK(p.layout.bytes.substr(0, 40) == p.text);
}

TEST_CASE("nothing behind a batch that could not be placed is told, or tried") {
  post p;
  p.layout.fail_at = 20;
  p.add_all();
  p.dispatch.drain();
  CHECK(p.layout.told.back() == p.first(20));
  CHECK(p.layout.bytes.substr(0, 40) == p.text.substr(0, 20) + std::string(20, '.'));
  CHECK_THROWS_AS(p.failure.rethrow(), std::system_error);
}
