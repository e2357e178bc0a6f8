// SPDX-License-Identifier: BSL-1.0
// Names of tasks, and their records in memory: what is found, what is replaced, which files are needed.
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/random.hpp"

#include <weft/cluster/detail/finished_tasks.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

using namespace weft::remote;

namespace {

constexpr code_address kind{0, 64};
task_name name(std::uint64_t n) { return n == 0 ? task_name{} : task_name{n, n * 7}; }
bytes value(std::uint64_t n, std::size_t size = 8) { return bytes(size, static_cast<std::byte>(n)); }
task_name hash(const std::vector<unsigned char>& v, std::uint32_t module = 0, std::uint64_t offset = 0) {
  return name_of(v.data(), v.size(), module, offset);
}
/// How many of these numbers are equal to another one.
std::size_t repeated(std::vector<std::uint64_t> all) {
  std::sort(all.begin(), all.end());
  return static_cast<std::size_t>(all.end() - std::unique(all.begin(), all.end()));
}

}  // namespace

TEST_CASE("a name depends on each bit, on the length and on the type", "[checkpoint]") {
  weft_test::random random(1);
  double most = 0, least = 1;
  for (const std::size_t size : {1u, 8u, 15u, 16u, 17u, 40u})
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      constexpr int times = 100;
      int flipped = 0;
      for (int i = 0; i < times; ++i) {
        std::vector<unsigned char> v(size);
        for (unsigned char& c : v) c = static_cast<unsigned char>(random());
        const task_name before = hash(v);
        REQUIRE(before == hash(v));
        v[bit / 8] = static_cast<unsigned char>(v[bit / 8] ^ 1u << bit % 8);
        const task_name after = hash(v);
        flipped += std::popcount(before.high ^ after.high) + std::popcount(before.low ^ after.low);
      }
      const double share = flipped / (128.0 * times);
      most = std::max(most, share);
      least = std::min(least, share);
    }
  INFO("a bit changes from " << least << " to " << most << " of the bits of a name");
  CHECK(least > 0.45);
  CHECK(most < 0.55);
  CHECK(hash({}) != hash({0}));
  CHECK(hash({0}) != hash({0, 0}));
  CHECK(hash(std::vector<unsigned char>(16)) != hash(std::vector<unsigned char>(17)));
  CHECK(hash({1}, 0, 8) != hash({1}, 1, 8));
  CHECK(hash({1}, 0, 8) != hash({1}, 0, 16));
  CHECK(hash({}) != task_name{});
}

TEST_CASE("names of similar tasks differ, in each quarter as random numbers do", "[checkpoint]") {
  std::vector<std::uint64_t> parts[4], whole;
  const auto note = [&](const task_name& n) {
    const std::uint64_t quarters[] = {n.high >> 32, n.high & 0xffffffff, n.low >> 32, n.low & 0xffffffff};
    for (int i = 0; i < 4; ++i) parts[i].push_back(quarters[i]);
    whole.push_back(n.high);
  };
  for (std::uint64_t i = 0; i < 1 << 15; ++i) {
    const double d = -0.5 + static_cast<double>(i);
    const std::uint64_t numbers[] = {i, 0, 0, i << 40}, other[] = {0, i, i, 0};
    const double signs[] = {d, -d, d, -d, 0};
    note(name_of(numbers, sizeof numbers, 0, 64));
    note(name_of(other, sizeof other, 0, 64));
    note(name_of(signs, sizeof signs, 0, 64));
    note(name_of(&i, sizeof i, 0, 64));
  }
  CHECK(repeated(whole) <= 1);  // the same number in another place: i = 0
  for (const auto& p : parts) {
    INFO(repeated(p));
    CHECK(repeated(p) < 12);  // 2 of random numbers
  }
}

TEST_CASE("a record is found by its name, until it is replaced by one above it", "[checkpoint]") {
  finished_tasks before;
  CHECK(!before.looking());
  before.add(name(3), name(2), kind, value(3));
  before.add(name(4), name(2), kind, value(4));
  before.add(name(5), name(3), kind, value(5));  // below one that has ended: it came late
  before.add(name(6), name(9), kind, value(6));
  CHECK(before.size() == 4);
  before.add(name(2), name(1), kind, value(2));
  CHECK(before.size() == 2);     // 5, too, was below 2
  CHECK(!before.find(name(2)));  // of this job

  finished_tasks after;
  after.expect(before);
  CHECK(after.looking());
  CHECK(after.may_be_kind(kind));
  CHECK(!after.may_be_kind({1, 64}));
  CHECK(!after.may_be_kind({0, 65}));
  CHECK(!after.find(name(3)));
  CHECK(after.find(name(2)) == value(2));
  CHECK(after.looking());
  CHECK(after.find(name(2)) == value(2));  // as often as it comes
  CHECK(after.looking());
  CHECK(after.find(name(6)) == value(6));
  CHECK(!after.looking());
  after.begin_run();  // of the same job
  CHECK(after.looking());
  after.add(name(9), name(0), kind, value(9));
  after.add(name(1), name(0), kind, value(1));
  CHECK(!after.looking());  // what is left has been replaced
  CHECK(!after.find(name(2)));
  after.begin_run();
  CHECK(after.size() == 0);
}

