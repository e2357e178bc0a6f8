// SPDX-License-Identifier: BSL-1.0
// What a process knows of the values that others keep, without any runtime: messages are delivered by hand.
#include "fault/failing_allocations.hpp"
#include "support/environment.hpp"
#include "support/random.hpp"

#include <weft/cluster/detail/read_value.hpp>
#include <weft/cluster/transport.hpp>

#include <bit>
#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace weft::remote;

namespace {

using text = std::string;

/// The values that one process sends to process 0, where `at` keeps them.
template <class T>
class sender {
 public:
  sender(int processes, int rank, const weft::cluster_options& options, kept_values& at)
      : values(processes, options, counters), rank_(rank), at_(at) {}

  /// *Returns*: the message with a task that reads this value; nothing if it stays here.
  std::optional<bytes> send(const T& v, std::uint64_t id, std::size_t limit = SIZE_MAX) {
    values.begin_task(0, id);
    try {
      writer w;
      w.values(&values);
      w.limit(limit);
      pack_read(v, w);
      return std::move(w.bytes());
    } catch (...) {
      values.abandon_task();
      return {};
    }
  }
  /// Process 0 gets it. *Returns*: the value; nothing if there is no memory. `answer`: what it says then.
  std::optional<read_value<T>> receive(const bytes& message, bytes& answer) {
    std::optional<read_value<T>> got(std::in_place);
    reader r{std::span<const std::byte>(message)};
    r.values(&at_);
    at_.begin_task(rank_);
    try {
      got->unpack(r);
    } catch (const std::bad_alloc&) {
      got.reset();
    }
    const bool was_armed = armed.exchange(false);  // without memory for short messages a process ends
    answer.clear();
    if (at_.has_news() || !got) {
      writer w;
      at_.pack_news(w);
      answer = std::move(w.bytes());
    }
    armed = was_armed;
    return got;
  }
  void take_answer(std::uint64_t id, const bytes& answer) {
    if (answer.empty()) return;
    reader r{std::span<const std::byte>(answer)};
    values.answered(id, r);
  }
  /// All of that, and the task ends. *Returns*: whether the value that arrives is right.
  bool trip(const T& v, std::uint64_t id) {
    const std::optional<bytes> message = send(v, id);
    if (!message) return true;
    bytes answer;
    std::optional<read_value<T>> got = receive(*message, answer);
    const bool right = !got || *got->get() == v;
    take_answer(id, answer);
    values.ended(id);
    return right;
  }

  weft::cluster_counters counters;
  sent_values values;

 private:
  int rank_;
  kept_values& at_;
};

value_form form_of(const bytes& message) { return static_cast<value_form>(message.at(0)); }
weft::cluster_options keeping(std::size_t from, std::size_t bytes) {
  weft::cluster_options o;
  o.cached_from = from;
  o.cache_bytes = bytes;
  return o;
}
constexpr std::size_t size_of(const text& t) { return sizeof(std::uint64_t) + t.size(); }

int bits_that_differ(const hash128& a, const hash128& b) {
  return std::popcount(a.high ^ b.high) + std::popcount(a.low ^ b.low);
}

}  // namespace

