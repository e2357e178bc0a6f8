// SPDX-License-Identifier: BSL-1.0
// Scenes of bodies that wait for one another: strands that are kept, calls that block, shares of the workers.
#include "scene.hpp"

#include <weft/threads.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>
#include <string>

using simulation::dawdle;
using simulation::differs;
using simulation::play;
using simulation::step;
using weft::base::atomic;

namespace {

constexpr unsigned usual_cap = 1u << 14;
/// A scene that passes more points than this one does not end.
constexpr std::uint64_t soon = 3'000'000;

/// Keeps the worker busy until the flag is set.
void stay_until(const atomic<bool>& flag) {
  while (!flag.load()) simulation::give_way(true);
}

/// Takes its time, and notes in `most` how many do so at once.
void stay(atomic<int>& inside, atomic<int>& most) {
  const int now = inside.fetch_add(1) + 1;
  if (now > most.load()) most.store(now);  // too small at times, never too large
  dawdle(3);
  inside.fetch_sub(1);
}

}  // namespace

TEST_CASE("scene: a body that waits for an earlier task does not have it in its own batch") {
  const auto seen = play(
      [](weft::runtime& rt) {
        constexpr int rounds = 16;
        weft::condition<int> done(0);
        long x = 1, want = 1;
        rt.run([&] {
          for (int k = 0; k < rounds; ++k) {
            weft::fork([k](long& v) { v = step(v, k); }, weft::update(weft::borrow(x)));
            weft::fork([k, &done](const long&) { done.set(k + 1); }, weft::update(weft::borrow(x)));
            weft::fork([k, &done] { done.wait([k](int now) { return now > k; }); });
          }
        });
        for (int k = 0; k < rounds; ++k) want = step(want, k);
        return differs("the value", x, want);
      },
      usual_cap, soon);
  CHECK(seen.promotions > 0);
  CHECK(seen.suspensions > 0);
}

TEST_CASE("scene: bodies take turns through a condition") {
  const auto seen = play([](weft::runtime& rt) {
    constexpr int bodies = 3, rounds = 4;
    weft::condition<int> turn(0);
    long value = 1;
    rt.run([&] {
      for (int me = 0; me < bodies; ++me)
        weft::spawn([&, me] {
          for (int k = 0; k < rounds; ++k) {
            turn.wait_equal(k * bodies + me);
            value = step(value, me);
            turn.set(k * bodies + me + 1);
          }
        });
    });
    long want = 1;
    for (int i = 0; i < bodies * rounds; ++i) want = step(want, i % bodies);
    return differs("the value", value, want);
  });
  CHECK(seen.suspensions > 0);
}

TEST_CASE("scene: a body made ready by one that stays goes on elsewhere") {
  const auto seen = play(
      [](weft::runtime& rt) {
        weft::condition<int> stage(0);
        atomic<bool> gone_on{false};
        rt.run([&] {
          weft::spawn([&] {
            stage.wait_equal(1);
            gone_on.store(true);
          });
          weft::spawn([&] {
            dawdle(500);  // all other workers may sleep by then
            stage.set(1);
            stay_until(gone_on);
          });
        });
        return std::string();
      },
      usual_cap, soon);
  CHECK(seen.sleeps > 0);
  CHECK(seen.suspensions > 0);
}

TEST_CASE("scene: calls that block do so at the same time, and their bodies go on") {
  const auto seen = play(
      [](weft::runtime& rt) {
        constexpr int calls = 6;  // more than threads that stay for later ones
        atomic<int> begun{0};
        long sum = 0;
        weft::mutex door;
        rt.run([&] {
          for (int i = 0; i < calls; ++i)
            weft::spawn([&, i] {
              weft::this_task::blocking([&] {
                begun.fetch_add(1);
                while (begun.load() < calls) simulation::give_way(true);
              });
              const int again = weft::this_task::blocking([i] { return i; });
              const std::lock_guard hold(door);
              sum += again;
            });
        });
        return differs("the sum", sum, calls * (calls - 1) / 2);
      },
      usual_cap, soon);
  CHECK(seen.suspensions > 0);
}

