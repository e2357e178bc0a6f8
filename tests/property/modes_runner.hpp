// SPDX-License-Identifier: BSL-1.0
// Runs a program over all access modes on the library: one generic body, launched through a table of shapes.
#pragma once

#include "modes_execute.hpp"
#include "value.hpp"

#include <weft/weft.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace property::modes {

/// Shared by all value types.
inline std::array<std::atomic<std::uint64_t>, shapes::all::size> shape_uses{};

/// Operations of contributions: empty types, a pointer, and one with a state.
struct composed {
  template <class V>
  V operator()(V x, V y) const {
    return V(combine(0, std::uint64_t(x), std::uint64_t(y)));
  }
};
struct composed_back {
  template <class V>
  V operator()(V x, V y) const {
    return V(combine(1, std::uint64_t(x), std::uint64_t(y)));
  }
};
template <class V>
V composed_in_disguise(V x, V y) {
  return V(combine(2, std::uint64_t(x), std::uint64_t(y)));
}
struct composed_by_state {
  std::uint64_t word = state;
  template <class V>
  V operator()(V x, V y) const {
    return V(compose(std::uint64_t(x) ^ word, std::uint64_t(y) ^ word) ^ word);
  }
};
template <class V, int N>
using operation_t = std::tuple_element_t<static_cast<std::size_t>(N),
                                         std::tuple<composed, composed_back, V (*)(V, V), composed_by_state>>;
template <class V, int N>
operation_t<V, N> operation() {
  if constexpr (N == 2)
    return &composed_in_disguise<V>;
  else
    return {};
}

/// The right on one object, or one part of an array, that a kind names.
template <class V, kind K>
auto right_type() {
  constexpr properties p = of(K);
  if constexpr (p.array) {
    if constexpr (p.right == grade::read)
      return std::type_identity<std::conditional_t<p.weak, weft::weak_read<V[]>, weft::read<V[]>>>();
    else if constexpr (p.right == grade::write)
      return std::type_identity<std::conditional_t<p.weak, weft::weak_write<V[]>, weft::write<V[]>>>();
    else
      return std::type_identity<std::conditional_t<p.weak, weft::weak_update<V[]>, weft::update<V[]>>>();
  } else if constexpr (p.right == grade::reduce) {
    using op = operation_t<V, p.operation>;
    return std::type_identity<std::conditional_t<p.weak, weft::weak_reduce<V, op>, weft::reduce<V, op>>>();
  } else if constexpr (p.right == grade::commute) {
    return std::type_identity<weft::commute<V>>();
  } else if constexpr (p.right == grade::read) {
    return std::type_identity<std::conditional_t<p.weak, weft::weak_read<V>, weft::read<V>>>();
  } else if constexpr (p.right == grade::write) {
    return std::type_identity<std::conditional_t<p.weak, weft::weak_write<V>, weft::write<V>>>();
  } else {
    return std::type_identity<std::conditional_t<p.weak, weft::weak_update<V>, weft::update<V>>>();
  }
}
template <class V, kind K>
using right = typename decltype(right_type<V, K>())::type;

/// The parameter of a task function.
template <class V, kind K>
auto parameter_type() {
  constexpr properties p = of(K);
  using element = std::conditional_t<p.right == grade::read, const V, V>;
  if constexpr (p.list)
    return std::type_identity<std::vector<right<V, K>>>();
  else if constexpr (!p.plain)
    return std::type_identity<right<V, K>>();
  else if constexpr (p.array)
    return std::type_identity<std::span<element>>();
  else
    return std::type_identity<element&>();
}
template <class V, kind K>
using parameter = typename decltype(parameter_type<V, K>())::type;

/// A right as it is held, with what is known of it at compile time.
template <class V, kind K>
struct holding {
  right<V, K> it;
};
template <class V>
struct plain_holding {
  std::span<V> room;
};
template <class V>
struct const_plain_holding {
  std::span<const V> room;
};

template <class V>
struct machine {
  std::vector<std::atomic<unsigned char>> ran;
  std::deque<std::atomic<int>> contributors;  // at work on a name of the whole program's
  std::mutex door;
  std::set<const void*> commuted;  // what commuting tasks are at work on; versions of an object count apart
  std::atomic<std::uint64_t> together{0}, intruders{0};
  std::atomic<int> wrong_tokens{0};
};

