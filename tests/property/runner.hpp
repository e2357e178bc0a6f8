// SPDX-License-Identifier: BSL-1.0
// Runs a random program on the library: one generic body, launched through a table of access patterns.
#pragma once

#include "execute.hpp"
#include "value.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace property {

/// Launch counts of the table below, shared by all value types.
inline constexpr std::array<const char*, 22> pattern_names{
    "",        "r",        "w",       "u",        "rr",       "rw",       "ru",      "wu",
    "uu",      "ww",       "rrw",     "rru",      "rwu",      "rrwu",     "plain r", "plain w",
    "plain u", "plain rw", "result ", "result r", "result u", "result ru"};
inline std::array<std::atomic<std::uint64_t>, pattern_names.size() + 1> pattern_uses{};

template <class V>
struct machine {
  std::vector<std::atomic<unsigned char>> ran;
  std::deque<std::uint64_t> slots;  // by object name; written by one task, read by its parent after sync
  std::atomic<int> wrong_names{0}, wrong_tokens{0};
};

template <class V, mode M>
using right = std::conditional_t<M == mode::read, weft::read<V>,
                                 std::conditional_t<M == mode::write, weft::write<V>, weft::update<V>>>;
template <class V, mode M>
using reference = std::conditional_t<M == mode::read, const V&, V&>;

/// A borrowed object and the memory it names.
template <class V>
struct lent {
  weft::borrowed<V>* handle;
  V* memory;
};

/// Plain memory that a child writes and the body reads after sync.
struct slot_memory {
  const std::uint64_t* word;
};

/// One task's body while it runs. Its shared objects are made here, and need not outlive it.
template <class V>
class body {
 public:
  using handle = std::variant<weft::shared<V>*, lent<V>, weft::read<V>, weft::write<V>, weft::update<V>,
                              const V*, V*, slot_memory>;

  body(machine<V>& m, const task& t) : m_(m), t_(t) {
    m.ran[static_cast<std::size_t>(t.id)].fetch_add(1, std::memory_order_relaxed);  // read after run returned
    names_.reserve(t.accesses.size() + t.steps.size());
  }

  /// An argument that is not an access must arrive as it was given.
  void check_token(const V& token) {
    if (std::uint64_t(token) != static_cast<std::uint64_t>(t_.id))
      m_.wrong_tokens.fetch_add(1, std::memory_order_relaxed);  // read after run returned
  }

  void hold(int object, handle h) { names_.push_back({object, std::move(h)}); }

  std::uint64_t run() {
    check_name();
    for (const step& s : t_.steps) {
      do_step(s);
      check_name();
    }
    return acc_;
  }

  /// The right a child gets, narrowed from what this body holds.
  template <mode M>
  right<V, M> hand(int object) {
    handle& h = find(object);
    if (auto* s = std::get_if<weft::shared<V>*>(&h)) return right<V, M>(**s);
    if (auto* b = std::get_if<lent<V>>(&h)) return right<V, M>(*b->handle);
    if (auto* u = std::get_if<weft::update<V>>(&h)) return right<V, M>(*u);
    if constexpr (M == mode::read)
      if (auto* r = std::get_if<weft::read<V>>(&h)) return *r;
    if constexpr (M == mode::write)
      if (auto* w = std::get_if<weft::write<V>>(&h)) return *w;
    std::abort();  // the legaliser lets no such program through
  }

  weft::shared<V>& own(auto&&... make) { return owned_.emplace_back(std::forward<decltype(make)>(make)...); }
  machine<V>& engine() { return m_; }

 private:
  struct name {
    int object;
    handle how;
  };

  void do_step(const step& s) {
    switch (s.what) {
      case action::make:
        hold(s.object, s.constant != 0 ? &own(V(s.constant)) : &own());
        break;
      case action::get:
        acc_ = mix(acc_, read(s.object));
        break;
      case action::set:
        assign(s.object, mix(acc_, s.constant));
        break;
      case action::mod:
        modify(s.object, mix(read(s.object), acc_ ^ s.constant));
        acc_ = mix(acc_, read(s.object));
        break;
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
      case action::sync_in_handler:
        sync_while_handling(s.constant);
        break;
      case action::fail:
        throw thrown(s.constant);
      case action::spin:
        spin(s.constant);
        break;
    }
  }

  void fork(const task& c);

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

