// SPDX-License-Identifier: BSL-1.0
// The dependency graph of a large frame, alone and single-threaded: what is ready when, and in which order.
#include "fault/waiting.hpp"
#include "sched/hand_made.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/random.hpp"

#include <weft/graph/graph_hints.hpp>
#include <weft/graph/graph_visit.hpp>
#include <weft/sched/scheduler.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

using weft::sched::closure;
using weft::sched::closure_state;
using weft::sched::graph;
using weft::sched::graph_entry;
using weft::sched::graph_node;
using weft::sched::graph_table;
using weft::sched::ready_list;
using weft_test::access_mode;
using weft_test::folded;
using weft_test::made_closure;
using weft_test::made_strand;
using weft_test::reads;
using weft_test::updates;
using weft_test::writes;

namespace {

using tasks = std::vector<const closure*>;

void set(closure& c, closure_state s) { c.state.store(s, std::memory_order_relaxed); }  // a single thread
closure_state state_of(const closure& c) { return c.state.load(std::memory_order_relaxed); }

/// An int of which is known how many live.
struct number {
  static inline int alive = 0;
  int value = 0;
  explicit number(int v = 0) : value(v) { ++alive; }
  number(const number&) = delete;
  number& operator=(number&& other) noexcept {
    value = std::exchange(other.value, -1);
    return *this;
  }
  ~number() { --alive; }
};
constexpr weft::sched::version_kind kind_of_number{
    sizeof(number), alignof(number), [](void* p) { ::new (p) number; },
    [](void* from, void* to) { *static_cast<number*>(to) = std::move(*static_cast<number*>(from)); },
    [](void* p) { static_cast<number*>(p)->~number(); }};

/// A strand with one frame, its graph, and the test in the role of owner and thieves.
struct execution : made_strand {
  graph g;
  std::map<const closure*, graph_node*> running;
  std::vector<folded> folds;
  weft::sched::placed_exception failure;
  int a = 0, b = 0, c = 0, d = 0;
  const int plus = 0, times = 0;  // their addresses stand for operations

  execution() {
    open();
    made_closure::on_fold = [this](const folded& f) { folds.push_back(f); };
  }
  ~execution() { made_closure::on_fold = nullptr; }

  made_closure& add_shared(access_mode mode, const void* object, const void* operation = nullptr,
                           std::uint32_t part = 0, weft::sched::task_options o = {}) {
    return add({}, {}, o).add_access({.object = object, .mode = mode, .operation = operation, .part = part});
  }
  made_closure& commutes(const int& x) { return add_shared(access_mode::commute, &x); }
  made_closure& contributes(const int& x, std::uint32_t part = 0) {
    return add_shared(access_mode::reduce, &x, &plus, part);
  }
  made_closure& slice(access_mode mode, const int& array, std::size_t begin, std::size_t end) {
    return add().add_access({.object = &array, .mode = mode, .sliced = true, .begin = begin, .end = end});
  }

  void begin(closure* from = nullptr, int inherited = 0, unsigned versions = 1) {
    g.begin(*this, *top, from, inherited, versions);
    if (from != nullptr) running[from] = g.at;
    visit_all();
  }
  void visit_all() { g.look_ahead(SIZE_MAX, SIZE_MAX); }
  /// What a thief takes; null if nothing.
  const closure* take(weft::sched::thief_filter wanted = nullptr) { return note(g.take(wanted)); }
  /// What somebody takes who executes another task first.
  const closure* take_behind() { return note(g.take_behind()); }
  /// What the owner takes.
  const closure* take_for_owner() { return note(g.take_for_owner()); }
  tasks take_all() {
    return all_of([this] { return take(); });
  }
  tasks take_all_for_owner() {
    return all_of([this] { return take_for_owner(); });
  }
  /// Ends a task that was taken, and folds what has to be folded.
  void end(const closure& task) {
    graph_node* const n = running.at(&task);
    running.erase(&task);
    graph_entry* entries = nullptr;
    g.finish(*n, entries);
    if (entries != nullptr) g.fold(entries);
  }
  void end_running() {
    while (!running.empty()) end(*running.begin()->first);
  }
  /// Begins a task that was taken. *Returns*: where it finds its first object.
  number& begun(const closure& task) {
    prepare(*running.at(&task));
    return *static_cast<number*>(task.objects()[0]);
  }
  /// *Returns*: whether values had to are written back.
  bool write_back() {
    const bool must = g.must_write_back();
    if (must) g.write_back();
    return must;
  }
  void fail(const closure& task, int e) {
    g.fail(running.at(&task)->index, {std::make_exception_ptr(e), &task});
  }
  bool must_drop(const closure& task) { return g.must_drop(*running.at(&task)); }
  int error() {
    try {
      failure = g.take_failure();
      std::rethrow_exception(failure.error);
    } catch (int e) {
      return e;
    }
  }

 private:
  const closure* note(graph_node* n) {
    if (n == nullptr) return nullptr;
    running[n->task] = n;
    return n->task;
  }
  template <class F>
  tasks all_of(F&& take_one) {
    tasks all;
    while (const closure* t = take_one()) all.push_back(t);
    return all;
  }
};

}  // namespace

TEST_CASE("ready nodes come most urgent first, equals in the order of their coming") {
  ready_list ready;
  CHECK(ready.front() == nullptr);
  for (const int p : {0, 5, -3, 5, 0, 7}) ready.expect(p);
  std::deque<graph_node> nodes;
  for (const int p : {0, 5, 0, -3, 7, 5, 0, -3, 7})
    nodes.emplace_back(nullptr, static_cast<std::uint32_t>(nodes.size()), p);
  for (graph_node& n : nodes) ready.push_back(n);
  CHECK(ready.size() == nodes.size());
  std::vector<std::uint32_t> order;
  for (; ready.front() != nullptr; ready.pop_front()) order.push_back(ready.front()->index);
  CHECK(order == std::vector<std::uint32_t>{4, 8, 1, 5, 0, 2, 6, 3, 7});
  CHECK(ready.size() == 0);
  ready.push_back(nodes[3]);
  ready.push_back(nodes[0]);  // a level that ran empty is used again
  CHECK(ready.front() == &nodes[0]);
  ready.clear();
  CHECK(ready.front() == nullptr);
  CHECK(ready.size() == 0);
}

TEST_CASE("the table of objects grows, and forgets everything at once") {
  graph_table table;
  weft::sched::arena memory;
  std::vector<int> data(5000);
  for (int round = 0; round < 5; ++round) {
    std::vector<graph_entry*> entries;
    for (const int& x : data) entries.push_back(&table.at(&x, memory));
    int wrong = 0;
    for (std::size_t i = 0; i < data.size(); ++i) wrong += &table.at(&data[i], memory) != entries[i];
    CHECK(wrong == 0);
    std::sort(entries.begin(), entries.end());
    CHECK(std::adjacent_find(entries.begin(), entries.end()) == entries.end());
    table.slice(*entries[0]);
    CHECK(entries[0]->segments->size() == 1);
    table.clear();
    CHECK(table.at(&data[0], memory).segments == nullptr);
    table.clear();
    memory.release_to(weft::sched::arena_mark{});
  }
}

TEST_CASE("an empty graph has ended") {
  execution e;
  e.begin();
  CHECK(e.g.home == e.top);
  CHECK(e.g.owner == &e);
  CHECK(e.take() == nullptr);
  CHECK(e.take_for_owner() == nullptr);
  CHECK(e.g.all_ended());
  e.g.end();
  CHECK(e.g.home == nullptr);
  CHECK(e.g.owner == nullptr);
}

TEST_CASE("independent tasks are ready at once, in reference order") {
  execution e;
  tasks all;
  for (int i = 0; i < 100; ++i) all.push_back(&e.add());
  e.begin();
  CHECK(e.g.ready() == 100);
  CHECK(e.take_all() == all);
  CHECK_FALSE(e.g.all_ended());
  e.end_running();
  CHECK(e.g.all_ended());
}

TEST_CASE("in a graph, a task waits for every earlier one it conflicts with") {
  constexpr access_mode modes[] = {access_mode::read, access_mode::write, access_mode::update};
  for (const access_mode earlier : modes)
    for (const access_mode later : modes) {
      execution e;
      closure& first = e.add({{&e.a, earlier}, reads(e.b)});
      closure& second = e.add({reads(e.c), {&e.a, later}});
      closure& other = e.add({reads(e.b), reads(e.c)});
      e.begin();
      if (weft::sched::conflict(earlier, later)) {
        CHECK(e.take_all() == tasks{&first, &other});
        e.end(first);
        CHECK(e.take_all() == tasks{&second});
      } else {
        CHECK(e.take_all() == tasks{&first, &second, &other});
      }
    }
}

TEST_CASE("in a graph, readers run together; the writer waits for all, and later readers for the writer") {
  for (const int readers : {1, 2, 5}) {
    execution e;
    closure& before = e.add({writes(e.a)});
    tasks early, late;
    for (int i = 0; i < readers; ++i) early.push_back(&e.add({reads(e.a)}));
    closure& writer = e.add({updates(e.a)});
    for (int i = 0; i < readers; ++i) late.push_back(&e.add({reads(e.a)}));
    closure& after = e.add({writes(e.a)});
    e.begin();
    CHECK(e.take_all() == tasks{&before});
    e.end(before);
    tasks taken = e.take_all();
    CHECK(std::is_permutation(taken.begin(), taken.end(), early.begin(), early.end()));
    for (std::size_t i = taken.size(); i-- > 0;) {
      CHECK(e.take() == nullptr);
      e.end(*taken[i]);
    }
    CHECK(e.take_all() == tasks{&writer});
    e.end(writer);
    taken = e.take_all();
    CHECK(std::is_permutation(taken.begin(), taken.end(), late.begin(), late.end()));
    e.end_running();
    CHECK(e.take_all() == tasks{&after});
    e.end(after);
    CHECK(e.g.all_ended());
  }
}

