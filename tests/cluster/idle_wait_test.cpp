// SPDX-License-Identifier: BSL-1.0
// How long the thread that serves waits, by what it has to run on.
#include "support/catch.hpp"

#include <weft/cluster/detail/idle_wait.hpp>

#include <functional>
#include <string>
#include <utility>

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using weft::remote::idle_wait;
using weft::remote::processor_room;

namespace {

/// Notes what it is asked to wait.
class noting final : public weft::remote::transport {
 public:
  explicit noting(const processor_room& p) : processors_(p) {}
  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return 2; }
  processor_room processors() const noexcept override { return processors_; }
  std::size_t longest() const noexcept override { return 0; }
  void send(int, weft::remote::bytes, std::function<void()>) override {}
  int receive(weft::remote::bytes&) override { return -1; }
  bool moves() const noexcept override { return moving; }
  void wait(nanoseconds at_most) override { waited = at_most; }
  void wake() noexcept override {}
  void fail(const std::string&) noexcept override {}

  nanoseconds waited{};
  bool moving = false;

 private:
  processor_room processors_;
};

/// The time of a wait of a process with these processors and two workers; 0 if it yields.
nanoseconds wait_of(const processor_room& p, nanoseconds quiet, bool eager, bool moving = false) {
  noting by(p);
  by.moving = moving;
  idle_wait(by, 2, 400us)(quiet, eager);
  return by.waited;
}

}  // namespace

TEST_CASE("a process without a processor for the thread that serves sleeps at once", "[cluster]") {
  for (const double share : {1.0, 2.0}) {
    CHECK(wait_of({2, share}, 0us, true) == 20us);
    CHECK(wait_of({2, share}, 0us, false) == 20us);
    CHECK(wait_of({2, share}, 200us, true) == 50us);
    CHECK(wait_of({2, share}, 1h, true) == 100us);
    CHECK(wait_of({2, share}, 1h, false) == 400us);
  }
}

TEST_CASE("with processors that others may use, too, it yields for a while", "[cluster]") {
  for (const processor_room& p : {processor_room{}, processor_room{3, 2.5}, processor_room{8, 1}}) {
    CHECK(wait_of(p, 199us, true) == 0us);
    CHECK(wait_of(p, 19us, false) == 0us);
    CHECK(wait_of(p, 200us, true) == 50us);
    CHECK(wait_of(p, 20us, false) == 5us);
    CHECK(wait_of(p, 1h, true) == 100us);
    CHECK(wait_of(p, 1h, false) == 400us);
  }
}

TEST_CASE("with one that no worker needs, it answers at once", "[cluster]") {
  CHECK(wait_of({3, 3}, 9ms, false) == 0us);
  CHECK(wait_of({8, 3}, 9ms, true) == 0us);
  CHECK(wait_of({3, 3}, 10ms, false) == 400us);
}

TEST_CASE("it is eager while a message is on its way", "[cluster]") {
  CHECK(wait_of({3, 2}, 100us, false, true) == 0us);
  CHECK(wait_of({3, 2}, 1h, false, true) == 100us);
}