  std::uint64_t read(int object) {
    handle& h = find(object);
    if (auto* s = std::get_if<weft::shared<V>*>(&h)) return std::uint64_t((*s)->get());
    if (auto* b = std::get_if<lent<V>>(&h)) return std::uint64_t(*b->memory);
    if (auto* r = std::get_if<weft::read<V>>(&h)) return std::uint64_t(**r);
    if (auto* w = std::get_if<weft::write<V>>(&h)) return std::uint64_t(**w);
    if (auto* u = std::get_if<weft::update<V>>(&h)) return std::uint64_t(**u);
    if (auto* c = std::get_if<const V*>(&h)) return std::uint64_t(**c);
    if (auto* v = std::get_if<V*>(&h)) return std::uint64_t(**v);
    return *std::get<slot_memory>(h).word;
  }

  void assign(int object, std::uint64_t word) {
    handle& h = find(object);
    if (auto* w = std::get_if<weft::write<V>>(&h))
      *w = V(word);
    else if (auto* u = std::get_if<weft::update<V>>(&h))
      *u = V(word);
    else
      modify(object, word);
  }

  void modify(int object, std::uint64_t word) {
    handle& h = find(object);
    if (auto* b = std::get_if<lent<V>>(&h))
      *b->memory = V(word);
    else if (auto* w = std::get_if<weft::write<V>>(&h))
      **w = V(word);
    else if (auto* u = std::get_if<weft::update<V>>(&h))
      **u = V(word);
    else
      *std::get<V*>(h) = V(word);
  }

  handle& find(int object) {
    for (name& n : names_)
      if (n.object == object) return n.how;
    std::abort();  // the legaliser lets no such program through
  }

  void check_name() {
    if (has_options(t_) && std::strcmp(weft::this_task::name(), name_of(t_)) != 0)
      m_.wrong_names.fetch_add(1, std::memory_order_relaxed);  // read after run returned
  }

  static void spin(std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      for (int k = 0; k < 100; ++k) asm volatile("" : : "r"(k));  // keeps the loop
      if (i % 8 == 7) weft::base::yield();
    }
  }

  machine<V>& m_;
  const task& t_;
  std::uint64_t acc_ = mix(0, static_cast<std::uint64_t>(t_.id));
  std::vector<name> names_{};
  std::list<weft::shared<V>> owned_{};
};

/// Lets a container construct in place what a function returns.
template <class F>
struct in_place_result {
  F make;
  operator std::invoke_result_t<F&>() { return make(); }
};
template <class F>
in_place_result(F) -> in_place_result<F>;

/// The task functions of one access pattern, and how to fork them.
template <class V, mode... M>
struct pattern {
  static void rights(machine<V>* m, const task* t, V token, right<V, M>... r) {
    start(*m, *t, token, r...).run();
  }
  static V result(machine<V>* m, const task* t, V token, right<V, M>... r) {
    return V(start(*m, *t, token, r...).run());
  }
  static void plain(machine<V>* m, const task* t, V token, reference<V, M>... r) {
    start(*m, *t, token, &r...).run();
  }

  template <class... H>
  static body<V> start(machine<V>& m, const task& t, const V& token, H... h) {
    body<V> b(m, t);
    b.check_token(token);
    [[maybe_unused]] std::size_t i = 0;
    (b.hold(t.accesses[i++].object, h), ...);
    return b;
  }

  template <flavour F>
  static void launch(body<V>& b, const task& t) {
    hand<F>(b, t, std::index_sequence_for<std::integral_constant<mode, M>...>{});
  }

  template <flavour F, std::size_t... I>
  static void hand(body<V>& b, const task& t, std::index_sequence<I...>) {
    machine<V>* m = &b.engine();
    const task* p = &t;
    const V token(static_cast<std::uint64_t>(t.id));
    if constexpr (F == flavour::result) {
      b.hold(t.result, &b.own(in_place_result{[&] {
        return weft::fork(result, m, p, token, b.template hand<M>(t.accesses[I].object)...);
      }}));
    } else if constexpr (F == flavour::plain) {
      weft::fork(plain, m, p, token, b.template hand<M>(t.accesses[I].object)...);
    } else {
      if constexpr (sizeof...(M) <= 1)
        if (has_options(t))
          return weft::fork({.name = name_of(t), .priority = t.id % 5 - 2, .local = t.id % 3 == 0}, rights, m,
                            p, token, b.template hand<M>(t.accesses[I].object)...);
      weft::fork(rights, m, p, token, b.template hand<M>(t.accesses[I].object)...);
    }
  }
};