/// One task's body while it runs.
template <class V>
class body {
 public:
  using enum kind;
  using handle =
      std::variant<weft::shared<V>*, weft::shared_array<V>*, plain_holding<V>, const_plain_holding<V>,
                   holding<V, read>, holding<V, write>, holding<V, update>, holding<V, commute>,
                   holding<V, reduce0>, holding<V, reduce1>, holding<V, reduce2>, holding<V, reduce3>,
                   holding<V, weak_read>, holding<V, weak_write>, holding<V, weak_update>,
                   holding<V, weak_reduce0>, holding<V, weak_reduce1>, holding<V, part_read>,
                   holding<V, part_write>, holding<V, part_update>, holding<V, weak_part_read>,
                   holding<V, weak_part_write>, holding<V, weak_part_update>>;

  body(machine<V>& m, const task& t) : m_(m), t_(t) {
    m.ran[static_cast<std::size_t>(t.id)].fetch_add(1, std::memory_order_relaxed);  // read after run returned
  }
  body(const body&) = delete;
  body& operator=(const body&) = delete;
  ~body() {
    for (std::atomic<int>* n : noted_) n->fetch_sub(1, std::memory_order_relaxed);  // see note
    const std::lock_guard hold(m_.door);
    for (const void* object : commuting_) m_.commuted.erase(object);
  }

  void check_token(const V& token) {
    if (std::uint64_t(token) != static_cast<std::uint64_t>(t_.id))
      m_.wrong_tokens.fetch_add(1, std::memory_order_relaxed);  // read after run returned
  }

  void hold(int number, handle h) { names_.push_back({number, std::move(h)}); }

  /// Takes the argument number `i` of the task.
  template <kind K>
  void take(std::size_t i, parameter<V, K>& p) {
    const argument& a = t_.arguments[i];
    if constexpr (of(K).list) {
      std::size_t n = 0;
      if (p.size() != a.targets.size()) std::abort();
      for (auto& r : p) hold(a.targets[n++].name, holding<V, base<K>()>{r});
    } else if constexpr (!of(K).plain) {
      hold(a.targets[0].name, holding<V, base<K>()>{p});
    } else {
      using kept = std::conditional_t<of(K).right == grade::read, const_plain_holding<V>, plain_holding<V>>;
      if constexpr (of(K).array)
        hold(a.targets[0].name, kept{p});
      else
        hold(a.targets[0].name, kept{{&p, 1}});
    }
    if constexpr (of(K).right == grade::commute) {
      if constexpr (of(K).list)
        for (auto& r : p) commute_on(&*r);
      else if constexpr (of(K).plain)
        commute_on(&p);
      else
        commute_on(&*p);
    }
    if constexpr (of(K).right == grade::reduce && !of(K).weak)
      for (const target& g : a.targets) note(g, m_.contributors, m_.together);
  }

  std::uint64_t run() {
    for (const step& s : t_.steps) perform(s);
    return acc_;
  }

  /// What a child gets.
  template <kind K>
  auto hand(const argument& a) {
    if constexpr (of(K).list) {
      std::vector<right<V, K>> list;
      for (const target& g : a.targets) list.push_back(hand_one<K>(g));
      return list;
    } else {
      return hand_one<K>(a.targets[0]);
    }
  }

  /// The same, naming an object that is to be written as its handle would: it may then be renamed.
  template <kind K>
  auto hand_own(const argument& a) {
    if constexpr (is_write<K>)
      return weft::flow::key::make<weft::write<V, true>>(weft::flow::address(hand<K>(a)));
    else
      return hand<K>(a);
  }
  /// Whether the right is `write` of one whole object.
  template <kind K>
  static constexpr bool is_write = of(K).right == grade::write && !of(K).weak && !of(K).array && !of(K).list;

  machine<V>& engine() { return m_; }

 private:
  struct name {
    int number;
    handle how;
  };

  /// The kind of one element of a list, without plain forms.
  template <kind K>
  static constexpr kind base() {
    for (std::size_t i = 0; i < all_kinds.size(); ++i) {
      const properties &p = all_kinds[i], &q = of(K);
      if (!p.list && !p.plain && p.right == q.right && p.operation == q.operation && p.weak == q.weak &&
          p.array == q.array)
        return static_cast<kind>(i);
    }
    return K;
  }

  /// Only objects of the whole program delegated by the root are watched.
  void note(const target& g, std::deque<std::atomic<int>>& at_work, std::atomic<std::uint64_t>& met) {
    if (static_cast<std::size_t>(g.from) >= at_work.size()) return;
    // Relaxed, here and in the destructor: only the count matters; it orders nothing.
    std::atomic<int>& n = at_work[static_cast<std::size_t>(g.from)];
    if (n.fetch_add(1, std::memory_order_relaxed) != 0) met.fetch_add(1, std::memory_order_relaxed);
    noted_.push_back(&n);
  }

  void commute_on(const V* object) {
    const std::lock_guard hold(m_.door);
    if (m_.commuted.insert(object).second)
      commuting_.push_back(object);
    else
      m_.intruders.fetch_add(1, std::memory_order_relaxed);  // read after run returned
  }