TEST_CASE("scene: who has a mutex last destroys it, and nobody touches it any more") {
  const auto seen = play(
      [](weft::runtime& rt) {
        constexpr auto used = std::byte{0x5a};
        struct door {
          alignas(weft::mutex) std::array<std::byte, sizeof(weft::mutex)> place;
          weft::mutex& lock = *new (place.data()) weft::mutex;
          int left = 3;
        };
        std::array<door, 24> doors;
        rt.run([&] {
          for (door& d : doors)
            for (int i = d.left; i > 0; --i)
              weft::spawn([&] {
                d.lock.lock();
                const bool last = --d.left == 0;
                d.lock.unlock();
                if (!last) return;
                d.lock.~mutex();
                d.place.fill(used);
              });
        });
        long touched = 0;
        for (const door& d : doors)
          touched += std::count_if(d.place.begin(), d.place.end(), [](std::byte b) { return b != used; });
        return differs("the number of bytes touched", touched, 0);
      },
      usual_cap, soon, 6);
  CHECK(seen.suspensions > 0);
}

TEST_CASE("scene: a share of the workers is not exceeded, and nobody waits for ever") {
  const auto seen = play(
      [](weft::runtime& rt) {
        for (const int share : {1, 2}) {
          atomic<int> inside{0}, most{0};
          weft::shared<long> chain(1L);
          rt.run({.workers = static_cast<unsigned>(share)}, [&] {
            weft::condition<int> turn(0);
            for (int me = 0; me < 3; ++me)
              weft::spawn([&, me] {
                turn.wait_equal(me);
                stay(inside, most);
                turn.set(me + 1);
                weft::fork([&] { stay(inside, most); });
              });
            for (long i = 0; i < 6; ++i)
              weft::fork(
                  [&, i](long& v) {
                    stay(inside, most);
                    v = step(v, i);
                  },
                  weft::update(chain));
            for (int i = 0; i < 4; ++i) weft::fork([&] { stay(inside, most); });
            rt.run([&] {
              weft::fork([&] { stay(inside, most); });
              stay(inside, most);
            });
            weft::sync();
          });
          long want = 1;
          for (long i = 0; i < 6; ++i) want = step(want, i);
          if (most.load() > share) return differs("the number of bodies at once", most.load(), share);
          if (chain.get() != want) return differs("the value", chain.get(), want);
        }
        return std::string();
      },
      usual_cap, soon);
  CHECK(seen.steals > 0);
  CHECK(seen.suspensions > 0);
}

TEST_CASE("scene: runs with shares end beside each other") {
  play(
      [](weft::runtime& rt) {
        std::array<atomic<int>, 2> inside{}, most{};
        std::array<weft::base::thread, 2> callers;
        for (std::size_t i = 0; i < callers.size(); ++i)
          callers[i] = weft::base::thread([&, i] {
            for (int round = 0; round < 2; ++round)
              rt.run({.workers = 1}, [&] {
                weft::latch both(2);
                weft::spawn([&] {
                  both.arrive_and_wait();
                  stay(inside[i], most[i]);
                });
                stay(inside[i], most[i]);
                both.arrive_and_wait();
                weft::sync();
              });
          });
        for (auto& t : callers) t.join();
        return differs("the number of bodies at once", std::max(most[0].load(), most[1].load()), 1);
      },
      usual_cap, soon);
}

TEST_CASE("scene: nobody passes a barrier before all have come") {
  const auto seen = play(
      [](weft::runtime& rt) {
        constexpr int bodies = 3, phases = 4;
        weft::barrier together(bodies);
        atomic<int> come{0};
        int early = 0;
        weft::mutex door;
        rt.run([&] {
          for (int me = 0; me < bodies; ++me)
            weft::spawn([&, me] {
              for (int k = 1; k <= phases; ++k) {
                dawdle(static_cast<unsigned>(me));
                come.fetch_add(1);
                together.arrive_and_wait();
                const bool all = come.load() >= k * bodies;
                const std::lock_guard hold(door);
                early += !all;
              }
            });
        });
        return differs("the number of early passes", early, 0);
      },
      usual_cap, soon);
  CHECK(seen.suspensions > 0);
}

