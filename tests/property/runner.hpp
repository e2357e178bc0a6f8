// SPDX-License-Identifier: BSL-1.0
// Runs a random program on the library: one generic body, launched through a table of shapes.
#pragma once

#include "address.hpp"
#include "body.hpp"
#include "execute.hpp"

#include <weft/threads/spawn.hpp>

#include <array>
#include <atomic>
#include <mutex>
#include <type_traits>
#include <utility>

namespace property {

/// Lets a container construct in place what a function returns.
template <class F>
struct in_place_result {
  F make;
  operator std::invoke_result_t<F&>() { return make(); }
};
template <class F>
in_place_result(F) -> in_place_result<F>;

/// The task functions of one shape, and how to fork them.
template <class V, class Shape>
struct launcher;
template <class V, kind... K>
struct launcher<V, shape<K...>> {
  static void work(address<machine<V>> m, address<const task> t, V token, parameter<V, K>... p) {
    run(*m, *t, token, p...);
  }
  static V result(address<machine<V>> m, address<const task> t, V token, parameter<V, K>... p) {
    return V(run(*m, *t, token, p...));
  }
  static std::uint64_t run(machine<V>& m, const task& t, const V& token, parameter<V, K>&... p) {
    body<V> b(m, t);
    b.check_token(token);
    [[maybe_unused]] std::size_t i = 0;
    (b.template take<K>(i++, p), ...);
    return b.run();
  }
  static void iterate(int, address<machine<V>> m, address<const task> t, V token, parameter<V, K>... p) {
    work(m, t, std::move(token), static_cast<parameter<V, K>>(p)...);
    weft::sync();
  }
  /// A loop as one body, which gives iterations away by a steal function.
  static void share(int first, int last, address<machine<V>> m, address<const task> t, V token,
                    parameter<V, K>... p) {
    weft::interval<int> left(first, last);
    const weft::steal_function give([&](weft::thief& by) {
      if (const auto part = left.take_back_half(1)) {
        note_use(use::shared_part);
        by.fork({.name = name_of_loop(*t)}, share, part->first, part->last, m, t, token, p...);
      }
    });
    while (const auto next = left.take_front(1)) iterate(next->first, m, t, token, p...);
  }
  static const char* name_of_loop(const task& t) { return t.options ? name_of(t) : "property"; }
  static void launch(body<V>& b, const task& c) { hand(b, c, std::make_index_sequence<sizeof...(K)>{}); }
  template <std::size_t... I>
  static void hand(body<V>& b, const task& c, std::index_sequence<I...>) {
    if constexpr ((body<V>::template is_write<K> || ...))
      if (((!body<V>::template is_write<K> || sets_first(c, c.arguments[I])) && ...))
        return fork(b, c, b.template hand_own<K>(c.arguments[I])...);
    fork(b, c, b.template hand<K>(c.arguments[I])...);
  }
  /// Whether the task gives the object a value before all else; what a renamed object holds is unspecified.
  static bool sets_first(const task& c, const argument& a) {
    for (const step& s : c.steps) {
      if (s.what == action::set && s.name == a.targets[0].name) return true;
      if (s.what == action::fork || s.what == action::repeat || s.what == action::sync ||
          s.what == action::catching_sync || s.what == action::fail)
        return false;
    }
    return false;
  }
  static void fork(body<V>& b, const task& c, auto... arguments) {
    const address<machine<V>> m(&b.engine());
    const address<const task> t(&c);
    const V token(static_cast<std::uint64_t>(c.id));
    constexpr auto& kinds = shape<K...>::kinds;
    weft::task_options options{.name = "property"};
    if (c.options) options = {.name = name_of(c), .priority = c.priority, .local = c.local};
    if constexpr (may_return(kinds))
      if (c.gives == outcome::object)
        return b.hold(c.result, &b.own(in_place_result{[&] {
          return weft::fork(options, result, m, t, token, std::move(arguments)...);
        }}));
    if constexpr (may_share(kinds))
      if (c.times != 0 && c.id % 2 == 0)
        return weft::fork(options, share, 0, c.times, m, t, token, std::move(arguments)...);
    if constexpr (may_loop(kinds))
      if (c.times != 0)
        return weft::fork_for({.name = options.name, .priority = options.priority}, 0, c.times, iterate, m, t,
                              token, std::move(arguments)...);
    if constexpr (sizeof...(K) <= 1 || !may_have_options(kinds))
      if (!c.options) return weft::fork(work, m, t, token, std::move(arguments)...);
    if constexpr (may_have_options(kinds))
      weft::fork(options, work, m, t, token, std::move(arguments)...);
    else
      std::abort();  // the generator makes no such program
  }
};

template <class V, class... S>
constexpr auto launch_table(shape_list<S...>) {
  return std::array<void (*)(body<V>&, const task&), sizeof...(S)>{&launcher<V, S>::launch...};
}

template <class V>
void body<V>::fork(const task& c) {
  if (c.gives == outcome::memory) {
    std::uint64_t* const out = &m_.results[static_cast<std::size_t>(c.result)];
    hold(c.result, result_memory{out});
    note_use(use::result_in_memory);
    return start(c, [out, m = &m_, t = &c] { *out = body(*m, *t).run(); });
  }
  if (c.spawned) return start(c, [m = &m_, t = &c] { body(*m, *t).run(); });
  if (c.gives == outcome::object) note_use(use::result_returned);
  static constexpr auto table = launch_table<V>(shapes::all{});
  const auto i = static_cast<std::size_t>(c.shape);
  note_use(i);
  table[i](*this, c);
}

template <class V>
void body<V>::start(const task& c, auto run) {
  if (!c.spawned) return weft::fork(std::move(run));
  note_use(use::spawned);
  if (c.options)
    weft::spawn({.name = name_of(c), .priority = c.priority}, std::move(run));
  else
    weft::spawn(std::move(run));
}

/// The bodies begin in another order than that of their turns.
template <class V>
void body<V>::take_turns(const step& s) {
  baton& b = [this]() -> baton& {
    const std::lock_guard hold(m_.door);
    return m_.batons.emplace_back();
  }();
  const std::size_t n = s.child.size(), first = s.constant / 4 % n;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t place = (first + (s.constant % 4 == 1 ? i : n - i)) % n;
    weft::spawn([&b, &s, m = &m_, place, turn = static_cast<int>(place)] {
      note_use(use::turn);
      if (b.turn.get() != turn) note_use(use::turn_wait);
      b.turn.wait_equal(turn);
      b.log = mix(b.log, body(*m, s.child[place]).run());
      if (place + 1 == s.child.size()) m->sums[static_cast<std::size_t>(s.cell)].add(b.log);
      b.turn.set(turn + 1);
    });
  }
}

