// SPDX-License-Identifier: BSL-1.0
// When the processes of a cluster owe each other a beat, and when one of them is silent.
#include "support/catch.hpp"

#include <weft/cluster/detail/pulse.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using weft::remote::process_tree;
using weft::remote::pulse;

namespace {

/// A pulse with a clock that the test drives.
class driven {
 public:
  driven(int rank, int size, pulse::duration limit) : pulse_({rank, size}, limit) { pulse_.begin(now_); }
  pulse& operator*() noexcept { return pulse_; }
  /// Looks every millisecond until this time after the beginning, or until a process is silent. *Returns*:
  /// that process, or -1.
  int until(pulse::duration end) {
    while (time() < end) {
      now_ += 1ms;
      const int silent = look();
      if (silent >= 0) return silent;
    }
    return -1;
  }
  /// As `until`; meanwhile this process has heard each of these every 10 ms.
  int until(pulse::duration end, const std::vector<int>& alive) {
    while (time() < end) {
      for (const int p : alive) pulse_.heard(p);
      const int silent = until(time() + 10ms);
      if (silent >= 0) return silent;
    }
    return -1;
  }
  /// Time passes, in which this process does nothing.
  void suspended(pulse::duration d) noexcept { now_ += d; }
  int look() {
    return pulse_.look(now_, [this](int to) { beats_.emplace_back(to, time()); });
  }
  pulse::duration time() const noexcept { return now_ - begin_; }
  /// Beats since the last call.
  std::vector<std::pair<int, pulse::duration>> beats() { return std::exchange(beats_, {}); }
  void begin() { pulse_.begin(begin_ = now_); }

 private:
  pulse::time_point begin_ = pulse::time_point{} + 1h, now_ = begin_;
  pulse pulse_;
  std::vector<std::pair<int, pulse::duration>> beats_;
};

}  // namespace

TEST_CASE("without a limit nobody is watched") {
  driven p(0, 3, 0s);
  (*p).heard(1);
  p.suspended(24h);
  CHECK(p.until(24h + 1s) == -1);
  CHECK(p.beats().empty());
}

TEST_CASE("beats go up and down, the first after a second, the next after a third of the limit") {
  driven p(1, 40, 30s);  // below process 0, above 9 to 16
  CHECK(p.until(999ms) == -1);
  CHECK(p.beats().empty());
  p.until(1300ms);
  std::vector<int> to;
  for (const auto& [process, at] : p.beats()) to.push_back(process);
  CHECK(to == std::vector<int>{0, 9, 10, 11, 12, 13, 14, 15, 16});
  p.until(10900ms);
  CHECK(p.beats().empty());
  p.until(11600ms);
  CHECK(p.beats().size() == 9);
}

TEST_CASE("where the limit is short, the first beat comes after a third of it") {
  driven p(0, 2, 300ms);
  p.until(99ms);
  CHECK(p.beats().empty());
  p.until(110ms);
  CHECK(p.beats().size() == 1);
}

TEST_CASE("whoever has been sent something else is owed no beat") {
  driven p(0, 3, 300ms);
  for (pulse::duration t = 50ms; t <= 1s; t += 50ms) {
    (*p).sent(1);
    (*p).sent(2000);  // no neighbour
    p.until(t);
  }
  int to_2 = 0;
  for (const auto& [process, at] : p.beats()) {
    CHECK(process == 2);
    ++to_2;
  }
  CHECK(to_2 >= 8);
  CHECK(to_2 <= 10);
}

TEST_CASE("the messages of an idle hour are few") {
  driven p(0, 9, 5min);
  std::vector<int> others{1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(p.until(1h, others) == -1);
  const auto beats = p.beats();
  CHECK(beats.size() >= 8 * 35);
  CHECK(beats.size() <= 8 * 37);
}

TEST_CASE("a silent process below is named when the limit is over") {
  driven p(0, 4, 300ms);
  for (const int below : {1, 2, 3}) (*p).heard(below);
  CHECK(p.until(1s, {1, 3}) == 2);
  CHECK(p.time() >= 300ms);
  CHECK(p.time() <= 320ms);
}

TEST_CASE("a silent process above is named, by its children one after the other") {
  std::vector<pulse::duration> when;
  for (int rank = 1; rank <= 8; ++rank) {
    driven p(rank, 100, 1600ms);
    (*p).heard(0);
    REQUIRE(p.until(10s) == 0);
    when.push_back(p.time());
  }
  for (std::size_t i = 0; i < when.size(); ++i) {
    CHECK(when[i] > 1600ms + (i + 1) * 100ms);
    CHECK(when[i] < 1600ms + (i + 1) * 100ms + 60ms);
  }
  driven second(10, 100, 1600ms);  // the second one of process 1
  (*second).heard(1);
  (*second).heard(3);  // no neighbour
  CHECK(second.until(10s) == 1);
  CHECK(second.time() > 1800ms);
  CHECK(second.time() < 1860ms);
}

TEST_CASE("a process that has not begun the run is waited for, in each run anew") {
  driven p(0, 2, 300ms);
  CHECK(p.until(10s) == -1);
  (*p).heard(1);
  CHECK(p.until(20s) == 1);
  p.begin();
  CHECK(p.until(10s) == -1);
  (*p).heard(1);
  CHECK(p.until(20s) == 1);
}

TEST_CASE("a process that was suspended itself blames nobody for that time") {
  driven p(0, 2, 300ms);
  (*p).heard(1);
  CHECK(p.until(100ms) == -1);
  p.suspended(10s);
  CHECK(p.look() == -1);
  CHECK(p.until(p.time() + 290ms) == -1);
  CHECK(p.until(p.time() + 1s) == 1);
}