template <class V>
void body<V>::fork(const task& c) {
  constexpr mode r = mode::read, w = mode::write, u = mode::update;
  using launcher = void (*)(body&, const task&);
  using enum flavour;
  static constexpr std::array<launcher, pattern_names.size()> table{
      // in the order of pattern_names
      pattern<V>::template launch<rights>,          pattern<V, r>::template launch<rights>,
      pattern<V, w>::template launch<rights>,       pattern<V, u>::template launch<rights>,
      pattern<V, r, r>::template launch<rights>,    pattern<V, r, w>::template launch<rights>,
      pattern<V, r, u>::template launch<rights>,    pattern<V, w, u>::template launch<rights>,
      pattern<V, u, u>::template launch<rights>,    pattern<V, w, w>::template launch<rights>,
      pattern<V, r, r, w>::template launch<rights>, pattern<V, r, r, u>::template launch<rights>,
      pattern<V, r, w, u>::template launch<rights>, pattern<V, r, r, w, u>::template launch<rights>,
      pattern<V, r>::template launch<plain>,        pattern<V, w>::template launch<plain>,
      pattern<V, u>::template launch<plain>,        pattern<V, r, w>::template launch<plain>,
      pattern<V>::template launch<result>,          pattern<V, r>::template launch<result>,
      pattern<V, u>::template launch<result>,       pattern<V, r, u>::template launch<result>};
  if (c.kind == slot) {
    std::uint64_t* out = &m_.slots[static_cast<std::size_t>(c.result)];
    hold(c.result, slot_memory{out});
    pattern_uses.back().fetch_add(1, std::memory_order_relaxed);  // a statistic, read at the end
    weft::fork([out, m = &m_, p = &c] { *out = body(*m, *p).run(); });
    return;
  }
  char key[16];
  char* end = key;
  for (const char* k = c.kind == plain ? "plain " : c.kind == result ? "result " : ""; *k != 0; ++k)
    *end++ = *k;
  for (const access& a : c.accesses) *end++ = "rwu"[static_cast<int>(a.how)];
  const std::string_view wanted(key, static_cast<std::size_t>(end - key));
  const auto at = std::find(pattern_names.begin(), pattern_names.end(), wanted);
  if (at == pattern_names.end()) std::abort();  // the legaliser lets no such program through
  const auto i = static_cast<std::size_t>(at - pattern_names.begin());
  pattern_uses[i].fetch_add(1, std::memory_order_relaxed);  // a statistic, read at the end
  table[i](*this, c);
}

/// Runs p on rt with objects of type V and reports what it shows.
template <class V>
observation execute(weft::runtime& rt, const program& p, const expectation& expected) {
  observation out;
  machine<V> m;
  m.ran = std::vector<std::atomic<unsigned char>>(static_cast<std::size_t>(p.tasks));
  m.slots.resize(static_cast<std::size_t>(p.names));
  std::deque<V> memory;
  std::deque<weft::shared<V>> shared;
  for (const object& o : p.objects) {
    memory.emplace_back(o.initial);
    if (o.where == home::empty)
      shared.emplace_back();
    else
      shared.emplace_back(V(o.initial));
  }
  try {
    out.value = rt.run([&] {
      std::list<weft::borrowed<V>> borrowed;
      body<V> root(m, p.root);
      for (std::size_t i = 0; i < p.objects.size(); ++i)
        if (p.objects[i].where == home::borrowed) {
          borrowed.push_back(weft::borrow(memory[i]));
          root.hold(static_cast<int>(i), lent<V>{&borrowed.back(), &memory[i]});
        } else {
          root.hold(static_cast<int>(i), &shared[i]);
        }
      return root.run();
    });
  } catch (const thrown& e) {
    out.exception = e.id();
  } catch (const std::exception& e) {
    out.other = e.what();
  }
  for (std::size_t i = 0; i < p.objects.size(); ++i) {
    const bool known = expected.objects[i].known;
    const auto value = [&] {
      return std::uint64_t(p.objects[i].where == home::borrowed ? memory[i] : shared[i].get());
    };
    out.objects.push_back({known ? value() : 0, known});
  }
  for (const auto& n : m.ran) out.ran.push_back(n.load(std::memory_order_relaxed));  // run has returned
  out.wrong_names = m.wrong_names.load(std::memory_order_relaxed);                   // the same
  out.wrong_tokens = m.wrong_tokens.load(std::memory_order_relaxed);                 // the same
  return out;
}

}  // namespace property