TEST_CASE("a writer waits for those readers only that have not ended") {
  execution e;
  closure& first = e.add({reads(e.a)});
  closure& second = e.add({reads(e.a)});
  closure& third = e.add({reads(e.a)});
  e.begin();
  CHECK(e.take_all() == tasks{&first, &second, &third});
  e.end(first);
  e.end(third);
  closure& writer = e.add({writes(e.a)});
  closure& reader = e.add({reads(e.a)});
  e.visit_all();
  CHECK(e.take() == nullptr);
  e.end(second);
  CHECK(e.take_all() == tasks{&writer});
  e.end(writer);
  CHECK(e.take_all() == tasks{&reader});
}

TEST_CASE("a chain and a wavefront unroll in order") {
  execution e;
  constexpr std::size_t n = 12;
  std::vector<std::vector<int>> cell(n, std::vector<int>(n));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k) {
      if (i == 0 && k == 0) {
        e.add({writes(cell[0][0])});
      } else if (i == 0 || k == 0) {
        e.add({writes(cell[i][k]), reads(i == 0 ? cell[i][k - 1] : cell[i - 1][k])});
      } else {
        e.add({writes(cell[i][k]), reads(cell[i - 1][k]), reads(cell[i][k - 1])});
      }
    }
  e.begin();
  for (std::size_t diagonal = 0; diagonal < 2 * n - 1; ++diagonal) {
    CHECK(e.take_all().size() == std::min(diagonal + 1, 2 * n - 1 - diagonal));
    e.end_running();
  }
  CHECK(e.g.all_ended());
}

TEST_CASE("the more urgent of two ready tasks is taken first; equals in reference order") {
  execution e;
  closure& low = e.add({}, {}, {.priority = -1});
  closure& first = e.add({});
  closure& high = e.add({}, {}, {.priority = 3});
  closure& second = e.add({});
  closure& also_high = e.add({}, {}, {.priority = 3});
  e.begin();
  CHECK(e.take_all() == tasks{&high, &also_high, &first, &second, &low});
}

TEST_CASE("a task without a priority of its own has that of the task around it") {
  execution e;
  closure& low = e.add({}, {}, {.priority = 1});
  closure& usual = e.add({});
  closure& high = e.add({}, {}, {.priority = 5});
  e.begin(nullptr, 3);
  CHECK(e.take_all() == tasks{&high, &usual, &low});
}

TEST_CASE("an urgent task that becomes ready late overtakes those that wait to be taken") {
  execution e;
  closure& before = e.add({writes(e.a)});
  closure& plain = e.add({});
  closure& urgent = e.add({reads(e.a)}, {}, {.priority = 1});
  e.begin();
  CHECK(e.take() == &before);
  e.end(before);
  CHECK(e.take_all() == tasks{&urgent, &plain});
}

TEST_CASE("a local task is for the owner only") {
  execution e;
  closure& local = e.add({writes(e.a)}, {}, {.local = true});
  closure& other = e.add({});
  closure& behind = e.add({reads(e.a)});
  e.begin();
  CHECK(e.take_all() == tasks{&other});
  CHECK(e.g.needs_owner());
  CHECK(e.take_for_owner() == &local);
  CHECK_FALSE(e.g.needs_owner());
  e.end(local);
  CHECK(e.take_all() == tasks{&behind});
}

TEST_CASE("a thief that passes by some tasks does not put others in front that must be dropped") {
  execution e;
  closure& stays = e.add({});
  closure& fails = e.add({});
  closure& dropped = e.add({});
  static const closure* unwanted;
  unwanted = &stays;
  const auto wanted = [](const closure& c) noexcept { return &c != unwanted; };
  e.begin();
  REQUIRE(e.take(wanted) == &fails);
  e.fail(fails, 1);
  e.end(fails);
  CHECK(e.take(wanted) == nullptr);
  CHECK(e.take() == &stays);  // not behind the one that is dropped
  e.end(stays);
  CHECK(e.take() == nullptr);
  CHECK(e.take_for_owner() == &dropped);
  CHECK(e.must_drop(dropped));
}

TEST_CASE("the owner takes local tasks and others by urgency, then by reference order") {
  execution e;
  closure& one = e.add({});
  closure& two = e.add({}, {}, {.local = true});
  closure& three = e.add({}, {}, {.priority = 1});
  closure& four = e.add({}, {}, {.priority = 1, .local = true});
  closure& five = e.add({}, {}, {.priority = 2, .local = true});
  closure& six = e.add({});
  e.begin();
  CHECK(e.take_all_for_owner() == tasks{&five, &three, &four, &one, &two, &six});
}

TEST_CASE("what is given back is taken again") {
  execution e;
  closure& first = e.add({});
  closure& second = e.add({});
  e.begin();
  CHECK(e.take_all() == tasks{&first, &second});
  e.g.give_back(*e.running.at(&first));
  CHECK(e.g.ready() == 1);
  CHECK(e.take_all() == tasks{&first});
}

TEST_CASE("tasks that commute run one at a time, in any order, between others") {
  execution e;
  closure& before = e.add({writes(e.a)});
  const tasks members{&e.commutes(e.a), &e.commutes(e.a), &e.commutes(e.a)};
  closure& after = e.add({reads(e.a)});
  e.begin();
  CHECK(e.take_all() == tasks{&before});
  e.end(before);
  tasks order;
  while (const closure* t = e.take()) {
    CHECK(e.take() == nullptr);  // the others are blocked
    order.push_back(t);
    e.end(*t);
    if (order.size() == 3) break;
  }
  CHECK(std::is_permutation(order.begin(), order.end(), members.begin(), members.end()));
  CHECK(e.take_all() == tasks{&after});
}

TEST_CASE("a task that commutes on two objects holds both or none") {
  execution e;
  closure& on_a = e.commutes(e.a);
  closure& on_both =
      e.add_shared(access_mode::commute, &e.a).add_access({.object = &e.b, .mode = access_mode::commute});
  closure& on_b = e.commutes(e.b);
  e.begin();
  CHECK(e.take_all() == tasks{&on_a, &on_b});
  e.end(on_b);
  CHECK(e.take() == nullptr);
  closure& late_on_b = e.commutes(e.b);
  e.visit_all();
  CHECK(e.take() == &late_on_b);  // b is free, for nobody holds it while waiting for a
  e.end(on_a);
  CHECK(e.take() == nullptr);
  e.end(late_on_b);
  CHECK(e.take_all() == tasks{&on_both});
  e.end(on_both);
  CHECK(e.g.all_ended());
}

TEST_CASE("a task that commutes and is given back lets the next one in") {
  execution e;
  closure& first = e.commutes(e.a);
  closure& second = e.commutes(e.a);
  e.begin();
  CHECK(e.take() == &first);
  CHECK(e.take() == nullptr);  // the second is blocked now
  e.g.give_back(*e.running.at(&first));
  CHECK(e.take() == &second);
  CHECK(e.take() == nullptr);
  e.end(second);
  CHECK(e.take() == &first);
  e.end(first);
  CHECK(e.g.all_ended());
}

TEST_CASE("who executes another task first does not take one that may wait for earlier ones") {
  execution e;
  const closure& holder = e.commutes(e.a);
  const closure& blocked = e.commutes(e.a);
  made_closure& waits = e.add();
  waits.may_wait_for_earlier = true;
  const closure& plain = e.add();
  e.begin();
  CHECK(e.take() == &holder);
  CHECK(e.take_behind() == nullptr);  // the second one is blocked now, and what comes behind may wait
  CHECK(e.take() == &waits);
  CHECK(e.take_behind() == &plain);
  CHECK(e.take_behind() == nullptr);
  e.end(holder);
  CHECK(e.take_behind() == &blocked);
}

TEST_CASE("a commuting task that was running when the frame was promoted shuts the others out") {
  for (const bool stolen : {false, true}) {
    execution e;
    closure& first = e.commutes(e.a);
    closure& second = e.commutes(e.a);
    closure& third = e.commutes(e.a);
    if (stolen) set(first, closure_state::stolen);
    e.begin(stolen ? nullptr : &first);
    CHECK(e.take() == nullptr);
    if (stolen) e.running[&first] = e.g.take_stolen_node(first);
    e.end(first);
    CHECK(e.take() != nullptr);
    CHECK(e.take() == nullptr);
    e.end_running();
    CHECK(e.take() != nullptr);
    e.end_running();
    CHECK(e.g.all_ended());
    static_cast<void>(second), static_cast<void>(third);
  }
}

TEST_CASE("many tasks that commute on one object are no burden") {
  execution e;
  const int n = 50'000 / static_cast<int>(weft_test::scale());
  for (int i = 0; i < n; ++i) e.commutes(e.a);
  e.g.begin(e, *e.top, nullptr, 0);
  int ended = 0;
  while (ended < n) {
    e.g.look_ahead(4, 128);
    const closure* const t = e.take();
    REQUIRE(t != nullptr);
    CHECK(e.take() == nullptr);
    e.end(*t);
    ++ended;
  }
  e.g.look_ahead(4, 128);
  CHECK(e.g.all_ended());
}