TEST_CASE("records with the same name, and such that are above themselves, do no harm", "[checkpoint]") {
  finished_tasks a;
  a.add(name(1), name(1), kind, value(1));
  a.add(name(2), name(3), kind, value(2));
  a.add(name(2), name(4), kind, value(2));  // the same task in another place
  a.add(name(3), name(0), kind, value(3));
  CHECK(a.size() == 3);
  a.add(name(4), name(0), kind, value(4));  // it was there last
  CHECK(a.size() == 3);
  a.add(name(5), name(6), kind, value(5));
  a.add(name(6), name(5), kind, value(6));
  CHECK(a.size() == 4);
  finished_tasks b;
  b.expect(a);
  CHECK(b.find(name(1)));
  CHECK(b.find(name(6)));
}

TEST_CASE("who finds nothing for long looks no more in this run", "[checkpoint]") {
  finished_tasks before, after;
  for (std::uint64_t n = 1; n <= 10; ++n) before.add(name(n), name(0), kind, value(n));
  after.expect(before);
  int misses = 0;
  for (; after.looking() && misses < 1'000'000; ++misses) (void)after.find(name(77));
  CHECK(misses > 100'000);
  CHECK(misses < 200'000);
  CHECK(after.find(name(5)));  // what is there may be found
  after.begin_run();
  CHECK(after.looking());
  for (int i = 0; i < 300'000; ++i) {
    (void)after.find(name(77));
    if (i % 10'000 == 0) CHECK(after.find(name(5)));
  }
  CHECK(after.looking());  // because some are found
}

TEST_CASE("what waits to be written has a bound") {
  finished_tasks a(2500);
  CHECK(a.add(name(1), name(0), kind, value(1, 1000)));
  CHECK(a.add(name(2), name(0), kind, value(2, 1000)));
  CHECK_FALSE(a.add(name(3), name(0), kind, value(3, 1000)));  // so what is below it is still needed
  CHECK(a.size() == 2);
  std::vector<unwritten_task> taken = a.take_unwritten(1);
  a.written(1, taken, false);
  CHECK_FALSE(a.add(name(3), name(0), kind, value(3, 1000)));
  taken = a.take_unwritten(2);
  a.written(2, taken, true);
  CHECK(a.add(name(3), name(0), kind, value(3, 1000)));
  CHECK(a.add(name(4), name(3), kind, value(4, 1000)));
  CHECK_FALSE(a.add(name(5), name(0), kind, value(5, 1000)));
  CHECK(a.add(name(3), name(0), kind, value(3, 500)));  // replaces 4, and is there already
  CHECK(a.add(name(5), name(0), kind, value(5, 1000)));
  a.begin_run();
  CHECK(a.add(name(6), name(0), kind, value(6, 2500)));
}

TEST_CASE("what is in a whole file is not kept in memory; what could not be written is", "[checkpoint]") {
  finished_tasks a;
  a.add(name(1), name(0), kind, value(1, 1000));
  std::vector<unwritten_task> taken = a.take_unwritten(1);
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].name == name(1));
  CHECK(*taken[0].results == value(1, 1000));
  CHECK(a.take_unwritten(2).empty());  // it is on its way
  a.written(1, taken, false);
  taken = a.take_unwritten(3);
  REQUIRE(taken.size() == 1);
  const std::weak_ptr<const bytes> results = taken[0].results;
  a.written(3, taken, true);
  taken.clear();
  CHECK(results.expired());
  CHECK(a.take_unwritten(4).empty());
  CHECK(a.size() == 1);
}

TEST_CASE("a file is removed when what replaces it is in one", "[checkpoint]") {
  using dead = std::vector<std::uint64_t>;
  finished_tasks a;
  const auto write = [&a](std::uint64_t segment, bool whole = true) {
    const auto all = a.take_unwritten(segment);
    a.written(segment, all, whole);
  };
  a.add(name(3), name(2), kind, value(3));
  write(1);
  a.add(name(4), name(2), kind, value(4));
  write(2);
  CHECK(a.take_dead() == dead{});
  a.add(name(2), name(1), kind, value(2));
  CHECK(a.take_dead() == dead{});
  write(3, false);
  CHECK(a.take_dead() == dead{});
  write(4);
  CHECK(a.take_dead() == (dead{1, 2}));
  CHECK(a.take_dead() == dead{});

  // Replaced while it is being written.
  a.add(name(6), name(5), kind, value(6));
  const auto late = a.take_unwritten(5);
  a.add(name(5), name(1), kind, value(5));
  a.written(5, late, true);
  CHECK(a.take_dead() == dead{});
  write(6);
  CHECK(a.take_dead() == dead{5});

  // What replaces it is replaced itself, before it is written.
  a.add(name(9), name(8), kind, value(9));
  write(7);
  a.add(name(8), name(7), kind, value(8));
  a.add(name(7), name(0), kind, value(7));
  CHECK(a.take_dead() == dead{});
  write(8);
  CHECK(a.take_dead() == dead{7});

  // The same again.
  a.add(name(7), name(0), kind, value(7));
  CHECK(a.take_unwritten(9).empty());
  CHECK(a.take_dead() == dead{});

  // Replaced by a record of another process: two intervals later, of which nothing is written in one.
  a.add(name(11), name(10), kind, value(11));
  write(10);
  a.recorded_elsewhere(name(10));
  CHECK(a.size() == 3);
  CHECK(a.take_dead() == dead{});
  write(11);
  CHECK(a.take_dead() == dead{});
  write(12);
  CHECK(a.take_dead() == dead{});
  write(13);
  CHECK(a.take_dead() == dead{10});
}

TEST_CASE("files of an earlier job are removed when what replaces them is in one", "[checkpoint]") {
  finished_tasks a;
  int reads = 0;
  std::vector<placed_task> all;
  for (std::uint64_t n = 1; n <= 4; ++n) all.push_back({name(n), name(10 + n / 3), kind, {n, 0, 8, 0}});
  all.push_back({name(5), name(4), kind, {5, 0, 8, 0}});   // below a record
  all.push_back({name(1), name(10), kind, {6, 0, 8, 0}});  // the same twice
  a.expect(all, [&](const result_place& p) -> std::optional<bytes> {
    ++reads;
    if (p.segment == 2) return std::nullopt;  // damaged
    return value(p.segment);
  });
  CHECK(a.size() == 4);
  CHECK(reads == 0);
  CHECK(a.take_dead() == (std::vector<std::uint64_t>{1, 5}));
  CHECK(a.find(name(1)) == value(6));
  CHECK(!a.find(name(2)));
  CHECK(!a.find(name(2)));
  CHECK(reads == 2);
  a.add(name(2), name(10), kind, value(2));
  a.add(name(10), name(0), kind, value(10));
  const auto fresh = a.take_unwritten(7);
  CHECK(fresh.size() == 1);
  CHECK(a.take_dead().empty());
  a.written(7, fresh, true);
  CHECK(a.take_dead() == std::vector<std::uint64_t>{6});  // nobody can use 2
  CHECK(a.looking());
  a.forget([](std::uint64_t s) { return s == 3; });
  CHECK(!a.find(name(3)));
  CHECK(a.find(name(4)) == value(4));
  CHECK(!a.looking());
}

namespace {

/// A tree of tasks, and the files that a job has written.
struct disk {
  std::vector<std::uint64_t> parents{0, 0};  // of task n; task 1 is the uppermost
  std::map<std::uint64_t, std::set<std::uint64_t>> files;

  bool has(std::uint64_t n) const {
    return std::any_of(files.begin(), files.end(), [n](const auto& f) { return f.second.count(n) != 0; });
  }
  bool has_above(std::uint64_t n) const {
    for (n = parents[n]; n != 0; n = parents[n])
      if (has(n)) return true;
    return false;
  }
};

}  // namespace

TEST_CASE("nothing that was in a whole file is lost, and no file is kept for nothing", "[checkpoint]") {
  std::uint64_t removed = 0, failed = 0, late = 0, merged = 0;
  const std::uint64_t first = weft_test::seed();
  for (std::uint64_t round = 0; round < 200; ++round) {
    weft_test::random random(round < 100 ? round : first + round);
    INFO("seed " << (round < 100 ? round : first + round));
    disk d;
    const std::uint64_t tasks = 2 + random.below(60);
    while (d.parents.size() <= tasks) d.parents.push_back(1 + random.below(d.parents.size() - 1));
    finished_tasks a;
    std::set<std::uint64_t> ever, early;
    std::vector<unwritten_task> writing;
    std::uint64_t segment = 0;
    bool busy = false;
    const auto end_write = [&](bool whole) {
      busy = false;
      a.written(segment, writing, whole);
      if (whole)
        for (const unwritten_task& w : writing) {
          ever.insert(w.name.high);
          d.files[segment].insert(w.name.high);
        }
      failed += !whole;
    };
    const auto begin_write = [&] {
      writing = a.take_unwritten(++segment);
      busy = true;
    };
    // A task has a larger number than the one above it, so this is an order in which they may end.
    for (std::uint64_t n = tasks; n >= 1; --n) {
      // Some are too short to be recorded, but none that was before: what is below it may have come since.
      if (n == 1 || !random.one_in(4) || early.count(n) != 0) {
        late += busy;
        a.add(name(n), name(d.parents[n]), kind, value(n));
        if (random.one_in(5)) a.add(name(n), name(d.parents[n]), kind, value(n));
      }
      if (busy && random.one_in(2)) end_write(!random.one_in(4));
      if (!busy && random.one_in(3)) begin_write();
      if (!busy && random.one_in(6)) {  // all files become one
        std::vector<placed_task> all;
        for (const auto& [s, content] : d.files)
          for (const std::uint64_t t : content)
            all.push_back({name(t), name(d.parents[t]), kind, {s, 0, 8, 0}});
        all = a.needed(all);
        if (random.one_in(3) && n > 1) {
          a.add(name(d.parents[n]), name(d.parents[d.parents[n]]), kind, value(n));
          early.insert(d.parents[n]);
        }
        for (const placed_task& t : all) d.files[segment + 1].insert(t.name.high);
        a.moved(all, ++segment);
        merged += all.size();
      }
      for (const std::uint64_t s : a.take_dead()) removed += d.files.erase(s);
      for (const std::uint64_t t : ever) REQUIRE((d.has(t) || d.has_above(t)));
    }
    if (busy) end_write(true);
    begin_write();
    end_write(true);
    for (const std::uint64_t s : a.take_dead()) removed += d.files.erase(s);
    for (const auto& [s, content] : d.files)
      REQUIRE(std::any_of(content.begin(), content.end(), [&](std::uint64_t t) {
        // A record below a task without one is not known to be below what is above that.
        return d.parents[t] == 0 || !d.has(d.parents[t]);
      }));
    REQUIRE(d.has(1));
  }
  std::printf("files removed %llu, not written %llu, records that came meanwhile %llu\n",
              static_cast<unsigned long long>(removed), static_cast<unsigned long long>(failed),
              static_cast<unsigned long long>(late));
  CHECK(removed > 100);
  CHECK(failed > 100);
  CHECK(late > 100);
  CHECK(merged > 100);
}

TEST_CASE("records are added, found and taken by several threads", "[checkpoint]") {
  finished_tasks before, a;
  constexpr std::uint64_t each = 2000, threads = 4;
  for (std::uint64_t n = 1; n <= each * threads; n += 2) before.add(name(n), name(0), kind, value(n));
  a.expect(before);
  std::atomic<std::uint64_t> found{0}, wrong{0};
  std::atomic<bool> over{false};
  std::uint64_t written = 0;
  {
    std::vector<std::thread> all;
    for (std::uint64_t t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        for (std::uint64_t n = 1 + t * each; n <= (t + 1) * each; ++n) {
          if (a.looking() && a.may_be_kind(kind))
            if (const auto results = a.find(name(n))) {
              wrong += *results != value(n);
              ++found;
              continue;
            }
          a.add(name(n), name(0), kind, value(n));
        }
      });
    std::thread writer([&] {
      for (std::uint64_t segment = 1; !over; ++segment) {
        const auto taken = a.take_unwritten(segment);
        a.written(segment, taken, true);
        written += taken.size();
      }
    });
    for (std::thread& t : all) t.join();
    over = true;
    writer.join();
  }
  written += a.take_unwritten(~std::uint64_t{0}).size();
  CHECK(wrong == 0);
  CHECK(found == each * threads / 2);
  CHECK(written == each * threads / 2);
  CHECK(a.size() == each * threads);
  CHECK(!a.looking());
}