  template <kind K>
  right<V, K> hand_one(const target& g) {
    return std::visit([&](auto& h) -> right<V, K> { return narrow<K>(h, g); }, find(g.from));
  }
  template <kind K>
  static right<V, K> from_whole(auto& object) {
    if constexpr (of(K).right == grade::reduce)
      return right<V, K>(object, operation<V, of(K).operation>());
    else
      return right<V, K>(object);
  }
  template <kind K, class H>
  static right<V, K> narrow(H&, const target&) {
    std::abort();  // the legaliser lets no such program through
  }
  template <kind K>
  static right<V, K> narrow(weft::shared<V>*& h, const target&) {
    if constexpr (!of(K).array) return from_whole<K>(*h);
    std::abort();
  }
  template <kind K>
  static right<V, K> narrow(weft::shared_array<V>*& h, const target& g) {
    if constexpr (of(K).array)
      return right<V, K>(h->slice(static_cast<std::size_t>(g.first), static_cast<std::size_t>(g.count)));
    std::abort();
  }
  template <kind K, kind Held>
  static right<V, K> narrow(holding<V, Held>& h, const target& g) {
    constexpr properties wanted = of(K), held = of(Held);
    if constexpr (wanted.array != held.array || !may_hand_on(held.right, held.operation, wanted) ||
                  (held.weak && std::is_same_v<right<V, K>, void>)) {
      std::abort();
    } else if constexpr (wanted.array) {
      const auto part = h.it.slice(static_cast<std::size_t>(g.first), static_cast<std::size_t>(g.count));
      return right<V, K>(part);
    } else if constexpr (held.right == grade::update && wanted.right == grade::reduce) {
      return from_whole<K>(h.it);
    } else {
      return right<V, K>(h.it);
    }
  }

  void perform(const step& s) {
    switch (s.what) {
      case action::get:
        for (const V& v : view(s.name)) acc_ = mix(acc_, std::uint64_t(v));
        break;
      case action::set: {
        std::uint64_t i = 0;
        for (V& v : room(s.name)) v = V(mix(acc_, s.constant + i++));
        break;
      }
      case action::mod: {
        std::uint64_t i = 0;
        for (V& v : room(s.name)) {
          v = V(mix(std::uint64_t(v), acc_ ^ (s.constant + i++)));
          acc_ = mix(acc_, std::uint64_t(v));
        }
        break;
      }
      case action::add: {
        V& v = room(s.name)[0];
        v = V(std::uint64_t(v) + mix(acc_, s.constant));
        break;
      }
      case action::contribute:
        contribute(s);
        break;
      case action::make:
        hold(s.name, &owned_.emplace_back(V(s.constant)));
        break;
      case action::repeat: {
        weft::recorded again;
        for (std::uint64_t i = 0; i < s.constant; ++i)
          again([&] {
            for (const task& c : s.child) fork(c);
          });
        break;
      }
      case action::fork:
        fork(s.child.front());
        break;
      case action::sync:
        weft::sync();
        break;
      case action::catching_sync:
        try {
          weft::sync();
        } catch (const thrown& e) {
          acc_ = mix(acc_, e.id());
        }
        break;
      case action::fail:
        throw thrown(s.constant);
      case action::spin:
        for (std::uint64_t i = 0; i < s.constant; ++i) {
          for (int k = 0; k < 100; ++k) asm volatile("" : : "r"(k));  // keeps the loop
          if (i % 8 == 7) weft::base::yield();
        }
        break;
    }
  }

  void contribute(const step& s) {
    std::visit(
        [&]<class H>(H& h) {
          constexpr int op = operation_of(static_cast<H*>(nullptr));
          if constexpr (op >= 0) {
            const std::uint64_t v = contributed(op, mix(acc_, s.constant));
            if (s.constant % 4 < 2)
              h.it += v;
            else
              h.it += V(v);
          } else {
            std::abort();
          }
        },
        find(s.name));
  }
  static constexpr int operation_of(void*) { return -1; }
  template <kind K>
  static constexpr int operation_of(holding<V, K>*) {
    return of(K).weak ? -1 : of(K).operation;
  }

  void fork(const task& c);