TEST_CASE("contributions run together and are folded in reference order, whatever order they end in") {
  std::vector<std::size_t> order{0, 1, 2, 3};
  do {
    execution e;
    closure& before = e.add({writes(e.a)});
    std::vector<closure*> parts;
    for (std::uint32_t i = 0; i < 4; ++i) parts.push_back(&e.contributes(e.a, 10 + i));
    closure& after = e.add({reads(e.a)});
    e.begin();
    CHECK(e.take_all() == tasks{&before});
    e.end(before);
    CHECK(e.take_all().size() == 4);
    std::vector<bool> ran(4);
    for (const std::size_t i : order) {
      CHECK(e.take() == nullptr);
      e.end(*parts[i]);
      ran[i] = true;
      const auto prefix = static_cast<std::size_t>(std::find(ran.begin(), ran.end(), false) - ran.begin());
      CHECK(e.folds.size() == prefix);  // no earlier than all before, and no later
    }
    for (std::uint32_t i = 0; i < 4; ++i) CHECK(e.folds[i] == folded{parts[i], 10 + i});
    CHECK(e.take_all() == tasks{&after});
    e.end(after);
    CHECK(e.g.all_ended());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("contributions by different operations are ordered among each other") {
  execution e;
  closure& plus_1 = e.add_shared(access_mode::reduce, &e.a, &e.plus);
  closure& plus_2 = e.add_shared(access_mode::reduce, &e.a, &e.plus);
  closure& times_1 = e.add_shared(access_mode::reduce, &e.a, &e.times);
  closure& times_2 = e.add_shared(access_mode::reduce, &e.a, &e.times);
  closure& plus_3 = e.add_shared(access_mode::reduce, &e.a, &e.plus);
  e.begin();
  CHECK(e.take_all() == tasks{&plus_1, &plus_2});
  e.end(plus_2);
  CHECK(e.take() == nullptr);
  e.end(plus_1);
  CHECK(e.take_all().size() == 2);
  e.end(times_2);
  e.end(times_1);
  CHECK(e.take_all() == tasks{&plus_3});
  e.end(plus_3);
  const closure* const expected[] = {&plus_1, &plus_2, &times_1, &times_2, &plus_3};
  REQUIRE(e.folds.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(e.folds[i].from == expected[i]);
}

TEST_CASE("a task with contributions to two objects ends when both are folded") {
  execution e;
  closure& to_a = e.contributes(e.a);
  closure& to_both = e.contributes(e.a, 1).add_access(
      {.object = &e.b, .mode = access_mode::reduce, .operation = &e.plus, .part = 2});
  closure& to_b = e.contributes(e.b, 3);
  closure& reader = e.add({reads(e.b)});
  e.begin();
  CHECK(e.take_all() == tasks{&to_a, &to_both, &to_b});
  e.end(to_b);
  CHECK(e.folds.empty());
  e.end(to_both);
  CHECK(e.folds == std::vector<folded>{{&to_both, 2}, {&to_b, 3}});
  CHECK(e.take() == nullptr);  // its contribution to a waits for to_a
  e.end(to_a);
  CHECK(e.folds.size() == 4);
  CHECK(e.folds[2] == folded{&to_a, 0});
  CHECK(e.folds[3] == folded{&to_both, 1});
  CHECK(e.take_all() == tasks{&reader});
}

TEST_CASE("two contributions of one task to one object are folded in their order") {
  execution e;
  closure& twice = e.contributes(e.a, 0).add_access(
      {.object = &e.a, .mode = access_mode::reduce, .operation = &e.plus, .part = 1});
  closure& next = e.contributes(e.a, 5);
  e.begin();
  CHECK(e.take_all() == tasks{&twice, &next});
  e.end(next);
  CHECK(e.folds.empty());
  e.end(twice);
  CHECK(e.folds == std::vector<folded>{{&twice, 0}, {&twice, 1}, {&next, 5}});
  CHECK(e.g.all_ended());
}

TEST_CASE("a contribution that was running when the frame was promoted comes before the others") {
  execution e;
  closure& first = e.contributes(e.a, 0);  // contributes to the object itself, not apart
  closure& second = e.contributes(e.a, 1);
  e.begin(&first);
  for (const closure* t : e.take_all()) e.end(*t);
  CHECK(e.folds.empty());
  e.end(first);
  for (const closure* t : e.take_all()) e.end(*t);
  CHECK(e.folds == std::vector<folded>{{&second, 1}});
  CHECK(e.g.all_ended());
}

TEST_CASE("what folding throws counts at the place of the contributing task") {
  execution e;
  closure& first = e.contributes(e.a, 0);
  closure& second = e.contributes(e.a, 1);
  closure& third = e.contributes(e.a, 2);
  closure& after = e.add({writes(e.a)});
  made_closure::on_fold = [&](const folded& f) {
    e.folds.push_back(f);
    if (f.from == &second) throw 5;
  };
  e.begin();
  e.take_all();
  for (const closure* t : {&third, &second, &first}) e.end(*t);
  CHECK(e.folds == std::vector<folded>{{&first, 0}, {&second, 1}});
  CHECK(e.take() == nullptr);
  CHECK(e.take_for_owner() == &after);
  CHECK(e.must_drop(after));
  e.end(after);
  CHECK(e.g.all_ended());
  CHECK(e.error() == 5);
}

TEST_CASE("the failed task that is first in reference order drops all later ones, and no earlier one") {
  execution e;
  std::vector<closure*> all;
  for (int i = 0; i < 6; ++i) all.push_back(&e.add());
  e.begin();
  for (int i = 0; i < 4; ++i) CHECK(e.take() == all[static_cast<std::size_t>(i)]);
  e.fail(*all[3], 3);
  e.end(*all[3]);
  CHECK(e.g.failed());
  CHECK(e.g.needs_owner());
  CHECK(e.take() == nullptr);  // not a thief's business
  e.fail(*all[1], 1);
  e.fail(*all[2], 2);  // later: does not count
  e.end(*all[2]);
  e.end(*all[1]);
  CHECK_FALSE(e.must_drop(*all[0]));
  e.end(*all[0]);
  CHECK(e.take_for_owner() == all[4]);
  CHECK(e.must_drop(*all[4]));
  e.end(*all[4]);
  CHECK(e.take_for_owner() == all[5]);
  CHECK(e.must_drop(*all[5]));
  e.end(*all[5]);
  CHECK(e.g.all_ended());
  CHECK(e.error() == 1);
  CHECK(e.failure.place == all[1]);
  e.g.end();
}

TEST_CASE("what is ready and stands before a failure is for thieves as before") {
  execution e;
  std::vector<closure*> all;
  for (int i = 0; i < 4; ++i) all.push_back(&e.add());
  e.begin();
  std::vector<graph_node*> nodes;
  for (int i = 0; i < 4; ++i) nodes.push_back(e.g.take());
  e.running[all[2]] = nodes[2];
  e.g.give_back(*nodes[3]);
  e.g.give_back(*nodes[1]);
  e.fail(*all[2], 2);
  e.g.update_hint();
  CHECK(e.g.may_take);  // the owner may be in a body that waits for what depends on it
  CHECK(e.take() == all[1]);
  CHECK(e.take() == nullptr);
  CHECK(e.g.needs_owner());
  e.end(*all[1]);
  e.end(*all[2]);
  e.running[all[0]] = nodes[0];
  e.end(*all[0]);
  CHECK(e.take_for_owner() == all[3]);
  CHECK(e.must_drop(*all[3]));
  e.end(*all[3]);
  CHECK(e.g.all_ended());
  CHECK(e.error() == 2);
  e.g.end();
}

TEST_CASE("a failure at the beginning of all drops every task, also the first") {
  execution e;
  const tasks all{&e.add(), &e.add()};
  e.begin();
  e.g.fail(0, {std::make_exception_ptr(7)});  // a stopped run
  CHECK(e.take() == nullptr);
  for (const closure* t : all) {
    CHECK(e.take_for_owner() == t);
    CHECK(e.must_drop(*t));
    e.end(*t);
  }
  CHECK(e.error() == 7);
}

TEST_CASE(
    "a closure that stands for an exception drops what follows, and keeps the exception until the end") {
  for (const bool given_up : {false, true}) {
    execution e;
    closure& before = e.add();
    closure& raised = e.add();
    raised.set_failure(std::make_exception_ptr(4));
    set(raised, closure_state::failed);
    closure& after = e.add();
    e.begin();
    if (given_up) {
      e.g.give_up();
      CHECK(state_of(before) == closure_state::created);
      CHECK(state_of(raised) == closure_state::failed);
      CHECK(raised.take_failure() != nullptr);
      continue;
    }
    CHECK(e.take() == &before);
    CHECK_FALSE(e.must_drop(before));
    CHECK(e.take() == nullptr);
    CHECK(e.take_for_owner() == &after);
    CHECK(e.must_drop(after));
    e.end_running();
    CHECK(e.g.all_ended());
    CHECK(e.error() == 4);
    e.g.end();
  }
}

TEST_CASE("a task that names one object twice has the stronger right, and does not wait for itself") {
  using m = access_mode;
  struct pair {
    m first, second;
  };
  constexpr pair pairs[] = {{m::read, m::read},      {m::read, m::write},   {m::write, m::read},
                            {m::update, m::read},    {m::read, m::update},  {m::commute, m::write},
                            {m::write, m::commute},  {m::commute, m::read}, {m::read, m::commute},
                            {m::commute, m::commute}};
  for (const pair& p : pairs)
    for (const int readers : {0, 1, 3}) {
      INFO(static_cast<int>(p.first) << ' ' << static_cast<int>(p.second) << ", readers " << readers);
      execution e;
      tasks before;
      for (int i = 0; i < readers; ++i) before.push_back(&e.add({reads(e.a)}));
      closure& twice = e.add_shared(p.first, &e.a).add_access({.object = &e.a, .mode = p.second});
      closure& reader = e.add({reads(e.a)});
      closure& other = e.commutes(e.a);
      closure& last = e.add({reads(e.a)});
      e.begin();
      const bool only_reads = p.first == m::read && p.second == m::read;
      if (only_reads) {
        before.push_back(&twice);
        before.push_back(&reader);
      }
      CHECK(e.take_all() == (before.empty() ? tasks{&twice} : before));
      if (!only_reads) {
        if (!before.empty()) {
          e.end_running();
          CHECK(e.take_all() == tasks{&twice});
        }
        e.end(twice);
        CHECK(e.take_all() == tasks{&reader});
      }
      e.end_running();
      CHECK(e.take_all() == tasks{&other});
      e.end(other);
      CHECK(e.take_all() == tasks{&last});
      e.end(last);
      CHECK(e.g.all_ended());
    }
}

TEST_CASE("a task that writes and commutes comes before later ones that commute") {
  execution e;
  closure& first = e.add({writes(e.a)}).add_access({.object = &e.a, .mode = access_mode::commute});
  closure& second = e.commutes(e.a);
  e.begin();
  CHECK(e.take_all() == tasks{&first});
  e.end(first);
  CHECK(e.take_all() == tasks{&second});
}

TEST_CASE("slices are ordered exactly where they overlap") {
  execution e;
  closure& low = e.slice(access_mode::write, e.a, 0, 100);
  closure& high = e.slice(access_mode::write, e.a, 100, 200);  // adjacent
  closure& middle = e.slice(access_mode::read, e.a, 50, 150);
  closure& begin = e.slice(access_mode::read, e.a, 0, 50);
  closure& rewrite = e.slice(access_mode::write, e.a, 0, 50);
  closure& beyond = e.slice(access_mode::write, e.a, 1000, 2000);
  e.begin();
  CHECK(e.take_all() == tasks{&low, &high, &beyond});
  e.end(low);
  CHECK(e.take_all() == tasks{&begin});
  e.end(high);
  CHECK(e.take_all() == tasks{&middle});
  e.end(begin);
  CHECK(e.take_all() == tasks{&rewrite});  // whether or not the middle is still read
  e.end_running();
  CHECK(e.g.all_ended());
}

TEST_CASE("a task of the whole array waits for all pending slices, and the slices behind it for that task") {
  execution e;
  tasks writers, readers;
  for (std::size_t i = 0; i < 10; ++i)
    writers.push_back(&e.slice(access_mode::write, e.a, 10 * i, 10 * i + 10));
  closure& whole = e.slice(access_mode::update, e.a, 0, 100);
  for (std::size_t i = 0; i < 10; ++i)
    readers.push_back(&e.slice(access_mode::read, e.a, 10 * i + 3, 10 * i + 7));
  e.begin();
  CHECK(e.take_all() == writers);
  for (const closure* t : writers) {
    CHECK(e.take() == nullptr);
    e.end(*t);
  }
  CHECK(e.take_all() == tasks{&whole});
  e.end(whole);
  const tasks taken = e.take_all();
  CHECK(std::is_permutation(taken.begin(), taken.end(), readers.begin(), readers.end()));
}

TEST_CASE("an empty slice conflicts with nothing") {
  execution e;
  closure& whole = e.slice(access_mode::write, e.a, 0, 100);
  closure& empty = e.slice(access_mode::write, e.a, 50, 50);
  closure& behind = e.slice(access_mode::read, e.a, 0, 100);
  e.begin();
  CHECK(e.take_all() == tasks{&whole, &empty});
  e.end(whole);
  CHECK(e.take_all() == tasks{&behind});
}

TEST_CASE("slices that overlap within one task do not make it wait for itself") {
  execution e;
  closure& task =
      e.slice(access_mode::read, e.a, 0, 60)
          .add_access({.object = &e.a, .mode = access_mode::write, .sliced = true, .begin = 40, .end = 100});
  closure& reader = e.slice(access_mode::read, e.a, 0, 40);
  closure& waits = e.slice(access_mode::read, e.a, 40, 41);
  closure& writes_low = e.slice(access_mode::write, e.a, 0, 10);
  e.begin();
  CHECK(e.take_all() == tasks{&task, &reader});
  e.end(reader);
  CHECK(e.take() == nullptr);
  e.end(task);
  const tasks taken = e.take_all();
  const tasks expected{&waits, &writes_low};
  CHECK(std::is_permutation(taken.begin(), taken.end(), expected.begin(), expected.end()));
}

TEST_CASE("slices of different arrays have nothing to do with each other") {
  execution e;
  closure& of_a = e.slice(access_mode::write, e.a, 0, 100);
  closure& of_b = e.slice(access_mode::write, e.b, 0, 100);
  e.begin();
  CHECK(e.take_all() == tasks{&of_a, &of_b});
}

TEST_CASE("random slices wait for what they overlap and conflict with, and for nothing else") {
  struct range {
    closure* task;
    access_mode mode;
    std::size_t begin, end;
  };
  weft_test::random dice(weft_test::seed());
  for (int round = 0; round < 50; ++round) {
    execution e;
    std::vector<range> all;
    for (int i = 0; i < 60; ++i) {
      const std::size_t from = dice.below(64), to = from + dice.below(20);
      const access_mode mode = dice.one_in(2) ? access_mode::read : access_mode::write;
      all.push_back({&e.slice(mode, e.a, from, to), mode, from, to});
    }
    std::map<const closure*, bool> ended;
    const auto ready = [&](std::size_t i) {
      for (std::size_t k = 0; k < i; ++k)
        if (!ended[all[k].task] && weft::sched::conflict(all[k].mode, all[i].mode) &&
            std::max(all[k].begin, all[i].begin) < std::min(all[k].end, all[i].end))
          return false;
      return true;
    };
    e.begin();
    for (std::size_t left = all.size(); left > 0; --left) {
      e.take_all();
      int wrong = 0;
      for (std::size_t i = 0; i < all.size(); ++i)
        if (!ended[all[i].task]) wrong += ready(i) != (e.running.count(all[i].task) != 0);
      CHECK(wrong == 0);
      auto next = e.running.begin();
      std::advance(next, static_cast<std::ptrdiff_t>(dice.below(e.running.size())));
      const closure* const t = next->first;
      e.end(*t);
      ended[t] = true;
    }
    CHECK(e.g.all_ended());
  }
}

TEST_CASE("tasks that commute on overlapping slices exclude each other") {
  execution e;
  closure& wide = e.slice(access_mode::commute, e.a, 0, 100);
  e.begin();
  closure& part = e.slice(access_mode::commute, e.a, 50, 100);  // splits the segment that is pending
  closure& far = e.slice(access_mode::commute, e.a, 200, 300);
  e.visit_all();
  CHECK(e.take_all() == tasks{&wide, &far});
  closure& other = e.slice(access_mode::commute, e.a, 0, 20);  // splits one that is busy
  e.visit_all();
  CHECK(e.take() == nullptr);
  e.end(wide);
  const tasks taken = e.take_all();
  const tasks expected{&part, &other};
  CHECK(std::is_permutation(taken.begin(), taken.end(), expected.begin(), expected.end()));
  e.end_running();
  CHECK(e.g.all_ended());
}

TEST_CASE("a contribution to a slice is folded once, in reference order, however the slice is divided") {
  execution e;
  const auto contributes = [&e](std::size_t begin, std::size_t end, std::uint32_t part) -> closure& {
    return e.add().add_access({.object = &e.a,
                               .mode = access_mode::reduce,
                               .sliced = true,
                               .begin = begin,
                               .end = end,
                               .operation = &e.plus,
                               .part = part});
  };
  closure& low = e.slice(access_mode::write, e.a, 0, 50);
  closure& first = contributes(0, 100, 0);
  closure& second = contributes(25, 75, 1);
  closure& third = contributes(0, 100, 2);
  closure& empty = contributes(10, 10, 3);
  closure& after = e.slice(access_mode::read, e.a, 60, 70);
  e.begin();
  while (!e.g.all_ended()) {
    e.take_all();
    REQUIRE(!e.running.empty());
    e.end(*std::prev(e.running.end())->first);
  }
  std::vector<folded> in_order;
  for (const folded& f : e.folds)
    if (f.from != &empty) in_order.push_back(f);
  CHECK(in_order == std::vector<folded>{{&first, 0}, {&second, 1}, {&third, 2}});
  CHECK(e.folds.size() == 4);  // also the empty one is told that it is over
  static_cast<void>(low), static_cast<void>(after);
}

TEST_CASE("closures linked later are visited when they come") {
  execution e;
  e.begin();
  CHECK(e.g.all_ended());
  closure& first = e.add({writes(e.a)});
  CHECK_FALSE(e.g.all_ended());
  e.visit_all();
  CHECK(e.take_all() == tasks{&first});
  closure& second = e.add({reads(e.a)});
  e.visit_all();
  CHECK(e.take() == nullptr);
  e.end(first);
  CHECK(e.take_all() == tasks{&second});
  e.end(second);
  CHECK(e.g.all_ended());
}

TEST_CASE("the graph begins at the closure that the owner is at, and goes on behind it") {
  execution e;
  e.add({writes(e.b)});  // has ended
  closure& at = e.add({writes(e.a)});
  closure& waits = e.add({reads(e.a)});
  closure& free = e.add({writes(e.b)});
  e.begin(&at);
  CHECK(e.g.at->task == &at);
  CHECK(e.take_all() == tasks{&free});
  e.end(at);
  CHECK(e.take_all() == tasks{&waits});
}

TEST_CASE("a closure that was stolen before is noted, and those behind it wait for it") {
  execution e;
  closure& stolen = e.add({writes(e.a)});
  closure& done = e.add({writes(e.b)});
  closure& waits = e.add({reads(e.a)});
  closure& free = e.add({reads(e.b)});
  set(stolen, closure_state::stolen);
  set(done, closure_state::done);
  e.begin();
  CHECK(state_of(stolen) == closure_state::noted);
  CHECK_FALSE(e.g.can_be_given_up());
  CHECK(e.take_all() == tasks{&free});
  e.end(free);
  CHECK_FALSE(e.g.all_ended());
  CHECK_FALSE(e.g.needs_owner());
  CHECK(e.g.take_stolen_node(waits) == nullptr);
  graph_node* const n = e.g.take_stolen_node(stolen);
  REQUIRE(n != nullptr);
  CHECK(n->task == &stolen);
  CHECK(e.g.take_stolen_node(stolen) == nullptr);
  graph_entry* folds = nullptr;
  e.g.finish(*n, folds);
  CHECK(folds == nullptr);
  CHECK(e.take_all() == tasks{&waits});
  e.end(waits);
  CHECK(e.g.all_ended());
}

TEST_CASE("given up, a graph has left the closures as they were") {
  execution e;
  const tasks all{&e.add({writes(e.a)}), &e.add({reads(e.a)})};
  e.begin();
  CHECK(e.g.can_be_given_up());
  e.g.give_up();
  CHECK(e.g.home == nullptr);
  for (const closure* t : all) CHECK(state_of(*t) == closure_state::created);
  CHECK(e.g.ready() == 0);
  e.begin();  // and may begin again
  CHECK(e.take_all() == tasks{all[0]});
}

TEST_CASE("a graph is used again for another frame") {
  execution e;
  for (int round = 0; round < 3; ++round) {
    closure& first = e.add({writes(e.a)}, {}, {.priority = round});
    closure& second = e.add({reads(e.a)});
    e.begin();
    CHECK(e.take_all() == tasks{&first});
    e.fail(first, 9);
    e.end(first);
    CHECK(e.take_for_owner() == &second);
    e.end(second);
    CHECK(e.g.all_ended());
    CHECK(e.error() == 9);
    e.g.end();
    pop_frame(e);
    e.open();
    CHECK_FALSE(e.g.failed());
  }
}

/// What a worker reports of a batch whose tasks took that long each, which ends in an hour: so what follows
/// from it lasts for the test.
void report(graph& g, std::chrono::nanoseconds one, bool by_owner) {
  constexpr std::uint32_t many = weft::sched::granularity::large_frame;
  const auto end = graph::clock::now() + std::chrono::hours(1);
  g.learn_batch({.taken = many, .start = end - one * many}, end, by_owner, 2);
}
constexpr auto tiny = weft::sched::granularity::tiny_task / 2,
               fair = weft::sched::granularity::tiny_task * 3 / 2,
               long_enough = weft::sched::granularity::tiny_task * 3;

/// A worker that has taken tasks, and ends them without the lock.
struct worker_of : weft::sched::node_batch {
  graph& g;
  bool owner;
  std::vector<const closure*> for_all;

  explicit worker_of(graph& of, bool is_owner = false) : g(of), owner(is_owner) {}
  const closure* take() {
    graph_node* const n = owner ? g.take_for_owner() : g.take();
    if (n == nullptr) return nullptr;
    n->next = ended;
    ended = n;
    ++taken;
    return n->task;
  }
  /// Ends what it has begun last.
  void end() {
    graph_node* made = keep_ready(g, *this, *ended, owner);
    for (; made != nullptr; made = made->next) for_all.push_back(made->task);
  }
  /// Begins the next of those that it keeps.
  const closure* go_on() {
    if (unbegun == nullptr) return nullptr;
    graph_node* const n = next();
    n->next = ended;
    ended = n;
    return n->task;
  }
  /// Reports. *Returns*: what it keeps.
  graph_node* report(bool keeps) {
    graph_entry* folds = nullptr;
    graph_node* const n = hand_in(g, *this, nullptr, keeps, folds);
    CHECK(folds == nullptr);
    static_cast<node_batch&>(*this) = {};
    return n;
  }
};

TEST_CASE("who ends a task keeps what becomes ready by that, and reports later") {
  execution e;
  closure& first = e.add({writes(e.a)});
  closure& left = e.add({reads(e.a), writes(e.b)});
  closure& right = e.add({reads(e.a), writes(e.c)});
  closure& last = e.add({reads(e.b), reads(e.c)});
  e.begin();
  report(e.g, long_enough, false);
  worker_of one(e.g);
  CHECK(one.take() == &first);
  one.end();
  CHECK(one.left == 2);
  CHECK(e.take() == nullptr);                        // nobody else knows of them
  CHECK(e.g.unended() == 4);                         // nor that the first has ended
  CHECK(state_of(first) == closure_state::created);  // its line stays where it is until the graph is left
  CHECK(e.g.left_behind() == nullptr);
  CHECK(one.go_on() == &left);
  one.end();
  CHECK(one.left == 1);
  graph_node* const kept = one.report(true);
  REQUIRE(kept != nullptr);
  CHECK(kept->task == &right);
  CHECK(e.g.unended() == 2);
  CHECK(e.g.left_behind() == nullptr);  // somebody is at a task
  one.ended = kept;
  one.taken = 1;
  one.end();
  CHECK(one.go_on() == &last);
  one.end();
  CHECK(one.report(true) == nullptr);
  CHECK(e.g.all_ended());
  CHECK(e.g.left_behind() == &last);
}

TEST_CASE("what a worker has kept and not begun goes back to the graph") {
  execution e;
  closure& first = e.add({writes(e.a)});
  closure& second = e.add({reads(e.a)});
  closure& third = e.add({reads(e.a)});
  e.begin();
  worker_of one(e.g);
  one.take();
  one.end();
  CHECK(one.report(false) == nullptr);
  CHECK(e.g.left_behind() == &first);  // nobody is at a task
  CHECK(e.take_all() == tasks{&second, &third});
}

TEST_CASE("the last of several ends that a task waits for gives it to its worker") {
  execution e;
  e.add({writes(e.a)});
  e.add({writes(e.b)});
  closure& both = e.add({reads(e.a), reads(e.b)});
  e.begin();
  worker_of one(e.g), other(e.g);
  one.take();
  other.take();
  one.end();
  CHECK(one.left == 0);
  other.end();
  CHECK(other.go_on() == &both);
}

TEST_CASE("a worker keeps nothing that others have to know of") {
  execution e;
  closure& first = e.add({writes(e.a)});
  closure& local = e.add({reads(e.a)}, {}, {.local = true});
  closure& waits = e.add({reads(e.a)});
  waits.may_wait_for_earlier = true;
  closure& commutes = e.add({reads(e.a)});
  static_cast<made_closure&>(commutes).add_access({.object = &e.b, .mode = access_mode::commute});
  closure& plain = e.add({reads(e.a)});
  SECTION("thief") {
    e.begin();
    worker_of one(e.g);
    one.take();
    one.end();
    CHECK(one.go_on() == &plain);
    CHECK(one.go_on() == nullptr);
    CHECK(one.for_all == tasks{&local, &waits, &commutes});
  }
  SECTION("owner") {
    e.begin();
    worker_of one(e.g, true);
    one.take();
    one.end();
    CHECK(one.go_on() == &local);
    CHECK(one.go_on() == &plain);
    CHECK(one.for_all == tasks{&waits, &commutes});
  }
  SECTION("behind a failure") {
    e.begin();
    worker_of one(e.g);
    one.take();
    e.g.fail(2, {std::make_exception_ptr(1), &first});
    one.end();
    CHECK(one.go_on() == nullptr);
    CHECK(one.for_all == tasks{&local, &waits, &commutes, &plain});
  }
}

TEST_CASE("a worker goes on with its batch unless something has to be told") {
  using weft::sched::may_go_on;
  execution e;
  closure& first = e.add({writes(e.a)});
  for (int i = 0; i < 3; ++i) e.add({reads(e.a)});
  e.begin();
  worker_of one(e.g);
  CHECK_FALSE(may_go_on(one, 0));
  CHECK(one.take() == &first);
  one.end();
  CHECK(one.left == 3);
  CHECK(may_go_on(one, 0));
  CHECK(may_go_on(one, weft::sched::hungry));
  CHECK_FALSE(may_go_on(one, weft::sched::stop_asked));
  one.untold = true;  // others wait for something in it
  CHECK_FALSE(may_go_on(one, 0));
  one.untold = false;
  // Not with two left behind the next one while tasks are long.
  e.g.may_keep.store(2, std::memory_order_relaxed);
  CHECK_FALSE(keeps_few(e.g, one));
  e.g.may_keep.store(3, std::memory_order_relaxed);
  CHECK(keeps_few(e.g, one));
  one.kept = 2 * weft::sched::granularity::most_kept_nodes;
  CHECK_FALSE(may_go_on(one, 0));
}

TEST_CASE("a graph calls its owner for local tasks, and for visits where tasks are not tiny") {
  execution e;
  closure& first = e.add({writes(e.a)});
  e.add({reads(e.a)}, {}, {.local = true});
  for (int i = 0; i < 100; ++i) e.add({writes(e.a)});
  const auto wants_owner = [&] {
    e.g.update_hint();
    return e.g.wants_owner.load(std::memory_order_relaxed);
  };
  e.g.begin(e, *e.top, nullptr, 0);
  e.g.look_ahead(1, 1);
  CHECK_FALSE(wants_owner());
  CHECK(e.take() == &first);
  report(e.g, long_enough, true);
  CHECK(wants_owner());
  e.visit_all();
  CHECK_FALSE(wants_owner());
  e.end(first);
  CHECK(wants_owner());
}

TEST_CASE("a graph is wide if its longest path is less than two thirds of it, whatever is ready") {
  constexpr std::size_t side = 2 * weft::sched::granularity::crowded_frame;
  std::vector<int> row(side), other(side);
  execution e;
  const auto look_ahead = [&e](std::size_t most) {
    e.g.begin(e, *e.top, nullptr, 0);
    e.g.look_ahead(2, most, true);
    return e.g.is_wide();
  };
  SECTION("a chain") {
    for (std::size_t i = 0; i < 4 * side; ++i) e.add({updates(e.a)});
    CHECK_FALSE(look_ahead(SIZE_MAX));
    CHECK(e.g.unended() == 4 * side);
  }
  SECTION("tasks that only all wait for the same one") {
    e.add({writes(e.a)});
    for (std::size_t i = 0; i < side; ++i) e.add({reads(e.a)});
    CHECK(look_ahead(SIZE_MAX));
    CHECK(e.g.unended() == weft::sched::granularity::crowded_frame);  // and looks no further
  }
  SECTION("many readers between two writers are one step") {
    for (std::size_t i = 0; i < 8; ++i) {
      e.add({writes(e.a)});
      for (std::size_t j = 0; j < 8; ++j) e.add({reads(e.a)});
    }
    CHECK(look_ahead(SIZE_MAX));
  }
  SECTION("the rows of a wavefront") {
    for (std::size_t i = 0; i < side; ++i)
      i == 0 ? e.add({updates(row[i])}) : e.add({reads(row[i - 1]), updates(row[i])});
    e.add({reads(row[0]), updates(other[0])});
    for (std::size_t i = 1; i < side; ++i) e.add({reads(row[i]), reads(other[i - 1]), updates(other[i])});
    CHECK_FALSE(look_ahead(side + side / 2));
    e.g.look_ahead(2, SIZE_MAX, true);
    CHECK(e.g.is_wide());
    CHECK(e.g.ready() == 1);
    CHECK(e.g.unended() < 2 * side);
  }
  SECTION("what has ended counts no more") {
    closure& first = e.add({writes(e.a)});
    e.add({reads(e.a)});
    e.g.begin(e, *e.top, nullptr, 0);
    e.visit_all();
    CHECK(e.take() == &first);
    e.end(first);
    for (std::size_t i = 0; i < side; ++i) e.add({updates(e.b)});
    e.g.look_ahead(2, SIZE_MAX, true);
    CHECK_FALSE(e.g.is_wide());
  }
}

TEST_CASE(
    "an owner that would visit many closures is known before, and a short list lets workers keep less") {
  using weft::sched::granularity::long_body;
  constexpr std::size_t takers = 4;
  execution e;
  for (std::size_t i = 0; i < 200; ++i) e.add({writes(e.a)});
  e.g.begin(e, *e.top, nullptr, 0);
  e.g.mutex.lock();
  e.g.visit_for(takers, false);
  CHECK_FALSE(e.g.owner_would_visit());  // nothing is known of the tasks
  const auto may_keep = [&](std::chrono::nanoseconds body) {
    const auto end = graph::clock::now() + std::chrono::hours(1);
    for (int i = 0; i < 20; ++i)
      e.g.learn_batch({.taken = 1, .start = end - body, .first_took = body}, end, true, takers);
    e.g.update_hint();
    return e.g.may_keep.load(std::memory_order_relaxed);
  };
  CHECK(may_keep(long_body / 2) > 1);
  CHECK(e.g.owner_would_visit());
  CHECK(may_keep(2 * long_body) == 1);
  e.g.visit_for(takers, true);
  CHECK_FALSE(e.g.owner_would_visit());  // there is nothing left
  e.g.mutex.unlock();
}

TEST_CASE("where enough is ready, workers keep long tasks, too") {
  using weft::sched::granularity::long_body;
  constexpr std::size_t takers = 4;
  execution e;
  for (std::size_t i = 0; i < takers; ++i) e.add();
  e.g.begin(e, *e.top, nullptr, 0);
  e.g.mutex.lock();
  e.g.visit_for(takers, false);
  REQUIRE(e.g.ready() == takers);
  const auto end = graph::clock::now() + std::chrono::hours(1);
  for (int i = 0; i < 3; ++i)
    e.g.learn_batch({.taken = 1, .start = end - 2 * long_body, .first_took = 2 * long_body}, end, true,
                    takers);
  REQUIRE(e.g.speed.batch() > 1);
  e.g.update_hint();
  CHECK(e.g.may_keep.load(std::memory_order_relaxed) == e.g.speed.batch());
  e.take();
  e.g.update_hint();
  CHECK(e.g.may_keep.load(std::memory_order_relaxed) == 1);
  e.g.mutex.unlock();
}

TEST_CASE("nothing is kept where there are priorities, fences or failures, or tasks are tiny") {
  execution e;
  closure& task = e.add({writes(e.a)});
  const auto long_batch = [&] { report(e.g, long_enough, false); };
  const auto may_keep = [&] {
    e.g.update_hint();
    return e.g.may_keep.load(std::memory_order_relaxed) != 0;
  };
  SECTION("none") {
    e.begin();
    CHECK_FALSE(may_keep());  // nothing is known of the tasks
    long_batch();
    CHECK(may_keep());
    report(e.g, tiny, false);
    CHECK_FALSE(may_keep());
  }
  SECTION("fences") {
    e.add().as_fence();
    e.begin();
    long_batch();
    CHECK_FALSE(may_keep());
  }
  SECTION("priorities") {
    e.add({}, {}, {.priority = 1});
    e.begin();
    long_batch();
    CHECK_FALSE(may_keep());
  }
  SECTION("failures") {
    e.begin();
    long_batch();
    e.take();
    e.fail(task, 1);
    CHECK_FALSE(may_keep());
  }
}

TEST_CASE("closures that are visited with the lock open are ordered as their rights demand") {
  weft_test::random random(weft_test::seed());
  enum class right : std::uint8_t { read, write, commute, contribute };
  for (int round = 0; round < 20; ++round) {
    execution e;
    constexpr std::size_t count = 150;
    struct {
      int object;
      right what;
    } rights[count];
    std::map<const closure*, std::size_t> number;
    for (std::size_t i = 0; i < count; ++i) {
      const int* const objects[] = {&e.a, &e.b, &e.c, &e.d};
      const int which = static_cast<int>(random.below(4));
      const int& object = *objects[which];
      // Mostly such as need no lock.
      const auto kind = random.below(12);
      closure& c = kind == 0   ? e.commutes(object)
                   : kind == 1 ? e.contributes(object)
                   : kind == 2 ? e.add({updates(object)}, {}, {.local = true})
                   : kind < 6  ? e.add({writes(object)})
                               : e.add({reads(object)});
      rights[i] = {which, kind == 0   ? right::commute
                          : kind == 1 ? right::contribute
                          : kind < 6  ? right::write
                                      : right::read};
      number[&c] = i;
    }
    e.g.begin(e, *e.top, nullptr, 0);
    std::vector<std::size_t> order;
    for (;;) {
      e.g.mutex.lock();
      e.g.visit_ahead(1 + random.below(20), 50, true);
      e.g.mutex.unlock();
      const closure* const c = e.take_for_owner();
      if (c == nullptr) break;
      order.push_back(number[c]);
      e.end(*c);
    }
    INFO("round " << round << ", seed " << weft_test::seed());
    CHECK(e.g.all_ended());
    REQUIRE(order.size() == count);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = i + 1; j < count; ++j) {
        const auto &earlier = rights[order[i]], &later = rights[order[j]];
        wrong += order[i] > order[j] && earlier.object == later.object &&
                 (earlier.what != later.what || earlier.what == right::write);
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("looking ahead ends when enough is ready or the budget is used up") {
  execution e;
  for (int i = 0; i < 20; ++i) e.add({reads(e.b)});
  for (int i = 0; i < 100; ++i) e.add({writes(e.a)});
  closure& last = e.add({reads(e.c)});
  e.g.begin(e, *e.top, nullptr, 0);
  CHECK(e.g.ready() == 0);
  e.g.look_ahead(5, 100);
  CHECK(e.g.ready() == 5);
  e.g.look_ahead(5, 100);
  CHECK(e.g.ready() == 5);
  e.g.look_ahead(100, 3);
  CHECK(e.g.ready() == 8);
  e.g.look_ahead(100, 0);
  CHECK(e.g.ready() == 8);
  e.g.look_ahead(100, 50);
  CHECK(e.g.ready() == 21);  // the readers and the first writer
  const tasks taken = e.take_all();
  CHECK(taken.size() == 21);
  e.g.look_ahead(1, 62);
  CHECK(e.g.ready() == 0);
  e.g.look_ahead(1, 1);
  CHECK(e.take_all() == tasks{&last});
}

TEST_CASE("when everything visited has ended, the graph goes on with the next closure in its old memory") {
  execution e;
  const int n = 20'000;
  for (int i = 0; i < n; ++i) e.add({writes(e.a)});
  e.g.begin(e, *e.top, nullptr, 0);
  int ended = 0;
  for (; ended < n; ++ended) {
    const closure* const t = e.take_for_owner();
    REQUIRE(t != nullptr);
    e.end(*t);
  }
  CHECK(e.take_for_owner() == nullptr);
  CHECK(e.g.all_ended());
}

TEST_CASE("a task that writes does not wait for those that use the old value") {
  number x(1);
  {
    execution e;
    const closure& old = e.add({reads(x)});
    const closure& changes = e.add({writes(x)}).may_rename(kind_of_number);
    const closure& young = e.add({reads(x)});
    const closure& last = e.add({updates(x)});
    e.begin(nullptr, 0, 2);
    CHECK(e.take_all() == tasks{&old, &changes});
    CHECK(&e.begun(old) == &x);
    number& version = e.begun(changes);
    CHECK(&version != &x);
    version.value = 2;
    CHECK_FALSE(e.write_back());
    e.end(changes);
    CHECK(e.take_all() == tasks{&young});
    CHECK(&e.begun(young) == &version);
    e.end(young);
    CHECK(e.take_all() == tasks{&last});  // before `old` has ended
    e.begun(last).value += 5;
    e.end(last);
    CHECK_FALSE(e.write_back());
    CHECK(x.value == 1);
    e.end(old);
    CHECK(number::alive == 2);
    CHECK(e.write_back());
    CHECK(x.value == 7);
    CHECK(number::alive == 1);
    CHECK(e.g.renames() == 1);
    CHECK(e.g.all_ended());
    const closure& more = e.add({reads(x)});  // finds the object where it always was
    e.visit_all();
    CHECK(e.take_for_owner() == &more);
    CHECK(&e.begun(more) == &x);
    e.end(more);
    CHECK_FALSE(e.write_back());
    e.g.end();
  }
  CHECK(number::alive == 1);
}

TEST_CASE("an object is renamed only where that is asked for, and something is in use") {
  number x, y, z;
  execution e;
  e.add({writes(x)}).may_rename(kind_of_number);  // nobody uses it
  e.add({reads(y)});
  e.add({writes(y)});
  e.add({reads(z)});
  e.add({updates(z)}).may_rename(kind_of_number);
  const closure& both = e.add({writes(x), reads(x)}).may_rename(kind_of_number);
  e.begin(nullptr, 0, 8);
  CHECK(e.g.renames() == 1);  // of x, for the last one
  e.take_all();
  number& version = e.begun(both);
  CHECK(&version != &x);
  CHECK(both.objects()[1] == &version);
  e.end_running();
  e.take_all();
  e.end_running();
  CHECK(e.write_back());

  execution alone;
  alone.add({reads(x)});
  alone.add({writes(x)}).may_rename(kind_of_number);
  alone.begin(nullptr, 0, 1);
  CHECK(alone.g.renames() == 0);
  CHECK(alone.take_all().size() == 1);
}

TEST_CASE("an object has a bounded number of versions, and they are used again") {
  number x(0);
  execution e;
  std::vector<const closure*> readers, writers;
  for (int i = 0; i < 6; ++i) {
    readers.push_back(&e.add({reads(x)}));
    writers.push_back(&e.add({writes(x)}).may_rename(kind_of_number));
  }
  e.begin(nullptr, 0, 3);
  CHECK(e.take_all() == tasks{readers[0], writers[0], writers[1]});
  CHECK(number::alive == 1);
  e.begun(*writers[0]).value = 1;
  e.begun(*writers[1]).value = 2;
  CHECK(number::alive == 3);
  e.end(*writers[0]);
  e.end(*writers[1]);
  CHECK(e.take_all() == tasks{readers[1], readers[2]});
  CHECK(e.begun(*readers[1]).value == 1);
  CHECK(e.begun(*readers[2]).value == 2);
  e.end(*readers[1]);
  e.end(*readers[2]);
  // The third waits for the object's own memory, the next two for the others, which are free now.
  CHECK(e.take_all() == tasks{writers[3], writers[4]});
  e.begun(*writers[3]).value = 4;
  e.begun(*writers[4]).value = 5;
  e.end(*writers[3]);
  e.end(*writers[4]);
  CHECK(e.take_all() == tasks{readers[4], readers[5]});
  CHECK(e.begun(*readers[4]).value == 4);
  CHECK(e.begun(*readers[5]).value == 5);
  CHECK(&e.begun(*readers[0]) == &x);
  e.end(*readers[0]);
  CHECK(e.take_all() == tasks{writers[2]});
  CHECK(&e.begun(*writers[2]) == &x);
  x.value = 3;
  e.end(*writers[2]);
  CHECK(e.take_all() == tasks{readers[3]});
  CHECK(e.begun(*readers[3]).value == 3);
  e.end(*readers[3]);
  CHECK(e.take_all() == tasks{writers[5]});
  e.begun(*writers[5]).value = 6;
  CHECK(number::alive == 3);
  e.take_all();
  e.end_running();
  CHECK(e.write_back());
  CHECK(x.value == 6);
  CHECK(number::alive == 1);
}

TEST_CASE("after a failure an object has the value that the serial program would have left") {
  number x(10);
  execution e;
  const closure& first = e.add({reads(x)});
  const closure& one = e.add({writes(x)}).may_rename(kind_of_number);
  const closure& fails = e.add({reads(x)});
  const closure& two = e.add({writes(x)}).may_rename(kind_of_number);
  const closure& three = e.add({writes(x)}).may_rename(kind_of_number);
  e.begin(nullptr, 0, 3);
  CHECK(e.take_all() == tasks{&first, &one, &two});
  e.begun(two).value = 12;  // before what comes before it has failed
  e.end(two);
  e.begun(one).value = 11;
  e.end(one);
  CHECK(e.take_all() == tasks{&fails});
  e.fail(fails, 7);
  e.end(fails);
  e.end(first);
  CHECK(e.take_for_owner() == &three);
  CHECK(e.must_drop(three));
  e.running.at(&three)->dropped = true;
  e.end(three);
  CHECK(e.write_back());
  CHECK(x.value == 11);
  CHECK(e.error() == 7);
}

TEST_CASE("a graph that is given up frees versions that were never used") {
  number x(3);
  execution e;
  e.add({reads(x)});
  e.add({writes(x)}).may_rename(kind_of_number);
  e.begin(nullptr, 0, 4);
  CHECK(e.g.renames() == 1);
  CHECK(e.g.can_be_given_up());
  e.g.give_up();
  CHECK(number::alive == 1);
  CHECK(x.value == 3);
}

TEST_CASE("a graph of tiny tasks burdens its owner") {
  execution e;
  const closure& first = e.add();
  const closure& second = e.add();
  e.begin();
  CHECK_FALSE(e.g.unprofitable());
  CHECK_FALSE(e.g.tiny());
  report(e.g, tiny, false);  // what thieves find says nothing of the owner's own
  CHECK_FALSE(e.g.unprofitable());
  CHECK(e.g.tiny());
  report(e.g, tiny, true);
  CHECK(e.g.unprofitable());
  report(e.g, fair, false);  // one way or the other
  CHECK(e.g.unprofitable());
  report(e.g, long_enough, false);  // but it may be worth their while
  CHECK_FALSE(e.g.unprofitable());
  CHECK_FALSE(e.g.tiny());
  report(e.g, tiny, true);
  CHECK(e.g.unprofitable());

  CHECK(e.g.left_behind() == nullptr);
  e.take();
  e.take();
  e.end(second);
  CHECK(e.g.left_behind() == nullptr);
  e.end(first);
  CHECK(e.g.left_behind() == &second);
}

TEST_CASE("the owner may go on behind what has ended, while nobody else is at a task") {
  execution e;
  const closure& first = e.add({writes(e.a)});
  const closure& second = e.add({writes(e.a)});
  const closure& third = e.add({writes(e.b)});
  const closure& fourth = e.add({writes(e.a)});
  e.begin();
  e.visit_all();
  CHECK(e.g.left_behind() == nullptr);  // nothing has ended
  CHECK(e.take_all() == tasks{&first, &third});
  e.end(first);
  CHECK(e.g.left_behind() == nullptr);  // somebody is at the third
  e.end(third);
  CHECK(e.g.left_behind() == &first);
  CHECK(state_of(third) == closure_state::done);  // which whoever goes on passes by
  CHECK(state_of(second) == closure_state::created);
  CHECK(e.take_all() == tasks{&second});
  CHECK(e.g.left_behind() == nullptr);
  e.end(second);
  CHECK(e.g.left_behind() == &third);
  CHECK(state_of(fourth) == closure_state::created);
}

TEST_CASE("the owner stays with a graph in which something is done apart") {
  execution e;
  const closure& first = e.add({writes(e.a)});
  e.commutes(e.a);
  e.begin();
  e.visit_all();
  CHECK(e.take_all() == tasks{&first});
  e.end(first);
  CHECK(e.g.left_behind() == nullptr);
}

TEST_CASE("thieves leave the level of tiny tasks alone, until one is worth their while") {
  execution e;
  e.add();
  e.begin();
  CHECK_FALSE(e.cooldown.covers(*e.top->parent));
  report(e.g, fair, false);
  CHECK_FALSE(e.cooldown.covers(*e.top->parent));
  report(e.g, tiny, false);
  CHECK(e.cooldown.covers(*e.top->parent));
  CHECK_FALSE(e.cooldown.covers(*e.top));
  CHECK(e.cooldown.last() == e.g.tiny_until.get());
  report(e.g, long_enough, true);
  CHECK_FALSE(e.cooldown.any());
}

TEST_CASE("a rest becomes longer, never shorter, until it is ended") {
  using clock = weft::sched::deadline::clock;
  execution e;
  const weft::sched::frame& level = *e.top;
  weft::sched::steal_cooldown& r = e.cooldown;
  const auto far = clock::now() + std::chrono::hours(2), near = clock::now() + std::chrono::hours(1);
  r.begin(level, far);
  r.begin(level, near);
  CHECK(r.last() == far);
  CHECK(r.covers(level));
  r.begin(*level.parent, near);  // another level is another rest
  CHECK(r.last() == near);
  CHECK_FALSE(r.covers(level));
  r.end();
  CHECK_FALSE(r.covers(*level.parent));
  CHECK_FALSE(r.any());
  r.begin(level, clock::now() - std::chrono::hours(1));
  CHECK(r.any());
  CHECK_FALSE(r.covers(level));  // it is over
}

TEST_CASE("a graph with priorities is no burden, nor is one with a failure") {
  execution e;
  e.add();
  e.begin();
  report(e.g, tiny, true);
  CHECK(e.g.unprofitable());
  e.add({}, {}, {.priority = 1});
  e.visit_all();
  CHECK_FALSE(e.g.unprofitable());

  execution f;
  const closure& failing = f.add();
  f.begin();
  report(f.g, tiny, true);
  f.take();
  f.fail(failing, 1);
  CHECK_FALSE(f.g.unprofitable());
}

TEST_CASE("a graph may begin behind what an earlier one has ended") {
  execution e;
  closure& before = e.add({writes(e.a)});
  const closure& next = e.add({writes(e.a)});
  set(before, closure_state::done);
  e.g.begin(e, *e.top, &before, 0);
  e.visit_all();
  CHECK(e.g.at == nullptr);
  CHECK(e.take_all() == tasks{&next});
}

TEST_CASE("a rest is twice as long as the one before, if that was not long ago") {
  using weft::sched::granularity::first_cooldown;
  using clock = weft::sched::deadline::clock;
  // What follows at once is meant to: where this thread was kept from that, once more.
  bool right = false;
  for (int again = 0; !right && again < 100; ++again) {
    weft::sched::steal_cooldown c;
    const weft::sched::frame below;
    const auto length = [&] {
      const auto before = clock::now();
      c.begin(below);
      return c.last() - before;
    };
    right = length() >= first_cooldown && length() >= 2 * first_cooldown && length() >= 4 * first_cooldown;
    for (int i = 0; i < 20; ++i) length();
    c.end();
    c.begin(below);
    right = right && c.last() > clock::now() + 16 * first_cooldown;
    c.reset();
    c.begin(below);
    weft_test::wait_until([&] { return clock::now() > c.last() + 5 * first_cooldown; });
    right = right && length() < 2 * first_cooldown;  // that was long ago
  }
  CHECK(right);
  weft::sched::steal_cooldown r;
  const weft::sched::frame below, other;
  CHECK_FALSE(r.any());
  CHECK_FALSE(r.covers(below));
  const auto length = [&] {
    const auto before = clock::now();
    r.begin(below);
    return r.last() - before;
  };
  CHECK(length() >= first_cooldown);
  CHECK(r.any());
  for (int i = 0; i < 20; ++i) length();
  CHECK_FALSE(r.covers(other));
  const auto now = clock::now();
  CHECK(r.last() <= now + 32 * first_cooldown);
  r.end();
  CHECK_FALSE(r.any());
  CHECK_FALSE(r.covers(below));
  r.begin(below);
  r.reset();
  CHECK_FALSE(r.any());
  r.begin(below);
  CHECK(r.last() <= clock::now() + first_cooldown);
  CHECK(r.is_for(below));
  CHECK_FALSE(r.is_for(other));
  weft_test::wait_until([&] { return clock::now() > r.last() + 5 * first_cooldown; });
  CHECK_FALSE(r.covers(below));
  CHECK(r.is_for(below));
  r.begin(below);
  // What shows that there is something to rest from may take long.
  const auto soon = r.last() + first_cooldown / 2;
  weft_test::wait_until([&] { return clock::now() > r.last() + 5 * first_cooldown; });
  const auto before = clock::now();
  r.begin_since(below, soon);
  CHECK(r.last() - before >= 2 * first_cooldown);
}

TEST_CASE("the first body of a batch tells how long its tasks are, unless longer ones follow") {
  using namespace weft::sched;
  using namespace std::chrono_literals;
  using duration = granularity_estimator::clock::duration;
  using enum granularity_estimator::length;
  granularity_estimator speed;
  const auto learn = [&](duration first_took, duration together, bool by_owner = true,
                         std::uint32_t count = 2) {
    const auto start = granularity_estimator::clock::time_point(1h);
    return speed.learn({.taken = count, .start = start, .first_took = first_took}, start + together, by_owner,
                       2);
  };
  const duration least = granularity::tiny_task, lot = granularity::mixed_batch;
  CHECK(speed.began() == granularity_estimator::clock::time_point());
  CHECK(learn(node_batch::unknown, lot) == worthwhile);
  CHECK(learn(node_batch::unknown, least) == tiny);
  CHECK(learn(node_batch::waited, lot) == worthwhile);
  CHECK(learn(node_batch::waited, least) == tiny);
  CHECK(speed.began() == granularity_estimator::clock::time_point(1h));
  speed.reset();
  CHECK(speed.began() == granularity_estimator::clock::time_point());
  CHECK(learn(least / 2, lot) == tiny);
  CHECK_FALSE(speed.longer());
  speed.reset();
  CHECK(learn(3 * least, lot) == worthwhile);
  CHECK(speed.longer());
  // The way to a thief's core is not its length.
  speed.reset();
  CHECK(learn(least + granularity::transfer / 2, lot) == medium);
  speed.reset();
  CHECK(learn(least + granularity::transfer / 2, lot, false) == tiny);
  CHECK(learn(0ns, lot, false) == tiny);
  // One that was delayed does not hide that others are tiny, and many long ones show soon.
  speed.reset();
  CHECK(learn(0ns, lot) == tiny);
  CHECK(learn(3 * least, lot) == tiny);
  CHECK(learn(3 * least, lot) == medium);
  CHECK(learn(0ns, lot) == tiny);
  CHECK(learn(std::chrono::hours(1), lot) == worthwhile);
  int batches = 0;
  while (batches < 10 && learn(0ns, lot) != tiny) ++batches;
  CHECK(batches < 10);
  // A batch that takes long although its first body was short: unless that is the only one, or they are so
  // many.
  CHECK(learn(0ns, 2 * lot, true, 1) == tiny);
  CHECK(learn(0ns, 2 * lot, true, static_cast<std::uint32_t>(2 * lot / (3 * least)) + 1) == tiny);
  CHECK(learn(0ns, 2 * lot) == worthwhile);
}

TEST_CASE("the first body of a batch is measured while it is the only one that has begun") {
  using weft::sched::node_batch;
  CHECK(node_batch{.left = 1, .taken = 2}.in_first());
  CHECK(node_batch{.left = 2, .taken = 1, .kept = 2}.in_first());
  CHECK_FALSE(node_batch{.left = 0, .taken = 2}.in_first());
  CHECK_FALSE(node_batch{.left = 1, .taken = 2, .first_took = std::chrono::nanoseconds(1)}.in_first());
  CHECK_FALSE(node_batch{.left = 0, .taken = 1, .first_took = node_batch::waited}.in_first());
  CHECK_FALSE(node_batch{}.in_first());
}

TEST_CASE("a graph in which all workers together do no more than its owner alone is left") {
  using namespace weft::sched;
  using namespace std::chrono_literals;
  using clock = granularity_estimator::clock;
  using enum granularity_estimator::length;
  const auto run = [](clock::duration body, clock::duration between, std::uint32_t others) {
    granularity_estimator speed;
    auto last = medium;
    clock::time_point now = clock::now();
    for (std::uint32_t i = 0; i < granularity::comparison_window && last == medium; ++i) {
      last = speed.learn({.taken = 1, .start = now}, now + body, true, 2);
      if (others != 0) speed.learn({.taken = others, .start = now}, now + others * body, false, 2);
      now += body + between;
    }
    return std::pair(last, speed.tiny_throughout());
  };
  // Bodies neither tiny nor long. Without help, whatever the graph costs is lost.
  const auto body = granularity::tiny_task * 3 / 2;
  CHECK(run(body, 0ns, 0) == std::pair(tiny, true));
  CHECK(run(body, body, 0) == std::pair(tiny, true));
  CHECK(run(body, body, 1) == std::pair(tiny, true));  // it costs as much as the other one does
  CHECK(run(body, body / 2, 1) == std::pair(medium, false));
  CHECK(run(body, 2 * body, 3) == std::pair(medium, false));
  // Long ones may wait for each other.
  CHECK(run(2 * granularity::longest_doubtful, 4 * granularity::longest_doubtful, 0).second == false);
}

TEST_CASE("who polls a graph reads no cache line that workers write with every task") {
  graph g;
  const auto line = [](const auto& of, std::size_t last = 0) {
    return (reinterpret_cast<std::uintptr_t>(&of) + last) / 64;
  };
  const auto end = [&](const auto& of) { return line(of, sizeof(of) - 1); };
  for (const std::uintptr_t polled : {line(g.owner), line(g.outer), line(g.may_take), line(g.may_visit),
                                      line(g.owner_near), line(g.tiny_until), line(g.owner_visits)})
    for (const std::uintptr_t written : {line(g.mutex), line(g.at), line(g.own), end(g.own)})
      CHECK(polled != written);
}
