// SPDX-License-Identifier: BSL-1.0
// One task of a random program while it runs on the library.
#pragma once

#include "machine.hpp"
#include "rights.hpp"
#include "value.hpp"

#include <weft/weft.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace property {

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

/// A borrowed object and the memory it names.
template <class V>
struct lent {
  weft::borrowed<V>* object;
  V* memory;
};

/// Memory that a child writes and the body reads after a sync.
struct result_memory {
  const std::uint64_t* word;
};

/// One task's body while it runs.
template <class V>
class body {
 public:
  using enum kind;
  using handle =
      std::variant<weft::shared<V>*, weft::shared_array<V>*, lent<V>, result_memory, plain_holding<V>,
                   const_plain_holding<V>, holding<V, read>, holding<V, write>, holding<V, update>,
                   holding<V, commute>, holding<V, reduce0>, holding<V, reduce1>, holding<V, reduce2>,
                   holding<V, reduce3>, holding<V, weak_read>, holding<V, weak_write>,
                   holding<V, weak_update>, holding<V, weak_reduce0>, holding<V, weak_reduce1>,
                   holding<V, part_read>, holding<V, part_write>, holding<V, part_update>,
                   holding<V, weak_part_read>, holding<V, weak_part_write>, holding<V, weak_part_update>>;

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

  /// An argument that is not a right must arrive as it was given.
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
    check_name();
    for (const step& s : t_.steps) {
      perform(s);
      check_name();
    }
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
  weft::shared<V>& own(auto&&... make) { return owned_.emplace_back(std::forward<decltype(make)>(make)...); }

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

  void check_name() {
    if (t_.options && std::strcmp(weft::this_task::name(), name_of(t_)) != 0)
      m_.wrong_names.fetch_add(1, std::memory_order_relaxed);  // read after run returned
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
  static right<V, K> narrow(lent<V>& h, const target&) {
    if constexpr (!of(K).array) return from_whole<K>(*h.object);
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
        if (auto* memory = std::get_if<result_memory>(&find(s.name)))
          acc_ = mix(acc_, *memory->word);
        else
          for (const V& v : view(s.name)) acc_ = mix(acc_, std::uint64_t(v));
        break;
      case action::set:
        assign(s);
        break;
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
        hold(s.name, s.constant != 0 ? &own(V(s.constant)) : &own());
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
      case action::baton:
        take_turns(s);
        break;
      case action::count:
        m_.sums[static_cast<std::size_t>(s.cell)].add(mix(acc_, s.constant));
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
      case action::sync_in_handler:
        sync_while_handling(s.constant);
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

  void assign(const step& s) {
    const bool as_a_whole = s.constant % 4 < 2;  // by the assignment of the right
    handle& h = find(s.name);
    if (auto* w = std::get_if<holding<V, write>>(&h); w != nullptr && as_a_whole)
      w->it = V(mix(acc_, s.constant));
    else if (auto* u = std::get_if<holding<V, update>>(&h); u != nullptr && as_a_whole)
      u->it = V(mix(acc_, s.constant));
    else
      for (std::uint64_t i = 0; V & v : room(s.name)) v = V(mix(acc_, s.constant + i++));
  }

  void sync_while_handling(std::uint64_t id) {
    try {
      throw thrown(id);
    } catch (const thrown&) {
      weft::sync();
      try {
        throw;  // still the one above
      } catch (const thrown& e) {
        acc_ = mix(acc_, e.id());
      }
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
  static void start(const task& c, auto run);
  void take_turns(const step& s);

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
    if (auto* x = std::get_if<lent<V>>(&h)) return {x->memory, 1};
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

}  // namespace property