TEST_CASE("a hash tells contents apart by each bit, by their length, and by their order", "[cluster]") {
  for (const std::size_t size : {1u, 7u, 8u, 31u, 32u, 33u, 77u, 128u}) {
    std::vector<std::byte> content(size);
    const hash128 zero = content_hash::of(content);
    std::set<hash128> all{zero};
    int changed = 0;
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      content[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      const hash128 h = content_hash::of(content);
      all.insert(h);
      CHECK(bits_that_differ(h, zero) > 24);  // of 128; less is a case in 10^12
      changed += bits_that_differ(h, zero);
      content[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
    CHECK(all.size() == 8 * size + 1);
    CHECK(changed > static_cast<int>(8 * size) * 60);
    CHECK(changed < static_cast<int>(8 * size) * 68);
  }
  std::set<hash128> lengths;
  const std::vector<std::byte> zeros(200);
  for (std::size_t n = 0; n <= zeros.size(); ++n) lengths.insert(content_hash::of(std::span(zeros).first(n)));
  CHECK(lengths.size() == zeros.size() + 1);

  // Words that change places, next to each other and far away.
  std::vector<std::uint64_t> words(64);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = i;
  std::set<hash128> orders;
  for (std::size_t i = 0; i < words.size(); ++i)
    for (std::size_t j = i; j < words.size(); ++j) {
      std::swap(words[i], words[j]);
      orders.insert(content_hash::of(std::as_bytes(std::span(words))));
      std::swap(words[i], words[j]);
    }
  CHECK(orders.size() == 64 * 63 / 2 + 1);
  const auto first = content_hash::of(std::span(zeros).first(8));
  CHECK(content_hash::of(std::span(zeros).first(8), first) != first);
  CHECK(content_hash::of(std::span(zeros).first(8), first) != content_hash::of(std::span(zeros).first(16)));
}

TEST_CASE("the number of a value goes when the receiver has said that it keeps it, not before", "[cluster]") {
  kept_values at(1000);
  sender<text> from(2, 1, keeping(1, 1000), at);
  const text v(100, 'v');
  const bytes first = from.send(v, 1).value(), second = from.send(v, 2).value();
  CHECK(form_of(first) == value_form::to_keep);
  CHECK(form_of(second) == value_form::whole);
  CHECK(!from.values.all_answered());
  bytes answer, none;
  auto a = from.receive(first, answer), b = from.receive(second, none);
  CHECK(none.empty());
  CHECK(form_of(from.send(v, 3).value()) == value_form::whole);
  from.values.ended(1);  // the end may overtake the answer
  from.take_answer(1, answer);
  CHECK(from.values.all_answered());
  const bytes fourth = from.send(v, 4).value();
  CHECK(form_of(fourth) == value_form::number);
  CHECK(fourth.size() == 1 + sizeof(std::uint64_t));
  auto c = from.receive(fourth, none);
  CHECK(*a->get() == v);
  CHECK(*b->get() == v);
  CHECK(c->get() == a->get());  // tasks share it
  CHECK(from.counters.values_cached == 1);
  CHECK(from.counters.bytes_saved == size_of(v));
  CHECK(at.size() == size_of(v));
}

TEST_CASE("a value is kept from so many bytes on, as they are sent", "[cluster]") {
  kept_values at(1000);
  sender<text> from(2, 1, keeping(50, 1000), at);
  CHECK(form_of(from.send(text(49, 'a'), 1).value()) == value_form::whole);
  CHECK(form_of(from.send(text(50, 'b'), 2).value()) == value_form::to_keep);
  sender<std::list<char>> lists(2, 1, keeping(50, 1000), at);  // packed one by one
  CHECK(form_of(lists.send(std::list<char>(41, 'a'), 1).value()) == value_form::whole);
  CHECK(form_of(lists.send(std::list<char>(42, 'b'), 2).value()) == value_form::to_keep);
  sender<text> off(2, 1, keeping(1, 0), at);
  CHECK(!off.values.on());
  STATIC_REQUIRE(!may_be_kept<long>);
  STATIC_REQUIRE(!may_be_kept<bool>);
  STATIC_REQUIRE(may_be_kept<text>);
}

TEST_CASE("equal bytes of different types are different values", "[cluster]") {
  using ints = std::vector<int>;
  using floats = std::vector<float>;
  kept_values at(1000);
  sender<ints> from(2, 1, keeping(1, 1000), at);
  CHECK(from.trip(ints(20), 1));
  CHECK(form_of(from.send(ints(20), 2).value()) == value_form::number);
  from.values.begin_task(0, 3);
  writer w;
  w.values(&from.values);
  pack_read(floats(20), w);
  CHECK(form_of(w.bytes()) == value_form::to_keep);
}

TEST_CASE("what was used least recently makes room, and nothing that a task away refers to", "[cluster]") {
  const text a(50, 'a'), b(50, 'b'), c(50, 'c'), d(50, 'd');
  kept_values at(3 * size_of(a));
  sender<text> from(2, 1, keeping(1, 3 * size_of(a)), at);
  CHECK(from.trip(a, 1));
  CHECK(from.trip(b, 2));
  CHECK(from.trip(c, 3));
  const bytes held = from.send(b, 4).value();  // is away
  CHECK(from.trip(a, 5));
  CHECK(from.trip(d, 6));  // in the place of c
  CHECK(at.size() == 3 * size_of(a));
  CHECK(form_of(from.send(a, 7).value()) == value_form::number);
  CHECK(form_of(from.send(d, 8).value()) == value_form::number);
  CHECK(form_of(from.send(c, 9).value()) == value_form::whole);  // all are in use
  bytes answer;
  CHECK(*from.receive(held, answer)->get() == b);
  for (std::uint64_t id = 4; id <= 9; ++id) from.values.ended(id);
  CHECK(form_of(from.send(c, 10).value()) == value_form::to_keep);
  // The receiver has not said that it has given up a; it may have it yet, or not any more.
  CHECK(form_of(from.send(text(50, 'e'), 11).value()) == value_form::to_keep);
  std::set<value_form> forms;
  for (const text& v : {a, b, d}) forms.insert(form_of(from.send(v, 12).value()));
  CHECK(forms == std::set{value_form::whole, value_form::number});
}

TEST_CASE("what a lost message was to give up is kept", "[cluster]") {
  const text a(50, 'a'), b(50, 'b');
  kept_values at(size_of(a));
  sender<text> from(2, 1, keeping(1, size_of(a)), at);
  CHECK(from.trip(a, 1));
  CHECK(form_of(from.send(b, 2).value()) == value_form::to_keep);
  CHECK(form_of(from.send(a, 3).value()) == value_form::whole);
  from.values.lost(2);
  from.values.ended(2);
  CHECK(from.values.all_answered());
  CHECK(form_of(from.send(a, 4).value()) == value_form::number);
  // So is what a task was to give up that is too long after all.
  from.values.ended(3);
  from.values.ended(4);
  CHECK(!from.send(b, 5, 1 + size_of(b)));
  CHECK(from.values.all_answered());
  CHECK(form_of(from.send(a, 6).value()) == value_form::number);
}

TEST_CASE("a receiver keeps no more than it has room for, of all senders together", "[cluster]") {
  const text a(50, 'a'), b(50, 'b');
  kept_values at(2 * size_of(a));
  sender<text> one(3, 1, keeping(1, 2 * size_of(a)), at), other(3, 2, keeping(1, 2 * size_of(a)), at);
  CHECK(one.trip(a, 1));
  CHECK(one.trip(b, 2));  // in the place of a: nobody may fill the whole
  CHECK(at.size() == size_of(a));
  CHECK(other.trip(a, 1));
  CHECK(form_of(other.send(a, 2).value()) == value_form::number);
  sender<text> third(2, 3, keeping(1, 2 * size_of(a)), at);
  CHECK(third.trip(a, 1));
  CHECK(at.size() == 2 * size_of(a));
  CHECK(third.values.all_answered());
  CHECK(form_of(third.send(a, 2).value()) == value_form::whole);  // and is not offered again
}

TEST_CASE("a value that is not there is a damaged message", "[cluster]") {
  kept_values at(1000), empty(1000);
  sender<text> from(2, 1, keeping(1, 1000), at);
  CHECK(from.trip("some text", 1));
  const bytes number = from.send("some text", 2).value();
  const auto read = [&](kept_values* k, auto value) {
    reader r{std::span<const std::byte>(number)};
    r.values(k);
    if (k != nullptr) k->begin_task(1);
    value.unpack(r);
  };
  CHECK_NOTHROW(read(&at, read_value<text>()));
  CHECK_THROWS_AS(read(&empty, read_value<text>()), weft::error);
  CHECK_THROWS_AS(read(nullptr, read_value<text>()), weft::error);
  CHECK_THROWS_AS(read(&at, read_value<std::vector<int>>()), weft::error);
}

namespace {

struct flight {
  std::size_t from;
  std::uint64_t id;
  text value;
  bytes message;
};
flight take_any(std::vector<flight>& all, weft_test::random& dice) {
  const std::size_t i = dice.below(all.size());
  std::swap(all[i], all.back());
  flight f = std::move(all.back());
  all.pop_back();
  return f;
}

/// Three senders and one receiver; all messages overtake each other, some are lost.
struct disorder {
  std::uint64_t numbers = 0, lost = 0, abandoned = 0, wrong = 0, too_much = 0, open = 0;

  void go(std::uint64_t seed) {
    weft_test::random dice(seed);
    const std::size_t room = 40 + dice.below(400);
    kept_values at(room);
    std::list<sender<text>> senders;
    std::vector<sender<text>*> from;
    for (int i = 0; i < 3; ++i) from.push_back(&senders.emplace_back(4, i + 1, keeping(1, room), at));
    std::vector<text> values;
    for (int i = 0; i < 8; ++i) values.emplace_back(4 + dice.below(60), static_cast<char>('a' + i));
    std::vector<flight> tasks, answers, ends;
    struct running {
      flight of;
      read_value<text> value;
    };
    std::vector<running> there;
    std::uint64_t id = 0;
    for (int step = 0; step < 2000 || !(tasks.empty() && answers.empty() && ends.empty() && there.empty());
         ++step) {
      const auto what = dice.below(step < 2000 ? 6 : 5);
      if (what == 5) {
        text& v = values[dice.below(values.size())];
        if (dice.one_in(4)) v[dice.below(v.size())] = static_cast<char>('a' + dice.below(20));  // is written
        const std::size_t s = dice.below(from.size());
        // A task that is too long by one of its last bytes.
        const auto m = from[s]->send(v, ++id, dice.one_in(8) ? 1 + size_of(v) + dice.below(8) : SIZE_MAX);
        if (m)
          tasks.push_back({s, id, v, *m});
        else
          ++abandoned;
      } else if (what == 0 && !tasks.empty()) {
        flight f = take_any(tasks, dice);
        if (dice.one_in(16)) {
          ++lost;
          from[f.from]->values.lost(f.id);
          from[f.from]->values.ended(f.id);
          continue;
        }
        bytes answer;
        auto got = from[f.from]->receive(f.message, answer);
        wrong += *got->get() != f.value;
        if (!answer.empty()) answers.push_back({f.from, f.id, {}, answer});
        there.push_back(running{std::move(f), *std::move(got)});
      } else if (what == 1 && !answers.empty()) {
        const flight f = take_any(answers, dice);
        from[f.from]->take_answer(f.id, f.message);
      } else if (what == 2 && !there.empty()) {
        std::swap(there[dice.below(there.size())], there.back());
        wrong += *there.back().value.get() != there.back().of.value;
        ends.push_back(std::move(there.back().of));
        there.pop_back();
      } else if (what == 3 && !ends.empty()) {
        const flight f = take_any(ends, dice);
        from[f.from]->values.ended(f.id);
      }
      too_much += at.size() > room;
    }
    for (const auto* s : from) {
      numbers += s->counters.values_cached;
      open += !s->values.all_answered();
    }
  }
};

}  // namespace

TEST_CASE("tasks get the right values, and the receiver never too many, in whatever order messages come",
          "[cluster]") {
  disorder d;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) d.go(seed + (seed > 30 ? weft_test::seed() : 0));
  CHECK(d.wrong == 0);
  CHECK(d.too_much == 0);
  CHECK(d.open == 0);
  CHECK(d.numbers > 100);
  CHECK(d.lost > 100);
  CHECK(d.abandoned > 100);
}

TEST_CASE("wherever memory is refused, a value arrives or its task stays, and the rest is as before",
          "[cluster]") {
  if (!replaced || weft_test::sanitized) return;
  const text a(50, 'a'), b(60, 'b'), c(70, 'c');
  for (const bool from_then_on : {false, true}) {
    const long all = fail_each(
        from_then_on,
        [&] {
          const bool was_armed = armed.exchange(false);
          kept_values at(150);
          sender<text> from(2, 1, keeping(1, 150), at);
          armed = was_armed;
          std::uint64_t id = 0;
          bool right = true;
          for (const text* v : {&a, &b, &a, &c, &a, &b, &b}) right &= from.trip(*v, ++id);
          armed = false;
          right &= from.values.all_answered() && at.size() <= 150;
          // There is memory again.
          for (const text* v : {&a, &b, &c, &a, &b}) right &= from.trip(*v, ++id);
          return right && from.values.all_answered();
        },
        [](long left) { CHECK(left == 0); });
    CHECK(all > 20);
  }
}
