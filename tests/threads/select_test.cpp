// SPDX-License-Identifier: BSL-1.0
// Waits at several channels: one case is done, once, nothing is lost, and everybody has his turn.
#include "flow/runtimes.hpp"
#include "support/random.hpp"

#include <weft/threads.hpp>

#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using weft::on_receive;
using weft::on_send;
using weft_test::on_each_runtime;

TEST_CASE("select does the case that is possible, and waits where none is") {
  on_each_runtime([](weft::runtime& rt) {
    weft::channel<int> a(1), b(1), full(1);
    full.push(0);
    std::vector<int> got;
    rt.run([&] {
      weft::spawn([&] {
        for (int i = 0; i < 3; ++i) {
          const auto at = weft::select(on_receive(a, [&](std::optional<int> v) { got.push_back(*v); }),
                                       on_receive(b, [&](std::optional<int> v) { got.push_back(-*v); }),
                                       on_send(full, 7, [&](bool sent) { got.push_back(sent ? 100 : 0); }));
          got.push_back(static_cast<int>(at));
        }
      });
      a.push(1);
      weft_test::wait_until([&] {
        weft::this_task::sleep_for(20us);
        return rt.describe().find("one of several channels") != std::string::npos;
      });
      b.push(2);
      weft_test::wait_until([&] {
        weft::this_task::sleep_for(20us);
        return rt.describe().find("one of several channels") != std::string::npos;
      });
      CHECK(full.pop() == 0);
      CHECK(full.pop() == 7);
    });
    CHECK(got == std::vector<int>{1, 0, -2, 1, 100, 2});
    CHECK(rt.counters().suspensions > 0);
  });
}

TEST_CASE("of several cases that are possible each is chosen about equally often") {
  weft::channel<int> a(1000), b(1000), c(1000);
  for (int i = 0; i < 1000; ++i) a.push(0), b.push(1), c.push(2);
  std::array<int, 3> count{};
  for (int i = 0; i < 600; ++i) {
    const auto at = weft::try_select(on_receive(a), on_receive(b), on_receive(c));
    REQUIRE(at.has_value());
    ++count[*at];
    if (i % 2 == 0) weft::try_select(on_receive(a), on_receive(b));  // must not spoil the turns
  }
  for (const int n : count) CHECK((n > 150 && n < 250));
}

TEST_CASE("an item whose case is not chosen is as it was, and closed channels are always possible") {
  weft::channel<std::unique_ptr<int>> full(1), closed(1);
  weft::channel<int> empty(1);
  full.push(std::make_unique<int>(1));
  auto item = std::make_unique<int>(2);
  CHECK_FALSE(weft::try_select(on_send(full, std::move(item)), on_receive(empty)).has_value());
  CHECK(item != nullptr);
  CHECK_FALSE(weft::select_for(1ms, on_send(full, std::move(item)), on_receive(empty)).has_value());
  CHECK(item != nullptr);
  const auto before = std::chrono::steady_clock::now();
  CHECK_FALSE(weft::select_until(before + 2ms, on_receive(empty)).has_value());
  CHECK(std::chrono::steady_clock::now() - before >= 2ms);
  closed.close();
  bool sent = true, received = true;
  CHECK(weft::select(on_receive(empty), on_send(closed, std::move(item), [&](bool s) { sent = s; })) == 1);
  CHECK_FALSE(sent);
  CHECK(item != nullptr);
  CHECK(weft::select(on_receive(empty), on_receive(closed, [&](std::optional<std::unique_ptr<int>> i) {
                       received = i.has_value();
                     })) == 1);
  CHECK_FALSE(received);
  CHECK(full.pop().has_value());
  CHECK(weft::select(on_send(full, std::move(item))) == 0);
  CHECK(item == nullptr);
  const int copied = 3;
  CHECK(weft::select(on_send(empty, copied)) == 0);
  CHECK(empty.pop() == 3);
}

TEST_CASE("close continues those who select, inside and outside of tasks") {
  on_each_runtime([](weft::runtime& rt) {
    weft::channel<int> a(1), b(1);
    std::atomic<int> ended{0};
    const auto wait = [&] {
      weft::select(on_receive(a, [&](std::optional<int> v) { ended += !v.has_value(); }), on_receive(b));
    };
    std::thread outside(wait);
    rt.run([&] {
      for (int i = 0; i < 3; ++i) weft::spawn(wait);
      weft::this_task::sleep_for(50us);
      a.close();
    });
    outside.join();
    CHECK(ended == 4);
    // Nobody is left in the list of the other channel.
    b.push(1);
    CHECK(b.pop() == 1);
  });
}