/// A runtime whose runs are recorded, unless `record` is null.
struct recorded_runtime {
  weft::runtime& rt;
  weft::sched::run_recorder* record;
  template <class F>
  auto run(F&& f) {
    return rt.run({.record = record}, std::forward<F>(f));
  }
};

/// Runs p on rt, a runtime or what has such a `run`, with objects of type V and reports what it shows.
template <class V, class Where>
observation execute(Where& rt, const program& p, const expectation& expected) {
  observation out;
  machine<V> m;
  m.ran = std::vector<std::atomic<unsigned char>>(static_cast<std::size_t>(p.tasks));
  m.contributors.resize(p.objects.size());
  m.results.resize(static_cast<std::size_t>(p.names));

  std::deque<std::variant<weft::shared<V>, weft::shared_array<V>, V>> objects;
  for (const object& o : p.objects) switch (o.where) {
      case home::valued:
        objects.emplace_back(std::in_place_index<0>, V(o.initial));
        break;
      case home::empty:
        objects.emplace_back(std::in_place_index<0>);
        break;
      case home::array:
        objects.emplace_back(std::in_place_index<1>, static_cast<std::size_t>(o.size));
        break;
      case home::borrowed:
        objects.emplace_back(std::in_place_index<2>, o.initial);
    }
  try {
    out.value = rt.run([&] {
      std::list<weft::borrowed<V>> borrowed;
      body<V> root(m, p.root);
      int i = 0;
      for (auto& o : objects)
        if (auto* s = std::get_if<0>(&o))
          root.hold(i++, s);
        else if (auto* a = std::get_if<1>(&o))
          root.hold(i++, a);
        else
          root.hold(i++, lent<V>{&borrowed.emplace_back(weft::borrow(std::get<2>(o))), &std::get<2>(o)});
      return root.run();
    });
  } catch (const thrown& e) {
    out.exception = e.id();
  } catch (const std::exception& e) {
    out.other = e.what();
  }
  const auto read = [&](auto&& value) {  // an object that may be empty is not asked
    const bool known = expected.objects[out.objects.size()].known;
    out.objects.push_back({known ? std::uint64_t(value()) : 0, known});
  };
  for (auto& o : objects)
    if (auto* s = std::get_if<0>(&o))
      read([&] { return s->get(); });
    else if (auto* a = std::get_if<1>(&o))
      for (const V& v : a->get()) read([&] { return v; });
    else
      read([&] { return std::get<2>(o); });
  for (const auto& n : m.ran) out.ran.push_back(n.load(std::memory_order_relaxed));  // run has returned
  for (const counter& c : m.sums) out.sums.push_back(c.sum());
  out.wrong_names = m.wrong_names.load(std::memory_order_relaxed);    // the same
  out.wrong_tokens = m.wrong_tokens.load(std::memory_order_relaxed);  // the same
  out.together = m.together.load(std::memory_order_relaxed);          // the same
  out.intruders = m.intruders.load(std::memory_order_relaxed);        // the same
  return out;
}

}  // namespace property