  std::span<const V> view(int number) {
    handle& h = find(number);
    if (auto* x = std::get_if<weft::shared<V>*>(&h)) return {&(*x)->get(), 1};
    if (auto* x = std::get_if<weft::shared_array<V>*>(&h)) return (*x)->get();
    if (auto* x = std::get_if<const_plain_holding<V>>(&h)) return x->room;
    if (auto* x = std::get_if<holding<V, read>>(&h)) return {&*x->it, 1};
    if (auto* x = std::get_if<holding<V, part_read>>(&h)) return x->it.span();
    return room(number);
  }
  std::span<V> room(int number) {
    handle& h = find(number);
    if (auto* x = std::get_if<plain_holding<V>>(&h)) return x->room;
    if (auto* x = std::get_if<holding<V, write>>(&h)) return {&*x->it, 1};
    if (auto* x = std::get_if<holding<V, update>>(&h)) return {&*x->it, 1};
    if (auto* x = std::get_if<holding<V, commute>>(&h)) return {&*x->it, 1};
    if (auto* x = std::get_if<holding<V, part_write>>(&h)) return x->it.span();
    return std::get<holding<V, part_update>>(h).it.span();
  }

  handle& find(int number) {
    for (name& n : names_)
      if (n.number == number) return n.how;
    std::abort();  // the legaliser lets no such program through
  }

  machine<V>& m_;
  const task& t_;
  std::uint64_t acc_ = mix(0, static_cast<std::uint64_t>(t_.id));
  std::deque<name> names_{};
  std::list<weft::shared<V>> owned_{};
  std::vector<std::atomic<int>*> noted_{};
  std::vector<const void*> commuting_{};
};

template <class V, class Shape>
struct launcher;
template <class V, kind... K>
struct launcher<V, shape<K...>> {
  static void work(machine<V>* m, const task* t, V token, parameter<V, K>... p) {
    body<V> b(*m, *t);
    b.check_token(token);
    [[maybe_unused]] std::size_t i = 0;
    (b.template take<K>(i++, p), ...);
    b.run();
  }
  static void iterate(int, machine<V>* m, const task* t, V token, parameter<V, K>... p) {
    work(m, t, std::move(token), static_cast<parameter<V, K>>(p)...);
    weft::sync();
  }
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
    machine<V>* const m = &b.engine();
    const V token(static_cast<std::uint64_t>(c.id));
    if constexpr (may_loop(shape<K...>::kinds))
      if (c.times != 0)
        return weft::fork_for({.name = "property", .priority = c.priority}, 0, c.times, iterate, m, &c, token,
                              std::move(arguments)...);
    if (c.local || c.priority != 0)
      weft::fork({.name = "property", .priority = c.priority, .local = c.local}, work, m, &c, token,
                 std::move(arguments)...);
    else
      weft::fork(work, m, &c, token, std::move(arguments)...);
  }
};

template <class V, class... S>
constexpr auto launch_table(shape_list<S...>) {
  return std::array<void (*)(body<V>&, const task&), sizeof...(S)>{&launcher<V, S>::launch...};
}

template <class V>
void body<V>::fork(const task& c) {
  static constexpr auto table = launch_table<V>(shapes::all{});
  const auto i = static_cast<std::size_t>(c.shape);
  shape_uses[i].fetch_add(1, std::memory_order_relaxed);  // a statistic, read at the end
  table[i](*this, c);
}

/// Runs p on rt with objects of type V and reports what it shows.
template <class V>
observation execute(weft::runtime& rt, const program& p, notices& seen) {
  observation out;
  machine<V> m;
  m.ran = std::vector<std::atomic<unsigned char>>(static_cast<std::size_t>(p.tasks));
  m.contributors.resize(p.objects.size());

  std::deque<std::variant<weft::shared<V>, weft::shared_array<V>>> objects;
  for (const object& o : p.objects)
    if (o.array)
      objects.emplace_back(std::in_place_index<1>, static_cast<std::size_t>(o.size));
    else
      objects.emplace_back(std::in_place_index<0>, V(o.initial));
  try {
    out.value = rt.run([&] {
      body<V> root(m, p.root);
      int i = 0;
      for (auto& o : objects)
        if (auto* s = std::get_if<0>(&o))
          root.hold(i++, s);
        else
          root.hold(i++, &std::get<1>(o));
      return root.run();
    });
  } catch (const thrown& e) {
    out.exception = e.id();
  } catch (const std::exception& e) {
    out.other = e.what();
  }
  for (auto& o : objects)
    if (auto* s = std::get_if<0>(&o))
      out.objects.push_back({std::uint64_t(s->get()), true});
    else
      for (const V& v : std::get<1>(o).get()) out.objects.push_back({std::uint64_t(v), true});
  for (const auto& n : m.ran) out.ran.push_back(n.load(std::memory_order_relaxed));  // run has returned
  out.wrong_tokens = m.wrong_tokens.load(std::memory_order_relaxed);                 // the same
  seen.together += m.together.load(std::memory_order_relaxed);                       // the same
  seen.intruders += m.intruders.load(std::memory_order_relaxed);                     // the same
  return out;
}

}  // namespace property::modes