TEST_CASE("what many select and many send arrives once, whatever the time limits") {
  on_each_runtime([](weft::runtime& rt) {
    constexpr int senders = 4, each = 100, channels = 3;
    weft::channel<int> c[channels] = {weft::channel<int>(1), weft::channel<int>(2), weft::channel<int>(1)};
    std::atomic<long> sum{0}, count{0};
    std::atomic<int> sending{senders + 1};
    const auto send = [&](int seed) {
      weft_test::random random(static_cast<std::uint64_t>(seed) + 1);
      for (int i = 0; i < each; ++i) {
        const int v = seed * each + i;
        for (;;) {
          const auto at = weft::select_for(std::chrono::nanoseconds(random.below(30'000)), on_send(c[0], v),
                                           on_send(c[1], v), on_send(c[2], v));
          if (at.has_value()) break;
        }
      }
      if (--sending == 0)
        for (auto& k : c) k.close();
    };
    const auto receive = [&] {
      bool open[channels] = {true, true, true};
      const auto take = [&](std::size_t k) {
        return [&, k](std::optional<int> v) {
          if (!v)
            open[k] = false;
          else
            sum += *v, ++count;
        };
      };
      while (open[0] && open[1] && open[2])
        weft::select(on_receive(c[0], take(0)), on_receive(c[1], take(1)), on_receive(c[2], take(2)));
      for (std::size_t k = 0; k < channels; ++k)
        while (open[k]) take(k)(c[k].pop());
    };
    std::thread outside[] = {std::thread([&] { send(senders); }), std::thread(receive)};
    rt.run([&] {
      for (int s = 0; s < senders; ++s) weft::spawn([&, s] { send(s); });
      for (int r = 0; r < 3; ++r) weft::spawn(receive);
    });
    for (auto& t : outside) t.join();
    constexpr long total = (senders + 1) * each;
    CHECK(count == total);
    CHECK(sum == total * (total - 1) / 2);
  });
}

TEST_CASE("a chain of bodies that select passes items both ways") {
  on_each_runtime([](weft::runtime& rt) {
    constexpr int n = 5, items = 50;
    std::vector<std::unique_ptr<weft::channel<int>>> up, down;
    for (int i = 0; i <= n; ++i) {
      up.push_back(std::make_unique<weft::channel<int>>(1));
      down.push_back(std::make_unique<weft::channel<int>>(1));
    }
    int got = 0;
    rt.run([&] {
      for (std::size_t i = 0; i < n; ++i)
        weft::spawn([&, i] {
          std::vector<int> to_up, to_down;
          for (int ends = 0; ends < 2 || !to_up.empty() || !to_down.empty();) {
            const auto receive = [&](std::vector<int>& into) {
              return [&](std::optional<int> v) { into.push_back(*v), ends += *v == items - 1; };
            };
            const auto pass = [](std::vector<int>& from) { return [&](bool) { from.erase(from.begin()); }; };
            auto from_below = [&] { return on_receive(*up[i], receive(to_up)); };
            auto from_above = [&] { return on_receive(*down[i + 1], receive(to_down)); };
            auto above = [&] { return on_send(*up[i + 1], to_up.front(), pass(to_up)); };
            auto below = [&] { return on_send(*down[i], to_down.front(), pass(to_down)); };
            if (to_up.empty() && to_down.empty())
              weft::select(from_below(), from_above());
            else if (to_up.empty())
              weft::select(from_below(), from_above(), below());
            else if (to_down.empty())
              weft::select(from_below(), from_above(), above());
            else
              weft::select(from_below(), from_above(), above(), below());
          }
        });
      weft::spawn([&] {
        for (int i = 0; i < items; ++i) up[0]->push(i);
      });
      weft::spawn([&] {
        for (int i = 0; i < items; ++i) down[n]->push(i);
      });
      for (int i = 0; i < 2 * items; ++i)
        weft::select(on_receive(*up[n], [&](auto v) { got += *v; }),
                     on_receive(*down[0], [&](auto v) { got += *v; }));
    });
    CHECK(got == items * (items - 1));
  });
}

TEST_CASE("the stop of a run ends a select, and takes no item") {
  on_each_runtime([](weft::runtime& rt) {
    weft::channel<int> empty(1), full(1);
    full.push(1);
    std::atomic<int> begun{0}, cancelled{0};
    CHECK_THROWS_AS(rt.run([&] {
      for (int i = 0; i < 3; ++i)
        weft::spawn([&] {
          ++begun;
          try {
            weft::select(on_receive(empty), on_send(full, 2));
          } catch (const weft::cancelled&) {
            ++cancelled;
            throw;
          }
        });
      while (begun < 3) weft::this_task::sleep_for(100us);
      weft::this_task::request_stop();
    }),
                    weft::cancelled);
    CHECK(cancelled == 3);
    CHECK(full.pop() == 1);
    CHECK_FALSE(full.try_pop().has_value());
    CHECK_FALSE(empty.try_pop().has_value());
  });
}

namespace {

struct fragile {
  explicit fragile(int n) : value(n) {}
  fragile(fragile&& other) : value(other.value) {
    if (value < 0) throw std::runtime_error("cannot be moved");
  }
  fragile& operator=(fragile&&) = default;
  int value;
};

}  // namespace

TEST_CASE("what moving an item throws is thrown where that item is sent or received") {
  on_each_runtime([](weft::runtime& rt) {
    weft::channel<fragile> items(1);
    std::atomic<int> failed{0};
    rt.run([&] {
      items.push(fragile(1));
      weft::spawn([&] {
        fragile bad(2);
        bad.value = -1;
        try {
          weft::select(on_send(items, std::move(bad)));  // waits, and fails when there is room
        } catch (const std::runtime_error&) {
          ++failed;
        }
      });
      weft::this_task::sleep_for(50us);
      CHECK(items.pop()->value == 1);
    });
    CHECK(failed == 1);
    CHECK_FALSE(items.try_pop().has_value());
  });
}