TEST_CASE("scene: items pass through full and empty channels in their order, by select too") {
  const auto seen = play(
      [](weft::runtime& rt) {
        constexpr int items = 5;
        weft::channel<int> a(1), b(2);
        std::array<int, 2> next{0, 0};
        int wrong = 0;
        rt.run([&] {
          for (auto* const to : {&a, &b})
            weft::spawn([to] {
              for (int i = 0; i < items; ++i) to->push(i);
              to->close();
            });
          weft::spawn([&] {
            std::array<bool, 2> open{true, true};
            const auto take = [&](std::size_t from) {
              return [&, from](std::optional<int> item) {
                if (item)
                  wrong += *item != next[from]++;
                else
                  open[from] = false;
              };
            };
            while (open[0] || open[1]) {
              if (!open[0])
                take(1)(b.pop());
              else if (!open[1])
                take(0)(a.pop());
              else
                weft::select(weft::on_receive(a, take(0)), weft::on_receive(b, take(1)));
            }
          });
        });
        return differs("the number of items", next[0] + next[1], 2 * items) +
               differs("the number of items out of order", wrong, 0);
      },
      usual_cap, soon);
  CHECK(seen.suspensions > 0);
}

TEST_CASE("scene: a bounded buffer of condition variables, and permits of a semaphore") {
  const auto seen = play(
      [](weft::runtime& rt) {
        constexpr int bodies = 3, items = 4, room = 2;
        weft::mutex door;
        weft::condition_variable filled, emptied;
        weft::semaphore permits(2);
        atomic<int> inside{0}, most{0};
        int held = 0, taken = 0;
        rt.run([&] {
          for (int me = 0; me < bodies; ++me) {
            weft::spawn([&] {
              for (int i = 0; i < items; ++i) {
                permits.acquire();
                stay(inside, most);
                permits.release();
                std::unique_lock hold(door);
                emptied.wait(hold, [&] { return held < room; });
                ++held;
                filled.notify_one();
              }
            });
            weft::spawn([&] {
              for (int i = 0; i < items; ++i) {
                std::unique_lock hold(door);
                filled.wait(hold, [&] { return held > 0; });
                --held;
                ++taken;
                emptied.notify_one();
              }
            });
          }
        });
        return differs("the number of items", taken, bodies * items) +
               differs("more bodies than permits", most.load() > 2, false);
      },
      usual_cap, soon);
  CHECK(seen.suspensions > 0);
}

TEST_CASE("scene: readers of a shared mutex see whole changes") {
  const auto seen = play(
      [](weft::runtime& rt) {
        constexpr int bodies = 3, rounds = 4;
        weft::shared_mutex door;
        int first = 0, second = 0;
        atomic<int> torn{0};
        rt.run([&] {
          for (int me = 0; me < bodies; ++me) {
            weft::spawn([&] {
              for (int i = 0; i < rounds; ++i) {
                const std::lock_guard hold(door);
                ++first;
                dawdle(2);
                ++second;
              }
            });
            weft::spawn([&] {
              for (int i = 0; i < rounds; ++i) {
                const std::shared_lock hold(door);
                const int seen_first = first;
                dawdle(1);
                torn.fetch_add(seen_first != second);
              }
            });
          }
        });
        return differs("the number of changes", second, bodies * rounds) +
               differs("the number of torn reads", torn.load(), 0);
      },
      usual_cap, soon);
  CHECK(seen.suspensions > 0);
}

TEST_CASE("scene: a permit goes to one who still waits, or stays, when the time of another is over") {
  long in_time = 0, too_late = 0;
  play(
      [&](weft::runtime& rt) {
        constexpr int bodies = 4;
        weft::semaphore permits(0);
        atomic<int> got{0};
        rt.run([&] {
          for (int me = 0; me < bodies; ++me)
            weft::spawn([&, me] {
              if (permits.try_acquire_for(std::chrono::microseconds(me * 3))) got.fetch_add(1);
            });
          for (int i = 0; i < bodies - 1; ++i) {
            dawdle(5);
            permits.release();
          }
        });
        int left = 0;
        while (permits.try_acquire()) ++left;
        in_time += got.load();
        too_late += bodies - got.load();
        return differs("the number of permits", got.load() + left, bodies - 1);
      },
      usual_cap, soon);
  CHECK(in_time > 0);
  CHECK(too_late > 0);
}
